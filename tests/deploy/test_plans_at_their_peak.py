"""With moves the arena of a real plan has the size of its peak."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.common.effort import Effort
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.costs.tiles import CopyCost, move_price
from mcudeploy.device.target import Target
from mcudeploy.ir.plan import Plan, Rewrites, Split
from mcudeploy.planner.files.planfile import save_plan
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place import arena
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.placing import moved, moves_ticks, placed
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from tests import reports
from tests.residing import repeating

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
BOARD = load_board("mps2-an386")
PRICE = CopyCost(30.0, 60.0, 0.4)


def budget() -> Budget:
    return Budget(PRICE, Effort(2_000_000))


CUT = 12
"""The number of operators that are cut, into parts of one row."""


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "streamed"])
def model(request: pytest.FixtureRequest) -> Model:
    return load_model(EXAMPLE).in_form(Rewrites(streamed=request.param, accumulating=True)).min_scratch


@pytest.fixture(scope="module")
def tiled(model: Model) -> TiledGraph:
    flow = Dataflow.of(model.graph)
    names = [operator.name for operator in model.graph.operators]
    rows = {
        name: 1 if at < CUT else count
        for at, (name, count) in enumerate(zip(names, flow.iteration_rows, strict=True))
    }
    return TiledGraph(flow, rows)


@pytest.fixture(scope="module")
def plan(model: Model, tiled: TiledGraph) -> Plan:
    """Packed by first fit, which leaves holes."""
    unmoved = placed(model, BOARD, tiled, reverse_post_order(tiled))
    assert unmoved.layout.arena_bytes > align_up(unmoved.estimate.peak_bytes, 8)
    return unmoved


def cut_names(model: Model, tiled: TiledGraph) -> tuple[str, ...]:
    names = [operator.name for operator in model.graph.operators]
    return tuple(name for name, count in zip(names, tiled.step_counts, strict=True) if count > 1)


@pytest.fixture(autouse=True)
def _any_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "SAVED_BYTES", 0)


def test_the_arena_has_the_size_of_the_peak(plan: Plan, model: Model, tiled: TiledGraph) -> None:
    moved_plan = moved(plan, model, BOARD, tiled, budget())
    check(moved_plan, model.work, BOARD)
    assert moved_plan.layout.transfers
    assert moved_plan.layout.arena_bytes == align_up(plan.estimate.peak_bytes, 8)
    assert (moved_plan.layout.status, moved_plan.estimate.peak_bytes) == ("optimal", plan.estimate.peak_bytes)
    assert moved_plan.estimate.ticks == plan.estimate.ticks + moves_ticks(moved_plan.layout, tiled, PRICE)
    moved_bytes = sum(tiled.block_bytes(it.tensor, it.block) for it in moved_plan.layout.transfers)
    assert moved_plan.estimate.traffic["sram"] == plan.estimate.traffic["sram"] + 2 * moved_bytes


@pytest.mark.parametrize("least", [8, 1 << 20])
def test_moves_save_enough_each(
    plan: Plan, model: Model, tiled: TiledGraph, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena, "SAVED_BYTES", least)
    moved_plan = moved(plan, model, BOARD, tiled, budget())
    assert plan.layout.arena_bytes - moved_plan.layout.arena_bytes >= least * len(moved_plan.layout.transfers)
    assert bool(moved_plan.layout.transfers) or least > 1


def test_ticks_of_moves_count_once(plan: Plan, model: Model, tiled: TiledGraph) -> None:
    """A plan with moves, but above its peak, gets other moves."""
    timed = replace(plan, estimate=replace(plan.estimate, ticks=1e6))
    moved_plan = moved(timed, model, BOARD, tiled, budget())
    above = replace(
        moved_plan, layout=replace(moved_plan.layout, arenas={"sram": moved_plan.layout.arena_bytes + 4096})
    )
    again = moved(above, model, BOARD, tiled, budget())
    assert again.layout == moved_plan.layout
    assert again.estimate.ticks == pytest.approx(moved_plan.estimate.ticks)
    assert again.estimate.ticks - moves_ticks(again.layout, tiled, PRICE) == pytest.approx(1e6)


def test_at_its_peak_nothing_moves(plan: Plan, model: Model, tiled: TiledGraph) -> None:
    moved_plan = moved(plan, model, BOARD, tiled, budget())
    assert moved(moved_plan, model, BOARD, tiled, budget()).layout == moved_plan.layout


def test_plans_with_repeated_steps_reach_their_peak(model: Model, tiled: TiledGraph, tmp_path: Path) -> None:
    """Rows in the middle are recomputed for their last readers: two live ranges, whose offsets may differ."""
    host, cut = load_board("host"), model.graph.operators[2:6]
    again = [(operator.output, block) for operator in cut for block in range(4, 20, 3)]
    schedule = repeating(tiled, reverse_post_order(tiled), *again)
    splits = (Split(cut_names(model, tiled), "row", 1),)
    fixed = placed(model, host, tiled, schedule, splits=splits)
    moved_plan = moved(fixed, model, host, tiled, budget())
    check(moved_plan, model.work, host)
    assert (
        fixed.layout.arena_bytes
        > moved_plan.layout.arena_bytes
        == align_up(moved_plan.estimate.peak_bytes, 8)
    )
    pairs = [pair for name, block in again for pair in pairwise(moved_plan.layout.blocks[name][block])]
    assert any(one.life.hi < other.life.lo and one.offset != other.offset for one, other in pairs)
    save_plan(moved_plan, model.sha256, tmp_path / "plan.json")
    report = reports.run_model(
        EXAMPLE, Target(host), Options(plan_file=tmp_path / "plan.json"), inputs=[], expected=[]
    )
    assert report["verified"], report["reason"]
    assert report["recomputed_steps"] == len(again)
    assert report["arena_bytes"] == align_up(report["peak_bytes"], 8)


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4", "rv32imafc"])
def test_the_price_of_moves_is_that_of_copies(core: str) -> None:
    price = move_price(estimated(load_costs(core)))
    copy = load_costs(core).kernels["copy"]
    assert price.byte == pytest.approx(copy["bytes_64"] / 64, rel=1e-3)
    assert price.piece == pytest.approx(copy["moves"], rel=1e-3)
    far, near = price.ticks(1000, 4000), price.ticks(1000, 100)
    assert near - far == pytest.approx(9 * price.piece)
    assert far == pytest.approx(price.move + price.piece + 1000 * price.byte)


def test_a_plan_with_moves_is_built_run_and_verified(model: Model, tiled: TiledGraph, tmp_path: Path) -> None:
    host, schedule = load_board("host"), reverse_post_order(tiled)
    splits = (Split(cut_names(model, tiled), "row", 1),)
    moved_plan = placed(model, host, tiled, schedule, splits=splits)
    moved_plan = moved(moved_plan, model, host, tiled, budget())
    save_plan(moved_plan, model.sha256, tmp_path / "plan.json")
    options = Options(plan_file=tmp_path / "plan.json")
    report = reports.run_model(EXAMPLE, Target(host), options, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["moves"] == len(moved_plan.layout.transfers) > 0
    assert report["arena_bytes"] == align_up(report["peak_bytes"], 8)


@pytest.mark.parametrize("model", [True], indirect=True, ids=["streamed"])
def test_blocks_move_in_two_arenas(model: Model, tiled: TiledGraph, tmp_path: Path) -> None:
    schedule, limits = reverse_post_order(tiled), (("sram", 9_000),)
    board = BOARD.limited(dict(limits))
    splits = (Split(cut_names(model, tiled), "row", 1),)
    plan = placed(model, board, tiled, schedule, splits=splits, budget=budget())
    check(plan, model.work, board)
    assert len(plan.layout.arenas) == 2 and plan.layout.arenas["sram"] <= 9_000
    assert bool(plan.layout.transfers) == model.form.streamed
    save_plan(plan, model.sha256, tmp_path / "plan.json")
    options = Options(plan_file=tmp_path / "plan.json", memory_limits=limits)
    report = reports.run_model(EXAMPLE, Target(BOARD, emulate=True), options, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["moves"] == len(plan.layout.transfers)
