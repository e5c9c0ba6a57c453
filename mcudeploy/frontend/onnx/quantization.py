"""QuantizeLinear and DequantizeLinear: their parameters, and properties of tables of 256 entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, OnnxModel, Unsupported
from mcudeploy.ir.graph import UNSIGNED_OFFSET, Quantization
from mcudeploy.ops.requantize import STORED

IntegerTable = NDArray[np.int8]
"""A function of stored int8 values: the result for a value is at the index value + 128."""

TRUTH = Quantization(1.0, 0)
"""Quantisation of a stored bool: 0 and 1."""

_OFFSETS = {"int8": 0, "uint8": UNSIGNED_OFFSET}


def require_finite(scale: NDArray[np.generic]) -> NDArray[np.float32]:
    """The scales of constants as float32. They may be 0 or negative: quantisers write these for weights.

    Raises Unsupported for other types, infinities and NaN.
    """
    if scale.dtype != np.float32:
        raise Unsupported(f"the scale is {scale.dtype}; float32 is supported")
    if not np.all(np.isfinite(scale)):
        raise Unsupported("a scale is not finite")
    return np.asarray(scale, np.float32)


def constant_parameters(model_constants: dict[str, Constant], node: Node) -> tuple[Constant, Constant | None]:
    """Scale and zero point (None: 0) of QuantizeLinear or DequantizeLinear on an activation.

    Raises Unsupported if they are not constant, or if a scale is not positive.
    """
    if node.integer("block_size", 0) != 0:
        raise Unsupported("blocked quantisation is not supported")
    scale = model_constants.get(node.input(1))
    if scale is None:
        raise Unsupported("the scale is computed at run time; it must be constant")
    scales = require_finite(scale.value)
    if not np.all(scales > 0):
        raise Unsupported(f"the scale is {float(scales.min())}; the scale of activations must be positive")
    if node.input(2) == "":
        return scale, None
    zero_point = model_constants.get(node.input(2))
    if zero_point is None:
        raise Unsupported("the zero point is computed at run time; it must be constant")
    if zero_point.value.size != scale.value.size:
        raise Unsupported(f"{scale.value.size} scales but {zero_point.value.size} zero points")
    return scale, zero_point


def activation_parameters(model_constants: dict[str, Constant], node: Node, dtype: str) -> Quantization:
    """The quantisation, in int8 terms, of QuantizeLinear or DequantizeLinear on an int8 or uint8 activation.

    Raises Unsupported for other integer types and for parameters along an axis.
    """
    if dtype not in _OFFSETS:
        raise Unsupported(f"{dtype} activations are not supported; int8 and uint8 are")
    scale, zero_point = constant_parameters(model_constants, node)
    if scale.value.size != 1:
        raise Unsupported("activations quantised per axis are not supported; per tensor is")
    zero = 0 if zero_point is None else int(zero_point.value.reshape(-1)[0])
    return Quantization(float(scale.value.reshape(-1)[0]), zero - _OFFSETS[dtype])


def quantized_dtype(model: OnnxModel, model_constants: dict[str, Constant], node: Node) -> str:
    """The integer type that a QuantizeLinear node writes."""
    zero_point = model_constants.get(node.input(2))
    if zero_point is not None:
        return str(zero_point.value.dtype)
    return model.dtype_of(node.output)


def is_identity(table: IntegerTable) -> bool:
    """Whether every stored value maps to itself."""
    return bool(np.array_equal(table, STORED))


def is_monotone(table: NDArray[np.generic]) -> bool:
    """Whether larger stored values never map to smaller ones."""
    return bool(np.all(np.diff(table.astype(np.float64)) >= 0))
