"""Slice, Gather, Tile and other operators that select elements by constants, as rules of index arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.taking import Selection, depth_to_space, separated, taking
from mcudeploy.frontend.onnx.constants import Constant, integers_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.values import (
    IndexArray,
    OnnxValue,
    coordinates,
    default_layout,
    image_index,
    image_positions,
    natural_shape,
    nested_runs,
    scattered,
)
from mcudeploy.ir.graph import DType, Shape
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.concat_channels import ConcatChannels
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.take import MOST, Positions

Rule = Callable[[Builder, Node, IndexArray], IndexArray]
"""Function that makes the index array of a node's result from that of its first input."""


def axis_of(node: Node, rank: int, name: str = "axis", default: int = 0) -> int:
    """An attribute that is an axis, normalised to [0, rank). Raises Unsupported if it is out of range."""
    axis = node.integer(name, default)
    if not -rank <= axis < rank:
        raise Unsupported(f"{name} {axis} is outside {rank} dimensions")
    return axis % rank


def _indices(builder: Builder, node: Node) -> NDArray[np.int64]:
    wanted = builder.constant(node.input(1), "the indices").value
    if wanted.dtype.kind not in "iu":
        raise Unsupported(f"its indices are {wanted.dtype}, not integers")
    return wanted.astype(np.int64)


def _inside(wanted: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    if wanted.size and (wanted.min() < -size or wanted.max() >= size):
        raise Unsupported(f"indices are outside an axis of {size}")
    return wanted % size


def _gather(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    axis, wanted = axis_of(node, index.ndim), _indices(builder, node)
    require_bounded((wanted.size, index.size // index.shape[axis]), "its result")
    return np.take(index, _inside(wanted, index.shape[axis]), axis=axis)


def _gather_elements(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    axis, wanted = axis_of(node, index.ndim), _indices(builder, node)
    if wanted.ndim != index.ndim:
        raise Unsupported(f"its indices have {wanted.ndim} dimensions, its input {index.ndim}")
    part = index[tuple(slice(size if place != axis else None) for place, size in enumerate(wanted.shape))]
    return np.take_along_axis(part, _inside(wanted, index.shape[axis]), axis=axis)


def _gather_nd(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    batch, wanted = node.integer("batch_dims", 0), _indices(builder, node)
    depth = wanted.shape[-1]
    if not 0 <= batch < min(wanted.ndim, index.ndim) or batch + depth > index.ndim:
        raise Unsupported(f"indices {list(wanted.shape)} do not fit {list(index.shape)}")
    if wanted.shape[:batch] != index.shape[:batch]:
        raise Unsupported(f"{batch} batch dimensions of {list(wanted.shape)} and {list(index.shape)} differ")
    require_bounded((wanted.size // depth, prod(index.shape[batch + depth :])), "its result")
    outer = np.indices(wanted.shape[:-1])[:batch]
    places = [_inside(wanted[..., place], index.shape[batch + place]) for place in range(depth)]
    return np.asarray(index[(*outer, *places)])


def _slice(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    starts, ends = (integers_of(builder.constant(node.input(k), "the range")) for k in (1, 2))
    axes = list(range(len(starts)))
    if node.input(3):
        axes = integers_of(builder.constant(node.input(3), "the axes"))
    steps = [1] * len(starts)
    if node.input(4):
        steps = integers_of(builder.constant(node.input(4), "the steps"))
    ranges = [slice(None)] * index.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -index.ndim <= axis < index.ndim or step == 0:
            raise Unsupported(f"axis {axis} step {step} does not fit {index.ndim} dimensions")
        ranges[axis] = _range(start, end, step, index.shape[axis])
    return index[tuple(ranges)]


def _range(start: int, end: int, step: int, size: int) -> slice:
    """The Python slice of an ONNX range, whose bounds are clamped.

    A falling range that includes element 0 ends at -1 in ONNX and at None in Python.
    """
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end == -1 else end, step)


def _expand(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    wanted = integers_of(builder.constant(node.input(1), "the shape"))
    shape = np.broadcast_shapes(tuple(wanted), index.shape)
    require_bounded(shape, "its result")
    return np.broadcast_to(index, shape)


def _tile(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    times = integers_of(builder.constant(node.input(1), "the repeats"))
    if len(times) != index.ndim or min(times, default=1) < 0:
        raise Unsupported(f"repeats {times} do not fit {index.ndim} dimensions")
    out_shape = tuple(size * count for size, count in zip(index.shape, times, strict=True))
    require_bounded(out_shape, "its result")
    return np.tile(index, times)


def _reverse_sequence(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    batch, time = (axis_of(node, index.ndim, f"{name}_axis", at) for name, at in (("batch", 1), ("time", 0)))
    lengths = integers_of(builder.constant(node.input(1), "the lengths"))
    if batch == time or len(lengths) != index.shape[batch]:
        raise Unsupported(f"{len(lengths)} lengths do not fit {list(index.shape)}")
    lines = np.moveaxis(index, (batch, time), (0, 1)).copy()
    for line, length in zip(lines, lengths, strict=True):
        if not 0 <= length <= len(line):
            raise Unsupported(f"a length of {length} is beyond an axis of {len(line)}")
        line[:length] = line[:length][::-1].copy()
    return np.moveaxis(lines, (0, 1), (batch, time))


PICKS: dict[str, Rule] = {
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ReverseSequence": _reverse_sequence,
    "Slice": _slice,
    "Tile": _tile,
}


def picked_index(builder: Builder, node: Node, index: IndexArray) -> IndexArray:
    """The index array of a node's result. Raises Unsupported if the node's constants do not fit `index`."""
    return np.asarray(PICKS[node.op](builder, node, index), np.int32)


def select_positions(builder: Builder, value: OnnxValue, index: IndexArray, node: Node) -> OnnxValue:
    """Select the elements of a value at the tensor positions `index`, which may repeat.

    Emits nothing if each element of the tensor is selected once, and a Slice if the positions are regular.
    """
    if index.size == 0:
        raise Unsupported("its result holds no elements")
    elements = builder.tensors[value.tensor].elements
    if index.size == elements and _distinct(index).size == elements:
        return replace(value, index=index)
    return (
        _of_concat(builder, value, index, node)
        or _sliced(builder, value, index, node)
        or _taken(builder, value, index, node)
    )


def _of_concat(builder: Builder, value: OnnxValue, index: IndexArray, node: Node) -> OnnxValue | None:
    """Emit a ConcatChannels that concatenates only the selected channels of int8 images, in stored order.

    None if the value is not a Concat of such images, and for graph outputs, whose order is fixed.
    """
    concat = next((it for it in reversed(builder.operators) if it.output == value.tensor), None)
    source = builder.tensors[value.tensor]
    if concat is None or not isinstance(concat.op, Concat) or concat.op.axis != 2:
        return None
    is_image = index.ndim in (3, 4) and index.shape[0] == 1
    if source.dtype is not DType.INT8 or not is_image or not builder.outputs.isdisjoint(node.outputs):
        return None
    rows, cols, depth = source.shape
    pixels = image_positions(index).reshape(-1, index.shape[1])
    channels = pixels[0]
    pixel_starts = np.arange(rows * cols, dtype=np.int32)[:, np.newaxis] * depth
    if len(pixels) != len(pixel_starts) or not np.array_equal(pixels, pixel_starts + channels):
        return None
    stored = _distinct(channels)
    if stored.size != channels.size:
        return None
    inputs: list[str] = []
    parts: list[Positions] = []
    start = 0
    if max(builder.shape_of(name)[2] for name in concat.inputs) > MOST:  # positions have 16 bits
        return None
    for name in concat.inputs:
        end = start + builder.shape_of(name)[2]
        selected = stored[(stored >= start) & (stored < end)] - start
        if selected.size:
            inputs.append(name)
            parts.append(tuple(selected.tolist()))
        start = end
    op, shape = ConcatChannels(tuple(parts)), (rows, cols, stored.size)
    tensor = builder.emit(op, inputs, shape, source.dtype, source.quantization, nodes=(node,))
    order = np.searchsorted(stored, channels)
    return replace(value, tensor=tensor, index=image_index(shape, index.ndim)[:, order])


def _sliced(builder: Builder, value: OnnxValue, index: IndexArray, node: Node) -> OnnxValue | None:
    """Emit a Slice of the value's tensor or of a view of it; None if the positions are not regular."""
    source = builder.tensors[value.tensor]
    for shape in dict.fromkeys(
        (source.shape, natural_shape(value.shape), *_slice_shapes(index, source.shape))
    ):
        pattern = slice_of(index, shape)
        if pattern is None:
            continue
        op, places = pattern
        tensor = builder.viewed(value.tensor, shape)
        quantization = source.quantization
        sliced = builder.emit(op, (tensor,), op.out_shape, source.dtype, quantization, nodes=(node,))
        return replace(value, tensor=sliced, index=places)
    return None


def _slice_shapes(index: IndexArray, stored: Shape) -> Iterator[Shape]:
    """The view, if any, under which positions in groups of channels, such as shuffled ones, may be a slice.

    It keeps the rows if possible, so that these can still be cut.
    """
    runs = nested_runs(_distinct(index))
    if runs is None or len(runs) not in (2, 3):
        return
    elements, channels, outer = prod(stored), runs[1][1], runs[-1][1]
    if elements % outer or outer % channels:
        return
    rows, cols = elements // outer, outer // channels
    yield (
        (stored[0], rows // stored[0], channels)
        if cols == 1 and rows % stored[0] == 0
        else (rows, cols, channels)
    )


def _taken(builder: Builder, value: OnnxValue, index: IndexArray, node: Node) -> OnnxValue:
    """Emit an operator that selects elements by tables."""
    source = builder.tensors[value.tensor]
    op, places, shape = _selection(value, index, source.shape)
    tensor = builder.viewed(value.tensor, shape)
    out_shape = op.loops((shape,)).output_shape()
    result = builder.emit(op, (tensor,), out_shape, source.dtype, source.quantization, nodes=(node,))
    return replace(value, tensor=result, index=places)


def _selection(value: OnnxValue, index: IndexArray, stored: Shape) -> tuple[Selection, IndexArray, Shape]:
    """The operator, the positions of `index` in its result, and the view of the tensor that it reads."""
    rows, cols, channels = stored
    for shape in dict.fromkeys((stored, natural_shape(value.shape), (rows * cols, 1, channels))):
        pattern = separated(index, shape)
        if pattern is not None:
            return *pattern, shape
    layout, places = default_layout(index.shape)
    wanted = np.asarray(scattered(places, layout, index), np.int32)
    return depth_to_space(wanted, stored) or taking(wanted, stored), places, stored


def slice_of(index: IndexArray, shape: Shape) -> tuple[Slice, IndexArray] | None:
    """The Slice of a tensor of `shape` that selects exactly these positions, and its result's index array.

    None if there is no such Slice.
    """
    starts, steps, sizes, places = [], [], [], []
    for place in coordinates(index, shape):
        flat = place.reshape(-1)
        distinct = _distinct(flat)
        step = int(distinct[1] - distinct[0]) if distinct.size > 1 else 1
        if distinct.size > 1 and np.any(np.diff(distinct) != step):
            return None
        falling = distinct.size > 1 and flat[0] > flat[-1]
        starts.append(int(distinct[-1] if falling else distinct[0]))
        steps.append(-step if falling else step)
        sizes.append(int(distinct.size))
        places.append((place - starts[-1]) // steps[-1])
    out_shape: Shape = (sizes[0], sizes[1], sizes[2])
    if sizes[0] * sizes[1] * sizes[2] != index.size:
        return None
    stored = np.ravel_multi_index(tuple(places), out_shape).astype(np.int32)
    if _distinct(stored).size != index.size:
        return None  # some elements are selected twice, others not at all
    return Slice((starts[0], starts[1], starts[2]), (steps[0], steps[1], steps[2]), out_shape), stored


def _distinct(places: NDArray[np.signedinteger]) -> IndexArray:
    """The distinct positions in rising order; np.unique would take seconds for millions."""
    return np.flatnonzero(np.bincount(places.reshape(-1))).astype(np.int32)


def pick(builder: Builder, node: Node) -> None:
    """Lower Slice, Gather, Tile and similar operators with constants."""
    value = builder.value(node.inputs[0])
    index = picked_index(builder, node, value.index)
    builder.define(node.output, select_positions(builder, value, index, node))


def real_pick(builder: Builder, node: Node) -> OnnxValue:
    """Lower the operator on a float tensor."""
    value = builder.real(node.inputs[0])
    return select_positions(builder, value, picked_index(builder, node, value.index), node)


def split(builder: Builder, node: Node) -> None:
    """Lower Split as a Slice for each output that is read."""
    value = builder.value(node.inputs[0])
    axis = axis_of(node, value.index.ndim)
    size, count = value.shape[axis], len(node.outputs)
    if node.input(1):
        sizes = integers_of(builder.constant(node.input(1), "the sizes"))
    else:
        equal_size = -(-size // count)
        sizes = [equal_size] * (count - 1) + [size - equal_size * (count - 1)]
    if sum(sizes) != size or min(sizes) < 1 or len(sizes) != count:
        raise Unsupported(f"sizes {sizes} do not fit an axis of {size}")
    first = 0
    for name, length in zip(node.outputs, sizes, strict=True):
        if builder.is_read(name):
            bounds = {"start": first, "end": first + length, "axis": axis}
            constants = {f"{name}\0{key}": Constant(np.array([it], np.int64)) for key, it in bounds.items()}
            builder.constants |= constants
            inputs = (node.inputs[0], *constants)
            builder.producers[name] = replace(node, op="Slice", inputs=inputs, outputs=(name,), attributes={})
            pick(builder, builder.producers[name])
        first += length


LOWERINGS: dict[str, OperatorLowering] = {
    **{op: OperatorLowering(pick, "moved", real=real_pick) for op in PICKS if op != "Gather"},
    "Expand": OperatorLowering(pick, "moved", only="shape constant", real=real_pick),
    "ReverseSequence": OperatorLowering(pick, "moved", only="lengths constant", real=real_pick),
    "Slice": OperatorLowering(pick, "moved", only="bounds constant", real=real_pick),
    "Tile": OperatorLowering(pick, "moved", only="repeats constant", real=real_pick),
    "Split": OperatorLowering(split, "moved"),
}
