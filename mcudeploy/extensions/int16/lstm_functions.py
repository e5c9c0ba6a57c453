"""The arithmetic of LSTMs in integers, of TFLite and TFLite Micro, as ONNX functions; tables of gemmlowp."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, ValueInfoProto, helper

from mcudeploy.extensions.int16.conv_int16 import SumScales
from mcudeploy.extensions.int16.int16 import INT16, SigmoidInt16, TwiceScale
from mcudeploy.extensions.int16.int16_functions import divided, rounded_twice, rounded_up, sigmoid_of
from mcudeploy.extensions.int16.lstm_int8 import GATE_BITS, LSTM_GATES, LstmInt8
from mcudeploy.extensions.int16.lstm_int16 import LstmInt16
from mcudeploy.frontend.tflite.formula import Expression, Formula

_Integers = NDArray[np.int64]
_MOST, _LEAST = 2**15 - 1, -(2**15)
_FACTORS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""For each e: 2^31 * exp(-2^e)."""
_EXP_OF_EIGHTH, _THIRD = 1895147668, 715827883
_OF_48_BY_17, _OF_32_BY_17 = 1515870810, -1010580540
_CLAMPED_BITS = 5


@cache
def logistic_values(bits: int) -> NDArray[np.int16]:
    """int16[65536]: 1 / (1 + exp(-x)) for all int16 from -32768, as fixed-point x with `bits` of integers."""
    x = _numbers()
    positive = _saturated(_reciprocal(_exp(_negative(x), bits)) << 1)
    return _chosen(x, 1 << 14, positive, _MOST - positive)


@cache
def tanh_values(bits: int) -> NDArray[np.int16]:
    """int16[65536]: tanh(x) for the same x."""
    x = _numbers()
    positive = _saturated((_reciprocal(_exp(_negative(x), bits + 1)) - (1 << 13)) << 2)
    return _chosen(x, 0, positive, -positive)


def _numbers() -> _Integers:
    return np.arange(_LEAST, _MOST + 1, dtype=np.int64)


def _negative(x: _Integers) -> _Integers:
    return np.where(x > 0, -x, x)


def _chosen(x: _Integers, of_zero: int, positive: _Integers, negative: _Integers) -> NDArray[np.int16]:
    return np.where(x == 0, of_zero, np.where(x > 0, positive, negative)).astype(np.int16)


def _saturated(x: _Integers) -> _Integers:
    return np.asarray(np.clip(x, _LEAST, _MOST))


def _upper_half(value: int) -> _Integers:
    """The upper 16 of 32 bits, rounded."""
    return _divided(np.array(value, np.int64), 16)


def _product(a: _Integers, b: _Integers) -> _Integers:
    """The product / 2^15, rounded and saturated; a tie goes up."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, _MOST))


def _divided(x: _Integers, bits: int) -> _Integers:
    """The quotient by 2^bits, ties rounded away from zero."""
    rest, half = x & ((1 << bits) - 1), (1 << bits) >> 1
    return np.asarray((x >> bits) + (rest >= half + (x < 0)))


def _exp(x: _Integers, bits: int) -> _Integers:
    """exp(x) for x <= 0 with `bits` of integers: a polynomial for the last quarter, times factors."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    below = (x & (quarter - 1)) - quarter
    result, rest = _exp_of_quarter(_saturated(below << bits)), below - x
    for exponent, factor in _FACTORS:
        if bits > exponent:
            is_set = rest & (1 << (fraction + exponent)) != 0
            result = np.where(is_set, _product(result, _upper_half(factor)), result)
    if bits > _CLAMPED_BITS:
        result = np.where(x < -(1 << (20 - bits)), 0, result)
    return np.where(x == 0, _MOST, result)


def _exp_of_quarter(x: _Integers) -> _Integers:
    """exp(x) for x from -1/4 to 0 without integer bits: a Taylor expansion around -1/8."""
    middle = _upper_half(_EXP_OF_EIGHTH)
    x1 = x + (1 << 12)
    x2 = _product(x1, x1)
    x3, x4 = _product(x2, x1), _product(x2, x2)
    further = _divided(_product(_divided(x4, 2) + x3, _upper_half(_THIRD)) + x2, 1)
    return _saturated(middle + _product(middle, x1 + further))


def _reciprocal(x: _Integers) -> _Integers:
    """2 / (1 + x) with 2 integer bits, by Newton's method."""
    half = (x + _MOST + 1) >> 1
    result = _upper_half(_OF_48_BY_17) + _product(half, _upper_half(_OF_32_BY_17))
    for _ in range(3):
        error = (1 << 13) - _product(half, result)
        result = result + _saturated(_product(result, error) << 2)
    return result


_INT8 = np.iinfo(np.int8)
_TABLE_UNIT = 3
"""The multiplier of SigmoidInt16 for values with GATE_BITS integer bits."""
_UNIT_BITS = 15


def lstm(op: LstmInt8 | LstmInt16) -> Formula:
    """The function of an LSTM. Inputs: x [steps, inputs], weights, recurrent, bias, h and c [hidden].

    Outputs: y [steps, hidden], and the states y_h and y_c after the last step.
    """
    f, step = Formula(), Formula(prefix="s")
    if isinstance(op, LstmInt8):
        kind = TensorProto.INT8
        _step_of_int8(step, op)
    else:
        kind = TensorProto.INT16
        _step_of_int16(step, op)
    before = [_vector("h_before", kind), _vector("c_before", TensorProto.INT16), _vector("x_now", kind)]
    after = [_vector("h_after", kind), _vector("c_after", TensorProto.INT16), _vector("y_now", kind)]
    body = helper.make_graph(step.nodes, "step", before, after)
    hidden = f.constant([op.hidden])
    first = [f.results("Reshape", [name, hidden.name], 1)[0].name for name in ("h", "c")]
    h, c, y = f.results("Scan", [*first, "x"], 3, num_scan_inputs=1, body=body)
    f.result("y", y)
    for name, value, like in (("y_h", h, "h"), ("y_c", c, "c")):
        f.result(name, f.node("Reshape", value, f.results("Shape", [like], 1)[0]))
    return f


def _vector(name: str, kind: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None)


def _step_of_int8(f: Formula, op: LstmInt8) -> None:
    """One step; weights and bias come from the enclosing function."""

    def scaled(sums: Expression, first: int) -> Expression:
        scales = op.scales[first : first + LSTM_GATES]
        multipliers = np.repeat([scale.multiplier for scale in scales], op.hidden)
        return rounded_twice(f, sums, multipliers, np.repeat([it.exponent for it in scales], op.hidden))

    sums = f.node("MatMul", f.given("weights"), f.given("x_now") - op.zero_points[0]) + f.given("bias")
    gates = _narrowed(scaled(sums, 0))
    sums = f.node("MatMul", f.given("recurrent"), f.given("h_before") - op.zero_points[1])
    gates = _narrowed(gates + scaled(sums, LSTM_GATES))
    logistic = logistic_values(GATE_BITS)
    tables = logistic, logistic, tanh_values(GATE_BITS), logistic
    input_gate, forget, candidate, output = (
        _looked_up(f, table, part) for table, part in zip(tables, _parts(gates, op.hidden), strict=True)
    )
    remembered = divided(f, forget * f.given("c_before"), _UNIT_BITS)
    cell = _narrowed(remembered + divided(f, input_gate * candidate, _UNIT_BITS + op.cell_bits))
    cell = cell.clipped(-op.clip, op.clip)
    product = output * _looked_up(f, tanh_values(op.cell_bits), cell)
    h = rounded_twice(f, product, op.result_scale.multiplier, op.result_scale.exponent) + op.zero_point
    _finish(f, f.cast(h.clipped(_INT8.min, _INT8.max), "int8"), cell)


def _step_of_int16(f: Formula, op: LstmInt16) -> None:
    """One step; weights and bias come from the enclosing function."""

    def scaled(sums: Expression, first: int) -> Expression:
        multipliers, shifts = (
            np.repeat(np.array(it[first : first + LSTM_GATES], np.int32), op.hidden)
            for it in (op.multipliers, op.shifts)
        )
        scales = SumScales(multipliers, shifts, op.left_shift)
        return _narrowed(rounded_up(f, sums * (1 << op.left_shift), scales))

    def sigmoid(x: Expression, bits: int, *, tangent: bool) -> Expression:
        left = bits - GATE_BITS
        function = SigmoidInt16(tangent, _TABLE_UNIT << max(left, 0), max(-left, 0))
        return sigmoid_of(f, x, function)

    low, high = (f.given("bias").slice(at, at + 1, 0).reshaped(-1) for at in (0, 1))
    bias = high * 2**32 + low.wrapped(32, signed=False)
    gates = scaled(f.node("MatMul", f.given("weights"), f.given("x_now")) + bias, 0)
    gates = _narrowed(gates + scaled(f.node("MatMul", f.given("recurrent"), f.given("h_before")), LSTM_GATES))
    input_gate, forget, candidate, output = (
        sigmoid(part, GATE_BITS, tangent=at == 2) for at, part in enumerate(_parts(gates, op.hidden))
    )
    remembered = _scaled(f, forget * f.given("c_before"), TwiceScale.of(2.0**-_UNIT_BITS))
    added = _scaled(f, input_gate * candidate, TwiceScale.of(2.0 ** -(_UNIT_BITS + op.cell_bits)))
    cell = _narrowed(remembered + added).clipped(-op.clip, op.clip)
    product = output * sigmoid(cell, op.cell_bits, tangent=True)
    _finish(f, f.cast(_scaled(f, product, op.result_scale), "int16"), cell)


def _parts(gates: Expression, hidden: int) -> list[Expression]:
    return [gates.slice(at * hidden, (at + 1) * hidden, 0) for at in range(LSTM_GATES)]


def _finish(f: Formula, h: Expression, cell: Expression) -> None:
    for name in ("h_after", "y_now"):
        f.result(name, h)
    f.result("c_after", f.cast(cell, "int16"))


def _scaled(f: Formula, value: Expression, scale: TwiceScale) -> Expression:
    return _narrowed(rounded_twice(f, value, scale.multiplier, scale.exponent))


def _narrowed(value: Expression) -> Expression:
    return value.clipped(INT16.min, INT16.max)


def _looked_up(f: Formula, table: NDArray[np.int16], value: Expression) -> Expression:
    return f.cast(f.constant(table, np.int16).at(value - INT16.min), "int64")
