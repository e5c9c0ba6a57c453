"""int8 tensors and constants in a training step: real values of their quantisation, by ONNX nodes.

Gradients pass a quantisation as if it did not round, where it does not saturate: the straight-through
estimator (Bengio et al., arXiv:1308.3432).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.extensions.training.node_list import NodeList
from mcudeploy.ir.graph import UNSIGNED_OFFSET, DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ops.requantize import clamp_bounds

Array = NDArray[Any]

_ELEMENTS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def is_stored(tensor: Tensor) -> bool:
    """Return whether a tensor stores real values as int8."""
    return tensor.dtype is DType.INT8 and tensor.quantization is not None


def _quantization(tensor: Tensor) -> Quantization:
    assert tensor.quantization is not None
    return tensor.quantization


def stored(nodes: NodeList, tensor: Tensor, value: str) -> str:
    """Return a value after int8 storage, quantised and dequantised; unchanged if the tensor is float32."""
    if not is_stored(tensor):
        return value
    scale, zero = _parameters(nodes, _quantization(tensor))
    shape = nodes.shapes[value]
    integers = nodes.add("QuantizeLinear", [value, scale, zero], shape, f"{tensor.name}_stored")
    nodes.types[integers] = TensorProto.INT8
    return nodes.add("DequantizeLinear", [integers, scale, zero], shape, f"{tensor.name}_real")


def real_input(nodes: NodeList, name: str, quantization: Quantization, dtype: str) -> str:
    """Return the real values of an int8 or uint8 input of the model."""
    nodes.types[name] = _ELEMENTS[dtype]
    inputs = [name, *_parameters(nodes, quantization, dtype)]
    return nodes.add("DequantizeLinear", inputs, nodes.shapes[name], f"{name}_real")


def stored_output(nodes: NodeList, value: str, io: GraphIO, quantization: Quantization) -> str:
    """Return the int8 or uint8 values of an output of the model, under its name."""
    inputs = [value, *_parameters(nodes, quantization, io.dtype)]
    name = nodes.add("QuantizeLinear", inputs, nodes.shapes[value], io.name)
    nodes.types[name] = _ELEMENTS[io.dtype]
    return name


def _parameters(nodes: NodeList, quantization: Quantization, dtype: str = "int8") -> tuple[str, str]:
    """The scale and the zero point of stored values."""
    zero = quantization.zero_point + (UNSIGNED_OFFSET if dtype == "uint8" else 0)
    return nodes.reals(quantization.scale, "scale"), nodes.constant(np.array(zero, dtype), "zero_point")


def saturation_bounds(tensor: Tensor, clip: tuple[float, float]) -> tuple[float, float]:
    """Return the values at which a tensor saturates, if its operator ends with `clip`."""
    if not is_stored(tensor):
        return clip
    quantization = _quantization(tensor)
    low, high = clamp_bounds(quantization, *clip)
    scale = np.float32(quantization.scale)
    return float(scale * (low - quantization.zero_point)), float(scale * (high - quantization.zero_point))


def reachable_bounds(bounds: tuple[float, float], sources: Iterable[Tensor]) -> tuple[float, float]:
    """Return the bounds, with an infinity in place of a bound that no value of these tensors exceeds."""
    ranges = [saturation_bounds(source, (-inf, inf)) for source in sources]
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return bounds[0] if least < bounds[0] else -inf, bounds[1] if most > bounds[1] else inf


def real_constant(graph: Graph, operator: Operator, name: str) -> Array:
    """Return the real "weights" [K, C/groups, kh, kw] or "bias" [K] of a convolution, as float32."""
    constants = operator.constants
    value = constants[name].astype(np.float64)
    if name == "weights":
        if "weight_scale" in constants:
            value = value * constants["weight_scale"].astype(np.float64)[:, None, None, None]
        value = value.transpose(0, 3, 1, 2)
    elif constants[name].dtype != np.float32:
        rounding: Array = constants.get("bias_rounding", np.zeros(1))
        value = (value + rounding) * _units(graph, operator)
    return np.ascontiguousarray(value, np.float32)


def constant(nodes: NodeList, graph: Graph, operator: Operator, name: str, first: int = 0) -> str:
    """Add the "weights" or "bias" of a convolution and return its real value: dequantised integers if
    DequantizeLinear can express them, else float32. `first`: the first input channel of the weights to add.
    """
    value: Array = operator.constants[name]
    if value.dtype == np.float32 or (name == "bias" and "bias_rounding" in operator.constants):
        reals = real_constant(graph, operator, name)
        return nodes.reals(reals[:, first:] if name == "weights" else reals, f"{operator.name}_{name}")
    scale = operator.constants["weight_scale"]
    if name == "weights":
        value = np.ascontiguousarray(value.transpose(0, 3, 1, 2)[:, first:])
    else:
        scale = _units(graph, operator).astype(np.float32)
    inputs = [nodes.reals(scale, "scale")]
    if value.dtype == np.int16:  # uint8 weights minus their zero points: add zero points that make them >= 0
        zero = np.maximum(-value.min(axis=(1, 2, 3)), 0)
        inputs.append(nodes.constant(zero.astype(np.uint8), "zero_point"))
        value = (value + zero[:, None, None, None]).astype(np.uint8)
    inputs.insert(0, nodes.constant(value, f"{operator.name}_{name}"))
    return nodes.add("DequantizeLinear", inputs, value.shape, f"{operator.name}_{name}_real", axis=0)


def _units(graph: Graph, operator: Operator) -> Array:
    """The scale of each output channel's int32 sums, as float64."""
    source = _quantization(graph.tensors[operator.inputs[0]])
    return operator.constants["weight_scale"].astype(np.float64) * source.scale
