"""SVDF: a product with the input, and a filter over the last values of each channel, which are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import function_of
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.convolutions import bias_of, require_alike
from mcudeploy.frontend.tflite.scales import fused, parameters, reals, scales_of
from mcudeploy.frontend.tflite.writer import OPSET, Writer

SVDF = "SVDF"
"""Operator for floats: the newest values [1, filters], the state [1, filters, memory], weights over time
[filters, memory], bias [units]; the results are [1, units] and the next state.
"""
QUANTIZED_SVDF = "QuantizedSVDF"
"""Operator for int8. Scale and zero point follow the state and the weights; the scale follows the bias; scale
and zero point of the result come last.
"""
_RELU = 1


@dataclass(frozen=True, slots=True, eq=False)
class _Tensors:
    """Operands and results of the operator."""

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
    tensors = _Tensors(
        source=writer.input(operator, 0),
        features=writer.input(operator, 1),
        times=writer.input(operator, 2),
        bias=writer.given(operator, 3),
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
    require_alike(source, features, 0)
    flat = writer.int64([1, features.shape[1]])
    x = writer.part("Reshape", [writer.real(source), flat])
    newest = writer.part("Gemm", [x, writer.real(features)], transB=1)
    if tensors.state.kind == "INT8":
        _quantized(writer, tensors, newest)
        return
    if tensors.state.kind == "INT16":
        newest = _saturated(writer, newest, tensors.state)
    state = writer.state(tensors.state, (1, *tensors.times.shape))
    times, bias = writer.constant(reals(tensors.times)), _bias(writer, tensors)
    made, after = writer.nodes(SVDF, [newest, state, times, bias], 2, domain=DOMAIN)
    writer.known(made, (1, tensors.units))
    _keep(writer, tensors, state, after, first="")
    writer.finish(tensors.result, made, fused(operator) if in_float else None)


def _quantized(writer: Writer, tensors: _Tensors, newest: str) -> None:
    """Compute in integers throughout. For RELU, TFLite only saturates to int8, whatever the zero point."""
    kept, times = parameters(tensors.state), parameters(tensors.times)
    if not (kept.single and times.single and parameters(tensors.result).single) or times.zero_point[0] != 0:
        raise Unsupported("its state, weights over time and result need one scale each; of weights around 0")
    shape = (1, *tensors.times.shape)
    state = writer.state(tensors.state, shape, "int8")
    bias_scale = writer.float32(kept.scale[0] * times.scale[0])
    inputs = [writer.quantized(newest, tensors.state), state, *writer.parameters(tensors.state)]
    inputs += [writer.raw(tensors.times), *writer.parameters(tensors.times)]
    inputs += [_integer_bias(writer, tensors), bias_scale, *writer.parameters(tensors.result)]
    made, after = writer.nodes(QUANTIZED_SVDF, inputs, 2, domain=DOMAIN)
    writer.known(made, (1, tensors.units), "int8")
    first = writer.constant(np.full(shape, kept.zero_point[0], np.int8))
    _keep(writer, tensors, state, after, first=first)
    writer.keep(tensors.result, made)


def _saturated(writer: Writer, name: str, state: TfliteTensor) -> str:
    """Clip a value to the range of int16 in the state's scale, without rounding."""
    scales = scales_of(state)
    if not scales.single or scales.zero_point[0] != 0:
        raise Unsupported("its state needs one scale and no zero point")
    limits = np.iinfo(np.int16)
    bounds = [writer.float32(it * scales.scale[0]) for it in (limits.min, limits.max)]
    return writer.part("Clip", [name, *bounds])


def _keep(writer: Writer, tensors: _Tensors, state: str, after: str, *, first: str) -> None:
    writer.known(after, (1, *tensors.times.shape), "int8" if first else "float32")
    writer.keep_state(state, after, first)


def _require_fitting(tensors: _Tensors, rank: int) -> None:
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


def _integer_bias(writer: Writer, tensors: _Tensors) -> str:
    bias = tensors.bias
    if bias is None:
        return writer.constant(np.zeros(tensors.units, np.int32))
    if bias.kind != "INT32" or bias.data is None or bias.elements != tensors.units:
        raise Unsupported(f"its bias needs {tensors.units} constants of INT32")
    return writer.raw(bias)


def _bias(writer: Writer, tensors: _Tensors) -> str:
    """Real numbers; int32 counts in units of the scales of the state and of its weights."""
    if tensors.bias is None:
        return writer.constant(np.zeros(tensors.units, np.float32))
    (name,) = bias_of(writer, tensors.bias, (tensors.state, tensors.times), tensors.units)
    return name


def svdf_functions() -> list[FunctionProto]:
    """The nodes as ONNX operators, for a runtime without such a filter."""
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
