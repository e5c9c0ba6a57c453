"""Inputs of an ONNX model that the user makes constants, or states: outputs that the next run reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.cache_parts import parts_of
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.int8_caches import chosen, in_int8, widen_function
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS
from mcudeploy.frontend.onnx.protos import (
    constants_of,
    copy_of,
    graphs_of,
    import_domain,
    opset_of,
    refill,
    sizes_of,
    unused_name,
)
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.shapes import fix_inputs
from mcudeploy.frontend.onnx.states import LOAD, QUEUE, KeptState, Stateful, queue_attributes, state_functions
from mcudeploy.frontend.onnx.written_caches import written

_NUMBERS = frozenset(
    (
        *(TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BOOL),
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    )
)
_UNTYPED = frozenset({"MatMulNBits", "GatherBlockQuantized"})
"""Operators whose results ONNX does not infer; they have the type of the scales, the third input."""
_MIN_OPSET = 12
"""First opset whose Constant has `value_ints`, which the functions of states use in the reference."""


def apply_choices(proto: ModelProto, choices: InputChoices) -> Stateful:
    """Make inputs constants and states of the model, in place, as the user chose.

    Raises UsageError for unknown inputs and outputs, and for states whose input and output differ in shape or
    type.
    """
    graph = proto.graph
    choices = choices.for_inputs([it.name for it in graph.input], {it.name for it in graph.output})
    int8_states = chosen(choices.int8_caches, list(choices.states))
    if not choices.constants and not choices.states:
        return Stateful()
    _require_inputs(graph, "--bind", choices.constants)
    _require_inputs(graph, "--state", choices.states)
    both = sorted(set(choices.constants) & set(choices.states))
    if both:
        raise UsageError(f"input {printable(both[0])!r} is given to --bind and to --state: leave out one")
    output, uses = next(iter(Counter(choices.states.values()).most_common(1)), ("", 0))
    if uses > 1:
        raise UsageError(f"--state: output {printable(output)!r} is the state of {uses} inputs")
    notes = fix_inputs(graph, choices.shapes)
    for name, value in choices.constants.items():
        _bind(graph, name, value)
    if not any(value.name not in choices.states for value in graph.input):
        raise UsageError("--bind and --state leave the model no input")
    if not choices.states:
        return Stateful(notes=notes)
    if opset_of(proto) < _MIN_OPSET:
        raise ModelError(
            f"the model uses opset {opset_of(proto)}; --state needs {_MIN_OPSET} or newer: convert it with "
            "onnx.version_converter.convert_version(model, 17)"
        )
    known = _infos(proto)
    states: list[KeptState] = []
    for name, output in choices.states.items():
        added = _add_states(proto, known, name, output)
        states += in_int8(proto, name, added) if name in int8_states else added
    import_domain(proto, DOMAIN)
    functions = state_functions(opset_of(proto))
    functions += [widen_function(opset_of(proto))] if int8_states else []
    return Stateful(tuple(states), tuple(functions), notes)


def _require_inputs(graph: GraphProto, option: str, names: Iterable[str]) -> None:
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    unknown = next((name for name in names if name not in inputs), None)
    if unknown is not None:
        known = ", ".join(map(printable, inputs))
        raise UsageError(f"{option}: the model has no input {printable(unknown)!r}; its inputs are {known}")


def _input(graph: GraphProto, name: str) -> ValueInfoProto:
    names = [value.name for value in graph.input]
    value: ValueInfoProto = graph.input[names.index(name)]
    return value


def _dtype(value: ValueInfoProto, label: str) -> np.dtype[Any]:
    """The element type of a tensor of numbers. Raises UsageError for other values."""
    kind = value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else 0
    if kind not in _NUMBERS:
        raise UsageError(
            f"{label} {printable(value.name)!r} is not a tensor of numbers that can be kept or bound"
        )
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))


def _bind(graph: GraphProto, name: str, number: float) -> None:
    """Replace an input by a constant."""
    value = _input(graph, name)
    dtype, sizes = _dtype(value, "--bind: input"), sizes_of(value)
    if prod(sizes) > MAX_TENSOR_ELEMENTS:
        raise UsageError(f"--bind: input {printable(name)!r} has the shape {sizes}, too many elements")
    if not _holds(dtype, number):
        raise UsageError(f"--bind: input {printable(name)!r} is {dtype}, which cannot be {number:g}")
    graph.input.remove(value)
    graph.initializer.append(numpy_helper.from_array(np.full(sizes, number, dtype), name))


def _holds(dtype: np.dtype[Any], number: float) -> bool:
    """Whether the type has this number: integers exactly, floats within the range."""
    if dtype.kind == "b":
        return number in (0, 1)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return float(number).is_integer() and limits.min <= int(number) <= limits.max
    return abs(number) <= float(np.finfo(dtype).max)


def _infos(proto: ModelProto) -> dict[str, ValueInfoProto]:
    typed = copy_of(proto)
    stated = {it.name for it in (*proto.graph.value_info, *proto.graph.output)}
    kinds = {it.name: it.data_type for it in proto.graph.initializer}
    for node in proto.graph.node:
        # Without a type, ONNX does not infer the shape of a Reshape after the node either.
        if node.op_type in _UNTYPED and node.output[0] not in stated:
            kind = kinds.get(node.input[2], TensorProto.FLOAT)
            typed.graph.value_info.append(onnx.helper.make_tensor_value_info(node.output[0], kind, None))
    graph = onnx.shape_inference.infer_shapes(typed).graph
    return {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}


def _add_states(
    proto: ModelProto, known: Mapping[str, ValueInfoProto], name: str, output: str
) -> list[KeptState]:
    """Make an input and an output a state, or several if nodes read the input in parts."""
    graph = proto.graph
    outputs = [value.name for value in graph.output]
    if output not in outputs:
        names = ", ".join(map(printable, outputs))
        raise UsageError(f"--state: the model has no output {printable(output)!r}; its outputs are {names}")
    value, result = _input(graph, name), known.get(output, graph.output[outputs.index(output)])
    dtype, sizes = _dtype(value, "--state: input"), sizes_of(value)
    result_dtype, result_sizes = _dtype(result, "--state: output"), sizes_of(result)
    has_shape = result.type.tensor_type.HasField("shape") and all(result_sizes)
    if result_dtype != dtype or (has_shape and result_sizes != sizes):
        grows = len(result_sizes) == len(sizes) and all(map(int.__ge__, result_sizes, sizes))
        raise UsageError(
            f"--state: output {printable(output)!r} is {result_dtype} {result_sizes}, and input "
            f"{printable(name)!r} is {dtype} {sizes}"
            f"{'. A cache has to lose its oldest rows in the model, by Slice' if grows else ''}"
        )
    if len(outputs) == 1:
        raise UsageError(
            f"--state: {printable(output)!r} is the model's only output, and a state is not an output: add "
            "an Identity of it as another output"
        )
    graph.output.remove(graph.output[outputs.index(output)])
    graph.input.remove(value)
    return [
        _queued(graph, known, part, part_output)
        or written(graph, known, part, part_output)
        or _replaced(graph, part, part_output)
        for part, part_output in parts_of(proto, known, value, output)
    ]


def _declare_shape(graph: GraphProto, name: str, kind: int, sizes: Sequence[int]) -> None:
    """Declare the shape of a value that a node of the private domain computes: ONNX does not infer it."""
    graph.value_info.append(helper.make_tensor_value_info(name, kind, sizes))


def _replaced(graph: GraphProto, value: ValueInfoProto, output: str) -> KeptState:
    """Add a state that the run copies at its start and replaces at its end."""
    name, kind, sizes = value.name, value.type.tensor_type.elem_type, sizes_of(value)
    before, copy, newest, after = (
        unused_name(graph, f"{name}_{part}") for part in ("before", "copy", "newest", "after")
    )
    own_shape = _constant(graph, f"{name}_sizes", sizes)
    stored_shape = _constant(graph, f"{name}_stored", [1, *sizes])
    graph.input.append(helper.make_tensor_value_info(before, kind, [1, *sizes]))
    first = [
        helper.make_node(LOAD, [before], [copy], f"{name}_load", domain=DOMAIN),
        helper.make_node("Reshape", [copy, own_shape], [name], f"{name}_reshape"),
    ]
    last = [
        helper.make_node("Reshape", [output, stored_shape], [newest], f"{name}_newest"),
        _queue_node(newest, before, after, 0, 1),
    ]
    refill(graph.node, [*first, *graph.node, *last])
    _declare_shape(graph, copy, kind, [1, *sizes])
    _declare_shape(graph, after, kind, [1, *sizes])
    return KeptState(before, after, "")


def _queue_node(newest: str, before: str, after: str, axis: int, rows: int) -> NodeProto:
    """The node by which new rows enter a state."""
    inputs, attributes = [newest, before], queue_attributes(axis, rows)
    return helper.make_node(QUEUE, inputs, [after], f"{after}_queue", domain=DOMAIN, **attributes)


def _constant(graph: GraphProto, wish: str, value: Sequence[int]) -> str:
    name = unused_name(graph, wish)
    graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    return name


def _queued(
    graph: GraphProto, known: Mapping[str, ValueInfoProto], value: ValueInfoProto, output: str
) -> KeptState | None:
    """Add a state that newest rows enter, if `output` is the last rows of Concat(value, newest rows).

    None for other outputs.
    """
    name, kind, sizes = value.name, value.type.tensor_type.elem_type, sizes_of(value)
    readers = [node for inner in graphs_of(graph) for node in inner.node if name in node.input]
    producers = {result: node for node in graph.node for result in node.output}
    tail = producers.get(output)
    if len(readers) != 1 or tail is None or tail.op_type != "Slice" or tail.domain:
        return None
    joined = readers[0]
    if joined not in graph.node or joined.op_type != "Concat" or len(joined.input) != 2:
        return None
    if joined.input[0] != name or joined.input[1] == name:
        return None
    result = joined.output[0]
    stored = sizes_of(known[result]) if result in known else []
    axis = next((at for at, size in enumerate(sizes) if stored[at : at + 1] != [size]), None)
    if tail.input[0] != result or axis is None or len(stored) != len(sizes):
        return None
    rows = _rows_left_out(graph, tail, axis, stored)
    if rows is None or stored[axis] != rows + sizes[axis] or rows > sizes[axis]:
        return None  # with more new rows than kept ones, `_replaced` takes less memory than a queue
    before = unused_name(graph, f"{name}_before")
    graph.input.append(helper.make_tensor_value_info(before, kind, stored))
    at = list(graph.node).index(joined)
    graph.node[at].CopyFrom(_queue_node(joined.input[1], before, result, axis, rows))
    for info in [info for info in graph.value_info if info.name == result]:
        graph.value_info.remove(info)
    _declare_shape(graph, result, kind, stored)
    return KeptState(before, result, "")


def _rows_left_out(graph: GraphProto, node: NodeProto, axis: int, shape: Sequence[int]) -> int | None:
    """The number of rows that a Slice leaves out at the start of an axis; None if it leaves out others."""
    constants = constants_of(graph)
    limits_of = [constants.get(name) for name in node.input[1:]]
    if None in limits_of or len(limits_of) not in (3, 4):
        return None
    limits = [numpy_helper.to_array(it).reshape(-1).tolist() for it in limits_of if it is not None]
    if any(len(it) != 1 for it in limits) or limits[2][0] not in (axis, axis - len(shape)):
        return None
    if len(limits) > 3 and limits[3] != [1]:
        return None
    last_rows = range(shape[axis])[limits[0][0] : limits[1][0]]
    return last_rows.start if last_rows.stop == shape[axis] else None
