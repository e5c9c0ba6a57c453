"""The choice of boxes by their scores, without those that overlap a better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, reduced_axis, spatial_axes

_CONSIDERED = 4
"""The number of boxes that the kernel examines for each chosen one, as its cost assumes."""


@dataclass(frozen=True, slots=True)
class NonMaxSuppression(PlainOperator):
    """The indices of up to `count` boxes, by falling scores, then -1.

    Boxes (N, 1, 4) have two opposite corners; the scores are (1, 1, N); the result is int32 (1, 1, count). A
    box is left out if its score is below `least_score`, or if its intersection with a chosen box is more
    than `most_overlap` of their union.
    """

    kind: ClassVar[str] = "NonMaxSuppression"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT32})

    count: int
    least_score: float
    most_overlap: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every index needs all boxes and scores. Raises ValueError for other shapes."""
        boxes, scores = inputs
        if boxes[1:] != (1, 4) or scores != (1, 1, boxes[0]) or self.count < 1:
            raise ValueError(f"boxes {boxes} and scores {scores} do not fit, or the count {self.count} is 0")
        axes = (
            *spatial_axes((1, 1, self.count)),
            reduced_axis("any", boxes[0]),
            reduced_axis("corner", 4),
        )
        read = Index.of(any=1), Index(), Index.of(corner=1)
        return LoopNest(axes, (read, (Index(), Index(), Index.of(any=1))), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `non_max_suppression`. Raises ValueError for other types."""
        if any(tensor.dtype != "float32" for tensor in inputs) or output.dtype != "int32":
            raise ValueError("boxes and scores are float32, the indices int32")
        boxes = inputs[0].shape[0]
        params: Params = {
            "boxes": boxes,
            "count": self.count,
            "least_score": self.least_score,
            "most_overlap": self.most_overlap,
        }

        def counts(_: Interval) -> Counts:
            rounds = min(boxes, _CONSIDERED * self.count)
            pairs = rounds * min(self.count, boxes) / 2
            return {"calls": 1, "scores": rounds * boxes, "pairs": pairs}

        return KernelCall("non_max_suppression", params, counts=counts)
