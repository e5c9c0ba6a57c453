"""Operators that several ONNX nodes express, among them RFFT2D and those on its complex values."""

from __future__ import annotations

from math import prod, sqrt

from onnx import TensorProto

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.variable_states import Translation
from mcudeploy.frontend.tflite.writer import Writer
from mcudeploy.ops.scalar.functions import GELU_CUBIC, GELU_SLOPE

_MIN_NORM = 1e-6
"""The smallest norm by which TFLite divides."""


def any_or_all(writer: Writer, operator: TfliteOperator) -> None:
    """REDUCE_ANY and REDUCE_ALL: the largest or the smallest of truth values that are cast to numbers."""
    source, axes = writer.input(operator, 0), writer.integers(operator, 1, "the axes")
    op, keep = "ReduceMax" if operator.op == "REDUCE_ANY" else "ReduceMin", int(operator.flag("KeepDims"))
    numbers = writer.part("Cast", [writer.raw(source)], to=TensorProto.FLOAT)
    onnx_name = writer.node(op, [numbers], axes=axes, keepdims=keep)
    writer.keep(writer.output(operator), writer.part("Cast", [onnx_name], to=TensorProto.BOOL))


def local_response(writer: Writer, operator: TfliteOperator) -> None:
    """LOCAL_RESPONSE_NORMALIZATION over neighbouring channels, by whose number ONNX divides the factor."""
    size = 2 * operator.integer("Radius") + 1
    image = writer.image(writer.input(operator, 0))
    alpha, beta, bias = (operator.number(name) for name in ("Alpha", "Beta", "Bias"))
    onnx_name = writer.node("LRN", [image], size=size, alpha=alpha * size, beta=beta, bias=bias)
    writer.finish(writer.output(operator), writer.channels_last(onnx_name))


def add_n(writer: Writer, operator: TfliteOperator) -> None:
    """ADD_N: a sum of several tensors."""
    names = [writer.real(tensor) for tensor in writer.inputs(operator)]
    writer.finish(writer.output(operator), writer.node("Sum", names))


def arg_extremum(writer: Writer, operator: TfliteOperator) -> None:
    """ARG_MAX and ARG_MIN along a constant axis; the first of equal values counts."""
    source, result = writer.input(operator, 0), writer.output(operator)
    axes = writer.integers(operator, 1, "the axis")
    if len(axes) != 1:
        raise Unsupported("it needs one axis")
    op = "ArgMax" if operator.op == "ARG_MAX" else "ArgMin"
    onnx_name = writer.node(op, [writer.real(source)], axis=axes[0], keepdims=0)
    if result.dtype != "int64":
        if result.dtype is None:
            raise Unsupported(f"positions of {result.kind} are not supported")
        to = element_type(result.dtype)
        onnx_name = writer.part("Cast", [onnx_name], to=to)
    writer.keep(result, onnx_name)


def cumulative_sum(writer: Writer, operator: TfliteOperator) -> None:
    """CUMSUM along a constant axis."""
    axes = writer.integers(operator, 1, "the axis")
    axis = writer.int64(axes[0])
    exclusive, reverse = int(operator.flag("Exclusive")), int(operator.flag("Reverse"))
    x = writer.real(writer.input(operator, 0))
    onnx_name = writer.node("CumSum", [x, axis], exclusive=exclusive, reverse=reverse)
    writer.finish(writer.output(operator), onnx_name)


def fill(writer: Writer, operator: TfliteOperator) -> None:
    """FILL: a value in every element of a constant shape."""
    sizes, value = writer.integers(operator, 0, "the shape"), writer.input(operator, 1)
    shape = writer.int64(sizes)
    writer.keep(writer.output(operator), writer.node("Expand", [writer.raw(value), shape]))


def floor_division(writer: Writer, operator: TfliteOperator) -> None:
    """FLOOR_DIV and FLOOR_MOD of floats and of int32.

    The quotient is computed from the remainder, which is exact. A quotient that is rounded to float32 may
    become the next whole number.
    """
    result = writer.output(operator)
    tensors = [writer.input(operator, position) for position in (0, 1)]
    kinds = {result.kind, *(tensor.kind for tensor in tensors)}
    if kinds == {"INT32"}:
        x, y = (writer.raw(tensor) for tensor in tensors)
        (onnx_name,) = writer.nodes("Mod", [x, y], 1, main=operator.op == "FLOOR_MOD")
        if operator.op == "FLOOR_DIV":  # (x - remainder) / y may overflow
            towards_zero = writer.part("Mod", [x, y], fmod=1)
            correction = writer.part("Div", [writer.part("Sub", [towards_zero, onnx_name]), y])
            onnx_name = writer.part("Add", [writer.node("Div", [x, y]), correction])
        writer.keep(result, onnx_name)
        return
    if kinds != {"FLOAT32"}:
        raise Unsupported(f"of {result.kind}; FLOAT32 and INT32 are supported")
    x, y = (writer.real(tensor) for tensor in tensors)
    remainder = writer.part("Mod", [x, y], fmod=1)
    signs = (_step(writer, "Sign", each) for each in (remainder, y))
    signs_differ = _step(writer, "Less", _step(writer, "Mul", *signs), 0.0)
    onnx_name = writer.node("Where", [signs_differ, _step(writer, "Add", remainder, y), remainder])
    if operator.op == "FLOOR_DIV":
        quotient = _step(writer, "Div", _step(writer, "Sub", x, onnx_name), y)
        onnx_name = writer.part("Round", [quotient])
    writer.finish(result, onnx_name)


def gelu(writer: Writer, operator: TfliteOperator) -> None:
    """GELU, exact or by tanh."""
    x = writer.real(writer.input(operator, 0))
    if operator.flag("Approximate"):
        square = _step(writer, "Mul", x, x)
        factor = _step(writer, "Add", _step(writer, "Mul", square, GELU_CUBIC), 1.0)
        curve = _step(writer, "Tanh", _step(writer, "Mul", _step(writer, "Mul", x, factor), GELU_SLOPE))
    else:
        curve = _step(writer, "Erf", _step(writer, "Mul", x, sqrt(0.5)))
    share = _step(writer, "Mul", _step(writer, "Add", curve, 1.0), 0.5)
    writer.finish(writer.output(operator), writer.node("Mul", [x, share]))


def _step(writer: Writer, op: str, *operands: str | float) -> str:
    """Add a node, a part of an operator, whose operands are values or numbers; return its name."""
    names = [it if isinstance(it, str) else writer.float32(it) for it in operands]
    return writer.part(op, names)


def l2_normalization(writer: Writer, operator: TfliteOperator) -> None:
    """L2_NORMALIZATION of the last axis."""
    x = writer.real(writer.input(operator, 0))
    norm = writer.part("ReduceL2", [x], axes=[-1], keepdims=1)
    norm = writer.part("Max", [norm, writer.float32(_MIN_NORM)])
    writer.finish(writer.output(operator), writer.node("Div", [x, norm]), fused(operator))


COMPLEX = "COMPLEX64"
_COMPLEX_PARTS = ("REAL", "IMAG")


def rfft2d(writer: Writer, operator: TfliteOperator) -> None:
    """RFFT2D: the Fourier transform of the last two axes of real numbers, cut or zero-padded to `fft_length`.

    Only one side of the spectrum is computed along the last axis. The other axis has one row in most files.
    """
    x, result = writer.input(operator, 0), writer.output(operator)
    lengths = writer.integers(operator, 1, "fft_length")
    if len(lengths) != 2 or len(x.shape) < 2 or min(lengths) < 1:
        raise Unsupported(f"lengths {lengths} do not fit {list(x.shape)}")
    *outer, rows, columns = x.shape
    count, name = prod(outer), writer.real(x)
    name = writer.reshaped(name, [count, rows, columns])
    used_sizes = [min(size, length) for size, length in zip((rows, columns), lengths, strict=True)]
    if used_sizes != [rows, columns]:
        limits = (writer.int64(each) for each in ([0, 0], used_sizes, [1, 2]))
        name = writer.part("Slice", [name, *limits])
    if used_sizes != lengths:
        pads = [0, 0, 0, 0, *(length - size for length, size in zip(lengths, used_sizes, strict=True))]
        name = writer.part("Pad", [name, writer.int64(pads)])
    bins = lengths[1] // 2 + 1
    name = writer.reshaped(name, [count * lengths[0], lengths[1], 1])
    name = writer.node("DFT", [name], axis=1, onesided=1)
    if lengths[0] > 1:
        name = writer.reshaped(name, [count, lengths[0], bins, 2])
        name = writer.part("DFT", [name], axis=1)
    if result.shape != (*outer, lengths[0], bins):
        raise Unsupported(f"a spectrum of {[*outer, lengths[0], bins]} cannot become {list(result.shape)}")
    writer.keep(result, writer.reshaped(name, [*result.shape, 2]))


def magnitude(writer: Writer, operator: TfliteOperator) -> None:
    """COMPLEX_ABS: the root of the sum of the squares of both parts."""
    name = _complex(writer, operator)
    square = writer.part("Mul", [name, name])
    total = writer.part("ReduceSum", [square, writer.int64([-1])], keepdims=0)
    writer.keep(writer.output(operator), writer.node("Sqrt", [total]))


def part(writer: Writer, operator: TfliteOperator) -> None:
    """REAL or IMAG: one of the two parts."""
    place = writer.int64(_COMPLEX_PARTS.index(operator.op))
    writer.keep(writer.output(operator), writer.node("Gather", [_complex(writer, operator), place], axis=-1))


def _reshaped(writer: Writer, operator: TfliteOperator) -> None:
    result = writer.output(operator)
    if result.kind != COMPLEX:
        raise Unsupported(f"its result {result.label} is {result.kind}, and its input {COMPLEX}")
    writer.keep(result, writer.reshaped(_complex(writer, operator), [*result.shape, 2]))


def _complex(writer: Writer, operator: TfliteOperator) -> str:
    x = writer.input(operator, 0)
    if x.kind != COMPLEX or x.data is not None:
        raise Unsupported(f"its input {x.label} is {x.kind}; computed values of {COMPLEX} are supported")
    return writer.raw(x)


ON_COMPLEX: dict[str, Translation] = {
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), _reshaped),
    **dict.fromkeys(_COMPLEX_PARTS, part),
    "COMPLEX_ABS": magnitude,
}
"""Translation of each operator whose input is complex."""
