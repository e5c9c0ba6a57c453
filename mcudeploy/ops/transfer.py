"""Operators between compute units: copies into another memory, and data cache maintenance.

All of them are the identity, row by row, so that they are cut, ordered and placed like any other operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import CountsOf, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import elementwise_loops, moved, require_same_values


@dataclass(frozen=True, slots=True)
class _Identity(PlainOperator):
    """out = in."""

    _kernel: ClassVar[str]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the element at its place."""
        return elementwise_loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """A kernel with the bytes of a row as parameter. Raises ValueError if the two tensors differ."""
        require_same_values(inputs[0], output)
        row_bytes = output.row_bytes
        return KernelCall(self._kernel, {"row_bytes": row_bytes}, counts=self._counts(row_bytes))

    def _counts(self, row_bytes: int) -> CountsOf:
        return lambda rows: {"calls": 1} | moved(row_bytes, len(rows))

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """Return the input, whose memory the output may take."""
        return (0,)


@dataclass(frozen=True, slots=True)
class Copy(_Identity):
    """Copy the input to a memory that the next unit reaches."""

    kind: ClassVar[str] = "Copy"
    _kernel: ClassVar[str] = "copy"

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """No input: the copy needs another place."""
        return ()


@dataclass(frozen=True, slots=True)
class Clean(_Identity):
    """Clean the cache, on the unit that wrote the input: afterwards memory holds the bytes."""

    kind: ClassVar[str] = "Clean"
    _kernel: ClassVar[str] = "clean"


@dataclass(frozen=True, slots=True)
class Invalidate(_Identity):
    """Invalidate the cache, on the unit that reads the output: it then sees the content of memory."""

    kind: ClassVar[str] = "Invalidate"
    _kernel: ClassVar[str] = "invalidate"

    def _counts(self, row_bytes: int) -> CountsOf:
        return lambda rows: {"calls": 1} | moved(len(rows) * row_bytes)
