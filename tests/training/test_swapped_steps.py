"""Training steps whose parameters and momenta leave a small fast memory: the bits of those that stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from float64_steps import Array
from fuzzing.wandering import BOARDS
from test_gradients import drawn, step_of

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.codegen.bench import kernels_for
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.device.target import Target, open_device
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.step import TrainingStep
from mcudeploy.extensions.training.train import tune_training
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.plan import Plan, Schedule
from mcudeploy.ops.host_io import to_device
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.offload.access_trace import draft_of
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.room import over_time
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.placing import placed
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.toolchain import build_firmware
from mcudeploy.toolchain.project import SoftEngine
from mcudeploy.verify.compare import Storage, run_once
from tests.networks.onnx_files import save
from tests.networks.trained import Network
from tests.small_bench import PLACES

BOARD = BOARDS[0]
ROOM = 10_000
"""Bytes of fast memory, a quarter of what a step needs."""


@pytest.fixture
def step(tmp_path: Path) -> TrainingStep:
    """The step of a network of 13 KiB of parameters, with as many of momenta."""
    net = Network(1, (3, 8, 8))
    for channels in (8, 16, 16):
        net.conv(channels, 3)
        net.activation("Relu")
    net.conv(16, 3, 2)
    net.dense(4)
    return step_of(save(net.model(), tmp_path), "cross-entropy", rate=0.05, momentum=0.9)


@pytest.fixture
def model(step: TrainingStep, tmp_path: Path) -> Model:
    return load_model(save(step.proto, tmp_path, "step"))


def plans(model: Model, rows: int, board: Board, cycles: float = 3000.0) -> Iterator[Plan]:
    """The plan in blocks of `rows` rows, then those whose blocks leave the fast memory, all checked. A step
    takes `cycles`.
    """
    graph = model.graph
    tiled = TiledGraph(Dataflow.of(graph), dict.fromkeys((it.name for it in graph.operators), rows))
    plan = placed(model, BOARD, tiled, reverse_post_order(tiled))
    yield plan
    pair = MemoryPair.serving(plan, board)
    assert pair is not None
    budget = Budget(CopyCost(30.0, 60.0, 0.4), Effort(400_000))
    draft, count = draft_of(tiled, plan, model.work, board), len(plan.schedule.steps)
    for numbers, layout in over_time(draft, pair, budget, [cycles] * count):
        schedule = Schedule(tuple(plan.schedule.steps[at] for at in numbers), "feasible")
        moved = replace(plan, board=board.name, schedule=schedule, layout=layout)
        check(moved, model.work, board)
        yield moved


def left(model: Model, plan: Plan, runs: list[dict[str, Array]], engine: SoftEngine | None) -> list[bytes]:
    """All outputs and states after each run of a program on the host."""
    program = make_program(PlanView(plan, model.calls), "net", BOARD)
    files = render_firmware(program, plan, Source(model.path.name, model.sha256))
    firmware = build_firmware(BOARD, files, program.kernels, emulate=False, sanitize=True, engine=engine)
    results, storage = [], Storage.of(plan)
    with open_device(Target(BOARD), firmware) as device:
        for values in runs:
            stored = {
                io.tensor: to_device(io, plan.graph.tensors[io.tensor], values[io.name])
                for io in plan.graph.own_inputs()
            }
            run_once(device, storage, stored)
            results += [storage.get_tensor(device, it.tensor).tobytes() for it in plan.graph.outputs]
    return results


def homes(plan: Plan) -> set[str]:
    """The memories in which states lie between two runs."""
    return {plan.layout.blocks[state.tensor][0][0].memory for state in plan.graph.states}


@pytest.mark.parametrize("rows", [8, 2])
def test_states_that_leave_have_the_bits_of_those_that_stay(
    rows: int, step: TrainingStep, model: Model
) -> None:
    runs = [drawn(step, "cross-entropy", number) for number in range(3)]
    whole, *moved = plans(model, rows, BOARD.limited({"ram": ROOM}))
    assert homes(whole) == {"ram"}
    assert "bulk" in homes(moved[0])
    assert left(model, moved[0], runs, "half") == left(model, whole, runs, None)


def test_steps_that_cost_less_than_transfers_run_again(tmp_path: Path) -> None:
    """Tensors of 8 KiB between layers of 2 KiB of weights."""
    net = Network(2, (3, 16, 16))
    for channels in (8, 8, 8, 8):
        net.conv(channels, 3)
        net.activation("Relu")
    net.conv(8, 3, 4)
    net.dense(4)
    step = step_of(save(net.model(), tmp_path), "cross-entropy", rate=0.05, momentum=0.9)
    model = load_model(save(step.proto, tmp_path, "step"))
    runs = [drawn(step, "cross-entropy", number) for number in range(3)]
    whole, *moved = plans(model, 16, BOARD.limited({"ram": 32_000}), cycles=1000.0)
    again = next(plan for plan in moved if len(plan.schedule.steps) > len(whole.schedule.steps))
    assert again.layout.transfers
    assert left(model, again, runs, "half") == left(model, whole, runs, None)


def test_sums_move_between_two_parts(model: Model) -> None:
    """A momentum to which the parts of a gradient are added leaves, and returns to another place."""
    plan = next(plan for plan in list(plans(model, 2, BOARD.limited({"ram": ROOM})))[1:])
    tiled = TiledGraph.of(plan)
    added = {block for step in plan.schedule.steps if (block := tiled.added_to(step))}
    assert any(len(plan.layout.blocks[name][block]) > 2 for name, block in added)


def test_a_state_that_does_not_return_is_found(model: Model) -> None:
    board = BOARD.limited({"ram": ROOM})
    plan = list(plans(model, 8, board))[1]
    returning = max(
        at for at, it in enumerate(plan.layout.transfers) if plan.layout.way(it)[1].memory == "bulk"
    )
    layout = plan.layout
    transfers = tuple(it for at, it in enumerate(layout.transfers) if at != returning)
    with pytest.raises(PlanFaultError, match="the next run reads it at"):
        check(replace(plan, layout=replace(layout, transfers=transfers)), model.work, board)


def test_a_step_is_tuned_by_measured_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurer has the float kernels of convolutions and updates alone."""

    def few_kernels(isa: Isa) -> tuple[str, ...]:
        every = ("add_f32", "bias_f32", "clip", "conv2d_f32", "copy", "feed", "masked", "parameter_step")
        return tuple(it for it in kernels_for(isa) if it.startswith(every))

    for place in PLACES:
        monkeypatch.setattr(place, "kernels_for", few_kernels)
    net = Network(3, (3, 12, 12))
    for channels in (8, 8):
        net.conv(channels, 3)
        net.activation("Relu")
    net.dense(4)
    path, target = save(net.model(), tmp_path), Target(load_board("mps2-an505"), emulate=True)
    options = Options(split=False, memory_limits=(("sram", 20 * 1024),), time_limit=0.5)
    report = tune_training(path, target, options, Recipe(update=Update.parse("full"), momentum=0.9))
    exposed = {one["kind"]: one["exposed_ticks"] for one in report["iterations"]}
    assert list(exposed)[:2] == ["passive", "planned"]
    assert exposed["passive"] > exposed["planned"] >= min(exposed.values())
    assert report["training"]["momentum"] == 0.9
