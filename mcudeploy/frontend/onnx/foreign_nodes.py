"""Foreign nodes: neither onnx nor ONNX Runtime knows them, and numpy functions of extensions compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import count_text, first_line, printable
from mcudeploy.extension import added_for
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS
from mcudeploy.frontend.onnx.protos import constants_of, element_type, fixed_shape

Array = NDArray[Any]


def reference_of(node: NodeProto) -> Callable[..., Any] | None:
    """The numpy function of a node, None if no extension has one."""
    function: Callable[..., Any] | None = added_for("references", node.domain).get(node.op_type)
    return function


def foreign_nodes(proto: ModelProto) -> list[NodeProto]:
    """The nodes that numpy functions of extensions compute; functions in the file have priority."""
    local = {(function.domain, function.name) for function in proto.functions}
    nodes = (node for node in proto.graph.node if (node.domain, node.op_type) not in local)
    return [node for node in nodes if reference_of(node) is not None]


def computed(node: NodeProto, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    """The outputs of a node by its numpy function, floats as float32; None stands for an input left out.

    The function gets read-only inputs, so that it fails if it changes them. Raises ModelError that names the
    node and the fault of the function.
    """
    function, at = reference_of(node), f"{node.domain}::{printable(node.op_type)} at {printable(node.name)!r}"
    if function is None:
        raise ValueError(f"no extension has a numpy function of {at}")
    attributes = {item.name: _value(item) for item in node.attribute}
    try:
        with np.errstate(all="ignore"):
            result = function(*map(_read_only, inputs), **attributes)
    except Exception as fault:  # the code of a user raises anything
        raise ModelError(
            f"the numpy function of {at} fails: {type(fault).__name__}: {first_line(fault)}"
        ) from fault
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(node.output):
        raise ModelError(
            f"the numpy function of {at} returns {count_text(len(results), 'array')}, "
            f"the node has {count_text(len(node.output), 'output')}"
        )
    arrays = [np.asarray(it) for it in results]
    return tuple(it.astype(np.float32) if it.dtype.kind == "f" else it for it in arrays)


def _read_only(array: Array | None) -> Array | None:
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def with_foreign_shapes(proto: ModelProto) -> bool:
    """State the shapes of the results of foreign nodes whose inputs have known shapes; return if any is new.

    The numpy function computes results from constant inputs, and from zeros in place of other inputs.
    """
    nodes = foreign_nodes(proto)
    if not nodes:
        return False
    graph = proto.graph
    values = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    constants = constants_of(graph)
    new = False
    for node in nodes:
        open_outputs = [it for it in node.output if it not in values or fixed_shape(values[it]) is None]
        operands = [_operand(name, values, constants) for name in node.input]
        if not open_outputs or any(it is None for it, name in zip(operands, node.input, strict=True) if name):
            continue
        for name, array in zip(node.output, computed(node, operands), strict=True):
            kind = helper.make_tensor_type_proto(element_type(array.dtype), array.shape)
            if name in values and name in open_outputs:
                values[name].type.CopyFrom(kind)
            elif name in open_outputs:
                values[name] = _info(name, kind)
                graph.value_info.append(values[name])
            new = True
    return new


def _info(name: str, kind: TypeProto) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=kind)


def _operand(name: str, values: Mapping[str, ValueInfoProto], constants: Mapping[str, Any]) -> Array | None:
    if name in constants:
        return np.asarray(numpy_helper.to_array(constants[name]))
    shape = fixed_shape(values[name]) if name in values else None
    if shape is None or prod(shape) > MAX_TENSOR_ELEMENTS:
        return None
    kind = values[name].type.tensor_type.elem_type
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind))


def _value(item: AttributeProto) -> Any:
    """The value of an attribute: a number, a text, an array, or a list of them."""
    value = helper.get_attribute_value(item)
    if item.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
