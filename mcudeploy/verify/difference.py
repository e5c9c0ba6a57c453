"""How far values are from the reference's, and how far they may be.

An int8 operator, fed with the reference's own inputs, must have at least 99.5 % of its elements equal and
none more than 1 LSB off; end to end the largest output keeps its index and no element is off by more
than 4 LSB. A float32 tensor must be within 1e-4 of the reference's range, an int32 one equal. Where
activations are rounded to int16 in float32, outputs must be within 2e-3 of the range: a rounding that falls
the other way goes on to all that follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Graph

Array = NDArray[Any]

EQUAL_SHARE = 0.995
OPERATOR_LSB = 1
OUTPUT_LSB = 4
FLOAT_SHARE_OF_RANGE = 1e-4
GRID_SHARE_OF_RANGE = 2.0**-9


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a tensor is from its reference. `worst` is in LSB for int8, absolute for float32.

    `ties` of the mismatches are off by one at a tie of the reference.
    """

    elements: int
    mismatches: int
    ties: int
    worst: float
    range: float
    where: int
    found: float
    expected: float

    def merge(self, other: Difference) -> Difference:
        """Both together; the place is that of the worse one."""
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
        )


def difference(found: Array, expected: Array, ties: Array | None = None) -> Difference:
    """Compare two stored tensors of the same shape and type element by element; `ties` marks the ties."""
    got, want = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):  # infinity less infinity
        gap = np.abs(got - want)
    gap[np.isnan(gap)] = np.where(np.isnan(got) & np.isnan(want), 0.0, np.inf)[np.isnan(gap)]
    gap[got == want] = 0.0  # equal infinities
    worst = int(gap.argmax()) if gap.size else 0
    finite = want[np.isfinite(want)]
    spread = float(finite.max() - finite.min()) if finite.size else 0.0
    return Difference(
        elements=gap.size,
        mismatches=int((gap > 0).sum()),
        ties=0 if ties is None else int((ties.ravel() & (gap == 1)).sum()),
        worst=float(gap[worst]) if gap.size else 0.0,
        range=max(spread, float(np.abs(finite).max()) if finite.size else 0.0),
        where=worst,
        found=float(got[worst]) if gap.size else 0.0,
        expected=float(want[worst]) if gap.size else 0.0,
    )


def operator_stands(diff: Difference, dtype: DType) -> bool:
    """Whether an operator fed with the reference's own inputs is right."""
    if dtype is DType.FLOAT32:
        return diff.worst <= FLOAT_SHARE_OF_RANGE * diff.range
    if dtype is DType.INT32:
        return diff.mismatches == 0
    return diff.worst <= OPERATOR_LSB and diff.mismatches - diff.ties <= (1 - EQUAL_SHARE) * diff.elements


def output_share(graph: Graph) -> float:
    """How far float32 outputs of the whole model may be from the reference, as a share of its range."""
    borders = (*graph.references.values(), *graph.inputs, *graph.outputs)
    on_grid = any(border.dtype in ("int16", "uint16") for border in borders)
    return GRID_SHARE_OF_RANGE if on_grid else FLOAT_SHARE_OF_RANGE


def output_stands(found: Array, expected: Array, dtype: DType, share: float) -> bool:
    """Whether an output of the whole model is right; of float32 it may be off by a `share` of the range."""
    diff = difference(found, expected)
    if dtype is DType.FLOAT32:
        return diff.worst <= share * diff.range
    if dtype is DType.INT32:
        return diff.mismatches == 0
    top = expected.ravel() == expected.max()
    return diff.worst <= OUTPUT_LSB and bool(top[int(found.argmax())])
