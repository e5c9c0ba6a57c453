"""Placement, and the judge of placements with faults of every kind put in on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from graphs import pooled, residual

from mcudeploy.board import load_board
from mcudeploy.graph import Graph, Operator
from mcudeploy.layout.check import PlanFaultError, check
from mcudeploy.ops.view import Reshape
from mcudeploy.plan import Placement, Plan, Schedule, Step
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import TiledGraph, whole
from mcudeploy.simulator.flow import Flow
from tests.one_memory import lay_out

WORK = {"conv_a": (72, 0), "conv_b": (72, 0), "conv_c": (72, 0), "add": (0, 0)}
BOARD = load_board("mps2-an386").limited({"sram": 4096})


def make_plan(tiled: TiledGraph) -> Plan:
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, WORK, "sram", 4)
    return Plan(tiled.graph, "host", tiled.block_rows, schedule, layout, estimate)


def moved(plan: Plan, tensor: str, offset: int) -> Plan:
    placement = plan.layout.tensors[tensor]
    tensors = {**plan.layout.tensors, tensor: Placement("sram", placement.block_rows, (offset,))}
    return replace(plan, layout=replace(plan.layout, tensors=tensors))


@pytest.mark.parametrize("block_rows", [1, 2, 3, 8])
def test_sound_plans_pass(block_rows: int) -> None:
    tiled = TiledGraph(Flow.of(residual()), dict.fromkeys(WORK, block_rows))
    plan = make_plan(tiled)
    check(plan, WORK, BOARD)
    assert plan.estimate.lower_bound_bytes <= plan.layout.arena_bytes


def overlapping(plan: Plan) -> Plan:
    return moved(plan, "b", plan.layout.tensors["a"].offsets[0])


def misaligned(plan: Plan) -> Plan:
    return moved(plan, "b", plan.layout.tensors["b"].offsets[0] + 2)


def outside(plan: Plan) -> Plan:
    return moved(plan, "b", plan.layout.arena_bytes - 128)


def beyond_memory(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, arenas={"sram": 8192}))


def before_it_is_made(plan: Plan) -> Plan:
    first, second, *rest = plan.schedule.steps
    return replace(plan, schedule=Schedule((second, first, *rest), "feasible"))


def output_missing(plan: Plan) -> Plan:
    return replace(plan, schedule=Schedule(plan.schedule.steps[:-1], "feasible"))


def block_that_is_not(plan: Plan) -> Plan:
    return replace(plan, schedule=Schedule((Step(0, 1), *plan.schedule.steps), "feasible"))


def scratch_on_input(plan: Plan) -> Plan:
    at = plan.layout.tensors["image"].offsets[0]
    scratch = {**plan.layout.scratch, "conv_a": Placement("sram", 8, (at,))}
    return replace(plan, layout=replace(plan.layout, scratch=scratch))


def scratch_missing(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, scratch={}))


def input_overwritten_without_leave(plan: Plan) -> Plan:
    return moved(plan, "a", plan.layout.tensors["image"].offsets[0])


def memory_that_is_not(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, arenas={**plan.layout.arenas, "ccm": 8}))


def other_blocks_than_the_output(plan: Plan) -> Plan:
    return replace(plan, block_rows={**plan.block_rows, "conv_b": 4})


FAULTS = [
    (memory_that_is_not, "no memory ccm"),
    (other_blocks_than_the_output, "other blocks"),
    (overlapping, "overwritten|overlaps"),
    (misaligned, "not aligned"),
    (outside, "leaves its arena"),
    (beyond_memory, "room for 4096"),
    (before_it_is_made, "not made yet"),
    (output_missing, "not made yet"),
    (block_that_is_not, "no block"),
    (scratch_on_input, "scratch .* overlaps"),
    (scratch_missing, "has none"),
    (input_overwritten_without_leave, "overlaps input"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_faults_are_found(fault: Callable[[Plan], Plan], message: str) -> None:
    plan = make_plan(whole(residual()))
    with pytest.raises(PlanFaultError, match=message):
        check(fault(plan), WORK, BOARD)


def test_a_view_that_lies_elsewhere_is_found() -> None:
    graph = residual()
    shape = (1, 1, 256)
    flat = replace(graph.tensors["sum"], name="flat", shape=shape)
    view = Operator("flatten", Reshape(shape), ("sum",), "flat")
    viewed = Graph(
        graph.name,
        {**graph.tensors, "flat": flat},
        (*graph.operators, view),
        graph.inputs,
        (replace(graph.outputs[0], tensor="flat"),),
    )
    plan = make_plan(whole(viewed))
    check(plan, WORK, BOARD)
    with pytest.raises(PlanFaultError, match="does not lie where sum does"):
        check(moved(plan, "flat", plan.layout.tensors["sum"].offsets[0] - 8), WORK, BOARD)


def test_the_input_is_in_one_piece() -> None:
    plan = make_plan(TiledGraph(Flow.of(residual()), dict.fromkeys(WORK, 1)))
    first, second, *rest = plan.layout.tensors["image"].offsets
    image = Placement("sram", 1, (second, first, *rest))
    tensors = {**plan.layout.tensors, "image": image}
    with pytest.raises(PlanFaultError, match="apart from the others"):
        check(replace(plan, layout=replace(plan.layout, tensors=tensors)), WORK, BOARD)


def _by_rows(output: int, state: int) -> Plan:
    """The image at 0, the rows of a at 256 all, the mean and its sums where they are wanted."""
    tiled = TiledGraph(Flow.of(pooled()), {"conv_a": 1, "mean": 1})
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, SUMS, "sram", 4)
    tensors = {
        "image": Placement("sram", 1, tuple(range(0, 256, 32))),
        "a": Placement("sram", 1, (256,) * 8),
        "mean": Placement("sram", 1, (output,)),
    }
    scratch = {"mean": Placement("sram", 1, (state,))}
    layout = replace(layout, tensors=tensors, scratch=scratch, arenas={"sram": 512})
    return Plan(tiled.graph, "host", tiled.block_rows, schedule, layout, estimate)


SUMS = {"conv_a": (0, 0), "mean": (0, 16)}


def test_an_output_of_sums_takes_room_that_is_free_at_the_end() -> None:
    check(_by_rows(output=0, state=288), SUMS, BOARD)  # the image is dead by then
    for output, state, message in [(256, 288, "overlaps input"), (288, 288, "scratch .* overlaps")]:
        with pytest.raises(PlanFaultError, match=message):
            check(_by_rows(output, state), SUMS, BOARD)
    check(_by_rows(output=304, state=0), SUMS, BOARD)  # over the image's first row, which was read
    with pytest.raises(PlanFaultError, match="overwritten"):
        check(_by_rows(output=304, state=32), SUMS, BOARD)  # over its second
