"""Translations that read and replace the states of variables, such as queues of the last rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.states import LOAD, QUEUE, queue_attributes
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.writer import Writer

Translation = Callable[[Writer, TfliteOperator], None]
"""Function that writes the nodes of an operator. Raises Unsupported if ONNX cannot express it."""


@dataclass(slots=True)
class Variable:
    """The operators of a variable, in the order in which they run, and its initial value.

    `reads` come before the first assignment.
    """

    reads: list[TfliteOperator] = field(default_factory=list)
    assigned: list[TfliteOperator] = field(default_factory=list)
    later: dict[int, int] = field(default_factory=dict)
    """From the number of each read after an assignment to the number of the tensor that was assigned."""
    initial: TfliteTensor | None = None


def initial_value(tensor: TfliteTensor, initial: TfliteTensor | None) -> NDArray[np.generic]:
    """The value of the first run, for a variable that is read as `tensor`; `initial` is the file's constant.

    Without one it is the zero point, as in TensorFlow Lite Micro.
    """
    if tensor.dtype is None:
        raise Unsupported(f"tensor {tensor.label}, its state, has the unsupported type {tensor.kind}")
    if initial is None:
        zero = 0 if tensor.scales is None else tensor.scales.zero_point[0]
        return np.full(tensor.shape, zero, tensor.dtype)
    if initial.kind != tensor.kind or initial.elements != tensor.elements:
        raise Unsupported(
            f"tensor {tensor.label}, its state, is {tensor.kind} {tensor.shape}, but its initial value is "
            f"{initial.kind} {initial.shape}"
        )
    return initial.array().reshape(tensor.shape).astype(tensor.dtype)


def nothing(_: Writer, __: TfliteOperator) -> None:
    """Translate an operator that computes nothing."""


@dataclass(slots=True)
class VariableState:
    """The state of a variable that is read as `tensor`; `initial` is the file's constant.

    Each method is a translation of one of its operators.
    """

    tensor: TfliteTensor
    initial: TfliteTensor | None
    _name: str = ""
    _initial_name: str = ""
    _newest_name: str = ""

    def constant(self, writer: Writer, operator: TfliteOperator) -> None:
        """Read a variable that is never assigned."""
        writer.keep(writer.output(operator), writer.constant(initial_value(self.tensor, self.initial)))

    def _begin(self, writer: Writer, times: int) -> None:
        """Add the state: the last `times` values of the variable, of which the last one is the current."""
        values = np.repeat(initial_value(self.tensor, self.initial)[np.newaxis], times, axis=0)
        self._name = writer.kept_input(self.tensor, values.shape)
        self._initial_name = writer.constant(values)

    def load(self, writer: Writer, operator: TfliteOperator) -> None:
        """Copy the state, which a later operator replaces."""
        self._begin(writer, 1)
        copy = writer.node(LOAD, [self._name], domain=DOMAIN)
        writer.declare(copy, (1, *self.tensor.shape), self.tensor.dtype or "")
        writer.keep(writer.output(operator), writer.reshaped(copy, self.tensor.shape))

    def store(self, writer: Writer, operator: TfliteOperator) -> None:
        """Replace the state."""
        self._enter(writer, operator, 1)

    def delay(self, writer: Writer, operator: TfliteOperator) -> None:
        """Assign a value, but keep that of the last run for a later read: the state has both values."""
        self._begin(writer, 2)
        self._enter(writer, operator, 2)

    def delayed(self, writer: Writer, operator: TfliteOperator) -> None:
        """Read the last run's value from a state of two values."""
        limits = [writer.int64([end]) for end in (0, 1, 0)]
        past = writer.node("Slice", [self._newest_name, *limits])
        writer.keep(writer.output(operator), writer.reshaped(past, self.tensor.shape))

    def _enter(self, writer: Writer, operator: TfliteOperator, times: int) -> None:
        value = writer.input(operator, 1)
        if value.elements != self.tensor.elements or value.kind != self.tensor.kind:
            raise Unsupported(f"it assigns {list(value.shape)} to a state of {list(self.tensor.shape)}")
        newest = writer.reshaped(writer.raw(value), (1, *self.tensor.shape))
        self._newest_name = queue_node(writer, (newest, self._name), 0, 1)
        writer.declare(self._newest_name, (times, *self.tensor.shape), self.tensor.dtype or "")
        writer.keep_state(self._name, self._newest_name, self._initial_name)


def queue_node(writer: Writer, inputs: tuple[str, str], axis: int, rows: int) -> str:
    """Add the QUEUE by which `rows` new rows enter a state along an axis; `inputs`: rows and state."""
    return writer.node(QUEUE, inputs, domain=DOMAIN, **queue_attributes(axis, rows))


_SLICES = ("SLICE", "STRIDED_SLICE")


def queue_of(contents: Contents, variable: Variable) -> dict[int, Translation] | None:
    """The translations of the operators by which a variable keeps its last rows; None for other variables.

    A concatenation joins rows of the variable and new rows. In one form, it reads all rows of the variable,
    and the last rows of its result are assigned. In the other form, it reads only the last rows of the
    variable, and its whole result is assigned.
    """
    if len(variable.reads) != 1 or len(variable.assigned) != 1:
        return None
    (read,), (assigned,) = variable.reads, variable.assigned
    reader = _only_reader(contents, read.outputs[0])
    if reader is None:
        return None
    drops_before = reader.op in _SLICES  # the second form: rows are dropped before the concatenation
    joined = _only_reader(contents, reader.outputs[0]) if drops_before else reader
    if joined is None or joined.op != "CONCATENATION" or len(joined.inputs) != 2:
        return None
    if joined.inputs[0] != (reader if drops_before else read).outputs[0]:
        return None
    queue = _Queue(contents, joined, contents.tensors[read.outputs[0]], variable.initial)
    if not queue.fits():
        return None
    all_rows, kept_rows = joined.outputs[0], assigned.inputs[1]
    if drops_before:
        fits = kept_rows == all_rows and _drops_first(contents, reader, read.outputs[0], queue.moved)
        return {reader.index: nothing, joined.index: queue.translate} if fits else None
    producer = next((it for it in contents.operators if kept_rows in it.outputs), None)
    if producer is None or not _drops_first(contents, producer, all_rows, queue.moved):
        return None
    only_assigned = _readers(contents, kept_rows) == [assigned] and kept_rows not in contents.outputs
    return {joined.index: queue.translate, **({producer.index: nothing} if only_assigned else {})}


@dataclass(frozen=True, slots=True)
class _Queue:
    """A variable, read as `state`, that keeps rows; `joined` concatenates them and the newest rows."""

    contents: Contents
    joined: TfliteOperator
    state: TfliteTensor
    initial: TfliteTensor | None

    @property
    def moved(self) -> tuple[int, int]:
        """The axis, and the number of rows that enter in a run."""
        axis = self.joined.integer("Axis") % len(self.state.shape)
        return axis, self.contents.tensors[self.joined.inputs[1]].shape[axis]

    def fits(self) -> bool:
        """Whether all tensors have the same type and scales, and the newest rows fit."""
        newest, result = (self.contents.tensors[at] for at in (self.joined.inputs[1], self.joined.outputs[0]))
        rank = len(result.shape)
        if not (
            rank == len(newest.shape) == len(self.state.shape) and -rank <= self.joined.integer("Axis") < rank
        ):
            return False
        axis, rows = self.moved
        same_scales = (
            self.state.kind == newest.kind == result.kind
            and self.state.scales == newest.scales == result.scales
        )
        return fused(self.joined) is None and same_scales and rows <= result.shape[axis]

    def translate(self, writer: Writer, operator: TfliteOperator) -> None:
        """Write the QUEUE: a state with all rows, to which the newest rows are appended."""
        newest, result = writer.input(operator, 1), writer.output(operator)
        axis, rows = self.moved
        values = initial_value(self.state, self.initial)
        if values.shape[axis] < result.shape[axis]:
            oldest = np.repeat(np.take(values, [0], axis), rows, axis)  # rows that leave in the first run
            values = np.concatenate([oldest, values], axis)
        name = writer.kept_input(self.state, result.shape)
        writer.keep(result, queue_node(writer, (writer.raw(newest), name), axis, rows))
        writer.keep_state(name, writer.name(result), writer.constant(values))


def _drops_first(contents: Contents, operator: TfliteOperator, source: int, rows: tuple[int, int]) -> bool:
    """Whether a slice takes a tensor without its first rows; `rows`: the axis and their number."""
    if operator.op not in _SLICES or operator.inputs[0] != source:
        return False
    bounds = [contents.tensors[number] for number in operator.inputs[1:]]
    if any(it.data is None or it.kind not in ("INT32", "INT64") for it in bounds):
        return False
    shape, axis, start = contents.tensors[source].shape, *rows
    wanted = [(start if at == axis else 0, size) for at, size in enumerate(shape)]
    return _ranges(operator, shape, [it.array().reshape(-1).tolist() for it in bounds]) == wanted


def _ranges(
    operator: TfliteOperator, shape: tuple[int, ...], bounds: list[list[int]]
) -> list[tuple[int, int]] | None:
    """The begin and end of a slice along each axis; None if it has steps or removes axes."""
    if any(len(each) != len(shape) for each in bounds):
        return None
    begins, ends = bounds[:2]
    if operator.op == "SLICE":
        ends = [size if end == -1 else begin + end for begin, end, size in zip(*bounds, shape, strict=True)]
    else:
        names = ("EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset")
        if any(step != 1 for step in bounds[2]) or any(operator.options.get(name) for name in names):
            return None
        masks = [int(operator.options.get(name, 0)) for name in ("BeginMask", "EndMask")]
        begins = [0 if masks[0] >> at & 1 else begin for at, begin in enumerate(begins)]
        ends = [size if masks[1] >> at & 1 else ends[at] for at, size in enumerate(shape)]
    limits = zip(begins, ends, shape, strict=True)
    return [(_clipped(begin, size), _clipped(end, size)) for begin, end, size in limits]


def _clipped(place: int, size: int) -> int:
    """A place, which counts from the end if it is negative, clipped to [0, size]."""
    return min(max(place + size if place < 0 else place, 0), size)


def _readers(contents: Contents, tensor: int) -> list[TfliteOperator]:
    return [operator for operator in contents.operators if tensor in operator.inputs]


def _only_reader(contents: Contents, tensor: int) -> TfliteOperator | None:
    """The only operator that reads a tensor; None for several, or an output of the file."""
    readers = _readers(contents, tensor)
    return readers[0] if len(readers) == 1 and tensor not in contents.outputs else None
