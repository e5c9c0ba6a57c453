"""Cuts and the search for them, on graphs small enough to predict the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from cProfile import Profile
from dataclasses import replace
from itertools import pairwise, takewhile

import numpy as np
import pytest
from graphs import conv, graph_io, residual, tensor

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.common.effort import Effort
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.costs.tiles import STEP_TICKS, Costs, by_calls
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan, Rewrites, Search
from mcudeploy.planner.model.forms import accumulate_rows, in_form, stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.search.best_first import BestFirst, Candidate, SearchResult
from mcudeploy.planner.search.cuts import Cut, Space, State
from mcudeploy.planner.search.seeds import CutProblem, Seeds
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.tile_times import VariantTimes
from mcudeploy.tiling.blocks import whole
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import work_bytes
from tests.one_memory import lay_out

BOARD = load_board("mps3-an547")


def chain(length: int, image: int = 4) -> Graph:
    """`length` 3x3 convolutions in a row: `image` and 4 channels at the ends, 16 between, 8 x 8 pixels."""
    names = ["image", *(f"t{i}" for i in range(length))]
    channels = [image, *[16] * (length - 1), 4]
    return Graph(
        "chain",
        {name: tensor(name, (8, 8, count)) for name, count in zip(names, channels, strict=True)},
        tuple(
            conv(f"conv_{i}", names[i], names[i + 1], (channels[i], channels[i + 1])) for i in range(length)
        ),
        (graph_io("image", (8, 8, image)),),
        (graph_io(names[-1], (8, 8, 4)),),
    )


def problem_of(graph: Graph, overhead: float) -> CutProblem:
    flow = Dataflow.of(graph)
    order = tuple(step.operator for step in reverse_post_order(whole(graph)).steps)
    calls = calls_of(graph)
    costs = Costs(flow, by_calls(estimated(load_costs("cortex-m4"))(graph, ()), calls))
    most_ticks = costs.ticks([BlockRows(rows) for rows in flow.iteration_rows]) * (1 + overhead / 100)
    variants = VariantTimes(flow, {name: [call] for name, call in calls.items()}, 1, [costs])
    return CutProblem(Space.of(flow, order), Segments(flow, order, work_bytes(calls)), variants, most_ticks)


def run(graph: Graph, overhead: float = 50.0, seconds: float = 20.0) -> SearchResult:
    search = BestFirst(problem_of(graph, overhead))
    search.explore(Effort.of(seconds))
    return search.found()


def unsplit(result: SearchResult) -> Candidate:
    return next(one for one in result.best if not one.state)


def calls_of(graph: Graph) -> dict[str, object]:
    return {o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output]) for o in graph.operators}


@pytest.mark.parametrize("graph", [residual(), chain(4), stream_inputs(residual()), stream_inputs(chain(6))])
def test_every_plan_passes_the_checker_and_none_is_worse_than_unsplit(graph: Graph) -> None:
    result = run(graph)
    work = work_bytes(calls_of(graph))
    assert result.best[0].peak_bytes < unsplit(result).peak_bytes
    for candidate in result.best:
        layout, estimate = lay_out(candidate.tiled, candidate.schedule, work, "sram", 8)
        assert estimate.peak_bytes == candidate.peak_bytes
        rows, leads = candidate.tiled.block_rows, candidate.tiled.leads
        plan = Plan(graph, "host", rows, candidate.schedule, layout, estimate, leads=leads)
        check(plan, work, BOARD)


def test_the_limit_is_kept_and_a_higher_one_never_needs_more() -> None:
    peaks = []
    for overhead in (0.0, 5.0, 20.0, 100.0):
        result = run(chain(5), overhead)
        limit = unsplit(result).ticks * (1 + overhead / 100)
        assert all(candidate.ticks <= limit for candidate in result.best)
        peaks.append(result.best[0].peak_bytes)
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] == unsplit(run(chain(5), 0.0)).peak_bytes and peaks[-1] < peaks[0]


def test_the_same_search_finds_the_same() -> None:
    first, second = (run(chain(6)) for _ in range(2))
    assert [c.state for c in first.best] == [c.state for c in second.best]
    assert replace(first.search, seconds=0) == replace(second.search, seconds=0)
    assert first.search.duplicates > 0


def test_a_streamed_input_is_never_whole() -> None:
    kept, streamed = run(chain(4, image=64)), run(stream_inputs(chain(4, image=64)))
    image_bytes = 8 * 8 * 64
    assert streamed.best[0].peak_bytes < image_bytes <= kept.best[0].peak_bytes


def test_costs_of_a_cut_by_hand() -> None:
    flow = Dataflow.of(chain(1))
    costs = Costs(flow, lambda operator, rows: 100.0 * len(rows))
    assert costs.operator_ticks(0, BlockRows(8)) == 800 + STEP_TICKS
    assert costs.operator_ticks(0, BlockRows(3)) == 800 + 3 * STEP_TICKS  # 3 + 3 + 2 rows
    assert costs.ticks((BlockRows(1),)) == 800 + 8 * STEP_TICKS


def test_moves_keep_cuts_apart() -> None:
    graph = chain(6)
    space = Space.of(Dataflow.of(graph), tuple(range(6)))
    state = (Cut(0, 1, 2), Cut(3, 4, 1))
    for following in space.moves(state, 5):
        for one, other in pairwise(following):
            assert one.last < other.first
        assert all(0 <= cut.first <= cut.last < 6 for cut in following)


def test_a_move_elsewhere_than_at_the_peak_only_saves_time() -> None:
    space = Space.of(Dataflow.of(chain(12)), tuple(range(12)))
    far, near = Cut(0, 2, 2), Cut(8, 10, 2)
    states = list(space.moves((far, near), 9))
    assert (Cut(0, 3, 2), near) not in states and (Cut(0, 2, 3), near) in states
    assert (far, Cut(8, 11, 2)) in states and (far, Cut(8, 10, 1)) in states
    assert (far, Cut(8, 8, 2), Cut(9, 10, 2, apart=True)) in states


def seeds_of(graph: Graph, overhead: float, stopped: Callable[[], bool]) -> list[tuple[State, int, float]]:
    """States from the seeds, each with its peak and time over the unsplit one."""
    problem = problem_of(graph, overhead)
    space, segments, costs = problem.space, problem.segments, problem.variants
    unsplit = costs.ticks(space.step_rows(()))
    states = takewhile(lambda state: state is not None, Seeds(problem, stopped).states())
    return [
        (
            state,
            segments.peak(space.cut_segments(state))[0],
            costs.ticks(space.step_rows(state)) / unsplit - 1,
        )
        for state in states
        if state is not None
    ]


def test_seeds_keep_the_limit_and_need_less_and_less() -> None:
    seeds = seeds_of(chain(6), 10.0, lambda: False)
    peaks = [peak_bytes for _, peak_bytes, _ in seeds]
    assert min(peaks) < peaks[0] <= unsplit(run(chain(6))).peak_bytes
    assert all(added <= 0.10 for *_, added in seeds)
    assert seeds_of(chain(6), 0.0, lambda: False) == []  # every cut takes some time


def test_seeds_stop_when_told() -> None:
    asked = iter([False] * 5)
    assert len(seeds_of(chain(6), 10.0, lambda: next(asked, True))) < len(
        seeds_of(chain(6), 10.0, lambda: False)
    )


def test_the_clock_does_not_matter_as_long_as_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(chain(60), seconds=0.5)
    late = 0.0

    def clock() -> float:
        nonlocal late
        late += 1e-6
        return late

    monkeypatch.setattr("mcudeploy.common.effort.process_time", clock)
    second = run(chain(60), seconds=0.5)
    assert [one.state for one in first.best] == [one.state for one in second.best]
    assert first.search.candidates == second.search.candidates


def test_a_graph_of_hundreds_of_operators_keeps_the_time_limit() -> None:
    calls = Profile()  # a clock would fail on a busy machine
    result = calls.runcall(run, chain(300), overhead=5.0, seconds=1.0)
    assert sum(it.callcount for it in calls.getstats()) < 15e6  # 10 million; a second has some 3 million
    assert result.best[0].peak_bytes <= unsplit(result).peak_bytes


def test_interrupts_keep_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Space, *_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Space, "moves", interrupted)
    result = run(chain(5))
    assert result.best[0].peak_bytes < unsplit(result).peak_bytes


def test_forms_do_not_go_back() -> None:
    graph = residual()
    streamed = in_form(graph, Rewrites(), Rewrites(streamed=True))
    assert len(streamed.operators) == len(graph.operators) + 1
    assert streamed.resident_inputs() == () and graph.resident_inputs() == graph.inputs
    assert accumulate_rows(graph).operators == graph.operators  # no operator reads all rows at once
    with pytest.raises(ValueError, match="does not go back"):
        in_form(streamed, Rewrites(streamed=True), Rewrites())


def test_search_counts_are_plain_numbers() -> None:
    result = run(chain(3))
    assert isinstance(result.search, Search) and result.search.candidates > 1
    assert np.isfinite(result.best[0].ticks)


def test_a_search_goes_on_from_where_it_was() -> None:
    at_once = run(chain(12), seconds=0.6)
    search, peaks = BestFirst(problem_of(chain(12), 50.0)), []
    for seconds in (0.01, 0.03, 0.06, 0.5):
        search.explore(Effort.of(seconds))
        peaks.append(search.found().best[0].peak_bytes)
    assert peaks == sorted(peaks, reverse=True) and peaks[-1] < peaks[0]
    again = len(search.found().best) and search.found().search.candidates
    assert again <= 1.1 * at_once.search.candidates  # no state is simulated twice
    assert peaks[-1] <= 1.05 * at_once.best[0].peak_bytes


def test_seeds_that_were_stopped_go_on() -> None:
    problem, asked = problem_of(chain(6), 10.0), iter([False] * 5)
    states = Seeds(problem, lambda: next(asked, True)).states()
    begun = list(takewhile(lambda state: state is not None, states))
    asked = iter([False] * 1_000_000)
    assert [*begun, *states] == [state for state, *_ in seeds_of(chain(6), 10.0, lambda: False)]


def test_seeds_leave_effort_for_the_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_end(self: Seeds) -> Iterator[State]:
        while not self._stopped():
            self._segments.effort_units += 1000
            yield ()

    monkeypatch.setattr(Seeds, "states", without_end)
    assert not run(chain(5), seconds=0.5).hurried
