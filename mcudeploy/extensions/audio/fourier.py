"""Fourier transforms of real numbers, with the order of operations of kissfft."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, pi
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, ConstantArray, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import WIDE_INTEGERS, reduced_axis, require_same_dtype

_KERNELS = {"int16": "s16", "int32": "s32", "float32": "f32"}
_RADICES = (2, 3, 4, 5)
_MOST_POINTS = 1 << 15


@dataclass(frozen=True, slots=True)
class RealFft(PlainOperator):
    """x (rows, 1, count), with zeros up to `length` -> (rows, 1, length + 2): the spectrum of each row.

    A spectrum has the real and imaginary parts of length / 2 + 1 points in turn. If `inverse`, x is a
    spectrum, and the result is (rows, 1, length). Results of fixed-point numbers, and of inverse transforms,
    are divided by the length.
    """

    kind: ClassVar[str] = "RealFft"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    length: int
    inverse: bool = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every result reads the whole row."""
        ((rows, cols, count),) = inputs
        radices(self.length)
        if cols != 1 or (count != self.length + 2 if self.inverse else count > self.length):
            raise ValueError(f"{inputs[0]} is not an input of a transform of {self.length}")
        results = self.length if self.inverse else self.length + 2
        axes = (Axis("row", rows), Axis("ch", results), reduced_axis("at", count))
        row = Index.of(row=1)
        return LoopNest(axes, ((row, Index(), Index.of(at=1)),), (row, Index(), Index.of(ch=1)))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """rfft_* or irfft_* of s16, s32 or f32. Raises ValueError for other types."""
        require_same_dtype(*inputs, output)
        suffix = _KERNELS.get(output.dtype)
        if suffix is None:
            raise ValueError(f"a Fourier transform is of int16, int32 or float32, not of {output.dtype}")
        points, factors = self.length // 2, radices(self.length)
        params: Params = {
            "twiddles": twiddles(self.length, output.dtype, inverse=self.inverse).ravel(),
            "unpack": unpacking(self.length, output.dtype, inverse=self.inverse).ravel(),
            "radices": np.array(factors, np.uint16),
            "points": points,
            "stages": len(factors),
        }
        if not self.inverse:
            params["count"] = inputs[0].shape[2]

        def counts(rows: Interval) -> Counts:
            stages = {
                f"radix_{radix}": len(rows) * factors.count(radix) * points / radix for radix in _RADICES
            }
            return {"calls": 1, "rows": len(rows), "points": len(rows) * points} | stages

        name = "irfft" if self.inverse else "rfft"
        return KernelCall(f"{name}_{suffix}", params, counts=counts)


def radices(length: int) -> list[int]:
    """The radices of the stages of a transform of `length` real numbers: 4, then 2, 3 and 5.

    Raises ValueError for a length that has other factors, or is odd or too large.
    """
    points, most = length // 2, isqrt(max(length // 2, 0))
    if length % 2 or not 2 <= points <= _MOST_POINTS:
        raise ValueError(
            f"a transform of {length} numbers is not supported; even lengths from 4 to 65,536 are"
        )
    stages, radix = [], 4
    while points > 1:
        while points % radix:
            radix = {4: 2, 2: 3}.get(radix, radix + 2)
            if radix > most:
                radix = points
        points //= radix
        stages.append(radix)
    if not set(stages) <= set(_RADICES):
        raise ValueError(
            f"a transform of {length} numbers has the factor {max(stages)}; lengths with factors of 2, 3 and "
            "5 alone are supported"
        )
    return stages


def twiddles(length: int, dtype: str, *, inverse: bool = False) -> ConstantArray:
    """The powers of the root of unity of the complex transform, [length / 2][2]."""
    points = length // 2
    return _on_circle(-2 * pi * np.arange(points) / points, dtype, inverse=inverse)


def unpacking(length: int, dtype: str, *, inverse: bool = False) -> ConstantArray:
    """The factors that turn points of the complex transform into points of the real one, [length / 4][2]."""
    points = length // 2
    phases = -pi * (np.arange(1, points // 2 + 1) / points + 0.5)
    return _on_circle(phases, dtype, inverse=inverse)


def _on_circle(phases: NDArray[np.float64], dtype: str, *, inverse: bool) -> ConstantArray:
    """The cosine and sine of each phase, conjugated if `inverse`; 1 is the largest integer of the type."""
    phases = -phases if inverse else phases
    values = np.stack([np.cos(phases), np.sin(phases)], axis=-1)
    if dtype == "float32":
        return values.astype(np.float32)
    unit = np.iinfo(dtype).max
    rounded = np.floor(0.5 + unit * values)
    return rounded.astype(np.int16) if dtype == "int16" else rounded.astype(np.int32)
