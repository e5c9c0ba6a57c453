"""Comparisons, logic, and choices by them."""

from __future__ import annotations

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.writer import Writer

COMPARISONS = {
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "NOT_EQUAL": "Equal",
}
LOGIC = {"LOGICAL_AND": "And", "LOGICAL_NOT": "Not", "LOGICAL_OR": "Or"}


def comparison(writer: Writer, operator: TfliteOperator) -> None:
    """Translate a comparison of numbers."""
    sources = [writer.input(operator, position) for position in (0, 1)]
    made = writer.node(COMPARISONS[operator.op], [_number(writer, source) for source in sources])
    if operator.op == "NOT_EQUAL":
        made = writer.node("Not", [made], main=False)
    writer.keep(writer.output(operator), made)


def _number(writer: Writer, tensor: TfliteTensor) -> str:
    """The tensor as numbers that can be compared: integers without a scale are themselves."""
    plain = tensor.kind in ("INT32", "INT64", "BOOL")
    return writer.raw(tensor) if plain else writer.real(tensor)


def logic(writer: Writer, operator: TfliteOperator) -> None:
    """Translate a function of truth values."""
    names = [writer.raw(tensor) for tensor in writer.inputs(operator)]
    writer.keep(writer.output(operator), writer.node(LOGIC[operator.op], names))


def select(writer: Writer, operator: TfliteOperator) -> None:
    """SELECT and SELECT_V2."""
    condition, result = writer.input(operator, 0), writer.output(operator)
    sources = [writer.input(operator, position) for position in (1, 2)]
    name = writer.raw(condition)
    if operator.op == "SELECT" and condition.shape not in ((), result.shape):
        if condition.shape != result.shape[:1]:
            raise Unsupported(f"conditions {list(condition.shape)} do not fit {list(result.shape)}")
        rows = [*condition.shape, *([1] * (len(result.shape) - 1))]
        name = writer.reshaped(name, rows)
    if result.kind in ("INT32", "INT64"):
        writer.keep(result, writer.node("Where", [name, *(writer.raw(it) for it in sources)]))
        return
    writer.finish(result, writer.node("Where", [name, *(writer.real(it) for it in sources)]))
