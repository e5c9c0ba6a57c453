"""Constants that stream from flash at 0.25 bytes a clock: waits counted on the emulated board.

Its engine takes the time of its transfers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.trust import trust
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.plan import Plan, Run
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.toolchain import build_firmware
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from tests.networks.onnx_files import QuantizedModel, build, node, save
from tests.networks.packed import packed
from tests.weekly import sample

RATE = 0.25
"""Bytes per clock of flash."""
CHANNELS, SIDE = 256, 2
CALLS = 500
"""At most the instructions of a start of the driver, its interrupt, and a wait."""


def paced_board(folder: Path, rate: float = RATE) -> Board:
    """mps2-an505 with flash of that rate; its engine takes as long as the rate says."""
    board = load_board("mps2-an505")
    ticks = 1024 / rate / board.instructions(10**6) * 10**6
    driver = resource_dir("firmware") / "hal" / "mps" / "pl081.c"
    text = (Path(__file__).parent / "firmware" / "paced_dma.c").read_text("utf-8")
    facts = f'#define PACED_DRIVER "{driver}"\n#define PACED_TICKS_PER_KIB {round(ticks)}u\n'
    (folder / "paced_dma.c").write_text(facts + text, "utf-8")
    (link,) = board.links
    link = link.model_copy(
        update={"memories": (*link.memories, FLASH), "source": str(folder / "paced_dma.c")}
    )
    flash = board.flash.model_copy(update={"read_rate": rate})
    board = board.model_copy(update={"flash": flash, "links": (link,)})
    trust(board)
    return board


def network(layers: int, folder: Path) -> Path:
    """Pointwise layers of 64 KiB of int8 weights each, on four pixels."""
    q = QuantizedModel(1)
    x = q.quantize("x", 0.03, 0)
    for number in range(layers):
        w = q.weights(f"w{number}", (CHANNELS, CHANNELS, 1, 1), scale=0.0015)
        x = q.quantize(q.add("Conv", f"{x} {w}", f"y{number}"), 0.03, 0)
    q.nodes[-1].output[0] = "out"
    shape = (1, CHANNELS, SIDE, SIDE)
    return save(build(q.nodes, {"x": (np.float32, shape)}, {"out": (np.float32, shape)}, q.constants), folder)


def vectors(layers: int, folder: Path) -> Path:
    """Dense layers of 32 KiB of weights of 4 bits each, and their scales, for one vector."""
    random, nodes, constants = np.random.default_rng(2), [], {}
    for number in range(layers):
        constants[f"w{number}"] = (random.standard_normal((CHANNELS, CHANNELS)) / 16).astype(np.float32)
        name = f"y{number}" if number + 1 < layers else "out"
        nodes.append(node("MatMul", f"{f'y{number - 1}' if number else 'x'} w{number}", name))
    ends = dict.fromkeys(("x", "out"), (np.float32, (1, CHANNELS)))
    return save(packed(build(nodes, {"x": ends["x"]}, {"out": ends["out"]}, constants)), folder)


def clocks(board: Board, model: Model, plan: Plan) -> tuple[float, float, bytes]:
    """The clocks of a run in total and of its starts and waits; and the output."""
    program = make_program(PlanView(plan, model.with_kernels(plan.kernels).calls), "net", board)
    files = render_firmware(program, plan, Source(model.path.name, model.sha256))
    firmware = build_firmware(board, files, program.kernels, emulate=True)
    with open_device(Target(board, emulate=True), firmware) as device:
        storage = Storage.of(plan)
        run_once(device, storage, load_samples(plan.graph, [], [], 1)[0].stored)
        values = b"".join(
            np.asarray(storage.get_tensor(device, it.tensor)).tobytes() for it in plan.graph.outputs
        )
        total = board.instructions(device.session.run().ticks)
        each = device.session.time_steps().ticks
    waits = sum(ticks for ticks, entry in zip(each, plan.tape, strict=True) if not isinstance(entry, Run))
    return total, board.instructions(waits), values


@pytest.mark.parametrize("layers", sample([8, 32], 1))
def test_a_stream_of_weights_waits_for_its_bytes_alone(layers: int, tmp_path: Path) -> None:
    board = paced_board(tmp_path)
    model = load_model(network(layers, tmp_path), isa=board.isa)
    options = Options(split=False, time_limit=1.0, ram_limit=160_000, optimize="size")
    planned = find_plans(model, board, options)
    (plan,) = planned.candidates
    loaded = sum(it.size_bytes for it in plan.layout.constants.values())
    assert loaded > 0.98 * layers * CHANNELS**2
    total, waits, values = clocks(board, model, plan)
    whole, _, expected = clocks(board, model, planned.baseline)
    assert values == expected
    last = whole / layers  # whose bytes are the last to come
    assert total < 1.02 * (loaded / RATE + last)
    assert waits < total - whole + 0.02 * whole
    assert layers < 32 or total < 1.05 * loaded / RATE


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_pieces_of_a_vectors_weights_wait_for_their_bytes_alone(rate: float, tmp_path: Path) -> None:
    """Bytes take longer than products at the lower rate, and products longer than bytes at the higher one."""
    layers, board = 4, paced_board(tmp_path, rate)
    model = load_model(vectors(layers, tmp_path), isa=board.isa)
    planned = find_plans(model, board, Options(split=False, time_limit=1.0, ram_limit=16_000))
    (plan,) = planned.candidates
    pieces = [it.pieces for it in plan.layout.constants.values() if it.pieces is not None]
    assert len(pieces) == layers
    total, waits, values = clocks(board, model, plan)
    whole, _, expected = clocks(board, model, planned.baseline)
    assert values == expected
    loaded = sum(it.total_bytes for it in pieces)
    assert loaded > layers * CHANNELS**2 / 2
    first = sum(it.total_bytes / it.count for it in pieces)
    starts = CALLS * sum(it.count * it.arrays for it in pieces)
    assert total < 1.02 * max(loaded / rate, whole + starts) + first / rate
    assert rate > 0.1 or total < 1.1 * loaded / rate
    assert waits == 0  # those for pieces are within the steps
