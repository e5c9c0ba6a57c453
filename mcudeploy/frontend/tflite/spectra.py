"""RFFT2D and operators on its complex values: floats here, whose last axis has real and imaginary parts."""

from __future__ import annotations

from math import prod

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.variable_states import Translation
from mcudeploy.frontend.tflite.writer import Writer

COMPLEX = "COMPLEX64"
_PARTS = ("REAL", "IMAG")


def rfft2d(writer: Writer, operator: TfliteOperator) -> None:
    """Transform the last two axes of real numbers, cut or filled with zeros to lengths.

    Along the last axis one side of the spectrum is computed; the first of both axes mostly has one row.
    """
    x, result = writer.input(operator, 0), writer.output(operator)
    lengths = writer.integers(operator, 1, "fft_length")
    if len(lengths) != 2 or len(x.shape) < 2 or min(lengths) < 1:
        raise Unsupported(f"lengths {lengths} do not fit {list(x.shape)}")
    *outer, rows, columns = x.shape
    count, name = prod(outer), writer.real(x)
    name = writer.reshaped(name, [count, rows, columns])
    taken = [min(size, length) for size, length in zip((rows, columns), lengths, strict=True)]
    if taken != [rows, columns]:
        limits = (writer.int64(each) for each in ([0, 0], taken, [1, 2]))
        name = writer.part("Slice", [name, *limits])
    if taken != lengths:
        pads = [0, 0, 0, 0, *(length - size for length, size in zip(lengths, taken, strict=True))]
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
    """REAL or IMAG."""
    place = writer.int64(_PARTS.index(operator.op))
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
    **dict.fromkeys(_PARTS, part),
    "COMPLEX_ABS": magnitude,
}
"""Translation of each operator whose input is complex."""
