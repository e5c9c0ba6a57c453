"""Operators between compute units: copies into another memory, and data cache maintenance.

All of them are the identity, row by row, so that they are cut, ordered and placed like any other operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.opdef import CountsOf, KernelCall
from mcudeploy.ops.common import ElementwiseOperator, moved, require_same_values


@dataclass(frozen=True, slots=True)
class _Identity(ElementwiseOperator):
    """out = in."""

    overwritten: ClassVar[tuple[int, ...]] = (0,)

    _kernel: ClassVar[str]

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """The kernel of this operator. Raises ValueError if the tensors differ in type or quantisation."""
        require_same_values(inputs[0], output)
        row_bytes = output.row_bytes
        return KernelCall(self._kernel, {"row_bytes": row_bytes}, counts=self._counts(row_bytes))

    def _counts(self, row_bytes: int) -> CountsOf:
        return lambda rows: {"calls": 1} | moved(row_bytes, len(rows))


@dataclass(frozen=True, slots=True)
class Copy(_Identity):
    """Copy the input to a memory that the next unit reaches."""

    kind: ClassVar[str] = "Copy"
    copies: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = ()
    """The copy needs another place."""
    _kernel: ClassVar[str] = "copy"


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
