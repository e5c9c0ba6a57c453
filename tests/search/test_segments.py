"""The peak by segment equals that of the whole schedule, for random graphs with random cuts."""

from __future__ import annotations

from graphs import conv, graph_io, pooled, residual, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.checker.judge import check
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Graph, Operator, Shape
from mcudeploy.ir.plan import Plan, Schedule
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePoolByRows
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.search.cuts import ROWS_TRIED, Cut, Space, State
from mcudeploy.planner.search.segments import Segments
from mcudeploy.tiling.blocks import whole
from mcudeploy.tiling.dataflow import Dataflow, RowAccess
from mcudeploy.tiling.live import WorkBytes, live_peak
from tests.one_memory import lay_out, one_memory

WORK = (0, 7, 40)


def space_of(graph: Graph) -> Space:
    order = tuple(step.operator for step in reverse_post_order(whole(graph)).steps)
    return Space.of(Dataflow.of(graph), order)


def peaks(space: Space, segments: Segments, state: State, work: WorkBytes) -> tuple[int, int]:
    """By segments, and by the live ranges of all blocks of the schedule."""
    cut_segments = space.cut_segments(state)
    tiled = space.tiled(state)
    steps = segments.steps(cut_segments)
    assert len(set(steps)) == len(steps)
    return segments.peak(cut_segments)[0], live_peak(tiled, steps, work)[0]


def passed_bytes(space: Space) -> int:
    """The bytes of rows that the last reader of a tensor does not read."""
    flow, last = space.flow, dict[str, tuple[int, RowAccess]]()
    for position in space.order:
        last.update((access.root, (position, access)) for access in flow.readings[position])
    passed = 0
    for name, (position, access) in last.items():
        tensor = flow.graph.tensors[name]
        steps = range(flow.iteration_rows[position])
        read = {row for step in steps for row in range(*access.reach(step, step + 1))}
        passed += 0 if access.whole else (tensor.shape[0] - len(read)) * tensor.row_bytes
    return passed


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Convolutions with strides, sums of two tensors, in-place functions, views and means.

    Any of them may be an output.
    """
    shapes: dict[str, Shape] = {"image": (draw(st.integers(3, 12)), 4, draw(st.sampled_from([4, 16])))}
    operators: list[Operator] = []
    for number in range(draw(st.integers(2, 8))):
        name, source = f"t{number}", draw(st.sampled_from([*sorted(shapes)[-3:], "image"]))
        rows, cols, channels = shapes[source]
        alike = [other for other in shapes if shapes[other] == shapes[source]]
        what = draw(st.sampled_from(["conv", "stride", "add", "lut", "mean", "view"]))
        shapes[name] = shapes[source]
        if what == "add":
            other = draw(st.sampled_from(alike))
            operators.append(Operator(name, Binary("add"), (source, other), name))
        elif what == "lut":
            operators.append(Operator(name, Lut(), (source,), name))
        elif what == "mean" and rows > 1:
            shapes[name] = (1, 1, channels)
            operators.append(Operator(name, AveragePoolByRows(), (source,), name))
        elif what == "view":
            shapes[name] = (rows, 1, cols * channels)
            operators.append(Operator(name, Reshape(shapes[name]), (source,), name))
        elif what == "stride":
            shapes[name] = ((rows - 1) // 2 + 1, cols, channels)
            op = Conv2d(out_channels=channels, stride=(2, 1))
            operators.append(Operator(name, op, (source,), name))
        else:
            operators.append(conv(name, source, name, (channels, channels)))
    read = {source for operator in operators for source in operator.inputs}
    ends = [name for name in shapes if name not in read] + draw(st.lists(st.sampled_from(sorted(shapes))))
    return Graph(
        "random",
        {name: tensor(name, shape) for name, shape in shapes.items()},
        tuple(operators),
        (graph_io("image", shapes["image"]),),
        tuple(graph_io(name, shapes[name]) for name in dict.fromkeys(ends)),
    )


@st.composite
def states(draw: st.DrawFn, places: int) -> State:
    cuts: list[Cut] = []
    first = 0
    while first < places:
        last = draw(st.integers(first, places - 1))
        if draw(st.booleans()):
            rows = draw(st.sampled_from(ROWS_TRIED[:5]))
            cuts.append(Cut(first, last, rows, apart=draw(st.booleans()), staggered=draw(st.booleans())))
        first = last + 1
    return tuple(cuts)


def test_parts_of_a_staggered_cut_end_where_the_windows_of_their_first_reader_end() -> None:
    """Rows [0, 4) of b read rows [0, 5) of a: the parts of a end at rows 5, 9 and so on."""
    shape = (16, 4, 4)
    graph = Graph(
        "chain",
        {name: tensor(name, shape) for name in ("image", "a", "b")},
        (conv("conv_a", "image", "a", (4, 4)), conv("conv_b", "a", "b", (4, 4))),
        (graph_io("image", shape),),
        (graph_io("b", shape),),
    )
    cut = Cut(0, 1, 4, staggered=True)
    assert space_of(graph).step_rows((cut,)) == (BlockRows(4, 3), BlockRows(4))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_segments_add_up_to_the_peak_of_the_schedule(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    if data.draw(st.booleans()):
        graph = stream_inputs(graph)
    work = {
        one.name: (0, 24) if one.op.accumulates else (data.draw(st.sampled_from(WORK)), 0)
        for one in graph.operators
    }
    space = space_of(graph)
    segments = Segments(space.flow, space.order, work)
    for _ in range(4):  # the cache of one state must not affect the next
        state = data.draw(states(len(space.order)))
        computed, wanted = peaks(space, segments, state, work)
        assert computed == wanted
        cut_segments = space.cut_segments(state)
        assert not cut_segments or not segments.exceeds(cut_segments, computed + passed_bytes(space))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_cut_makes_plans_that_pass_the_checker(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    if data.draw(st.booleans()):
        graph = stream_inputs(graph)
    work = {one.name: (0, 24) if one.op.accumulates else (7, 0) for one in graph.operators}
    space = space_of(graph)
    state = data.draw(states(len(space.order)))
    tiled = space.tiled(state)
    steps = Segments(space.flow, space.order, work).steps(space.cut_segments(state))
    schedule = Schedule(steps, "feasible")
    layout, estimate = lay_out(tiled, schedule, work, "ram", 4)
    plan = Plan(graph, "host", tiled.block_rows, schedule, layout, estimate, leads=tiled.leads)
    check(plan, work, one_memory("ram", 4))


def test_a_border_is_whole_and_a_joint_is_not() -> None:
    graph = residual()
    space = space_of(graph)
    work = {operator.name: (0, 0) for operator in graph.operators}
    segments = Segments(space.flow, space.order, work)
    joined, apart = (Cut(0, 1, 1), Cut(2, 3, 1)), (Cut(0, 1, 1), Cut(2, 3, 1, apart=True))
    assert space.cut_segments(joined) == space.cut_segments((Cut(0, 3, 1),)) != space.cut_segments(apart)
    # a and b are whole when conv_c begins, a and c when the sum does.
    assert segments.border_bytes == (256, 256, 512, 512, 256)
    assert segments.peak(space.cut_segments(apart))[0] > segments.peak(space.cut_segments(joined))[0]


def test_a_part_alone_exceeds_a_bound_below_the_peak() -> None:
    space = space_of(residual())
    segments = Segments(space.flow, space.order, {one.name: (0, 0) for one in space.flow.graph.operators})
    cut_segments = space.cut_segments((Cut(0, 1, 1),))
    peak_bytes = segments.peak(cut_segments)[0]
    assert segments.exceeds(cut_segments, peak_bytes - 1) and not segments.exceeds(cut_segments, peak_bytes)


def test_what_is_not_cut_at_the_ends_of_a_segment_stands_alone() -> None:
    space = space_of(pooled())
    assert space.cut_segments((Cut(0, 1, 8),)) == ()
    assert space.cut_segments((Cut(0, 1, 4),)) == ((0, (BlockRows(4), BlockRows(4))),)


def test_the_peak_names_the_operator_where_it_is() -> None:
    space = space_of(residual())
    work = {operator.name: (0, 0) for operator in space.flow.graph.operators}
    work["conv_b"] = (1000, 0)
    assert Segments(space.flow, space.order, work).peak(()) == (1512, 1, 1)
