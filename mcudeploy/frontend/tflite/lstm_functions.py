"""The arithmetic of LSTMs in integers as ONNX functions: that of TFLite's kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, ValueInfoProto, helper

from mcudeploy.frontend.tflite.fixed_point import logistic_values, tanh_values
from mcudeploy.frontend.tflite.formula import Expression, Formula
from mcudeploy.frontend.tflite.int16_functions import divided, rounded_twice, rounded_up, sigmoid_of
from mcudeploy.ops.conv_int16 import SumScales
from mcudeploy.ops.int16 import INT16, SigmoidInt16, TwiceScale
from mcudeploy.ops.lstm_int8 import GATE_BITS, LSTM_GATES, LstmInt8
from mcudeploy.ops.lstm_int16 import LstmInt16

_INT8 = np.iinfo(np.int8)
_TABLE_UNIT = 3
"""From a value with GATE_BITS of integers to the units of SigmoidInt16."""
_UNIT_BITS = 15


def lstm(op: LstmInt8 | LstmInt16) -> Formula:
    """Inputs x [steps, inputs], weights, recurrent, bias, h and c [hidden]; outputs y [steps, hidden], and
    the states y_h and y_c after the last step.
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
    taken, forget, candidate, output = (
        _looked_up(f, table, part) for table, part in zip(tables, _parts(gates, op.hidden), strict=True)
    )
    remembered = divided(f, forget * f.given("c_before"), _UNIT_BITS)
    cell = _narrowed(remembered + divided(f, taken * candidate, _UNIT_BITS + op.cell_bits))
    cell = cell.clipped(-op.clip, op.clip)
    shown = output * _looked_up(f, tanh_values(op.cell_bits), cell)
    state = rounded_twice(f, shown, op.result_scale.multiplier, op.result_scale.exponent) + op.zero_point
    _finish(f, f.cast(state.clipped(_INT8.min, _INT8.max), "int8"), cell)


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
        what = SigmoidInt16(tangent, _TABLE_UNIT << max(left, 0), max(-left, 0))
        return sigmoid_of(f, x, what)

    low, high = (f.given("bias").slice(at, at + 1, 0).reshaped(-1) for at in (0, 1))
    bias = high * 2**32 + low.wrapped(32, signed=False)
    gates = scaled(f.node("MatMul", f.given("weights"), f.given("x_now")) + bias, 0)
    gates = _narrowed(gates + scaled(f.node("MatMul", f.given("recurrent"), f.given("h_before")), LSTM_GATES))
    taken, forget, candidate, output = (
        sigmoid(part, GATE_BITS, tangent=at == 2) for at, part in enumerate(_parts(gates, op.hidden))
    )
    remembered = _scaled(f, forget * f.given("c_before"), TwiceScale.of(2.0**-_UNIT_BITS))
    added = _scaled(f, taken * candidate, TwiceScale.of(2.0 ** -(_UNIT_BITS + op.cell_bits)))
    cell = _narrowed(remembered + added).clipped(-op.clip, op.clip)
    shown = output * sigmoid(cell, op.cell_bits, tangent=True)
    _finish(f, f.cast(_scaled(f, shown, op.result_scale), "int16"), cell)


def _parts(gates: Expression, hidden: int) -> list[Expression]:
    return [gates.slice(at * hidden, (at + 1) * hidden, 0) for at in range(LSTM_GATES)]


def _finish(f: Formula, state: Expression, cell: Expression) -> None:
    for name in ("h_after", "y_now"):
        f.result(name, state)
    f.result("c_after", f.cast(cell, "int16"))


def _scaled(f: Formula, value: Expression, scale: TwiceScale) -> Expression:
    return _narrowed(rounded_twice(f, value, scale.multiplier, scale.exponent))


def _narrowed(value: Expression) -> Expression:
    return value.clipped(INT16.min, INT16.max)


def _looked_up(f: Formula, table: NDArray[np.int16], value: Expression) -> Expression:
    return f.cast(f.constant(table, np.int16).at(value - INT16.min), "int64")
