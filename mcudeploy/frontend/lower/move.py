"""Pad and Concat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.text import agree, count_text
from mcudeploy.frontend.lower.builder import Builder, OperatorLowering
from mcudeploy.frontend.lower.follow import finish, follow, fused_nodes
from mcudeploy.frontend.lower.norm import axis_as_dimension
from mcudeploy.frontend.lower.slice import select_positions
from mcudeploy.frontend.onnx.constants import integers_of
from mcudeploy.frontend.onnx.nodes import Node, Unsupported, require_bounded
from mcudeploy.frontend.onnx.values import (
    IndexArray,
    OnnxValue,
    axis_shapes,
    channel_order,
    coordinates,
    image_index,
    image_positions,
    is_storage_order,
    natural_shape,
    scattered,
    stored_axis,
)
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Quantization, Shape
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.host_io import is_channels_last
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Pad
from mcudeploy.ops.requantize import STORED, dequantize, quantize
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.integer import IntegerBinary

_MODES: dict[str, Literal["edge", "reflect", "wrap"]] = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def pad(builder: Builder, node: Node) -> None:
    """Lower Pad.

    The stored values are padded if one of them stands for the padding, else values requantised as the result,
    else floats.
    """
    value = builder.value(node.inputs[0])
    amounts = _pad_amounts(builder, node, value.index.ndim)
    if node.text("mode", "constant") != "constant":
        builder.define(node.output, _mirrored(builder, node, value, amounts))
        return
    if not any(amounts):
        builder.define(node.output, value)
        return
    filling = _filling(builder, node)
    unsigned = not value.real and builder.model.dtype_of(node.inputs[0]) == "uint8"
    stored = _stored_filling(builder, value, filling - UNSIGNED_OFFSET if unsigned else filling)
    if stored is not None:
        builder.define(node.output, _pad(builder, node, value, amounts, stored))
        return
    ending = follow(builder, node.output)
    if value.table is not None and ending.quantization is not None and not ending.clips:
        source = builder.requantized(node.inputs[0], ending.quantization)
        result = _pad(builder, node, source, amounts, filling)
        finish(builder, ending, result, quantized=True)
        return
    builder.define(node.output, _pad(builder, node, builder.real(node.inputs[0]), amounts, filling))


def real_pad(builder: Builder, node: Node) -> OnnxValue:
    """Lower Pad on a float tensor."""
    value = builder.real(node.inputs[0])
    amounts = _pad_amounts(builder, node, value.index.ndim)
    if node.text("mode", "constant") != "constant":
        return _mirrored(builder, node, value, amounts)
    return _pad(builder, node, value, amounts, _filling(builder, node))


def _mirrored(builder: Builder, node: Node, value: OnnxValue, amounts: tuple[int, ...]) -> OnnxValue:
    """Pad with elements of the value itself. Negative amounts crop it first."""
    mode, rank = node.text("mode", ""), value.index.ndim
    if mode not in _MODES:
        raise Unsupported(f"mode {mode!r} is not supported; constant, edge, reflect and wrap are")
    ends = list(zip(amounts[:rank], amounts[rank:], strict=True))
    cropped = value.index[tuple(slice(max(-before, 0), -max(-after, 0) or None) for before, after in ends)]
    added = [(max(before, 0), max(after, 0)) for before, after in ends]
    if mode == "reflect" and any(max(both) >= size for both, size in zip(added, cropped.shape, strict=True)):
        raise Unsupported(f"pads {amounts} reflect more than {list(cropped.shape)} has")
    require_bounded(
        tuple(size + sum(both) for size, both in zip(cropped.shape, added, strict=True)), "its result"
    )
    return select_positions(builder, value, np.pad(cropped, added, _MODES[mode]), node)


def _pad_amounts(builder: Builder, node: Node, rank: int) -> tuple[int, ...]:
    """The amounts before, then the amounts after, of every axis."""
    pads = integers_of(builder.constant(node.input(1), "the pads"))
    axes: Sequence[int] = range(rank)
    if node.input(3):
        axes = [axis % rank for axis in integers_of(builder.constant(node.input(3), "the axes"))]
    if len(pads) != 2 * len(axes):
        raise Unsupported(
            f"{count_text(len(pads), 'pad')} for {len(axes)} {agree(len(axes), 'axis', 'axes')}"
        )
    amounts = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        amounts[axis], amounts[axis + rank] = pads[position], pads[position + len(axes)]
    return tuple(amounts)


def _filling(builder: Builder, node: Node) -> float:
    if not node.input(2):
        return 0.0
    value = builder.constant(node.input(2), "the value").value
    if value.size != 1:
        raise Unsupported("the value must be a scalar")
    return float(value.reshape(-1)[0])


def _stored_filling(builder: Builder, value: OnnxValue, filling: float) -> float | None:
    """The value by which a Pad of the stored tensor pads; None if no stored value stands for the padding."""
    tensor = builder.tensors[value.tensor]
    if tensor.dtype is not DType.INT8:
        return filling
    quantization = tensor.quantization or Quantization(1.0, 0)
    table = STORED if value.table is None else value.table
    candidates = np.flatnonzero(table == np.float32(filling)) - 128
    if candidates.size == 0:
        return None
    real = float(dequantize(candidates[:1], quantization)[0])
    back = quantize(np.array([real], np.float32), quantization)
    return real if int(back[0]) == int(candidates[0]) else None


def _pad(
    builder: Builder, node: Node, value: OnnxValue, amounts: tuple[int, ...], filling: float
) -> OnnxValue:
    """Emit one Pad, or one for each axis if the axes are not dimensions of one stored shape."""
    rank = value.index.ndim
    padded = [axis for axis in range(rank) if amounts[axis] or amounts[axis + rank]]
    try:
        shape, dimensions = dimensions_of(builder, value, padded)
    except Unsupported:
        if len(padded) == 1:
            raise
        for axis in padded:
            axis_amounts = tuple(amount if at % rank == axis else 0 for at, amount in enumerate(amounts))
            value = _pad(builder, node, value, axis_amounts, filling)
        return value
    before, after = [0, 0, 0], [0, 0, 0]
    for axis, dimension in zip(padded, dimensions, strict=True):
        before[dimension], after[dimension] = amounts[axis], amounts[axis + rank]
    rows, cols, channels = (size + before[d] + after[d] for d, size in enumerate(shape))
    grown: Shape = (rows, cols, channels)
    tensor = builder.viewed(value.tensor, shape)
    source = builder.tensors[tensor]
    op = Pad((before[0], before[1], before[2]), (after[0], after[1], after[2]), filling)
    result = builder.emit(op, (tensor,), grown, source.dtype, source.quantization, nodes=(node,))
    return replace(value, tensor=result, index=resized_index(value.index, shape, padded, dimensions, grown))


def dimensions_of(builder: Builder, value: OnnxValue, axes: Sequence[int]) -> tuple[Shape, list[int]]:
    """A stored shape under which each of these ONNX axes is a dimension, and the dimensions."""
    views = (view for axis in axes for view in axis_shapes(value.index, axis))
    flat = (1, 1, prod(value.shape))  # an axis of size 1 can be its columns
    for shape in (builder.shape_of(value.tensor), natural_shape(value.shape), *views, flat):
        dimensions = [stored_axis(value.index, shape, axis) for axis in axes]
        if None not in dimensions and len(set(dimensions)) == len(dimensions):
            return shape, [dimension for dimension in dimensions if dimension is not None]
    raise Unsupported(f"axes {list(axes)} are not dimensions of the value as it lies in memory")


def resized_index(
    index: IndexArray, shape: Shape, axes: Sequence[int], dimensions: Sequence[int], grown: Shape
) -> IndexArray:
    """The index array of a tensor whose shape changes from `shape` to `grown` along `dimensions`.

    `axes` are the ONNX axes that are stored as these dimensions.
    """
    sizes = list(index.shape)
    anchor = index
    for axis, dimension in zip(axes, dimensions, strict=True):
        anchor = anchor.take([0], axis=axis)
        sizes[axis] = grown[dimension]
    places: list[NDArray[np.intp]] = []
    for dimension, place in enumerate(coordinates(anchor, shape)):
        if dimension in dimensions:
            axis = axes[dimensions.index(dimension)]
            along_axis = [1] * index.ndim
            along_axis[axis] = sizes[axis]
            places.append(np.broadcast_to(np.arange(sizes[axis]).reshape(along_axis), sizes))
        else:
            places.append(np.broadcast_to(place, sizes))
    return np.ravel_multi_index(tuple(places), grown).astype(np.int32)


def concat(builder: Builder, node: Node) -> None:
    """Lower Concat: of int8 inputs in int8, requantised unless their scales agree; of others in float."""
    names = [name for name in node.inputs if name]
    if any(name in builder.constants for name in names):
        builder.define(node.output, _with_constants(builder, node, names))
        return
    values = [builder.value(name) for name in names]
    if len(values) == 1:
        builder.define(node.output, values[0])
        return
    ending = follow(builder, node.output)
    on_int8 = all(value.real and value.table is not None for value in values)
    if on_int8 and ending.quantization is not None and not ending.clips:
        target = ending.quantization
        operands = [builder.int8_form(name) or builder.requantized(name, target) for name in names]
        nodes = fused_nodes(node, ending, quantized=True)
        result = _concat(builder, node, operands, target, nodes)
        finish(builder, ending, result, quantized=True)
        return
    forms = [builder.int8_form(name) for name in names] if on_int8 else [None]
    first = forms[0]
    if first is not None and all(it is not None and it.quantization == first.quantization for it in forms):
        operands = [value for value in forms if value is not None]
        result = _concat(builder, node, operands, first.quantization, (node,))
        builder.define(node.output, replace(result, table=first.table, quantization=first.quantization))
        return
    if all(not value.real for value in values):
        builder.define(node.output, _integer_concat(builder, node, names))
        return
    builder.define(node.output, real_concat(builder, node))


def _with_constants(builder: Builder, node: Node, names: Sequence[str]) -> OnnxValue:
    """Concatenate activations and constants: pad the activations with zeros, and add the constants there.

    Integers stay integers; others are computed in float.
    """
    computed = [name for name in names if name not in builder.constants]
    in_integers = all(not builder.value(name).real for name in computed)
    stored_form = builder.integers if in_integers else builder.real
    values = [stored_form(name) for name in computed]
    dtypes = {builder.tensors[value.tensor].dtype for value in values}
    if len(dtypes) > 1:
        raise Unsupported("constants beside integers of several widths are not supported: cast them to int32")
    (dtype,) = dtypes
    quantization = Quantization(1.0, 0) if dtype is DType.INT8 else None
    if quantization is not None:
        values = [replace(it, tensor=builder.reinterpreted(it.tensor, quantization)) for it in values]
    kind = np.float32 if dtype is DType.FLOAT32 else np.int32
    offset = UNSIGNED_OFFSET if in_integers and builder.model.dtype_of(node.output) == "uint8" else 0
    rank = values[0].index.ndim
    axis = node.integer("axis", 0) % rank
    padded = [
        _pad(builder, node, value, amounts, 0.0) if any(amounts) else value
        for value, amounts in zip(values, _amounts_beside(builder, names, axis, rank), strict=True)
    ]
    value = padded[0] if len(padded) == 1 else _concat(builder, node, padded, quantization, (node,))
    shapes = [value.shape for value in values]
    pieces = [
        builder.constants[name].value.astype(kind) - kind(offset)
        if name in builder.constants
        else np.zeros(shapes.pop(0), kind)
        for name in names
    ]
    shape = builder.shape_of(value.tensor)
    added = np.zeros(prod(shape), kind)
    added[value.index.reshape(-1)] = np.concatenate(pieces, axis).reshape(-1)
    constants: dict[str, ConstantArray] = {"constant": added.reshape(shape)}  # type: ignore[dict-item]
    tensor = builder.emit(
        IntegerBinary("add", 1, shape) if in_integers else Binary("add", 1, shape),
        (value.tensor,),
        shape,
        dtype,
        quantization,
        constants=constants,
        nodes=(node,),
    )
    return replace(value, tensor=tensor, real=not in_integers, quantization=quantization)


def _amounts_beside(builder: Builder, names: Sequence[str], axis: int, rank: int) -> list[tuple[int, ...]]:
    """The padding of each activation: room for the constants after it, and before the first activation."""
    amounts: list[list[int]] = []
    before = 0
    for name in names:
        if name not in builder.constants:
            amounts.append([0] * (2 * rank))
            amounts[-1][axis], before = before, 0
        elif amounts:
            amounts[-1][axis + rank] += builder.constants[name].shape[axis]
        else:
            before += builder.constants[name].shape[axis]
    return [tuple(each) for each in amounts]


def _integer_concat(builder: Builder, node: Node, names: Sequence[str]) -> OnnxValue:
    """Concatenate integers as they are stored, whatever their quantisations."""
    stored = [builder.integers(name) for name in names]
    types = {builder.tensors[value.tensor].dtype for value in stored}
    if types in ({DType.INT16}, {DType.INT32}):
        return replace(_concat(builder, node, stored, None, (node,)), real=False)
    quantization = stored[0].quantization or Quantization(1.0, 0)
    operands = [replace(value, tensor=builder.reinterpreted(value.tensor, quantization)) for value in stored]
    joined = _concat(builder, node, operands, quantization, (node,))
    return replace(joined, real=False, quantization=quantization)


def real_concat(builder: Builder, node: Node) -> OnnxValue:
    """Lower Concat on float tensors."""
    return _concat(builder, node, [builder.real(name) for name in node.inputs if name], None, (node,))


def _concat(
    builder: Builder,
    node: Node,
    operands: Sequence[OnnxValue],
    quantization: Quantization | None,
    nodes: Sequence[Node],
) -> OnnxValue:
    """Emit a Concat of operands in the layout of the first that is channels last, or of the first one.

    Channels of images stay permuted.
    """
    axis = node.integer("axis", 0)
    rank = operands[0].index.ndim
    if not -rank <= axis < rank or any(operand.index.ndim != rank for operand in operands):
        raise Unsupported(f"axis {axis} does not fit the operands")
    axis %= rank
    dtype = builder.tensors[operands[0].tensor].dtype
    images = _permuted_images(builder, operands) if axis == 1 and rank in (3, 4) else None
    if images is not None:
        rows, cols = images.shape
        tensors = [builder.viewed(it.tensor, (rows, cols, it.shape[1])) for it in operands]
        shape = (rows, cols, images.order.size)
        tensor = builder.emit(Concat(2), tensors, shape, dtype, quantization, nodes=nodes)
        return OnnxValue(tensor, image_index(shape, rank)[:, images.order], real=True)
    first = next((at for at, it in enumerate(operands) if is_channels_last(it.shape, it.index)), 0)
    base, dimension = axis_as_dimension(builder, operands[first], axis)
    shape = builder.shape_of(base.tensor)
    sizes = [operand.shape[axis] for operand in operands]
    inputs = []
    for at, (operand, size) in enumerate(zip(operands, sizes, strict=True)):
        if at == first:
            inputs.append(base.tensor)
            continue
        operand_shape = with_size(shape, dimension, size)
        places = resized_index(base.index, shape, [axis], [dimension], operand_shape)
        if places.shape != operand.shape:
            raise Unsupported(f"{list(operand.shape)} and {list(base.shape)} differ beyond axis {axis}")
        wanted = np.asarray(scattered(places, operand_shape, operand.index), np.int32)
        inputs.append(builder.arranged(operand.tensor, wanted))
    joined_shape = with_size(shape, dimension, sum(sizes))
    tensor = builder.emit(Concat(dimension), inputs, joined_shape, dtype, quantization, nodes=nodes)
    return OnnxValue(tensor, resized_index(base.index, shape, [axis], [dimension], joined_shape), real=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """Images to be joined along the channels: their rows and columns, and the position of each channel."""

    shape: tuple[int, int]
    order: IndexArray


def _permuted_images(builder: Builder, operands: Sequence[OnnxValue]) -> _Images | None:
    """The operands, images of one size in some of which channels are permuted; None for others."""
    if any(operand.shape[0] != 1 for operand in operands):
        return None
    sizes: set[tuple[int, int]] = set()
    places: list[IndexArray] = []
    for operand in operands:
        image = image_positions(operand.index)
        order = channel_order(image)
        if order is None or image.size != builder.tensors[operand.tensor].elements:
            return None
        sizes.add((image.shape[0], image.shape[1]))
        places.append(order + sum(each.size for each in places))
    order = np.concatenate(places)
    return None if len(sizes) > 1 or is_storage_order(order) else _Images(sizes.pop(), order)


def with_size(shape: Shape, dimension: int, size: int) -> Shape:
    """The shape with another size of one dimension."""
    rows, cols, channels = (size if place == dimension else own for place, own in enumerate(shape))
    return rows, cols, channels


LOWERINGS: dict[str, OperatorLowering] = {
    "Concat": OperatorLowering(
        concat,
        "moved",
        only="constants at the ends, which take the flash of the whole result",
        real=real_concat,
    ),
    "Pad": OperatorLowering(pad, "moved", only="amounts and value constant", real=real_pad),
}
