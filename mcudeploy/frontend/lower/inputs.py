"""Layouts and element types of graph inputs, determined by their readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mcudeploy.extension import added_for
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.follow import common_quantization
from mcudeploy.frontend.lower.views import VIEWS, view_index
from mcudeploy.frontend.onnx.nodes import Info, Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.quantization import TRUTH, activation_parameters
from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS, OPERATIONS
from mcudeploy.frontend.onnx.values import (
    STORED_TYPES,
    IndexArray,
    OnnxValue,
    default_layout,
    image_positions,
    is_plain,
    natural_shape,
    positions,
)
from mcudeploy.ir.graph import DType, GraphIO, Quantization, Shape, State
from mcudeploy.ops.host_io import to_device
from mcudeploy.ops.requantize import dequantize_table

_IMAGE_OPS = frozenset(
    {"AveragePool", "BatchNormalization", "Conv", "GlobalAveragePool"}
    | {"GlobalMaxPool", "GridSample", "MaxPool", "Resize"}
)
_STORAGE_ORDER_OPS = frozenset({"Gemm", "GridSample", "MatMul"})
_SAME_LAYOUT = frozenset({"QuantizeLinear", "DequantizeLinear", *FUNCTIONS})

Layout = Literal["image", "stored image", "stored order", "same", "same if as large"]
"""The layout that a node requires of its first input.

- "image": that of an ONNX image [N, C, H, W]; "stored image": that of an image [1, H, W, C].
- "stored order": the order of the file.
- "same": the layout of the node's result; "same if as large": this only for an operand of the result's size.
"""
_MAX_VALUES_AHEAD = 64
"""Number of values after an input whose readers are examined for the layout that they require."""
_REAL = ("float32", "bool")


def declare(builder: Builder, info: Info, *, float_io: bool) -> OnnxValue:
    """Create the tensor of a graph input, and define and return its value.

    A float input that all readers quantise alike is stored quantised unless `float_io`. A bool is stored as
    int8, 0 or 1. Raises Unsupported for other element types.
    """
    if info.shape is None or info.dtype not in STORED_TYPES:
        known = ", ".join(STORED_TYPES)
        raise Unsupported(f"an input of {info.dtype} is not supported; {known} are. {_way_out(info.dtype)}")
    shape, index = _layout(builder, info.name, info.shape)
    name, dtype = builder.input_name(info.name), STORED_TYPES[info.dtype]
    quantization = None
    if info.dtype == "bool":
        quantization = TRUTH
    elif info.dtype == "float32":
        quantization = None if float_io else common_quantization(builder, _readers(builder, info.name))
    elif dtype is DType.INT8:
        quantization = _first_quantization(builder, info.name, info.dtype) or Quantization(1.0, 0)
    real = info.dtype in _REAL
    builder.tensor(name, shape, dtype if quantization is None else DType.INT8, quantization)
    table = dequantize_table(quantization) if real and quantization is not None else None
    value = OnnxValue(name, index, real, table, quantization)
    builder.define(info.name, value)
    return value


def _way_out(dtype: str) -> str:
    """The way out that an error states for an input of an unsupported element type."""
    if dtype in ("int16", "uint16"):
        return "Of this type only what DequantizeLinear reads is computed: cast to int32 before the model"
    if dtype.startswith("complex"):
        return "Give real and imaginary parts as two inputs"
    if dtype == "string":
        return "Encode text as integers before the model"
    if dtype.startswith("float"):
        return "Export the model in float32, or quantise it to int8 with mcudeploy quantize"
    return "Export the model with int32 inputs"


def _layout(builder: Builder, name: str, shape: tuple[int, ...]) -> tuple[Shape, IndexArray]:
    """The layout that the first reader requires, if it is a plain one; else the default layout."""
    wanted = _required_positions(builder, name, positions(shape))
    if wanted is None:
        return default_layout(shape)
    index = np.empty(wanted.size, np.int32)
    index[wanted.reshape(-1)] = positions((wanted.size,))
    index = index.reshape(shape)
    if not is_plain(index):
        return default_layout(shape)
    return (wanted.shape[0], wanted.shape[1], wanted.shape[2]), index


def _required_positions(builder: Builder, name: str, index: IndexArray) -> IndexArray | None:
    """The positions, in stored order, that the first reader with a requirement needs, or None."""
    waiting: list[tuple[str, IndexArray]] = [(name, index)]
    for _ in range(_MAX_VALUES_AHEAD):
        if not waiting:
            return None
        current, places = waiting.pop(0)
        for node in builder.consumers.get(current, []):
            try:
                required = _required(node, current)
                if required == "image":
                    return image_positions(places)
                if required == "stored image":
                    return np.asarray(places[0], np.int32)
                if required == "stored order":
                    return places.reshape(natural_shape(places.shape))
                if node.op == "Queue" and node.domain and node.inputs[0] == current:
                    rows = by_time(builder, node, places)
                    return rows.reshape(1, len(rows), -1)
                if node.op in VIEWS:
                    waiting.append((node.output, view_index(builder.constants, node, places)))
                elif required == "same" or (
                    required == "same if as large" and _has_shape(builder, node, places.shape)
                ):
                    waiting.append((node.output, places))
            except Unsupported:
                continue
    return None


def by_time(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    """The index array of a queue's value with the time axis first, which is stored as rows.

    Channels come last if a convolution or a pool reads the images.
    """
    axis = node.integer("axis", 0)
    rows = np.moveaxis(index, axis, 0)
    readers = builder.consumers.get(node.output, [])
    if axis == 2 and index.ndim == 4 and any(_required(it, it.inputs[0]) == "image" for it in readers):
        rows = np.moveaxis(rows, 2, -1)
    return rows


def _required(node: Node, value: str) -> Layout | None:
    """The layout that a node requires of its input `value`; None if it requires none.

    Only the first input of a node can be required to be an image.
    """
    if node.op in _IMAGE_OPS and node.inputs[0] == value:
        return "image"
    if node.op in _STORAGE_ORDER_OPS:
        return "stored order"
    if node.op in OPERATIONS:
        return "same if as large"
    if node.op in _SAME_LAYOUT:
        return "same"
    layout: Layout | None = added_for("layouts", node.domain).get(node.op)
    is_other_input = layout in ("image", "stored image") and node.inputs[0] != value
    return None if is_other_input else layout


def _has_shape(builder: Builder, node: Node, shape: tuple[int, ...]) -> bool:
    info = builder.model.infos.get(node.output)
    return info is not None and info.shape == shape


def _readers(builder: Builder, name: str) -> list[tuple[str, Node]]:
    """The nodes that read a value through views, each with the value it reads; none if that is an output."""
    readers: list[tuple[str, Node]] = []
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in builder.outputs:
            return []
        for node in builder.consumers.get(current, []):
            if node.op in VIEWS and node.inputs[0] == current:
                waiting.append(node.output)
            else:
                readers.append((current, node))
    return readers


def _first_quantization(builder: Builder, name: str, dtype: str) -> Quantization | None:
    """The parameters of the first DequantizeLinear that reads an integer input, or a queue of it."""
    for current, node in _readers(builder, name):
        if node.op == "Queue" and node.domain:
            return _first_quantization(builder, node.output, dtype)
        if node.op == "DequantizeLinear" and node.inputs[0] == current:
            try:
                return activation_parameters(builder.constants, node, dtype)
            except Unsupported:
                continue
    return None


def stored_quantization(builder: Builder, name: str) -> Quantization | None:
    """The quantisation that the readers of a value state if it is stored as int8; None for other values."""
    dtype = builder.model.dtype_of(name)
    if STORED_TYPES.get(dtype) is not DType.INT8:
        return None
    known = None if dtype == "bool" else _first_quantization(builder, name, dtype)
    return known or Quantization(1.0, 0)


def state_input(
    builder: Builder,
    name: str,
    shape: Shape,
    quantization: Quantization | None = None,
    index: IndexArray | None = None,
) -> str | None:
    """The tensor of a graph input that is a state; None if the input is not a state.

    `index` has the positions of the input's elements, by default in order. Raises Unsupported if the initial
    value is not constant.
    """
    listed = next((it for it in builder.model.states if it.before == name), None)
    if listed is None:
        return None
    existing = next((state.tensor for state in builder.states if state.before.name == name), None)
    if existing is not None:
        return existing
    if listed.initial and listed.initial not in builder.constants:
        raise Unsupported(
            "its first state is neither constant nor an input of the model that serves nothing else: "
            "export it as one of these, or leave out --stateful"
        )
    info = builder.model.infos[name]
    if info.dtype not in STORED_TYPES:
        raise Unsupported(f"a state of {info.dtype} is not supported; {', '.join(STORED_TYPES)} are")
    tensor = builder.tensor(builder.input_name(name), shape, STORED_TYPES[info.dtype], quantization)
    order = positions((tensor.elements,)) if index is None else index.reshape(-1)
    before = GraphIO(tensor.name, name, info.shape or shape, info.dtype, order)
    first = np.zeros(before.shape, info.dtype)
    if listed.initial:
        first = builder.constants[listed.initial].value.astype(info.dtype).reshape(before.shape)
    initial: Any = to_device(before, tensor, first)
    builder.states.append(State(before, replace(before, name=listed.after), initial))
    return tensor.name


def placeholder(builder: Builder, name: str) -> bool:
    """Define a value that an unsupported node would compute, so that later nodes are checked too.

    Returns False if the value's shape or element type is unknown.
    """
    info = builder.model.infos.get(name)
    if info is None or info.shape is None or info.dtype not in STORED_TYPES:
        return False
    try:
        require_bounded(info.shape, "a result")
        shape, index = default_layout(info.shape)
        tensor = builder.input_name("")
        dtype = DType.FLOAT32 if info.dtype == "bool" else STORED_TYPES[info.dtype]
        quantization = Quantization(1.0, 0) if dtype is DType.INT8 else None
        builder.tensor(tensor, shape, dtype, quantization)
    except Unsupported:
        return False
    builder.values[name] = OnnxValue(tensor, index, info.dtype in _REAL, quantization=quantization)
    return True
