"""Translation of UNIDIRECTIONAL_SEQUENCE_LSTM: int8 as TFLite computes it, int16 as TFLite Micro does."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16.conv_int16 import SumScales
from mcudeploy.extensions.int16.int16 import TwiceScale
from mcudeploy.extensions.int16.lstm_functions import lstm
from mcudeploy.extensions.int16.lstm_int8 import GATE_BITS, LSTM_GATES, MOST_CELL_BITS, NO_CLIP, LstmInt8
from mcudeploy.extensions.int16.lstm_int16 import LstmInt16
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.formula import formula_nodes
from mcudeploy.frontend.tflite.recurrent import steps_of
from mcudeploy.frontend.tflite.scales import scales_of
from mcudeploy.frontend.tflite.writer import Writer

_WEIGHTS, _RECURRENT, _BIAS, _H, _C = 1, 5, 12, 18, 19
_NEAR_POWER = 1e-3
_GATE_UNIT = 2.0 ** (GATE_BITS - 15)
_PRODUCT_UNIT = 2.0**-30


@dataclass(frozen=True, slots=True, eq=False)
class _LstmTensors:
    """Operands and result of an LSTM; `weights`, `recurrent` and `bias` have a tensor for each gate."""

    source: TfliteTensor
    weights: tuple[TfliteTensor, ...]
    recurrent: tuple[TfliteTensor, ...]
    bias: tuple[TfliteTensor, ...]
    h: TfliteTensor
    c: TfliteTensor
    result: TfliteTensor


def integer_lstm(writer: Writer, operator: TfliteOperator) -> None:
    """Translate the operator for one sequence, whose states LiteRT keeps from one inference to the next."""
    steps, tensors = steps_of(writer, operator), _tensors(writer, operator)
    source, dtype = tensors.source, tensors.source.dtype or ""
    depth = source.shape[2]
    op = _lstm_int8(operator, tensors) if dtype == "int8" else _lstm_int16(operator, tensors)
    shape = (1, 1, op.hidden)
    states = writer.state(tensors.h, shape, dtype), writer.state(tensors.c, shape, "int16")
    inputs = {
        "x": writer.part("Reshape", [writer.raw(source), writer.int64([steps, depth])]),
        "weights": writer.constant(_stacked(tensors.weights, np.int8)),
        "recurrent": writer.constant(_stacked(tensors.recurrent, np.int8)),
        "bias": writer.constant(_bias(tensors)),
        "h": states[0],
        "c": states[1],
    }
    results, *after = formula_nodes(writer, op.kind, inputs, lstm(op), **_facts(op))
    writer.declare(results, (steps, op.hidden), dtype)
    zero = writer.constant(np.full(shape, scales_of(tensors.h).zero_point[0], np.dtype(dtype)))
    for before, name, kind, first in zip(states, after, (dtype, "int16"), (zero, ""), strict=True):
        writer.declare(name, shape, kind)
        writer.keep_state(before, name, first)
    sizes = writer.int64(tensors.result.shape)
    writer.keep(tensors.result, writer.part("Reshape", [results, sizes]))


def _bias(tensors: _LstmTensors) -> NDArray[np.int32]:
    """int32 [4 * hidden], or the lower and the upper words of int64."""
    bias = _stacked(tensors.bias, np.int64)
    if tensors.source.kind == "INT8":
        return bias.astype(np.int32)
    return np.ascontiguousarray(bias.astype("<i8").view("<i4").reshape(-1, 2).T)


def _facts(op: LstmInt8 | LstmInt16) -> dict[str, Any]:
    """The attributes of the node, from which the lowering makes the operator again."""
    facts: dict[str, Any] = {"hidden": op.hidden, "cell_bits": op.cell_bits, "clip": op.clip}
    facts["result"] = [op.result_scale.multiplier, op.result_scale.exponent]
    if isinstance(op, LstmInt16):
        shifts = {"shifts": list(op.shifts), "left_shift": op.left_shift}
        return facts | {"multipliers": list(op.multipliers)} | shifts
    scales = {"multipliers": [it.multiplier for it in op.scales], "shifts": [it.exponent for it in op.scales]}
    return facts | scales | {"zero_point": op.zero_point, "zero_points": list(op.zero_points)}


def _tensors(writer: Writer, operator: TfliteOperator) -> _LstmTensors:
    """The operands. Raises Unsupported for types and shapes that do not fit."""

    def gates(first: int) -> tuple[TfliteTensor, ...]:
        return tuple(writer.input(operator, first + gate) for gate in range(LSTM_GATES))

    tensors = _LstmTensors(
        writer.input(operator, 0),
        gates(_WEIGHTS),
        gates(_RECURRENT),
        gates(_BIAS),
        writer.input(operator, _H),
        writer.input(operator, _C),
        writer.output(operator),
    )
    _require_types(tensors)
    hidden, depth = tensors.h.elements, tensors.source.shape[2]
    for gate_tensors, size in (
        (tensors.weights, (hidden, depth)),
        (tensors.recurrent, (hidden, hidden)),
        (tensors.bias, (hidden,)),
    ):
        for tensor in gate_tensors:
            if tensor.shape != size:
                raise Unsupported(
                    f"tensor {tensor.label} has the shape {list(tensor.shape)}; it needs {list(size)}"
                )
    if tensors.c.elements != hidden or tensors.result.elements != tensors.source.elements // depth * hidden:
        raise Unsupported(f"its states and its result do not fit {hidden} cells")
    return tensors


def _require_types(tensors: _LstmTensors) -> None:
    kind = tensors.source.kind
    if kind not in ("INT8", "INT16"):
        raise Unsupported(f"its input is {kind}; with an INT16 cell state it must be INT8 or INT16")
    activations = tensors.source, tensors.h, tensors.result
    kinds = (
        (kind, activations),
        ("INT8", (*tensors.weights, *tensors.recurrent)),
        ("INT16", (tensors.c,)),
        ("INT32" if kind == "INT8" else "INT64", tensors.bias),
    )
    for wanted, every in kinds:
        for tensor in every:
            if tensor.kind != wanted:
                raise Unsupported(
                    f"tensor {tensor.label} is {tensor.kind}; with inputs of {kind} it must be {wanted}"
                )
    for tensor in (*activations, *tensors.weights, *tensors.recurrent, tensors.c):
        if not scales_of(tensor).single:
            raise Unsupported(f"tensor {tensor.label} has a scale for each channel; it needs one")
        symmetric = kind == "INT16" or tensor not in activations
        if symmetric and scales_of(tensor).zero_point[0] != 0:
            raise Unsupported(f"tensor {tensor.label} has a zero point; it must be 0")


def _lstm_int8(operator: TfliteOperator, tensors: _LstmTensors) -> LstmInt8:
    """The operator with TFLite's scales, in float32. The file states a separate scale for the computed h."""
    of_h = operator.intermediates[LSTM_GATES:]
    if len(of_h) != 1 or of_h[0] is None or not of_h[0].single:
        raise Unsupported("the file lacks the scale in which its state is computed; convert the model again")
    scales = [
        TwiceScale.of(float(_scale(source) * _scale(weights) / np.float32(_GATE_UNIT)))
        for source, weights in _products(tensors)
    ]
    result = TwiceScale.of(float(np.float32(_PRODUCT_UNIT / float(np.float32(of_h[0].scale[0])))))
    cell_bits, clip = _cell(operator, tensors.c)
    hidden, zero_point = tensors.h.elements, of_h[0].zero_point[0]
    zero_points = scales_of(tensors.source).zero_point[0], scales_of(tensors.h).zero_point[0]
    return LstmInt8(hidden, tuple(scales), result, zero_point, zero_points, cell_bits, clip)


def _lstm_int16(operator: TfliteOperator, tensors: _LstmTensors) -> LstmInt16:
    """The operator with scales as TFLite Micro computes them, in double precision."""
    factors = [
        float(_scale(source)) * float(_scale(weights)) / _GATE_UNIT for source, weights in _products(tensors)
    ]
    scales = SumScales.of(np.array(factors), "up")
    result = TwiceScale.of(_PRODUCT_UNIT / float(_scale(tensors.h)))
    cell_bits, clip = _cell(operator, tensors.c)
    return LstmInt16(
        tensors.h.elements,
        tuple(scales.multipliers.tolist()),
        tuple(scales.shifts.tolist()),
        scales.left_shift,
        result,
        cell_bits,
        clip,
    )


def _products(tensors: _LstmTensors) -> list[tuple[TfliteTensor, TfliteTensor]]:
    """The operands of all products: x with the weights of each gate, then h with the recurrent weights."""
    return [(tensors.source, it) for it in tensors.weights] + [(tensors.h, it) for it in tensors.recurrent]


def _cell(operator: TfliteOperator, state: TfliteTensor) -> tuple[int, int]:
    """The integer bits of the cell state, and the limit of its stored values."""
    scale = _scale(state)
    exponent = round(log2(scale)) if scale > 0 else 0
    if scale <= 0 or abs(log2(scale) - exponent) > _NEAR_POWER or not 0 <= 15 + exponent <= MOST_CELL_BITS:
        raise Unsupported(f"the scale of its cell state is {scale:g}; TFLite needs 2^-15, 2^-14, ... 2^-9")
    clip = operator.number("CellClip")
    limit = int(min(np.float32(clip) / scale, np.float32(NO_CLIP - 1))) if clip > 0 else 0
    return 15 + exponent, limit or NO_CLIP


def _scale(tensor: TfliteTensor) -> np.float32:
    return np.float32(scales_of(tensor).scale[0])


def _stacked(tensors: tuple[TfliteTensor, ...], dtype: type[np.integer]) -> NDArray[np.integer]:
    """The constants of all gates in one array."""
    return np.concatenate([tensor.array().astype(dtype) for tensor in tensors])
