"""Recurrent operators: LSTM over a sequence, whose state LiteRT keeps from one inference to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import FunctionProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.lstm_integers import integer_lstm
from mcudeploy.frontend.tflite.scales import reals, scales_of
from mcudeploy.frontend.tflite.writer import OPSET, Writer

SEQUENCE_LSTM = "SequenceLSTM"
"""The node: inputs, outputs and attributes of ONNX's LSTM, and cell_clip, the largest cell state."""

_TANH = 4
_GATES = (0, 3, 1, 2)
"""ONNX's order input, output, forget, cell among the file's input, forget, cell, output."""
_WEIGHTS, _RECURRENT, _BIAS, _PEEPHOLES, _PROJECTION, _H, _C, _NORMS = 1, 5, 12, 9, 16, 18, 19, 20
_NO_LIMIT = float(np.finfo(np.float32).max)


def sequence_lstm(writer: Writer, operator: TfliteOperator) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: [batch, steps, inputs], or the steps first."""
    source, result = writer.input(operator, 0), writer.output(operator)
    _require_plain(writer, operator)
    if len(source.shape) != 3:
        raise Unsupported(f"its input has the shape {list(source.shape)}; it needs three dimensions")
    by_time = operator.flag("TimeMajor")
    steps, batch = source.shape[:2] if by_time else source.shape[1::-1]
    if batch != 1:
        raise Unsupported(f"the batch is {batch}, only 1 is supported")
    if source.kind in ("INT8", "INT16"):
        integer_lstm(writer, operator)
        return
    weights, recurrent = (_Matrix.of(writer, operator, first) for first in (_WEIGHTS, _RECURRENT))
    hidden = recurrent.values.shape[1]
    bias = _bias(writer, operator, hidden)
    shapes = weights.values.shape, recurrent.values.shape
    if shapes != ((4 * hidden, source.shape[2]), (4 * hidden, hidden)):
        raise Unsupported(f"its weights do not fit {source.shape[2]} inputs and {hidden} cells")
    clip = _cell_clip(writer, operator)
    states = [writer.state(writer.input(operator, at), (1, 1, hidden)) for at in (_H, _C)]
    name = writer.real(source)
    if not by_time:
        name = writer.part("Transpose", [name], perm=[1, 0, 2])
    constants = [weights.written(writer), recurrent.written(writer), writer.constant(bias[None])]
    made = writer.nodes(
        SEQUENCE_LSTM, [name, *constants, "", *states], 3, domain=DOMAIN, hidden_size=hidden, cell_clip=clip
    )
    writer.known(made[0], (steps, 1, 1, hidden))
    for before, after in zip(states, made[1:], strict=True):
        writer.known(after, (1, 1, hidden))
        writer.keep_state(before, after)
    sizes = writer.int64([steps, 1, hidden] if by_time else [1, steps, hidden])
    writer.finish(result, writer.part("Reshape", [made[0], sizes]))


def _require_plain(writer: Writer, operator: TfliteOperator) -> None:
    """Raise Unsupported for rare options."""
    rare = {
        "peepholes": range(_PEEPHOLES, _PEEPHOLES + 3),
        "a projection": range(_PROJECTION, _PROJECTION + 2),
        "layer normalisation": range(_NORMS, _NORMS + 4),
    }
    for what, positions in rare.items():
        if any(writer.given(operator, at) is not None for at in positions):
            raise Unsupported(f"{what} is not supported; convert a plain LSTM")
    if writer.given(operator, _WEIGHTS) is None:
        raise Unsupported("coupled input and forget gates are not supported; convert a plain LSTM")
    if operator.integer("FusedActivationFunction") != _TANH:
        raise Unsupported("its activation is not tanh, which is not supported")


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """The matrices of all gates in ONNX's order: real numbers, or integers with the scale of each row."""

    values: NDArray[np.float32] | NDArray[np.int8]
    scale: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, writer: Writer, operator: TfliteOperator, first: int) -> _Matrix:
        """Read the gates' matrices from input `first` on; integers only if all are int8 around 0."""
        gates = [writer.input(operator, first + gate) for gate in _GATES]
        if any(len(gate.shape) != 2 for gate in gates):
            raise Unsupported("weights of its gates are no matrices")
        if not all(_is_symmetric(gate) for gate in gates):
            return cls(np.concatenate([reals(gate) for gate in gates]))
        scales = [np.full(gate.shape[0], scales_of(gate).scale[0], np.float32) for gate in gates]
        return cls(np.concatenate([gate.array().astype(np.int8) for gate in gates]), np.concatenate(scales))

    def written(self, writer: Writer) -> str:
        """The name of the matrix [1, rows, columns] as real numbers."""
        if self.scale is None:
            return writer.constant(self.values[None])
        inputs = [writer.constant(self.values), writer.constant(self.scale)]
        made = writer.part("DequantizeLinear", inputs, axis=0)
        return writer.part("Unsqueeze", [made, writer.int64([0])])


def _is_symmetric(gate: TfliteTensor) -> bool:
    scales = gate.scales
    return gate.kind == "INT8" and scales is not None and scales.single and scales.zero_point[0] == 0


def _bias(writer: Writer, operator: TfliteOperator, hidden: int) -> NDArray[np.float32]:
    """The biases of the input and of the state: all are the first."""
    parts = []
    for gate in _GATES:
        bias = writer.input(operator, _BIAS + gate)
        if bias.kind != "FLOAT32":
            raise Unsupported(f"the bias is {bias.kind}; with float inputs it must be FLOAT32")
        values = bias.array().astype(np.float32).reshape(-1)
        if values.size != hidden:
            raise Unsupported(f"a bias has {values.size} values; there are {hidden} cells")
        parts.append(values)
    return np.concatenate([*parts, np.zeros(4 * hidden, np.float32)])


def _cell_clip(writer: Writer, operator: TfliteOperator) -> float:
    """The limit of the cell state."""
    if operator.number("ProjClip") != 0 and writer.given(operator, _PROJECTION) is not None:
        raise Unsupported("a clipped projection is not supported")
    cell = writer.input(operator, _C)
    if cell.kind != "FLOAT32":
        raise Unsupported(f"its cell state is {cell.kind}; with float inputs it must be FLOAT32")
    given = operator.number("CellClip")
    return given if given > 0 else _NO_LIMIT


def lstm_function() -> FunctionProto:
    """The node as ONNX operators, for a runtime without such an LSTM."""
    text = f"""
    {SEQUENCE_LSTM} <hidden_size, cell_clip> (x, w, r, b, lengths, h, c) => (y, y_h, y_c) {{
      high = Constant <value_float: float = @cell_clip> ()
      front = Constant <value_ints = [0]> ()
      second = Constant <value_ints = [1]> ()
      low = Neg (high)
      w_rows = Squeeze (w, front)
      w_cols = Transpose <perm = [1, 0]> (w_rows)
      r_rows = Squeeze (r, front)
      r_cols = Transpose <perm = [1, 0]> (r_rows)
      b_w, b_r = Split <axis = 1> (b)
      bias = Add (b_w, b_r)
      h_first = Squeeze (h, front)
      c_first = Squeeze (c, front)
      h_last, c_last, steps = Scan <body = step (float[] h_before, float[] c_before, float[] x_now)
        => (float[] h_after, float[] c_after, float[] y_now) {{
          from_x = MatMul (x_now, w_cols)
          from_h = MatMul (h_before, r_cols)
          both = Add (from_x, from_h)
          gates = Add (both, bias)
          i, o, f, g = Split <axis = 1> (gates)
          input = Sigmoid (i)
          output = Sigmoid (o)
          forget = Sigmoid (f)
          candidate = Tanh (g)
          kept = Mul (forget, c_before)
          added = Mul (input, candidate)
          cell = Add (kept, added)
          c_after = Clip (cell, low, high)
          shown = Tanh (c_after)
          h_after = Mul (output, shown)
          y_now = Identity (h_after)
      }}, num_scan_inputs = 1> (h_first, c_first, x)
      y = Unsqueeze (steps, second)
      y_h = Unsqueeze (h_last, front)
      y_c = Unsqueeze (c_last, front)
    }}
    """
    return function_of(text, DOMAIN, OPSET)
