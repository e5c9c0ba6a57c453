"""Functions that ONNX has in another form."""

from __future__ import annotations

from math import pi, sqrt

from onnx import TensorProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.writer import Writer

_LEAST_NORM = 1e-6
"""TFLite divides by this norm at least."""


def any_or_all(writer: Writer, operator: TfliteOperator) -> None:
    """REDUCE_ANY and REDUCE_ALL: the largest or the smallest of truth values as numbers."""
    source, axes = writer.input(operator, 0), writer.integers(operator, 1, "the axes")
    op, keep = "ReduceMax" if operator.op == "REDUCE_ANY" else "ReduceMin", int(operator.flag("KeepDims"))
    numbers = writer.part("Cast", [writer.raw(source)], to=TensorProto.FLOAT)
    made = writer.node(op, [numbers], axes=axes, keepdims=keep)
    writer.keep(writer.output(operator), writer.part("Cast", [made], to=TensorProto.BOOL))


def local_response(writer: Writer, operator: TfliteOperator) -> None:
    """LOCAL_RESPONSE_NORMALIZATION over neighbouring channels; ONNX divides its factor by their number."""
    size = 2 * operator.integer("Radius") + 1
    image = writer.image(writer.input(operator, 0))
    alpha, beta, bias = (operator.number(name) for name in ("Alpha", "Beta", "Bias"))
    made = writer.node("LRN", [image], size=size, alpha=alpha * size, beta=beta, bias=bias)
    writer.finish(writer.output(operator), writer.channels_last(made))


def add_n(writer: Writer, operator: TfliteOperator) -> None:
    """ADD_N: a sum of several tensors."""
    names = [writer.real(tensor) for tensor in writer.inputs(operator)]
    writer.finish(writer.output(operator), writer.node("Sum", names))


def arg_extremum(writer: Writer, operator: TfliteOperator) -> None:
    """ARG_MAX and ARG_MIN along a constant axis; of equal values the first."""
    source, result = writer.input(operator, 0), writer.output(operator)
    axes = writer.integers(operator, 1, "the axis")
    if len(axes) != 1:
        raise Unsupported("it needs one axis")
    op = "ArgMax" if operator.op == "ARG_MAX" else "ArgMin"
    made = writer.node(op, [writer.real(source)], axis=axes[0], keepdims=0)
    if result.dtype != "int64":
        if result.dtype is None:
            raise Unsupported(f"positions of {result.kind} are not supported")
        to = element_type(result.dtype)
        made = writer.part("Cast", [made], to=to)
    writer.keep(result, made)


def cumulative_sum(writer: Writer, operator: TfliteOperator) -> None:
    """CUMSUM along a constant axis."""
    axes = writer.integers(operator, 1, "the axis")
    axis = writer.int64(axes[0])
    exclusive, reverse = int(operator.flag("Exclusive")), int(operator.flag("Reverse"))
    x = writer.real(writer.input(operator, 0))
    made = writer.node("CumSum", [x, axis], exclusive=exclusive, reverse=reverse)
    writer.finish(writer.output(operator), made)


def fill(writer: Writer, operator: TfliteOperator) -> None:
    """FILL: a value in every element of a constant shape."""
    sizes, value = writer.integers(operator, 0, "the shape"), writer.input(operator, 1)
    shape = writer.int64(sizes)
    writer.keep(writer.output(operator), writer.node("Expand", [writer.raw(value), shape]))


def floor_division(writer: Writer, operator: TfliteOperator) -> None:
    """FLOOR_DIV and FLOOR_MOD of floats and of int32.

    The quotient follows from the remainder, which is exact: rounded to float32, a quotient may become whole.
    """
    result = writer.output(operator)
    tensors = [writer.input(operator, position) for position in (0, 1)]
    kinds = {result.kind, *(tensor.kind for tensor in tensors)}
    if kinds == {"INT32"}:
        x, y = (writer.raw(tensor) for tensor in tensors)
        (made,) = writer.nodes("Mod", [x, y], 1, main=operator.op == "FLOOR_MOD")
        if operator.op == "FLOOR_DIV":  # x less the remainder may overflow
            towards_zero = writer.part("Mod", [x, y], fmod=1)
            beyond = writer.part("Div", [writer.part("Sub", [towards_zero, made]), y])
            made = writer.part("Add", [writer.node("Div", [x, y]), beyond])
        writer.keep(result, made)
        return
    if kinds != {"FLOAT32"}:
        raise Unsupported(f"of {result.kind}; FLOAT32 and INT32 are supported")
    x, y = (writer.real(tensor) for tensor in tensors)
    remainder = writer.part("Mod", [x, y], fmod=1)
    signs = (_part(writer, "Sign", each) for each in (remainder, y))
    beyond = _part(writer, "Less", _part(writer, "Mul", *signs), 0.0)
    remainder = writer.node("Where", [beyond, _part(writer, "Add", remainder, y), remainder])
    if operator.op == "FLOOR_DIV":
        whole = _part(writer, "Div", _part(writer, "Sub", x, remainder), y)
        remainder = writer.part("Round", [whole])
    writer.finish(result, remainder)


def gelu(writer: Writer, operator: TfliteOperator) -> None:
    """GELU, exact or by tanh."""
    x = writer.real(writer.input(operator, 0))
    if operator.flag("Approximate"):
        square = _part(writer, "Mul", x, x)
        bend = _part(writer, "Add", _part(writer, "Mul", square, 0.044715), 1.0)
        curve = _part(writer, "Tanh", _part(writer, "Mul", _part(writer, "Mul", x, bend), sqrt(2 / pi)))
    else:
        curve = _part(writer, "Erf", _part(writer, "Mul", x, sqrt(0.5)))
    share = _part(writer, "Mul", _part(writer, "Add", curve, 1.0), 0.5)
    writer.finish(writer.output(operator), writer.node("Mul", [x, share]))


def _part(writer: Writer, op: str, *operands: str | float) -> str:
    """A node of values and numbers that is a part of an operator."""
    names = [it if isinstance(it, str) else writer.float32(it) for it in operands]
    return writer.part(op, names)


def l2_normalization(writer: Writer, operator: TfliteOperator) -> None:
    """L2_NORMALIZATION of the last axis."""
    x = writer.real(writer.input(operator, 0))
    norm = writer.part("ReduceL2", [x], axes=[-1], keepdims=1)
    least = writer.float32(_LEAST_NORM)
    norm = writer.part("Max", [norm, least])
    writer.finish(writer.output(operator), writer.node("Div", [x, norm]), fused(operator))


def log_softmax(writer: Writer, operator: TfliteOperator) -> None:
    """LOG_SOFTMAX of the last axis."""
    x = writer.real(writer.input(operator, 0))
    writer.finish(writer.output(operator), writer.node("LogSoftmax", [x], axis=-1))
