"""If, Loop and Scan whose course is known, with layers inside; as in `layers`."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

from fuzzing import decomposed, layers, shapes
from fuzzing.draft import Draft, Info, Layer, Shape, live_nodes, of

_INSIDE = (
    layers.convolution,
    layers.binary,
    layers.function,
    layers.normalisation,
    layers.pool,
    shapes.matmul,
    shapes.softmax,
    shapes.slice_,
    decomposed.along_axis,
    decomposed.seldom_function,
)
_MOST_TRIPS = 4
_MOST_NODES = 4


def _body(draft: Draft, states: dict[str, Shape], seen: int = 2) -> Draft:
    """The draft of a graph inside, which sees these states and some of the values outside."""
    draft.bodies += 1
    first = 1_000_000 * draft.bodies
    inner = Draft(draft.random, draft.opset, lambda number: draft.naming(first + number))
    outside = draft.alike(lambda it: True)
    for _ in range(min(seen, len(outside))):
        name = str(draft.pick(outside))
        inner.shapes[name] = draft.shapes[name]
    inner.shapes |= states
    return inner


def _grown(inner: Draft, shape: Shape) -> str:
    """Layers inside, and a value of this shape computed there, which does not grow from iteration to
    iteration.
    """
    for _ in range(10):
        if len(inner.nodes) >= _MOST_NODES:
            break
        inner.pick(_INSIDE)(inner)
    names = {name for node in inner.nodes for name in node.output}
    candidates = inner.alike(lambda it: it == shape)
    own = [name for name in candidates if name in names]
    last = own[-1] if own else candidates[-1]
    if inner.chance(0.2):
        last = inner.add("Add", [last, inner.constant(inner.normal(shape[-1:]))], shape)
    return inner.add(inner.pick(("Tanh", "Sigmoid", "HardSigmoid")), [last], shape)


def _graph(draft: Draft, inner: Draft, inputs: list[Info], outputs: list[Info]) -> GraphProto:
    """The graph inside; its constants are its own, or those of the outer graph."""
    nodes = live_nodes(inner.nodes, [info[0] for info in outputs])
    own = inner.constants if draft.chance(0.5) else {}
    if not own:
        draft.constants |= inner.constants
    return helper.make_graph(
        nodes,
        f"body{draft.bodies}",
        [helper.make_tensor_value_info(*info) for info in inputs],
        [helper.make_tensor_value_info(*info) for info in outputs],
        [numpy_helper.from_array(array, name) for name, array in own.items()],
    )


@of(2, 3, 4)
def branch(draft: Draft, name: str, shape: Shape) -> None:
    """An If whose condition is constant, or follows from a shape."""
    branches = {}
    for way in ("then_branch", "else_branch"):
        inner = _body(draft, {name: shape})
        last = _grown(inner, shape)
        branches[way] = _graph(draft, inner, [], [(last, TensorProto.FLOAT, shape)])
    draft.add("If", [_condition(draft, name)], shape, **branches)


def _condition(draft: Draft, name: str) -> str:
    if draft.chance(0.5):
        return draft.constant(np.array(draft.chance(0.5)))
    sizes = draft.naming(2_000 + len(draft.nodes))
    size, where = f"{sizes}_one", f"{sizes}_condition"
    index, bound = (draft.constant(np.array(it, np.int64)) for it in (1, draft.whole(0, 8)))
    for op, inputs, out in (
        ("Shape", [name], sizes),
        ("Gather", [sizes, index], size),
        ("Greater", [size, bound], where),
    ):
        draft.nodes.append(helper.make_node(op, inputs, [out], name=f"{op}_{len(draft.nodes)}"))
    return where


def loop(draft: Draft) -> None:
    """A Loop of a few iterations with one or two states, one of which may be an output of each iteration."""
    name = draft.source(2, 3, 4)
    if name is None:
        return
    starts = [name, *draft.alike(lambda it: it == draft.shapes[name])][: draft.whole(1, 2)]
    names = [draft.naming(3_000 + 10 * draft.bodies + at) for at in range(len(starts) + 2)]
    trip, going, *states = names
    known = {state: draft.shapes[start] for state, start in zip(states, starts, strict=True)}
    inner = _body(draft, known)
    if draft.chance(0.4):
        _with_number(inner, trip, states[0])
    lasts = [_grown(inner, shape) for shape in known.values()]
    trips = draft.whole(1, _MOST_TRIPS)
    ends, most = _end(draft, inner, (trip, going), trips)
    whole = (trips, *known[states[0]])
    scanned = [lasts[0]] if draft.chance(0.4) and len(whole) < 5 and draft.fits(whole) else []
    outputs = [(ends, TensorProto.BOOL, ())]
    outputs += [(last, TensorProto.FLOAT, shape) for last, shape in zip(lasts, known.values(), strict=True)]
    if scanned:
        out = inner.add("Identity", scanned, known[states[0]])
        outputs.append((out, TensorProto.FLOAT, known[states[0]]))
    inputs = [(trip, TensorProto.INT64, ()), (going, TensorProto.BOOL, ())]
    inputs += [(state, TensorProto.FLOAT, shape) for state, shape in known.items()]
    body = _graph(draft, inner, inputs, outputs)
    results = [*known.values(), *([whole] if scanned else [])]
    count = draft.constant(np.array(most, np.int64))
    start = draft.constant(np.array(True)) if draft.chance(0.7) else ""
    draft.add_many("Loop", [count, start, *starts], results, body=body)


def _with_number(inner: Draft, trip: str, state: str) -> None:
    """A value inside that depends on the number of the trip."""
    shape = inner.shapes[state]
    if inner.chance(0.5):
        real = inner.add("Cast", [trip], (), to=TensorProto.FLOAT)
    else:
        table = inner.constant(inner.normal((_MOST_TRIPS + 1,)))
        real = inner.add("Gather", [table, trip], ())
    inner.add("Add", [state, real], shape)


def _end(draft: Draft, inner: Draft, before: tuple[str, str], trips: int) -> tuple[str, int]:
    """The condition to continue, and the limit of the Loop's iterations: `trips`, or more if a counter ends
    it.

    `before`: the number of the iteration, and the condition at its start.
    """
    trip, going = before
    way = draft.pick(("same", "constant", "counter"))
    ends = draft.naming(4_000 + draft.bodies)
    if way == "same":
        inner.nodes.append(helper.make_node("Identity", [going], [ends], name=f"{ends}_same"))
    elif way == "constant":
        value = numpy_helper.from_array(np.array(True))
        inner.nodes.append(helper.make_node("Constant", [], [ends], name=f"{ends}_constant", value=value))
    else:
        bound = inner.constant(np.array(trips - 1, np.int64))
        inner.nodes.append(helper.make_node("Less", [trip, bound], [ends], name=f"{ends}_less"))
        return ends, trips + draft.whole(0, 3)
    return ends, trips


@of(3)
def scan(draft: Draft, name: str, shape: Shape) -> None:
    """A recurrence written by hand: a Scan along axis 1."""
    batch, steps, features = shape
    hidden = draft.pick((2, 3, 5))
    if steps > 8 or not draft.fits((batch, steps, hidden), batch * steps * features * hidden):
        return
    state, row = (draft.naming(5_000 + 10 * draft.bodies + at) for at in range(2))
    inner = _body(draft, {state: (batch, hidden), row: (batch, features)}, 0)
    rows = [
        inner.add("MatMul", [value, inner.constant(inner.normal((size, hidden), 0.5))], (batch, hidden))
        for value, size in ((row, features), (state, hidden))
    ]
    last = inner.add("Tanh", [inner.add("Add", rows, (batch, hidden))], (batch, hidden))
    out = inner.add("Identity", [last], (batch, hidden))
    infos = [(it, TensorProto.FLOAT, inner.shapes[it]) for it in (state, row, last, out)]
    body = _graph(draft, inner, infos[:2], infos[2:])
    first = draft.constant(draft.normal((batch, hidden), 0.3))
    results = [(batch, hidden), (batch, steps, hidden)]
    attributes = {"num_scan_inputs": 1, "scan_input_axes": [1], "scan_output_axes": [1]}
    if draft.chance(0.3):
        attributes["scan_input_directions"] = [1]
    draft.add_many("Scan", [first, name], results, body=body, **attributes)


LAYERS: tuple[tuple[Layer, float], ...] = ((branch, 1.5), (loop, 2.5), (scan, 1))
