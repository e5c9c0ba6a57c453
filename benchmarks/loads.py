"""Loads of each kernel, counted in the emulator, beside the prediction of `tiling/traffic.py`.

    python benchmarks/loads.py MODEL.onnx... [--board mps2-an505]

Every tensor of an unsplit plan is put into the board's second memory: an operator's loads there are its
inputs. Prints counted / predicted for each kernel, with its input and output channels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.execution.counted import by_operator, count_steps
from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic, regions_of
from mcudeploy.planner.plan_options import Options
from mcudeploy.tiling.traffic import loads_per_byte
from mcudeploy.verify.samples import load_samples


def main() -> None:
    """Print a line for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="mps2-an505")
    arguments = parser.parse_args()
    ratios: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for path in arguments.models:
        try:
            for variant, each in _of_model(path, Target(load_board(arguments.board), emulate=True)):
                ratios[variant].append(each)
        except ModelError as error:
            print(f"{path}: {str(error).splitlines()[0]}")
    for variant, each in sorted(ratios.items()):
        shown = ", ".join(
            f"{ratio:.2f} ({inputs} to {outputs})" for ratio, inputs, outputs in sorted(set(each))
        )
        print(f"{variant:28} {shown}")


def _of_model(path: Path, target: Target) -> Iterator[tuple[str, tuple[float, int, int]]]:
    board = target.board
    deployment = plan_model(path, board, Options(split=False, time_limit=5))
    slow = board.memories[1].name
    layout = deployment.plan.layout
    moved = {
        name: tuple(tuple(replace(each, memory=slow) for each in block) for block in blocks)
        for name, blocks in layout.blocks.items()
    }
    arenas = dict.fromkeys((board.memories[0].name, slow), layout.arena_bytes)
    deployment = deployment.with_plan(
        replace(deployment.plan, layout=replace(layout, blocks=moved, arenas=arenas))
    )
    firmware = deployment.build(target)
    sample = load_samples(deployment.model.graph, [], [], 0)[0]
    steps = count_steps(deployment, target, firmware, sample.stored)
    regions = regions_of(firmware)
    graph = deployment.plan.graph
    for name, counts in by_operator(deployment.view, steps).items():
        operator = next((it for it in graph.operators if it.name == name), None)
        if operator is None:
            continue
        factors = loads_per_byte(graph, operator, deployment.model.work.get(name, (0, 0))[0])
        covered = sum(f * t.size_bytes for f, t in zip(factors, graph.input_tensors(operator), strict=True))
        loaded = MemoryTraffic.of(counts, regions, board).loaded[slow]
        tensors = graph.input_tensors(operator)[0], graph.tensors[operator.output]
        channels = [tensor.shape[-1] for tensor in tensors]
        yield deployment.model.calls[name].variant, (round(loaded / covered, 3), *channels)


if __name__ == "__main__":
    main()
