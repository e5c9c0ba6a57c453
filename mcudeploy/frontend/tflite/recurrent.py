"""Recurrent operators whose states LiteRT keeps between inferences: LSTM over a sequence, and SVDF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import FunctionProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.convolutions import bias_of, require_scales_along
from mcudeploy.frontend.tflite.scales import fused, parameters, reals, scales_of
from mcudeploy.frontend.tflite.writer import OPSET, Writer

SEQUENCE_LSTM = "SequenceLSTM"
"""Operator with the inputs, outputs and attributes of LSTM, and `cell_clip`, the largest cell state."""

_TANH = 4
_GATES = (0, 3, 1, 2)
"""The place in the file (input, forget, cell, output) of each gate in ONNX's order (input, output, forget,
cell).
"""
_WEIGHTS, _RECURRENT, _BIAS, _PEEPHOLES, _PROJECTION, _H, _C, _NORMS = 1, 5, 12, 9, 16, 18, 19, 20
"""Positions of the operator's inputs, or of the first of several."""
_NO_LIMIT = float(np.finfo(np.float32).max)


def sequence_lstm(writer: Writer, operator: TfliteOperator) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of an input [batch, steps, inputs], or [steps, batch, inputs]."""
    source, result = writer.input(operator, 0), writer.output(operator)
    steps, by_time = steps_of(writer, operator), operator.flag("TimeMajor")
    if source.kind in ("INT8", "INT16"):
        raise Unsupported(f"its input is {source.kind}, and its states are not quantised INT16")
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
    results = writer.nodes(
        SEQUENCE_LSTM, [name, *constants, "", *states], 3, domain=DOMAIN, hidden_size=hidden, cell_clip=clip
    )
    writer.declare(results[0], (steps, 1, 1, hidden))
    for before, after in zip(states, results[1:], strict=True):
        writer.declare(after, (1, 1, hidden))
        writer.keep_state(before, after)
    sizes = writer.int64([steps, 1, hidden] if by_time else [1, steps, hidden])
    writer.finish(result, writer.part("Reshape", [results[0], sizes]))


def steps_of(writer: Writer, operator: TfliteOperator) -> int:
    """The number of steps of an LSTM over one sequence. Raises Unsupported for batches and rare options."""
    source = writer.input(operator, 0)
    _require_plain(writer, operator)
    if len(source.shape) != 3:
        raise Unsupported(f"its input has the shape {list(source.shape)}; it needs three dimensions")
    steps, batch = source.shape[:2] if operator.flag("TimeMajor") else source.shape[1::-1]
    if batch != 1:
        raise Unsupported(f"the batch is {batch}, only 1 is supported")
    return steps


def _require_plain(writer: Writer, operator: TfliteOperator) -> None:
    """Raise Unsupported for rare options."""
    rare = {
        "peepholes": range(_PEEPHOLES, _PEEPHOLES + 3),
        "a projection": range(_PROJECTION, _PROJECTION + 2),
        "layer normalisation": range(_NORMS, _NORMS + 4),
    }
    for label, positions in rare.items():
        if any(writer.optional_input(operator, at) is not None for at in positions):
            raise Unsupported(f"{label} is not supported; convert a plain LSTM")
    if writer.optional_input(operator, _WEIGHTS) is None:
        raise Unsupported("coupled input and forget gates are not supported; convert a plain LSTM")
    if operator.integer("FusedActivationFunction") != _TANH:
        raise Unsupported("its activation is not tanh, which is not supported")


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """The matrices of all gates in ONNX's order: real numbers, or integers with a scale for each row."""

    values: NDArray[np.float32] | NDArray[np.int8]
    scale: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, writer: Writer, operator: TfliteOperator, first: int) -> _Matrix:
        """Read the gates' matrices from input `first` on: as integers if all are int8 with zero point 0."""
        gates = [writer.input(operator, first + gate) for gate in _GATES]
        if any(len(gate.shape) != 2 for gate in gates):
            raise Unsupported("weights of its gates are not matrices")
        if not all(_is_symmetric(gate) for gate in gates):
            return cls(np.concatenate([reals(gate) for gate in gates]))
        scales = [np.full(gate.shape[0], scales_of(gate).scale[0], np.float32) for gate in gates]
        return cls(np.concatenate([gate.array().astype(np.int8) for gate in gates]), np.concatenate(scales))

    def written(self, writer: Writer) -> str:
        """The name of the matrix [1, rows, columns] as real numbers."""
        if self.scale is None:
            return writer.constant(self.values[None])
        inputs = [writer.constant(self.values), writer.constant(self.scale)]
        real = writer.part("DequantizeLinear", inputs, axis=0)
        return writer.part("Unsqueeze", [real, writer.int64([0])])


def _is_symmetric(gate: TfliteTensor) -> bool:
    scales = gate.scales
    return gate.kind == "INT8" and scales is not None and scales.single and scales.zero_point[0] == 0


def _bias(writer: Writer, operator: TfliteOperator, hidden: int) -> NDArray[np.float32]:
    """The biases as ONNX's LSTM takes them: those of the file for the input, zeros for the state."""
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
    if operator.number("ProjClip") != 0 and writer.optional_input(operator, _PROJECTION) is not None:
        raise Unsupported("a clipped projection is not supported")
    cell = writer.input(operator, _C)
    if cell.kind != "FLOAT32":
        raise Unsupported(f"its cell state is {cell.kind}; with float inputs it must be FLOAT32")
    clip = operator.number("CellClip")
    return clip if clip > 0 else _NO_LIMIT


def lstm_function() -> FunctionProto:
    """The operator SEQUENCE_LSTM as ONNX operators, for the reference."""
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


SVDF = "SVDF"
"""Operator on floats. Inputs: the newest values [1, filters], the state [1, filters, memory], weights over
time [filters, memory], bias [units]. Results: [1, units] and the next state.
"""
QUANTIZED_SVDF = "QuantizedSVDF"
"""Operator on int8. Inputs as those of SVDF; scale and zero point follow the state and the weights, a scale
follows the bias; scale and zero point of the result come last.
"""
_RELU = 1


@dataclass(frozen=True, slots=True, eq=False)
class _SvdfTensors:
    """Operands and result of an SVDF."""

    source: TfliteTensor
    features: TfliteTensor
    times: TfliteTensor
    bias: TfliteTensor | None
    state: TfliteTensor
    result: TfliteTensor

    @property
    def units(self) -> int:
        return self.result.elements


def svdf(writer: Writer, operator: TfliteOperator) -> None:
    """SVDF: input [1, inputs], weights [filters, inputs] and [filters, memory], state [1, filters * memory].

    An int8 state stays int8; one of int16 is computed in float.
    """
    tensors = _SvdfTensors(
        source=writer.input(operator, 0),
        features=writer.input(operator, 1),
        times=writer.input(operator, 2),
        bias=writer.optional_input(operator, 3),
        state=writer.input(operator, 4),
        result=writer.output(operator),
    )
    _require_fitting(tensors, operator.integer("Rank"))
    in_float = tensors.state.kind == "FLOAT32"
    if not in_float and operator.integer("FusedActivationFunction") != _RELU:
        raise Unsupported(
            "its state is quantised and its fused activation is not RELU: TFLite has no such SVDF"
        )
    features, source = tensors.features, tensors.source
    require_scales_along(features, 0)
    flat = writer.int64([1, features.shape[1]])
    x = writer.part("Reshape", [writer.real(source), flat])
    newest = writer.part("Gemm", [x, writer.real(features)], transB=1)
    if tensors.state.kind == "INT8":
        _quantized(writer, tensors, newest)
        return
    if tensors.state.kind == "INT16":
        newest = _saturated(writer, newest, tensors.state)
    state = writer.state(tensors.state, (1, *tensors.times.shape))
    times, bias = writer.constant(reals(tensors.times)), _real_bias(writer, tensors)
    onnx_name, after = writer.nodes(SVDF, [newest, state, times, bias], 2, domain=DOMAIN)
    writer.declare(onnx_name, (1, tensors.units))
    _keep(writer, tensors, state, after, initial="")
    writer.finish(tensors.result, onnx_name, fused(operator) if in_float else None)


def _quantized(writer: Writer, tensors: _SvdfTensors, newest: str) -> None:
    """Write an SVDF on integers. For RELU, TFLite only saturates to int8, whatever the zero point."""
    state_scale, times = parameters(tensors.state), parameters(tensors.times)
    if (
        not (state_scale.single and times.single and parameters(tensors.result).single)
        or times.zero_point[0] != 0
    ):
        raise Unsupported("its state, weights over time and result need one scale each; of weights around 0")
    shape = (1, *tensors.times.shape)
    state = writer.state(tensors.state, shape, "int8")
    bias_scale = writer.float32(state_scale.scale[0] * times.scale[0])
    inputs = [writer.quantized(newest, tensors.state), state, *writer.parameters(tensors.state)]
    inputs += [writer.raw(tensors.times), *writer.parameters(tensors.times)]
    inputs += [_integer_bias(writer, tensors), bias_scale, *writer.parameters(tensors.result)]
    onnx_name, after = writer.nodes(QUANTIZED_SVDF, inputs, 2, domain=DOMAIN)
    writer.declare(onnx_name, (1, tensors.units), "int8")
    initial = writer.constant(np.full(shape, state_scale.zero_point[0], np.int8))
    _keep(writer, tensors, state, after, initial=initial)
    writer.keep(tensors.result, onnx_name)


def _saturated(writer: Writer, name: str, state: TfliteTensor) -> str:
    """Clip a value to the range of int16 in the state's scale, without rounding."""
    scales = scales_of(state)
    if not scales.single or scales.zero_point[0] != 0:
        raise Unsupported("its state needs one scale and no zero point")
    limits = np.iinfo(np.int16)
    bounds = [writer.float32(it * scales.scale[0]) for it in (limits.min, limits.max)]
    return writer.part("Clip", [name, *bounds])


def _keep(writer: Writer, tensors: _SvdfTensors, state: str, after: str, *, initial: str) -> None:
    writer.declare(after, (1, *tensors.times.shape), "int8" if initial else "float32")
    writer.keep_state(state, after, initial)


def _require_fitting(tensors: _SvdfTensors, rank: int) -> None:
    shapes = tensors.features.shape, tensors.times.shape
    if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise Unsupported(f"weights {list(shapes[0])} and {list(shapes[1])} need as many filters")
    (filters, depth), (_, memory) = shapes
    if tensors.source.elements != depth or tensors.state.elements != filters * memory:
        raise Unsupported(
            f"an input of {tensors.source.elements} values and a state of {tensors.state.elements} do not "
            f"fit weights {list(shapes[0])} and {list(shapes[1])}; the batch must be 1"
        )
    if rank < 1 or tensors.units * rank != filters:
        raise Unsupported(f"{filters} filters of rank {rank} do not make {tensors.units} units")
    if tensors.times.data is None or tensors.features.data is None:
        raise Unsupported("its weights must be constant")
    kinds = {tensors.state.kind, tensors.times.kind}
    dynamic = tensors.state.kind == "FLOAT32" and tensors.times.kind == "INT8"
    if kinds not in ({"FLOAT32"}, {"INT8"}, {"INT16"}) and not dynamic:
        raise Unsupported(
            f"its state is {tensors.state.kind}, its weights over time {tensors.times.kind}; both must be "
            "FLOAT32, INT8 or INT16, or the weights of a FLOAT32 state INT8"
        )


def _integer_bias(writer: Writer, tensors: _SvdfTensors) -> str:
    bias = tensors.bias
    if bias is None:
        return writer.constant(np.zeros(tensors.units, np.int32))
    if bias.kind != "INT32" or bias.data is None or bias.elements != tensors.units:
        raise Unsupported(f"its bias needs {tensors.units} constants of INT32")
    return writer.raw(bias)


def _real_bias(writer: Writer, tensors: _SvdfTensors) -> str:
    """The bias as real numbers; int32 counts in units of state scale * scale of the weights over time."""
    if tensors.bias is None:
        return writer.constant(np.zeros(tensors.units, np.float32))
    (name,) = bias_of(writer, tensors.bias, (tensors.state, tensors.times), tensors.units)
    return name


def svdf_functions() -> list[FunctionProto]:
    """The operators SVDF and QUANTIZED_SVDF as ONNX operators, for the reference."""
    shifted = f"""
      one = Constant <value_ints = [1]> ()
      last = Constant <value_ints = [2]> ()
      end = Constant <value_ints = [{np.iinfo(np.int32).max}]> ()
      younger = Slice (state, one, end, last)
      newest = Unsqueeze (x, last)
      after = Concat <axis = 2> (younger, newest)
    """
    summed = """
      by_filter = ReduceSum <keepdims = 0> (products, last)
      units = Shape (offset)
      rest = Constant <value_ints = [-1]> ()
      sizes = Concat <axis = 0> (one, units, rest)
      by_unit = Reshape (by_filter, sizes)
      summed = ReduceSum <keepdims = 0> (by_unit, last)
    """
    of_floats = f"""
    {SVDF} (x, state, weights, offset) => (y, after) {{
      {shifted}
      products = Mul (after, weights)
      {summed}
      y = Add (summed, offset)
    }}
    """
    of_int8 = f"""
    {QUANTIZED_SVDF} (
      x, state, state_scale, state_zero, times, times_scale, times_zero, bias, bias_scale, y_scale, y_zero
    ) => (y, after) {{
      {shifted}
      kept = DequantizeLinear (after, state_scale, state_zero)
      weights = DequantizeLinear (times, times_scale, times_zero)
      offset = DequantizeLinear (bias, bias_scale)
      products = Mul (kept, weights)
      {summed}
      sums = Add (summed, offset)
      y = QuantizeLinear (sums, y_scale, y_zero)
    }}
    """
    return [function_of(text, DOMAIN, OPSET) for text in (of_floats, of_int8)]
