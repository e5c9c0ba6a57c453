"""Ensembles of decision trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ConstantArray, Counts, Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, reduced_axis, spatial_axes

LEAF = 1 << 31
"""Bit of a following node that marks a leaf."""
NAN_FIRST = 1 << 15
"""Bit of a feature whose NaN follows the first branch."""
_TABLES = {
    "thresholds": np.float32,
    "features": np.uint16,
    "next": np.uint32,
    "roots": np.uint32,
    "leaf_starts": np.uint32,
    "targets": np.uint16,
    "weights": np.float32,
}


@dataclass(frozen=True, slots=True)
class TreeSums(PlainOperator):
    """x (N, 1, values) -> (N, 1, `targets`), float32: sums of the weights of the leaves that a row reaches.

    Constants are the tables of tree_sums_f32.h. `depth` is the mean number of nodes on the way to a leaf.
    """

    kind: ClassVar[str] = "TreeSums"
    compared: ClassVar[tuple[str, ...]] = ("thresholds",)

    targets: int
    depth: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A row of sums reads a row of values. Raises ValueError for images."""
        ((rows, cols, values),) = inputs
        if cols != 1 or self.targets < 1:
            raise ValueError(f"rows of values are (rows, 1, values), found {inputs[0]}")
        axes = *spatial_axes((rows, 1, self.targets)), reduced_axis("any", values)
        return LoopNest(axes, ((Index.of(row=1), Index(), Index.of(any=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `tree_sums_f32`. Raises ValueError for other types and for unsound tables."""
        if inputs[0].dtype != "float32" or output.dtype != "float32":
            raise ValueError(f"trees take float32, not {inputs[0].dtype}")
        tables = {name: operator.constants[name] for name in _TABLES}
        if any(tables[name].dtype != kind for name, kind in _TABLES.items()):
            raise ValueError("the tables of trees have other types")
        _require_sound(tables, inputs[0].shape[2], self.targets)
        trees = len(tables["roots"])
        params: Params = {name: table.ravel() for name, table in tables.items()}
        params |= {"trees": trees, "row_targets": self.targets}
        entries = len(tables["weights"]) / max(1, len(tables["leaf_starts"]) - 1)

        def counts(rows: Interval) -> Counts:
            walks = len(rows) * trees
            return {
                "calls": 1,
                "rows": len(rows),
                "trees": walks,
                "nodes": walks * self.depth,
                "entries": walks * entries,
            }

        return KernelCall("tree_sums_f32", params, counts=counts)


def _require_sound(tables: dict[str, ConstantArray], values: int, targets: int) -> None:
    """Raise ValueError for tables that refer to a missing node, value or target, or to an earlier node.

    With earlier nodes the walk through a tree might not end.
    """
    follow, starts = tables["next"].reshape(-1, 2), tables["leaf_starts"]
    nodes, leaves = len(follow), len(starts) - 1
    inner = follow < LEAF
    nodes_of_follow = np.broadcast_to(np.arange(nodes)[:, np.newaxis], follow.shape)
    numbers = np.concatenate([follow.ravel(), tables["roots"]])
    sound = (
        bool(np.all(follow[inner] > nodes_of_follow[inner]))
        and bool(np.all(numbers[numbers < LEAF] < nodes))
        and bool(np.all(numbers[numbers >= LEAF] - LEAF < leaves))
        and bool(np.all(tables["features"].astype(np.int64) % NAN_FIRST < values))
        and bool(np.all(tables["targets"] < targets))
        and bool(np.all(np.diff(starts.astype(np.int64)) >= 0))
        and int(starts[-1]) == len(tables["weights"])
    )
    if not sound:
        raise ValueError("the tables of trees refer to missing or earlier entries")
