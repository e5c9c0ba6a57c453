"""KernelFactors: factors from the estimated times of kernels to the cycles that they take on a chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mcudeploy.extension import added

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board

Kind = Literal["convolution", "pointwise", "depthwise", "dense", "elementwise"]
_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("depthwise", ("dwconv2d_s8",)),
    ("pointwise", ("conv2d_s8_1x1",)),
    ("dense", ("conv2d_s8_full", "conv2d_s8_by_rows", "conv2d_s8_to_rows")),
    ("convolution", ("conv2d_s8",)),
    ("elementwise", ("add_s8", "mul_s8", "avgpool_s8", "maxpool_s8")),
)
"""The kinds of kernels, and the beginnings of their names; the first that fits counts."""


def kind_of(variant: str) -> Kind | None:
    """Return the kind of a kernel or variant; None if it is of none."""
    return next((kind for kind, names in _KINDS if variant.startswith(names)), None)


@dataclass(frozen=True, slots=True)
class KernelFactors:
    """Cycles of a board for each estimated cycle, or instruction if its core has no cycle model.

    `kinds`: by kind of kernel. `whole`: of all other kernels, the geometric mean.
    """

    kinds: Mapping[Kind, float]
    whole: float

    def of(self, variant: str) -> float:
        """Return the factor of a kernel or variant."""
        kind = kind_of(variant)
        return self.whole if kind is None else self.kinds.get(kind, self.whole)


def factors_of(board: Board) -> KernelFactors | None:
    """Return the factors of a board by the first extension that has some; None without any.

    Raises ConfigError if they are in a damaged file.
    """
    of_extensions = (factors(board) for factors in added("factors"))
    return next((it for it in of_extensions if it is not None), None)
