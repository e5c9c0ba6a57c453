"""Tensors: shapes, element types, quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod

Shape = tuple[int, int, int]
"""(rows, cols, channels), channels-last, batch 1. A matrix [T, D] is (T, 1, D), a vector (1, 1, D)."""


class DType(StrEnum):
    """Element types of activations."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT32 = "float32"

    @property
    def size_bytes(self) -> int:
        return _SIZES[self]


_SIZES = {DType.INT8: 1, DType.INT16: 2, DType.INT32: 4, DType.FLOAT32: 4}

UNSIGNED_OFFSET = 128
"""A uint8 value is stored as int8 minus this offset, and so is its zero point."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """Per-tensor quantisation: real = scale * (q - zero_point), q in [-128, 127]."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """An activation; `name` is unique within its graph."""

    name: str
    shape: Shape
    dtype: DType
    quantization: Quantization | None = None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.elements * self.dtype.size_bytes

    @property
    def cells(self) -> int:
        """The number of cells of a row, which several cores can share: columns, or channels of one pixel."""
        return self.shape[1] if self.shape[1] > 1 else self.shape[2]

    @property
    def cell_bytes(self) -> int:
        """Size of a cell in bytes."""
        return self.row_bytes // self.cells

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.shape[2] * self.dtype.size_bytes
