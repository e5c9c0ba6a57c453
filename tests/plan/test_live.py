"""Live ranges and peaks against hand-worked figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import pooled, residual

from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Step
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import buffers, live_peak, lives, peak

NO_SCRATCH = dict.fromkeys(("conv_a", "conv_b", "conv_c", "add"), (0, 0))


def live_ranges(tiled: TiledGraph, steps: tuple[Step, ...]) -> dict[tuple[str, int], Interval]:
    ranges = lives(tiled, steps)
    return {
        block_id: Interval(ranges.first[number], ranges.end[number])
        for number, block_id in enumerate(tiled.block_ids())
    }


def test_unsplit_live_ranges_of_a_residual_block() -> None:
    tiled = whole(residual())
    steps = reverse_post_order(tiled).steps
    assert [tiled.graph.operators[s.operator].name for s in steps] == ["conv_a", "conv_b", "conv_c", "add"]
    live = live_ranges(tiled, steps)
    assert live["image", 0] == Interval(0, 1)
    assert live["a", 0] == Interval(0, 4)
    assert live["b", 0] == Interval(1, 3)
    assert live["c", 0] == Interval(2, 4)
    assert live["sum", 0] == Interval(3, 4)


def test_addition_works_in_place_and_scratch_counts() -> None:
    tiled = whole(residual())
    steps = reverse_post_order(tiled).steps
    items = buffers(tiled, steps, NO_SCRATCH)
    assert {tuple(name for name, _ in item.members) for item in items} == {
        ("image",),
        ("a",),
        ("b",),
        ("c", "sum"),
    }
    assert peak(items) == (768, 2)  # a, b and c at conv_c
    with_scratch = buffers(tiled, steps, {**NO_SCRATCH, "conv_c": (100, 0)})
    assert peak(with_scratch) == (868, 2)


def test_row_blocks_die_when_their_last_window_has_passed() -> None:
    graph = residual()
    tiled = TiledGraph(Dataflow.of(graph), {"conv_a": 1, "conv_b": 1, "conv_c": 1, "add": 1})
    steps = reverse_post_order(tiled).steps
    assert len(steps) == 32
    first_add = next(t for t, s in enumerate(steps) if graph.operators[s.operator].name == "add")
    # The first sum row needs rows 0..1 of b, rows 0..2 of a, and itself: conv_c, conv_b and conv_a before it.
    assert first_add == 3 + 2 + 1
    live = live_ranges(tiled, steps)
    assert all(len(live["b", row]) < len(steps) // 2 for row in range(8))
    whole_peak = peak(buffers(whole(graph), reverse_post_order(whole(graph)).steps, NO_SCRATCH))[0]
    # The output stays: 256 bytes; the input dies row by row, and rows in between are dropped early.
    assert peak(buffers(tiled, steps, NO_SCRATCH))[0] < whole_peak


def test_graph_refuses_what_does_not_hold_together() -> None:
    graph = residual()
    with pytest.raises(ValueError, match="before it is written"):
        Graph(graph.name, graph.tensors, graph.operators[::-1], graph.inputs, graph.outputs)
    with pytest.raises(ValueError, match="two operators are called"):
        Graph(graph.name, graph.tensors, (*graph.operators, graph.operators[0]), graph.inputs, graph.outputs)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
def test_the_search_sees_the_peak_of_the_buffers(rows: int) -> None:
    tiled = TiledGraph(Dataflow.of(residual()), dict.fromkeys(NO_SCRATCH, rows))
    steps = reverse_post_order(tiled).steps
    work = {**NO_SCRATCH, "conv_b": (60, 0), "add": (0, 8)}
    assert live_peak(tiled, steps, work) == peak(buffers(tiled, steps, work))


def test_an_output_is_not_overwritten_by_the_last_step() -> None:
    graph = residual()
    outputs = (*graph.outputs, replace(graph.outputs[0], tensor="c"))
    tiled = whole(replace(graph, outputs=outputs))
    steps = reverse_post_order(tiled).steps
    items = buffers(tiled, steps, NO_SCRATCH)
    holder = next(item for item in items if ("c", 0) in item.members)
    assert ("sum", 0) not in holder.members and ("a", 0) in next(
        item for item in items if ("sum", 0) in item.members
    ).members


def test_a_running_sum_has_its_state_all_the_time_and_its_output_at_the_end() -> None:
    tiled = TiledGraph(Dataflow.of(pooled()), {"conv_a": 1, "mean": 1})
    steps = reverse_post_order(tiled).steps
    assert [tiled.graph.operators[step.operator].name for step in steps] == ["conv_a", "mean"] * 8
    assert live_ranges(tiled, steps)["mean", 0] == Interval(15, 16)
    work = {"conv_a": (0, 0), "mean": (0, 16)}
    state = next(item for item in buffers(tiled, steps, work) if item.scratch_of is not None)
    assert state.life == Interval(1, 16)
    # The first rows: all of the image, less the row that dies at step 1, a row of a, and the state.
    assert live_peak(tiled, steps, work) == peak(buffers(tiled, steps, work)) == (256 + 32, 0)
