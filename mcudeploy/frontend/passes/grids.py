"""Activations quantised to types without kernels: int16, uint16, and integers of 4 and 2 bits.

They become float32 activations that are rounded and clipped as the integers of the file, and so have values
on the same grid. Constants of 4 and 2 bits become int8 and uint8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.frontend.onnx.protos import IN_BYTES, ONNX_DOMAINS, constants_of, copy_of, refill
from mcudeploy.frontend.onnx.tensors import array_of, tensors_of

RANGES: dict[int, tuple[str, int, int]] = {
    TensorProto.INT16: ("int16", -(2**15), 2**15 - 1),
    TensorProto.UINT16: ("uint16", 0, 2**16 - 1),
    TensorProto.INT4: ("int4", -8, 7),
    TensorProto.UINT4: ("uint4", 0, 15),
    TensorProto.INT2: ("int2", -2, 1),
    TensorProto.UINT2: ("uint2", 0, 3),
}
"""The name, the smallest and the largest number of each of these types."""

_BYTES: dict[int, int] = {
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
    TensorProto.INT2: TensorProto.INT8,
    TensorProto.UINT2: TensorProto.UINT8,
}
_DOMAINS = (*ONNX_DOMAINS, "com.microsoft")
_MOVES = frozenset((
    "Concat", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice", "Split", "Squeeze",
    "Transpose",
))  # fmt: skip
"""Operators that pass integers of these types on unchanged."""


@dataclass(frozen=True, slots=True, eq=False)
class GridModel:
    """A model with float32 activations on grids. `types`: by name, their types in the file."""

    proto: ModelProto
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class IntegerModel:
    """A model with integer operators in place of activations on grids, and notes to the user."""

    proto: ModelProto
    notes: tuple[str, ...]


def on_grids(proto: ModelProto) -> GridModel:
    """Put activations of the types RANGES on grids; return the model itself if it has none.

    If an operator computes with the integers themselves, all stay, and lowering will refuse them.
    """
    known = _types(proto)
    constants = constants_of(proto.graph)
    kinds = _activations(proto, known, constants)
    if not kinds:
        return GridModel(proto, {})
    result = copy_of(proto)
    graph = result.graph
    replaced = [item for node in graph.node for item in _in_float(node, kinds, constants)]
    refill(graph.node, (node for node, _ in replaced))
    numbers = {name: number for _, needs in replaced for name, number in needs.items()}
    graph.initializer.extend(
        numpy_helper.from_array(np.array(number, np.float32), name) for name, number in numbers.items()
    )
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.name in kinds:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    return GridModel(result, {name: RANGES[kind][0] for name, kind in kinds.items()})


def grids_note(kinds: Iterable[str]) -> str:
    """The note to the user about activations of these types."""
    names = " and ".join(dict.fromkeys(kinds))
    return (
        f"{names} activations are computed in float32 and rounded to the integers of the file: 4 bytes of "
        "RAM for each element. Integer kernels need int8 activations, or int16 ones with zero points of 0 "
        "(ActivationSymmetric)"
    )


def in_bytes(proto: ModelProto) -> ModelProto:
    """Convert constants of 4 and 2 bits to int8 and uint8; return the model itself if it has none."""
    if all(tensor.data_type not in _BYTES for tensor in tensors_of(proto.graph)):
        return proto
    result = copy_of(proto)
    graph = result.graph
    few = {tensor.name for tensor in graph.initializer if tensor.data_type in _BYTES}
    for node in graph.node:
        if node.op_type == "GatherBlockQuantized" and node.input[0] in few:  # uint8 means two integers a byte
            kept = [item for item in node.attribute if item.name != "bits"]
            refill(node.attribute, (*kept, helper.make_attribute("bits", IN_BYTES)))
    for tensor in tensors_of(graph):
        if tensor.data_type in _BYTES:
            dtype = helper.tensor_dtype_to_np_dtype(_BYTES[tensor.data_type])
            tensor.CopyFrom(numpy_helper.from_array(array_of(tensor).astype(dtype), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.tensor_type.elem_type
        value.type.tensor_type.elem_type = _BYTES.get(kind, kind)
    return result


def _types(proto: ModelProto) -> dict[str, int]:
    graph = proto.graph
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _activations(
    proto: ModelProto, known: Mapping[str, int], constants: Mapping[str, TensorProto]
) -> dict[str, int]:
    """The types of the activations to put on grids, by name; empty if an operator computes with integers."""
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in proto.graph.input
        if value.type.tensor_type.elem_type in RANGES and value.name not in constants
    }
    for node in proto.graph.node:
        is_onnx = node.domain in _DOMAINS and len(node.output) > 0 and all(node.output)
        read = {name for name in node.input if name in kinds}
        if is_onnx and node.op_type == "QuantizeLinear":
            zero = constants.get(node.input[2]) if len(node.input) > 2 else None
            kind = known.get(node.output[0], 0) if zero is None else zero.data_type
            if kind in RANGES and not _is_simple(node, constants):
                return {}
            if kind in RANGES:
                kinds[node.output[0]] = kind
        elif read and is_onnx and node.op_type in _MOVES:
            if any(known.get(name) in RANGES and name not in kinds for name in node.input):
                return {}
            kinds |= dict.fromkeys(node.output, kinds[next(iter(read))])
        elif read and not (is_onnx and node.op_type == "DequantizeLinear" and _is_simple(node, constants)):
            return {}
    return kinds


def _is_simple(node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    """Whether a QuantizeLinear or DequantizeLinear has one scale and a constant zero point."""
    if any(item.name == "block_size" and item.i for item in node.attribute):
        return False
    if len(node.input) < 2:
        return False
    scale, zero = constants.get(node.input[1]), node.input[2] if len(node.input) > 2 else ""
    return scale is not None and int(np.prod(scale.dims)) == 1 and (not zero or zero in constants)


def _in_float(
    node: NodeProto, kinds: Mapping[str, int], constants: Mapping[str, TensorProto]
) -> list[tuple[NodeProto, dict[str, float]]]:
    """Return the nodes that replace a node, each with its constants by name."""
    if node.domain not in _DOMAINS or node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return [(node, {})]
    quantizes = node.op_type == "QuantizeLinear"
    kind = kinds.get(node.output[0] if quantizes else node.input[0])
    if kind is None:
        return [(node, {})]
    zero = float(array_of(constants[node.input[2]]).reshape(-1)[0]) if len(node.input) > 2 else 0.0
    scale = float(array_of(constants[node.input[1]]).reshape(-1)[0])
    steps: list[tuple[Any, ...]]
    if quantizes:
        _, low, high = RANGES[kind]
        steps = [("Div", scale), ("Clip", low - zero, high - zero), ("Round",)]
        steps += [("Add", zero)] if zero else []
    else:
        steps = [("Sub", zero)] if zero else []
        steps += [("Mul", scale)]
    grid_nodes, last = [], node.input[0]
    for op, *numbers in steps:
        out = f"{node.output[0]}/{op}"
        needs = {f"{out}/{at}": number for at, number in enumerate(numbers)}
        grid_nodes.append((helper.make_node(op, [last, *needs], [out], name=node.name), needs))
        last = out
    grid_nodes[-1][0].output[0] = node.output[0]
    return grid_nodes
