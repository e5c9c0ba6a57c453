"""Variables that keep the last rows of a sequence: they are assigned the last rows of concat(variable, x)."""

from __future__ import annotations

from dataclasses import dataclass

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

_SLICES = ("SLICE", "STRIDED_SLICE")


def queue_of(contents: Contents, variable: Variable) -> dict[int, Translation] | None:
    """The translation of concat(rows, x), if the variable keeps its last rows; else None.

    Either all rows of the variable are joined and the last ones assigned, or its last rows are joined and
    all assigned.
    """
    if len(variable.reads) != 1 or len(variable.assigned) != 1:
        return None
    (read,), (assigned,) = variable.reads, variable.assigned
    older = _only_reader(contents, read.outputs[0])
    if older is None:
        return None
    keeps_all = older.op in _SLICES
    joined = _only_reader(contents, older.outputs[0]) if keeps_all else older
    if joined is None or joined.op != "CONCATENATION" or len(joined.inputs) != 2:
        return None
    if joined.inputs[0] != (older if keeps_all else read).outputs[0]:
        return None
    queue = _Queue(contents, joined, contents.tensors[read.outputs[0]], variable.initial)
    if not queue.is_sound():
        return None
    whole, tail = joined.outputs[0], assigned.inputs[1]
    if keeps_all:
        is_kept = tail == whole and _is_tail(contents, older, read.outputs[0], queue.moved)
        return {older.index: nothing, joined.index: queue.translate} if is_kept else None
    maker = next((it for it in contents.operators if tail in it.outputs), None)
    if maker is None or not _is_tail(contents, maker, whole, queue.moved):
        return None
    unread = _readers(contents, tail) == [assigned] and tail not in contents.outputs
    return {joined.index: queue.translate, **({maker.index: nothing} if unread else {})}


@dataclass(frozen=True, slots=True)
class _Queue:
    """Rows of a variable, read as `state`, and the newest rows, which `joined` concatenates."""

    contents: Contents
    joined: TfliteOperator
    state: TfliteTensor
    initial: TfliteTensor | None

    @property
    def moved(self) -> tuple[int, int]:
        """The axis, and the number of rows that enter in a run."""
        axis = self.joined.integer("Axis") % len(self.state.shape)
        return axis, self.contents.tensors[self.joined.inputs[1]].shape[axis]

    def is_sound(self) -> bool:
        """Whether the stored values of all mean the same, and the newest rows fit."""
        newest, whole = (self.contents.tensors[at] for at in (self.joined.inputs[1], self.joined.outputs[0]))
        rank = len(whole.shape)
        if not (
            rank == len(newest.shape) == len(self.state.shape) and -rank <= self.joined.integer("Axis") < rank
        ):
            return False
        axis, rows = self.moved
        alike = (
            self.state.kind == newest.kind == whole.kind
            and self.state.scales == newest.scales == whole.scales
        )
        return fused(self.joined) is None and alike and rows <= whole.shape[axis]

    def translate(self, writer: Writer, operator: TfliteOperator) -> None:
        """Write the queue: a state of all rows that newest ones enter."""
        newest, whole = writer.input(operator, 1), writer.output(operator)
        axis, rows = self.moved
        first = initial_value(self.state, self.initial)
        if first.shape[axis] < whole.shape[axis]:
            oldest = np.repeat(np.take(first, [0], axis), rows, axis)  # they leave in the first run
            first = np.concatenate([oldest, first], axis)
        name = writer.kept_input(self.state, whole.shape)
        writer.keep(whole, queue_node(writer, (writer.raw(newest), name), axis, rows))
        writer.keep_state(name, writer.name(whole), writer.constant(first))


def _is_tail(contents: Contents, operator: TfliteOperator, source: int, rows: tuple[int, int]) -> bool:
    """Whether the operator takes all of a tensor but its first rows along an axis."""
    if operator.op not in _SLICES or operator.inputs[0] != source:
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


def _only_reader(contents: Contents, tensor: int) -> TfliteOperator | None:
    """The operator that alone reads a tensor; None for several, or an output of the file."""
    readers = _readers(contents, tensor)
    return readers[0] if len(readers) == 1 and tensor not in contents.outputs else None
