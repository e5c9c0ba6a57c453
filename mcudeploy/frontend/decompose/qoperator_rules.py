"""Rules for operators on integers (QOperator form): the float operator between its quantisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_OWN = frozenset({"channels_last", "opset"})
"""Attributes of an integer operator that its float operator lacks."""


def real(make: Maker, x: str, scale: str, zero_point: str, axis: int | None = None) -> str:
    """Dequantise an integer tensor."""
    inputs = [x, scale, zero_point] if zero_point else [x, scale]
    per_axis = axis is not None and (make.shape(scale) or ()) not in ((), (1,))
    attributes: dict[str, Any] = {"axis": axis} if per_axis else {}
    if not per_axis:
        inputs = [x, *(_scalar(make, name) for name in inputs[1:])]
    return make.add("DequantizeLinear", *inputs, **attributes)


def _scalar(make: Maker, name: str) -> str:
    """Turn a per-tensor parameter into a scalar: files also store it as a list of one."""
    found = make.known(name)
    if found is None or found.ndim == 0 or found.size != 1:
        return name
    return make.constant(found.reshape(()), found.dtype.type)


def _stored(make: Maker, x: str, scale: str, zero_point: str, out: str) -> None:
    make.add("QuantizeLinear", x, *(_scalar(make, name) for name in (scale, zero_point) if name), out=out)


def _float_attributes(make: Maker) -> dict[str, Any]:
    return {name: value for name, value in make.attributes.items() if name not in _OWN}


def padded(names: Sequence[str], count: int) -> list[str]:
    return [*names, *("",) * (count - len(names))]


def _require_channels_first(make: Maker) -> None:
    if make.attributes.get("channels_last"):
        raise Unsupported("channels_last is not supported: quantise the model without layout optimisation")


def qlinear_conv(make: Maker) -> None:
    """Replace QLinearConv. Weights may have a scale per channel; the bias has the scale of the products."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = padded(make.inputs, 9)
    _require_channels_first(make)
    scales = make.constant_of(x_scale, "the scale"), make.constant_of(w_scale, "the scale of the weights")
    operands = [real(make, x, x_scale, x_zero), real(make, w, w_scale, w_zero, 0)]
    if bias:
        make.constant_of(bias, "the bias")
        operands.append(_bias(make, bias, scales[0] * scales[1].reshape(-1)))
    _stored(make, make.add("Conv", *operands, **_float_attributes(make)), y_scale, y_zero, make.outputs[0])


def _bias(make: Maker, bias: str, scale: NDArray[Any]) -> str:
    """Dequantise an int32 bias."""
    (size,) = make.shape(bias) or (1,)
    full = np.broadcast_to(scale.reshape(-1), (size,))
    zero = make.constant(np.zeros(size), np.int32)
    return make.add("DequantizeLinear", bias, make.constant(full), zero, axis=0)


def qlinear_matmul(make: Maker) -> None:
    """Replace QLinearMatMul; the second matrix may have a scale for each column."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = padded(make.inputs, 8)
    operands = real(make, a, a_scale, a_zero), real(make, b, b_scale, b_zero, 1)
    _stored(make, make.add("MatMul", *operands), y_scale, y_zero, make.outputs[0])


def qgemm(make: Maker) -> None:
    """Replace a dense layer; without a scale its result is float."""
    a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = padded(make.inputs, 9)
    scales = make.constant_of(a_scale, "the scale"), make.constant_of(b_scale, "the scale of the weights")
    attributes = _float_attributes(make)
    axis = 0 if attributes.get("transB") else 1
    operands = [real(make, a, a_scale, a_zero), real(make, b, b_scale, b_zero, axis)]
    if bias:
        make.constant_of(bias, "the bias")
        alpha = float(make.attributes.get("alpha", 1.0))
        operands.append(_bias(make, bias, alpha * scales[0] * scales[1].reshape(-1)))
    out = make.outputs[0]
    made = make.add("Gemm", *operands, out="" if y_scale else out, **attributes)
    if y_scale:
        _stored(make, made, y_scale, y_zero, out)


def of_one(op: str) -> Callable[[Maker], None]:
    """Rule for a function of one tensor."""

    def rule(make: Maker) -> None:
        x, x_scale, x_zero, y_scale, y_zero = padded(make.inputs, 5)
        _require_channels_first(make)
        made = make.add(op, real(make, x, x_scale, x_zero), **_float_attributes(make))
        _stored(make, made, y_scale, y_zero, make.outputs[0])

    return rule


def of_two(op: str) -> Callable[[Maker], None]:
    """Rule for a function of two tensors."""

    def rule(make: Maker) -> None:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = padded(make.inputs, 8)
        made = make.add(op, real(make, a, a_scale, a_zero), real(make, b, b_scale, b_zero))
        _stored(make, made, y_scale, y_zero, make.outputs[0])

    return rule


def qlinear_softmax(make: Maker) -> None:
    """Replace a softmax of opset 12 or older, which covers all axes from its axis onwards."""
    rank, axis = len(make.shape(make.inputs[0]) or ()), int(make.attributes.get("axis", -1))
    if int(make.attributes.get("opset", 13)) < 13 and axis not in (-1, rank - 1):
        raise Unsupported(f"a softmax over axes from {axis} on is not supported; over the last axis it is")
    of_one("Softmax")(make)


def qlinear_concat(make: Maker) -> None:
    """Concatenate tensors that each have their own quantisation."""
    y_scale, y_zero, *given = make.inputs
    parts = [real(make, *given[first : first + 3]) for first in range(0, len(given), 3)]
    made = make.add("Concat", *parts, **_float_attributes(make))
    _stored(make, made, y_scale, y_zero, make.outputs[0])


def same(make: Maker) -> None:
    """Rule for an operator that ONNX has since adopted."""
    make.add(make.op, *make.inputs, out=make.outputs[0], **make.attributes)
