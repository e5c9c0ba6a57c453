"""Layouts, and the checker on plans with deliberate faults of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from graphs import graph_io, pooled, residual

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residence, Schedule, Step
from mcudeploy.ops.move.view import Reshape
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.dataflow import Dataflow
from tests.one_memory import lay_out
from tests.residing import at_offsets, lying, offsets_of

WORK = {"conv_a": (72, 0), "conv_b": (72, 0), "conv_c": (72, 0), "add": (0, 0)}
BOARD = load_board("mps2-an386").limited({"sram": 4096})


def make_plan(tiled: TiledGraph) -> Plan:
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, WORK, "sram", 4)
    return Plan(tiled.graph, "host", tiled.block_rows, schedule, layout, estimate)


def moved(plan: Plan, tensor: str, offset: int) -> Plan:
    return lying(plan, {tensor: (offset,)})


@pytest.mark.parametrize("block_rows", [1, 2, 3, 8])
def test_sound_plans_pass(block_rows: int) -> None:
    tiled = TiledGraph(Dataflow.of(residual()), dict.fromkeys(WORK, block_rows))
    plan = make_plan(tiled)
    check(plan, WORK, BOARD)
    assert plan.estimate.peak_bytes <= plan.layout.arena_bytes


def overlapping(plan: Plan) -> Plan:
    return moved(plan, "b", offsets_of(plan, "a")[0])


def misaligned(plan: Plan) -> Plan:
    return moved(plan, "b", offsets_of(plan, "b")[0] + 2)


def outside(plan: Plan) -> Plan:
    return moved(plan, "b", plan.layout.arena_bytes - 128)


def beyond_memory(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, arenas={"sram": 8192}))


def before_it_is_made(plan: Plan) -> Plan:
    first, second, *rest = plan.schedule.steps
    return replace(plan, schedule=Schedule((second, first, *rest), "feasible"))


def output_missing(plan: Plan) -> Plan:
    return replace(plan, schedule=Schedule(plan.schedule.steps[:-1], "feasible"))


def missing_block(plan: Plan) -> Plan:
    return replace(plan, schedule=Schedule((Step(0, 1), *plan.schedule.steps), "feasible"))


def scratch_on_input(plan: Plan) -> Plan:
    at = offsets_of(plan, "image")[0]
    scratch = {**plan.layout.scratch, "conv_a": at_offsets(plan.layout.scratch["conv_a"], at)}
    return replace(plan, layout=replace(plan.layout, scratch=scratch))


def scratch_missing(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, scratch={}))


def input_overwritten_without_leave(plan: Plan) -> Plan:
    return moved(plan, "a", offsets_of(plan, "image")[0])


def missing_memory(plan: Plan) -> Plan:
    return replace(plan, layout=replace(plan.layout, arenas={**plan.layout.arenas, "ccm": 8}))


def other_blocks_than_the_output(plan: Plan) -> Plan:
    return replace(plan, block_rows={**plan.block_rows, "conv_b": 4})


FAULTS = [
    (missing_memory, "no memory ccm"),
    (other_blocks_than_the_output, "b comes in 2 blocks, the plan has 1"),
    (overlapping, "overwritten|overlaps"),
    (misaligned, "not aligned"),
    (outside, "leaves its arena"),
    (beyond_memory, "room for 4096"),
    (before_it_is_made, "block 0 of b resides nowhere at step 0"),
    (output_missing, "of 3 steps"),
    (missing_block, "no block"),
    (scratch_on_input, "scratch .* overlaps"),
    (scratch_missing, "has none"),
    (input_overwritten_without_leave, "overlaps input"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_faults_are_found(fault: Callable[[Plan], Plan], message: str) -> None:
    plan = make_plan(whole(residual()))
    with pytest.raises(PlanFaultError, match=message):
        check(fault(plan), WORK, BOARD)


def _residing(plan: Plan, tensor: str, *residences: Residence) -> Plan:
    return replace(plan, layout=replace(plan.layout, blocks={**plan.layout.blocks, tensor: (residences,)}))


def test_a_block_has_to_reside_somewhere_as_long_as_it_is_needed() -> None:
    plan = make_plan(whole(residual()))
    (((a,),), ((b,),)) = plan.layout.blocks["a"], plan.layout.blocks["b"]
    lo, hi = a.life.lo, a.life.hi
    check(_residing(plan, "a", replace(a, life=Interval(lo, hi))), WORK, BOARD)
    for life, message in [
        (Interval(lo, hi - 1), rf"needs block 0 of a, which resides nowhere at step {hi - 1}"),
        (Interval(lo + 1, hi), rf"block 0 of a resides nowhere at step {lo}"),
        (Interval(lo, 99), "of 4 steps"),
    ]:
        with pytest.raises(PlanFaultError, match=message):
            check(_residing(plan, "a", replace(a, life=life)), WORK, BOARD)
    early, late = (
        replace(b, life=Interval(b.life.lo, b.life.hi - 1)),
        replace(b, life=Interval(b.life.hi - 1, 4)),
    )
    with pytest.raises(
        PlanFaultError, match="block 0 of b, which is not written yet"
    ):  # it does not move along
        check(_residing(plan, "b", early, late), WORK, BOARD)
    with pytest.raises(PlanFaultError, match="block 0 of b resides at"):
        check(_residing(plan, "b", late, early), WORK, BOARD)
    with pytest.raises(PlanFaultError, match="block 0 of b resides nowhere"):
        check(_residing(plan, "b"), WORK, BOARD)
    with pytest.raises(PlanFaultError, match="block 0 of b lies in psram, where the plan has no arena"):
        check(_residing(plan, "b", early, replace(late, memory="psram")), WORK, BOARD)


def test_every_tensor_that_owns_memory_resides_somewhere() -> None:
    plan = make_plan(whole(residual()))
    blocks = dict(plan.layout.blocks)
    a = blocks.pop("a")
    for wrong in (blocks, {**blocks, "a": a, "other": a}):
        with pytest.raises(PlanFaultError, match=r"too many or no residences of (a|other)$"):
            check(replace(plan, layout=replace(plan.layout, blocks=wrong)), WORK, BOARD)


def test_views_look_at_one_block() -> None:
    graph, shape = residual(), (16, 4, 4)
    view = Operator("flatten", Reshape(shape), ("image",), "flat")
    first, *others = graph.operators
    tensors = {name: replace(it, shape=shape) for name, it in graph.tensors.items() if name != "image"}
    viewed = Graph(
        graph.name,
        {
            **tensors,
            "image": graph.tensors["image"],
            "flat": replace(graph.tensors["image"], name="flat", shape=shape),
        },
        (view, replace(first, inputs=("flat",)), *others),
        graph.inputs,
        (graph_io("sum", shape),),
    )
    plan = make_plan(whole(viewed))
    check(plan, WORK, BOARD)
    ((home,),) = plan.layout.blocks["image"]
    rows = tuple((replace(home, offset=home.offset + 32 * row),) for row in range(8))
    plan = replace(plan, layout=replace(plan.layout, blocks={**plan.layout.blocks, "image": rows}))
    with pytest.raises(PlanFaultError, match="looks at image through view flat, but it is in blocks"):
        check(plan, WORK, BOARD)


def test_the_input_is_in_one_piece() -> None:
    plan = make_plan(TiledGraph(Dataflow.of(residual()), dict.fromkeys(WORK, 1)))
    first, second, *rest = offsets_of(plan, "image")
    with pytest.raises(PlanFaultError, match="apart from the others"):
        check(lying(plan, {"image": (second, first, *rest)}), WORK, BOARD)


def _by_rows(output: int, state: int) -> Plan:
    """The image at 0, the rows of a all at 256, the mean and its sums at given offsets."""
    tiled = TiledGraph(Dataflow.of(pooled()), {"conv_a": 1, "mean": 1})
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, SUMS, "sram", 4)
    layout = replace(layout, scratch={"mean": at_offsets(layout.scratch["mean"], state)})
    plan = Plan(tiled.graph, "host", tiled.block_rows, schedule, layout, estimate)
    places = {"image": tuple(range(0, 256, 32)), "a": (256,) * 8, "mean": (output,)}
    return lying(plan, places, sram=512)


SUMS = {"conv_a": (0, 0), "mean": (0, 16)}


def test_an_output_of_sums_takes_room_that_is_free_at_the_end() -> None:
    check(_by_rows(output=0, state=288), SUMS, BOARD)  # the image is dead by then
    for output, state, message in [(256, 288, "overlaps input"), (288, 288, "scratch .* overlaps")]:
        with pytest.raises(PlanFaultError, match=message):
            check(_by_rows(output, state), SUMS, BOARD)
    check(_by_rows(output=304, state=0), SUMS, BOARD)  # over the image's first row, which was read
    with pytest.raises(PlanFaultError, match="overwritten"):
        check(_by_rows(output=304, state=32), SUMS, BOARD)  # over its second row


def test_scratch_of_a_step_between_two_others_spares_their_sums() -> None:
    work = {"conv_a": (16, 0), "mean": (0, 16)}
    tiled = TiledGraph(Dataflow.of(pooled()), {"conv_a": 1, "mean": 1})
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, work, "sram", 4)
    plan = Plan(tiled.graph, "host", tiled.block_rows, schedule, layout, estimate)
    check(plan, work, BOARD)
    (sums,) = layout.scratch["mean"]
    scratch = {**layout.scratch, "conv_a": at_offsets(layout.scratch["conv_a"], *[sums[0].offset] * 8)}
    with pytest.raises(PlanFaultError, match="needs its state, which is overwritten"):
        check(replace(plan, layout=replace(layout, scratch=scratch)), work, BOARD)
