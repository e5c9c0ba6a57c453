"""Conversion between arrays of the ONNX model and tensors of the device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, GraphIO, Quantization, Tensor
from mcudeploy.ops.requantize import dequantize, quantize

Array = NDArray[np.generic]

COMPUTED_IN_FLOAT32 = ("float16", "float64", "int16", "uint16", "int4", "uint4", "int2", "uint2")
"""Element types of a file whose values are float32 on the device."""

REPRESENTED = {
    DType.FLOAT32: ("float32", *COMPUTED_IN_FLOAT32),
    DType.INT32: ("int32", "int64", "uint32"),
    DType.INT16: ("int16",),
    DType.INT8: ("int8", "uint8", "bool", "float16", "float32", "float64"),
}
"""The element types of the ONNX model (numpy names) that each stored type can represent."""


def is_channels_last(shape: tuple[int, ...], order: NDArray[np.int32]) -> bool:
    """Whether `order` (see GraphIO) puts an image [1, C, ...] of this shape in the order [..., C]."""
    if len(shape) < 3 or shape[0] != 1:
        return False
    moved = np.moveaxis(order.reshape(shape), 1, -1).reshape(-1)
    return bool(np.array_equal(moved, np.arange(moved.size)))


def stored_axes(shape: tuple[int, ...], order: NDArray[np.int32]) -> tuple[int, ...] | None:
    """Return the axes of a tensor from the outermost to the innermost as `order` (see GraphIO) stores them.

    None if it is not an order of axes.
    """
    places = order.reshape(shape)
    steps = [int(np.diff(places, axis=axis).flat[0]) if size > 1 else 0 for axis, size in enumerate(shape)]
    axes = tuple(sorted(range(len(shape)), key=lambda axis: -steps[axis]))
    moved = np.transpose(places, axes).reshape(-1)
    return axes if np.array_equal(moved, np.arange(moved.size)) else None


def to_device(io: GraphIO, tensor: Tensor, array: Array) -> Array:
    """Convert an array of the ONNX tensor's shape and dtype to the stored tensor of tensor.shape.

    If the dtype is in COMPUTED_IN_FLOAT32, the array may also be float32. A float array for an int8 tensor
    is quantised as in ONNX Runtime: float32 division, half to even, saturation. Raises ValueError for
    another shape or dtype than the model's.
    """
    _require(io, tensor)
    types = {io.dtype, "float32"} if io.dtype in COMPUTED_IN_FLOAT32 else {io.dtype}
    if array.shape != io.shape or array.dtype.name not in types:
        raise ValueError(
            f"{io.name!r} needs {io.dtype} {list(io.shape)}, found {array.dtype} {list(array.shape)}"
        )
    flat = array.reshape(-1)
    if tensor.dtype is DType.FLOAT32:
        stored: Array = flat.astype(np.float32, copy=False)
    elif tensor.dtype is DType.INT32:
        stored = _int32(io, flat)
    elif tensor.dtype is DType.INT16:
        stored = flat.astype(np.int16, copy=False)
    elif array.dtype.kind == "f":
        stored = _quantized(flat.astype(np.float32), _quantization(io, tensor))
    elif array.dtype == np.uint8:
        stored = (flat.astype(np.int16) - UNSIGNED_OFFSET).astype(np.int8)
    else:
        stored = flat.astype(np.int8, copy=False)
    return io.stored(stored).reshape(tensor.shape)


def from_device(io: GraphIO, tensor: Tensor, stored: Array) -> Array:
    """Convert a stored tensor, with all its elements, to an array of the ONNX tensor's shape and dtype."""
    values: Array = stored.reshape(-1)[io.order]
    if io.dtype == "uint8":
        values = values.astype(np.int16) + UNSIGNED_OFFSET
    elif io.dtype.startswith("float") and tensor.dtype is not DType.FLOAT32:
        values = dequantize(values, _quantization(io, tensor))
    with np.errstate(over="ignore"):  # values beyond float16 are infinities
        return values.astype(io.dtype).reshape(io.shape)


def _int32(io: GraphIO, values: Array) -> Array:
    if values.dtype == np.uint32:
        return values.view(np.int32)
    narrow = values.astype(np.int32)
    if not np.array_equal(narrow, values):
        raise ValueError(f"{io.name!r} has integers beyond 32 bits, which the device stores")
    return narrow


def _require(io: GraphIO, tensor: Tensor) -> None:
    if io.dtype not in REPRESENTED[tensor.dtype]:
        raise ValueError(f"{io.name!r} is {io.dtype}; {tensor.dtype} {tensor.name} cannot hold that")
    elements = int((io.order >= 0).sum())
    if elements != tensor.elements:
        raise ValueError(f"{io.name!r} has {elements} elements, {tensor.name} has {tensor.elements}")


def _quantization(io: GraphIO, tensor: Tensor) -> Quantization:
    if tensor.quantization is None:
        raise ValueError(f"{io.name!r} is float32, {tensor.name} is int8 without a quantisation")
    return tensor.quantization


def _quantized(values: NDArray[np.float32], quantization: Quantization) -> NDArray[np.int8]:
    if np.any(np.isnan(values)):
        raise ValueError("values that are not a number (NaN) cannot be quantised")
    return quantize(values, quantization)
