"""The nodes that read and replace states of variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.state_functions import LOAD, QUEUE, queue_attributes
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.writer import Writer

Translation = Callable[[Writer, TfliteOperator], None]
"""Signature of a translation, which writes the nodes of an operator. Raises Unsupported if ONNX cannot
express it.
"""


@dataclass(slots=True)
class Variable:
    """Operators that read a variable and assign it, in the order in which they run, and its initial value."""

    reads: list[TfliteOperator] = field(default_factory=list)
    assigned: list[TfliteOperator] = field(default_factory=list)
    later: dict[int, int] = field(default_factory=dict)
    """By read that comes after an assignment, the tensor assigned."""
    initial: TfliteTensor | None = None


def initial_value(tensor: TfliteTensor, initial: TfliteTensor | None) -> NDArray[np.generic]:
    """The value of the first run, for a variable that is read as `tensor`; `initial` is the file's constant.

    Without one it is the zero point, as in TensorFlow Lite Micro.
    """
    if tensor.dtype is None:
        raise Unsupported(f"tensor {tensor.label}, its state, is {tensor.kind}")
    if initial is None:
        zero = 0 if tensor.scales is None else tensor.scales.zero_point[0]
        return np.full(tensor.shape, zero, tensor.dtype)
    if initial.kind != tensor.kind or initial.elements != tensor.elements:
        raise Unsupported(f"tensor {tensor.label}, its state, starts from {initial.kind} {initial.shape}")
    return initial.array().reshape(tensor.shape).astype(tensor.dtype)


def nothing(_: Writer, __: TfliteOperator) -> None:
    """Translate an operator that computes nothing."""


@dataclass(slots=True)
class VariableState:
    """The state of a variable that is read as `tensor`; `initial` is the file's constant."""

    tensor: TfliteTensor
    initial: TfliteTensor | None
    _name: str = ""
    _first: str = ""
    _moved: str = ""

    def constant(self, writer: Writer, operator: TfliteOperator) -> None:
        """Read a variable that is never assigned."""
        writer.keep(writer.output(operator), writer.constant(initial_value(self.tensor, self.initial)))

    def _begin(self, writer: Writer, times: int) -> None:
        """Add the state: `times` values of the variable, of which the last one is the current."""
        first = np.repeat(initial_value(self.tensor, self.initial)[np.newaxis], times, axis=0)
        self._name = writer.kept_input(self.tensor, first.shape)
        self._first = writer.constant(first)

    def load(self, writer: Writer, operator: TfliteOperator) -> None:
        """Copy the state, which a later operator replaces."""
        self._begin(writer, 1)
        copy = writer.node(LOAD, [self._name], domain=DOMAIN)
        writer.known(copy, (1, *self.tensor.shape), self.tensor.dtype or "")
        writer.keep(writer.output(operator), writer.reshaped(copy, self.tensor.shape))

    def store(self, writer: Writer, operator: TfliteOperator) -> None:
        """Replace the state."""
        self._enter(writer, operator, 1)

    def delay(self, writer: Writer, operator: TfliteOperator) -> None:
        """Move the current value to the end of a state of two values."""
        self._begin(writer, 2)
        self._enter(writer, operator, 2)

    def delayed(self, writer: Writer, operator: TfliteOperator) -> None:
        """Read the value of the last run."""
        limits = [writer.int64([end]) for end in (0, 1, 0)]
        past = writer.node("Slice", [self._moved, *limits])
        writer.keep(writer.output(operator), writer.reshaped(past, self.tensor.shape))

    def _enter(self, writer: Writer, operator: TfliteOperator, times: int) -> None:
        value = writer.input(operator, 1)
        if value.elements != self.tensor.elements or value.kind != self.tensor.kind:
            raise Unsupported(f"it assigns {list(value.shape)} to a state of {list(self.tensor.shape)}")
        newest = writer.reshaped(writer.raw(value), (1, *self.tensor.shape))
        self._moved = queue_node(writer, (newest, self._name), 0, 1)
        writer.known(self._moved, (times, *self.tensor.shape), self.tensor.dtype or "")
        writer.keep_state(self._name, self._moved, self._first)


def queue_node(writer: Writer, inputs: tuple[str, str], axis: int, rows: int) -> str:
    """Add a node by which new `rows` enter a state along an axis; `inputs` are the rows and the state."""
    return writer.node(QUEUE, inputs, domain=DOMAIN, **queue_attributes(axis, rows))
