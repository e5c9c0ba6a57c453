"""The benefit of each part of planning: plans without it. Prints a Markdown table.

    python benchmarks/plan_ablation.py MODEL.onnx ... [--board mps2-an386] [--time-limit 20]
        [--max-overhead 5] [--part NAME]...

A row for each omitted part: growth of arenas, in total and at worst, moves and CPU seconds of all plans, with
the input whole and streamed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from mcudeploy.boards.catalogue import load_board
from mcudeploy.ops.fused import fused_kernel
from mcudeploy.planner import planner
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.place import compaction as relocation
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search import best_first, placing, segment_simulation, splitting, stages
from mcudeploy.planner.search.cuts import Space
from mcudeploy.planner.search.seeds import Seeds
from mcudeploy.planner.search.splitting import _FusedSearch

Key = tuple[str, str]
"""A model, and whether its input is whole or streamed."""


@dataclass(frozen=True, slots=True)
class Searched:
    """Arenas by model, and moves and CPU seconds of all models."""

    arenas: dict[Key, int]
    moves: int
    seconds: float


def _nothing(*_: object) -> Iterator[object]:
    return iter(())


@contextmanager
def _without_stage(name: str) -> Iterator[None]:
    others = tuple((text, stage) for text, stage in stages.STAGES if stage.__name__ != name)
    assert len(others) == len(stages.STAGES) - 1
    with patch.object(stages, "STAGES", others):
        yield


@contextmanager
def _no_moves() -> Iterator[None]:
    with patch.object(stages, "_with_moves", lambda task, plan, effort: plan):
        yield


def _given(_: object, order: Sequence[int]) -> list[int]:
    return list(order)


def _undelayed(time: dict[int, int], *_: object) -> dict[int, int]:
    return time


def _no_chains(*_: object) -> tuple[()]:
    return ()


PARTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "orders without idle memory": lambda: patch.object(placing, "without_idle_memory", _given),
    "seeds": lambda: patch.object(Seeds, "states", _nothing),
    "seeds of two halves": lambda: patch.object(Space, "halves", _nothing),
    "prompt steps": lambda: patch.object(segment_simulation, "without_delay", _undelayed),
    "prefixes": lambda: patch.object(Space, "prefixes", _nothing),
    "changes of cuts": lambda: patch.object(Space, "moves", _nothing),
    "16 candidates (1)": lambda: patch.object(best_first, "KEPT", 1),
    "recomputed halos": lambda: _without_stage("_recomputing"),
    "better orders": lambda: _without_stage("_reordering"),
    "moves of the best plans": lambda: _without_stage("_relocating"),
    "order and moves of the best plan": lambda: _without_stage("_improving_the_best"),
    "all moves": _no_moves,
    "looking ahead in relocation (16 births only)": lambda: patch.object(
        relocation, "_TRIES", relocation._TRIES[:1]
    ),
    "fused chains": lambda: patch.object(planner, "chains", _no_chains),
    "the search across forms": lambda: patch.object(_FusedSearch, "_best_chains", _no_chains),
    "tighter limits": lambda: patch.object(splitting, "_TIGHTER_LIMITS", ()),
    "groups of channels": lambda: patch.object(fused_kernel, "_by_groups", _nothing),
}
"""The omitted parts, and how each is switched off."""


def plans(paths: list[Path], board_name: str, options: Options) -> Searched:
    """Return the best plan of each model."""
    board, start = load_board(board_name), time.process_time()
    arenas: dict[Key, int] = {}
    moves = 0
    for path in paths:
        for way in ("whole", "streamed"):
            chosen = replace(options, stream_input=way == "streamed")
            plan = find_plans(read_model(path, chosen, isa=board.isa), board, chosen).choices[0]
            arenas[f"{path.parent.name}/{path.stem}", way] = plan.layout.arena_bytes
            moves += len(plan.layout.transfers)
    return Searched(arenas, moves, time.process_time() - start)


def row(left_out: str, full: Searched, reduced: Searched) -> str:
    """Return a line of the table."""
    growth = {key: reduced.arenas[key] / size - 1 for key, size in full.arenas.items()}
    worst = max(growth, key=lambda key: growth[key])
    larger = sum(more > 0 for more in growth.values())
    smaller = sum(more < 0 for more in growth.values())
    mean = sum(growth.values()) / len(growth)
    at_worst = f"{100 * growth[worst]:+.1f} %: {' '.join(worst)}" if growth[worst] > 0 else ""
    return (
        f"| {left_out} | {larger} | {smaller} | {100 * mean:+.2f} % | {at_worst} | {reduced.moves} | "
        f"{reduced.seconds:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--max-overhead", type=float, default=5.0)
    parser.add_argument("--part", choices=PARTS, action="append", help="only rows of these parts")
    arguments = parser.parse_args()
    print("| without | larger arenas | smaller | mean | worst | moves | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    options = Options(time_limit=arguments.time_limit, max_overhead=arguments.max_overhead)
    full = plans(arguments.models, arguments.board, options)
    print(row("nothing", full, full), flush=True)
    for name in arguments.part or PARTS:
        with PARTS[name]():
            print(row(name, full, plans(arguments.models, arguments.board, options)), flush=True)


if __name__ == "__main__":
    main()
