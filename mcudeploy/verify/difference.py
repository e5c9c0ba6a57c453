"""Differences from the reference, and their tolerances.

An int8 operator, on the reference's own inputs, must have at least 99.5 % equal elements and none more than 1
LSB off; end to end the largest output keeps its index and no element is off by more than 4 LSB. A float32
tensor must be within 1e-4 of the reference's range over all samples, or within 2^-22 if that is less;
int16 and int32 tensors must be equal. If activations are rounded to int16 in float32, by the program or by
the reference alone, outputs must be within 2e-3 of the range: a rounding in the other direction affects all
later values. Rounded values may be one step off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Graph, GraphIO

Array = NDArray[Any]

EQUAL_SHARE = 0.995
OPERATOR_LSB = 1
OUTPUT_LSB = 4
EXACT = (DType.INT16, DType.INT32)
"""Element types whose values must equal the reference's."""
FLOAT_SHARE_OF_RANGE = 1e-4
ROUNDED_SHARE_OF_RANGE = 2.0**-9
FLOAT_FLOOR = 2.0**-22
"""Two units in the last place of 1. A sigmoid, for example, computes a sum with 1, so its values near 0 are
not more exact.
"""
ROUNDED_STEP = 1.0
"""Tolerance, in steps, of float32 values that are rounded to int16: near a tie, noise in the last bit
decides.
"""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Tolerance of float32 values: a share of their range over all samples, and a minimum."""

    share: float
    range: float
    least: float = FLOAT_FLOOR

    @property
    def allowed(self) -> float:
        """The largest tolerated error."""
        return max(self.share * self.range, self.least)

    def __str__(self) -> str:
        if self.allowed == self.least:
            return f"{self.least:.3g}, the least tolerance (the range is {self.range:g})"
        return f"{self.allowed:.3g}, which is {self.share:g} of the range {self.range:g}"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a tensor from its reference. `worst` is in LSB for int8, absolute for float32.

    `ties` counts the mismatches that are off by one at a tie of the reference; `least` is the least
    tolerance of floats and wide integers.
    """

    elements: int
    mismatches: int
    ties: int
    worst: float
    range: float
    where: int
    found: float
    expected: float
    least: float = FLOAT_FLOOR

    @property
    def tolerance(self) -> Tolerance:
        """Tolerance of a float32 result of one operator."""
        return Tolerance(FLOAT_SHARE_OF_RANGE, self.range, self.least)

    def merge(self, other: Difference) -> Difference:
        """Return both differences as one; the place and the values are those of the larger error."""
        worse = self if self.worst >= other.worst else other
        return Difference(
            self.elements + other.elements,
            self.mismatches + other.mismatches,
            self.ties + other.ties,
            worse.worst,
            max(self.range, other.range),
            worse.where,
            worse.found,
            worse.expected,
            self.least,
        )


def difference(
    computed: Array, expected: Array, ties: Array | None = None, least: float = FLOAT_FLOOR
) -> Difference:
    """Compare two stored tensors of the same shape and type element by element.

    `ties` marks the ties; `least` is the least tolerance of float32.
    """
    got, want = computed.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        gap = np.abs(got - want)
    gap[np.isnan(gap)] = np.where(np.isnan(got) & np.isnan(want), 0.0, np.inf)[np.isnan(gap)]
    gap[got == want] = 0.0  # equal infinities
    worst = int(gap.argmax()) if gap.size else 0
    return Difference(
        elements=gap.size,
        mismatches=int((gap > 0).sum()),
        ties=0 if ties is None else int((ties.ravel() & (gap == 1)).sum()),
        worst=float(gap[worst]) if gap.size else 0.0,
        range=range_of([want]),
        where=worst,
        found=float(got[worst]) if gap.size else 0.0,
        expected=float(want[worst]) if gap.size else 0.0,
        least=least,
    )


def range_of(values: Iterable[Array]) -> float:
    """Return the range of all finite values and 0."""
    least, greatest = extremes_of(values)
    return greatest - least


def extremes_of(values: Iterable[Array]) -> tuple[float, float]:
    """Return the least and the greatest of all finite values and 0."""
    ends = [0.0]
    for each in values:
        finite = each[np.isfinite(each)].astype(np.float64)
        ends += [float(finite.min()), float(finite.max())] if finite.size else []
    return min(ends), max(ends)


def operator_passes(diff: Difference, dtype: DType) -> bool:
    """Whether the output of an operator that read the reference's inputs is within the tolerance."""
    if dtype is DType.FLOAT32:
        return diff.worst <= diff.tolerance.allowed
    if dtype in EXACT:
        return diff.worst <= diff.least
    return diff.worst <= OPERATOR_LSB and diff.mismatches - diff.ties <= (1 - EQUAL_SHARE) * diff.elements


def output_share(graph: Graph) -> float:
    """Tolerance of float32 outputs of the whole model, as a share of the reference's range."""
    ios = (*graph.references.values(), *graph.inputs, *graph.outputs)
    rounded = any(_is_rounded(it, graph.tensors[it.tensor].dtype) for it in ios)
    return ROUNDED_SHARE_OF_RANGE if rounded else FLOAT_SHARE_OF_RANGE


def least_tolerance(io: GraphIO | None, dtype: DType) -> float:
    """Return the least tolerance of a float32 tensor, or of integers that the reference rounds.

    It is in stored units. `io`: the tensor in the model, if it has one.
    """
    return ROUNDED_STEP if io is not None and _is_rounded(io, dtype) else FLOAT_FLOOR


def _is_rounded(io: GraphIO, dtype: DType) -> bool:
    """Whether float32 is rounded to 16 bits, by the program that stores this type or by the reference."""
    return io.off_by_one or (dtype is DType.FLOAT32 and io.dtype in ("int16", "uint16"))


def output_passes(computed: Array, expected: Array, dtype: DType, tolerance: Tolerance | None) -> bool:
    """Whether an output of the whole model is right: within `tolerance` if it has one."""
    diff = difference(computed, expected)
    if tolerance is not None:
        return diff.worst <= tolerance.allowed
    if dtype in EXACT:
        return diff.mismatches == 0
    top = expected.ravel() == expected.max()
    return diff.worst <= OUTPUT_LSB and bool(top[int(computed.argmax())])
