"""Variables that keep the last rows of a sequence: they are assigned the last rows of concat(variable, x)."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.variable_states import (
    Translation,
    Variable,
    initial_value,
    nothing,
    queue_node,
)
from mcudeploy.frontend.tflite.writer import Writer


def queue_of(contents: Contents, variable: Variable) -> dict[int, Translation] | None:
    """The translation of concat(variable, x), if the variable is assigned its last rows; else None."""
    if len(variable.reads) != 1 or len(variable.assigned) != 1:
        return None
    (read,), (assigned,) = variable.reads, variable.assigned
    readers = _readers(contents, read.outputs[0])
    if len(readers) != 1 or read.outputs[0] in contents.outputs:
        return None
    joined = readers[0]
    if joined.op != "CONCATENATION" or len(joined.inputs) != 2 or joined.inputs[0] != read.outputs[0]:
        return None
    state, newest, whole = (contents.tensors[at] for at in (*joined.inputs, joined.outputs[0]))
    rank, axis = len(whole.shape), joined.integer("Axis")
    if not -rank <= axis < rank or not state.kind == newest.kind == whole.kind:
        return None
    axis %= rank
    rows = newest.shape[axis]
    tail = next((it for it in contents.operators if assigned.inputs[1] in it.outputs), None)
    if (
        fused(joined) is not None
        or not _alike(state, newest, whole)
        or rows > whole.shape[axis]
        or tail is None
        or not _is_tail(contents, tail, joined.outputs[0], (axis, rows))
    ):
        return None

    def translate(writer: Writer, operator: TfliteOperator) -> None:
        newest, whole = writer.input(operator, 1), writer.output(operator)
        first = initial_value(state, variable.initial)
        oldest = np.repeat(np.take(first, [0], axis), rows, axis)  # they leave in the first run
        name = writer.kept_input(state, whole.shape)
        writer.keep(whole, queue_node(writer, (writer.raw(newest), name), axis, rows))
        writer.keep_state(name, writer.name(whole), writer.constant(np.concatenate([oldest, first], axis)))

    unread = _readers(contents, tail.outputs[0]) == [assigned] and tail.outputs[0] not in contents.outputs
    return {joined.index: translate, **({tail.index: nothing} if unread else {})}


def _alike(*tensors: TfliteTensor) -> bool:
    """Whether the stored values of all mean the same."""
    return all(it.scales == tensors[0].scales for it in tensors)


def _is_tail(contents: Contents, operator: TfliteOperator, source: int, rows: tuple[int, int]) -> bool:
    """Whether the operator takes all of a tensor but its first rows along an axis."""
    if operator.op not in ("SLICE", "STRIDED_SLICE") or operator.inputs[0] != source:
        return False
    given = [contents.tensors[number] for number in operator.inputs[1:]]
    if any(it.data is None or it.kind not in ("INT32", "INT64") for it in given):
        return False
    shape, axis, start = contents.tensors[source].shape, *rows
    wanted = [(start if at == axis else 0, size) for at, size in enumerate(shape)]
    return _ranges(operator, shape, [it.array().reshape(-1).tolist() for it in given]) == wanted


def _ranges(
    operator: TfliteOperator, shape: tuple[int, ...], given: list[list[int]]
) -> list[tuple[int, int]] | None:
    """The begin and end along each axis, None for steps and dropped axes."""
    if any(len(each) != len(shape) for each in given):
        return None
    begins, ends = given[:2]
    if operator.op == "SLICE":
        ends = [size if end == -1 else begin + end for begin, end, size in zip(*given, shape, strict=True)]
    else:
        names = ("EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset")
        if any(step != 1 for step in given[2]) or any(operator.options.get(name) for name in names):
            return None
        masks = [int(operator.options.get(name, 0)) for name in ("BeginMask", "EndMask")]
        begins = [0 if masks[0] >> at & 1 else begin for at, begin in enumerate(begins)]
        ends = [size if masks[1] >> at & 1 else ends[at] for at, size in enumerate(shape)]
    limits = zip(begins, ends, shape, strict=True)
    return [(_clipped(begin, size), _clipped(end, size)) for begin, end, size in limits]


def _clipped(place: int, size: int) -> int:
    """A place along an axis, which counts from the end if it is negative."""
    return min(max(place + size if place < 0 else place, 0), size)


def _readers(contents: Contents, tensor: int) -> list[TfliteOperator]:
    return [operator for operator in contents.operators if tensor in operator.inputs]
