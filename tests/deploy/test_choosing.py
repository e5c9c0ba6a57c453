"""Which variant of a kernel computes an operator: by measurement, by the room that a peak leaves."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from models import quantised_convolutions, skipping

from mcudeploy.boards.board import CODE_BYTES
from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.effort import Effort
from mcudeploy.costs.database import Database
from mcudeploy.costs.tiles import CallTime, KnownTime, nothing_known
from mcudeploy.device.measured import MeasuredTiles, times_of_graph
from mcudeploy.device.replies import Ticks
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.planner.files import planfile
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Optimize, Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.kernels import (
    KernelLimits,
    alternatives,
    choose_kernels,
    constant_bytes,
    fastest,
    least_constants,
    smaller_constants,
)
from mcudeploy.planner.search.placing import placed, unsplit_schedule
from mcudeploy.planner.search.task import SearchTask
from mcudeploy.planner.tape.footprint import missing, weights_bytes
from mcudeploy.report.fits import modelled_latency
from mcudeploy.report.wording import smaller_facts
from mcudeploy.tiling.blocks import whole
from mcudeploy.tiling.live import live_peak
from tests import reports

HOST = load_board("host")
POINTWISE = {"conv2d_s8_1x1", "conv2d_s8_1x1_direct"}
GENERAL = {"conv2d_s8:2", "conv2d_s8:3", "conv2d_s8_deep"}


class Fake:
    """A device on which some variants take 100 ticks a row and all others 1000."""

    def __init__(self, *quick: str) -> None:
        self.quick, self.seen = quick, set[str]()

    def ready(self) -> bool:
        return True

    def time(self, graph: Graph, operator: Operator, call: KernelCall, rows: Interval) -> Ticks:
        self.seen.add(call.variant)
        return Ticks((100 if call.variant in self.quick else 1000) * len(rows))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("models") / "small.onnx")


@pytest.fixture(scope="module")
def model(path: Path) -> Model:
    return load_model(path)


def measured(model: Model, device: Fake, folder: Path) -> Model:
    with Database(folder / "tiles.sqlite") as database:
        tiles = MeasuredTiles(("board", "7"), database, [device])
        tiles.prefetch(model.graph, alternatives(model), 60)
        return fastest(model, tiles.of(model.graph), nothing_known(model.graph), inf)


@pytest.mark.parametrize("pointwise", sorted(POINTWISE))
@pytest.mark.parametrize("general", sorted(GENERAL))
def test_the_variant_that_is_measured_as_the_fastest_is_taken(
    pointwise: str, general: str, model: Model, tmp_path: Path
) -> None:
    device = Fake(pointwise, general)
    chosen = measured(model, device, tmp_path)
    assert device.seen == POINTWISE | GENERAL
    assert set(chosen.kernels.values()) == {pointwise, general}
    with Database(tmp_path / "tiles.sqlite") as database:
        kept = database.tiles("board", "7")
        assert {key.kernel for key in kept} == {name.partition(":")[0] for name in POINTWISE | GENERAL}
        known = times_of_graph(kept, "board", "7", model.graph)
        again = fastest(model, lambda *_: pytest.fail("it is known"), known, inf)
    assert again.kernels == chosen.kernels


def test_what_is_known_in_part_is_not_compared_with_estimates(model: Model) -> None:
    def known(operator: Operator, call: KernelCall, rows: Interval) -> float | None:
        return None if call.variant == "conv2d_s8_1x1" else 1.0

    def time(operator: Operator, call: KernelCall, rows: Interval) -> float:
        return 500.0 if call.variant == "conv2d_s8_1x1" else 600.0

    kernels = fastest(model, time, known, inf).kernels.values()
    assert "conv2d_s8_1x1" in kernels  # by `time`, whose unit is another
    assert "conv2d_s8_deep" in kernels  # all of them known, equally fast: the least scratch


def test_less_scratch_is_taken_at_the_peak_as_far_as_time_allows(model: Model) -> None:
    tiled = whole(model.graph)
    steps = unsplit_schedule(model, Effort.of(5)).steps

    def time(operator: Operator, call: KernelCall, rows: Interval) -> float:
        return 1000.0 - call.scratch_bytes / 10  # the more the faster

    quick = fastest(model, time, nothing_known(model.graph), inf)
    assert set(quick.kernels.values()) == {"conv2d_s8:3", "conv2d_s8_1x1"}
    unlimited, slowest = choose_kernels(quick, tiled, steps, time, KernelLimits(1e9, inf))
    tight, ticks = choose_kernels(quick, tiled, steps, time, KernelLimits(0.0, inf))
    peaks = [live_peak(tiled, steps, one.work)[0] for one in (model.min_scratch, unlimited, tight, quick)]
    assert peaks[0] == peaks[1] < peaks[2] == peaks[3]
    assert tight.kernels == quick.kernels and ticks < slowest
    # all are as fast as the peak has room for
    for name, call in unlimited.calls.items():
        for faster in (one for one in model.variants[name] if one.scratch_bytes > call.scratch_bytes):
            assert live_peak(tiled, steps, unlimited.with_calls({name: faster}).work)[0] > peaks[0]
    between, ticks = choose_kernels(quick, tiled, steps, time, KernelLimits(slowest - 1, inf))
    assert ticks <= slowest - 1 and between.kernels != unlimited.kernels


def with_wide_constants(model: Model) -> Model:
    """Every operator has a second variant with constants of 8,000 bytes more."""

    def wide(call: KernelCall, at: int) -> KernelCall:
        more = np.arange(8000 * at, 8000 * (at + 1)).astype(np.int8) + np.int8(at)
        return replace(call, params={**call.params, "more": more}, mode="wide")

    names = list(model.variants)
    variants = {name: (model.calls[name], wide(model.calls[name], names.index(name))) for name in names}
    return replace(model, variants=variants)


def by_constants(gain: float) -> CallTime:
    """1000 ticks, less for wide constants."""
    return lambda operator, call, rows: 1000.0 - gain * (call.mode == "wide")


@pytest.mark.parametrize(
    ("gain", "percent", "wide"), [(100, 5, True), (10, 5, False), (100, 1, False), (1, inf, True)]
)
def test_a_percent_of_time_is_worth_percents_of_the_program(
    gain: float, percent: float, wide: bool, model: Model
) -> None:
    both = with_wide_constants(model)  # 16,000 of about 50,000 B
    chosen = fastest(both, by_constants(gain), nothing_known(model.graph), inf, percent)
    assert {call.mode == "wide" for call in chosen.calls.values()} == {wide}


@pytest.mark.parametrize(("scratch", "wide"), [(1, False), (8, False), (500, True), (100_000, True)])
@pytest.mark.parametrize("roomy", [inf, 1728, 0])
def test_a_percent_of_the_peak_is_worth_as_much_flash_as_one_of_time(
    scratch: int, wide: bool, roomy: float, model: Model
) -> None:
    variants = {
        name: (replace(narrow, scratch_bytes=scratch), replace(other, scratch_bytes=0))
        for name, (narrow, other) in with_wide_constants(model).variants.items()
    }
    both = replace(model, variants=variants)
    chosen = fastest(both, by_constants(0), nothing_known(model.graph), inf)
    steps, tiled = unsplit_schedule(chosen, Effort.of(5)).steps, whole(model.graph)
    limits = KernelLimits(1e9, inf, fit_bytes=roomy)
    cut, _ = choose_kernels(chosen, tiled, steps, by_constants(0), limits)
    least = live_peak(tiled, steps, cut.min_scratch.work)[0]
    assert (live_peak(tiled, steps, cut.work)[0] == least) == (wide or roomy < inf)


def test_constants_keep_to_the_flash_if_the_least_do(model: Model) -> None:
    both = with_wide_constants(model)
    sizes = constant_bytes(both)
    least = sum(sizes[name, call.variant] for name, call in both.calls.items())
    for room, count in ((least + 20_000, 2), (least + 9_000, 1), (least + 100, 0), (least - 100, 0)):
        chosen = fastest(both, by_constants(900), nothing_known(model.graph), room)
        assert sum(call.mode == "wide" for call in chosen.calls.values()) == count
        steps = unsplit_schedule(chosen, Effort.of(5)).steps
        limits = KernelLimits(1e9, room)
        cut, _ = choose_kernels(chosen, whole(model.graph), steps, by_constants(900), limits)
        assert sum(call.mode == "wide" for call in cut.calls.values()) == count


def test_the_flash_curve_takes_a_smaller_kernel_at_each_point(model: Model) -> None:
    both = with_wide_constants(model)
    steps, tiled = unsplit_schedule(both, Effort.of(5)).steps, whole(model.graph)
    for chosen in (both, fastest(both, by_constants(900), nothing_known(model.graph), inf)):
        wide = sum(call.mode == "wide" for call in chosen.calls.values())
        points = list(smaller_constants(chosen, tiled, steps, by_constants(900)))
        assert points == [
            (8000 * (count - wide), -900 * (count - wide)) for count in reversed(range(len(both.calls) + 1))
        ]


def test_a_search_counts_only_on_kernels_that_the_flash_has_room_for(model: Model) -> None:
    time = by_constants(900)
    for limit, spared in ((CODE_BYTES + 100, 0), (CODE_BYTES + 9000, 1), (10**6, 2)):
        board = Options(flash_limit=limit).limited(load_board("mps2-an386"))
        chosen = fastest(with_wide_constants(model), time, nothing_known(model.graph), board.constants_room)
        schedule = unsplit_schedule(chosen, Effort.of(5))
        unsplit = placed(chosen, board, whole(model.graph), schedule)
        order = tuple(step.operator for step in schedule.steps)
        task = SearchTask.of(
            chosen, board, lambda *_: time, None,
            order=order, unsplit=unsplit, max_overhead=5, ram_limit=None,
        )  # fmt: skip
        ticks = task.variants.ticks(task.space.step_rows(()))
        assert ticks == pytest.approx(1000 * len(order) - 900 * spared, abs=60)  # a call adds some


@pytest.mark.parametrize(("split", "optimize"), [(False, "size"), (False, "balanced"), (True, "speed")])
def test_each_flash_limit_of_a_curve_gives_the_latency_that_it_states(
    path: Path, split: bool, optimize: Optimize
) -> None:
    board, options = load_board("mps2-an386"), Options(split=split, time_limit=0.2, optimize=optimize)
    deployment = api.plan_model(path, board, options)
    report = modelled_latency(deployment.plan, deployment.model, board)
    limits = {point["flash_limit"]: point["latency"]["value"] for point in report["flash_curve"]}
    printed = re.findall(r"(\d+) \+[\d.]+ %", dict(smaller_facts(report))["less flash"])
    assert len(limits) > (2 if optimize != "size" else 0) and printed and {*map(int, printed)} <= {*limits}
    for limit, ticks in limits.items():
        limited = api.plan_model(path, board, replace(options, flash_limit=limit))
        assert weights_bytes(limited.model.calls) <= limit - CODE_BYTES
        # other cuts, which keep --max-overhead too, may need less RAM with these kernels
        share = options.overhead_limit / 100 if split else 1e-4
        assert limited.plan.estimate.ticks == pytest.approx(ticks, rel=share)
        again = modelled_latency(limited.plan, limited.model, board) | {"flash_limit": limit}
        assert "none" not in dict(smaller_facts(again))["less flash"]


def test_a_plan_with_large_constants_is_planned_again_where_smaller_ones_fit(path: Path) -> None:
    board = load_board("mps2-an386")
    deployment = api.plan_model(path, board, Options(split=False))
    weights, least = weights_bytes(deployment.model.calls), int(least_constants(deployment.model))
    assert least < weights

    def text(flash_limit: int) -> str:
        limited = Options(flash_limit=flash_limit).limited(board)
        return " ".join(missing(deployment.view, limited, None, least))

    assert f"Other kernels need {least:,}: plan again" in text(weights - 1)
    assert "No plan helps: take a smaller model or a higher --flash-limit." in text(least - 1)


def test_equal_constants_are_counted_once(model: Model) -> None:
    twice = {f"{name}_{at}": calls for name, calls in model.variants.items() for at in range(2)}
    once, shared = constant_bytes(model), constant_bytes(replace(model, variants=twice))
    assert sum(shared.values()) == pytest.approx(sum(once.values()))


def test_a_plan_keeps_its_variants_in_its_file(path: Path, model: Model, tmp_path: Path) -> None:
    quick = {"conv2d_s8_deep", "conv2d_s8_1x1_direct"}

    def known(graph: Graph) -> KnownTime:
        return lambda operator, call, rows: float(call.variant not in quick)

    planned = find_plans(model, HOST, Options(split=False), known=known)
    plan = planned.choices[0]
    assert set(plan.kernels.values()) == quick
    planfile.save_plan(plan, model.sha256, tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["kernels"] == dict(plan.kernels)
    deployment = api.plan_model(path, HOST, Options(plan_file=tmp_path / "plan.json"))
    assert deployment.plan.kernels == plan.kernels
    assert {call.variant for call in deployment.model.calls.values()} == quick
    assert set(deployment.program.kernels) >= quick
    report = reports.run_model(
        path, api.Target(HOST), Options(plan_file=tmp_path / "plan.json"), inputs=[], expected=[]
    )
    assert report["verified"] and {one["variant"] for one in report["operators"]} == quick


def test_an_order_is_optimal_where_its_peak_is_the_lower_bound(tmp_path: Path) -> None:
    planned = find_plans(load_model(skipping(tmp_path / "m.onnx")), HOST, Options(time_limit=1))
    bounded = [(plan.schedule, plan.estimate.peak_bytes) for plan in planned.choices]
    assert any(0 < order.lower_bound_bytes < peak for order, peak in bounded)
    for order, peak in bounded:
        assert (order.status == "optimal") == (peak <= order.lower_bound_bytes)
