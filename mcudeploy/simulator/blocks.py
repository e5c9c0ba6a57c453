"""How a cut graph moves data: which blocks every step reads and writes.

Blocks of a tensor are runs of `block_rows` rows; the last one may be shorter. A tensor is cut as
its producer is; graph inputs are whole. Views share the blocks of what they look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mcudeploy.graph import Graph, Operator, Tensor
from mcudeploy.interval import Interval
from mcudeploy.ops.opdef import LoopNest

BlockId = tuple[str, int]
"""A tensor that owns memory, and the number of one of its blocks."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rows of one input that a step reads, and the blocks that hold them."""

    tensor: str
    rows: Interval
    blocks: tuple[BlockId, ...]


@dataclass(frozen=True)
class TiledGraph:
    """A graph and the number of rows each operator makes at a time."""

    graph: Graph
    block_rows: Mapping[str, int]

    @cached_property
    def roots(self) -> dict[str, str]:
        """For each tensor the one whose memory it is: itself unless it is a view."""
        roots = {name: name for name in self.graph.tensors}
        for operator in self.graph.operators:
            if operator.op.is_view:
                roots[operator.output] = roots[operator.inputs[0]]
        return roots

    @cached_property
    def _producers(self) -> dict[str, int]:
        return self.graph.producers()

    @cached_property
    def _loops(self) -> dict[str, LoopNest]:
        return {operator.name: self.graph.loops(operator) for operator in self.graph.operators}

    def loops(self, operator: Operator) -> LoopNest:
        """The loop nest of an operator, computed once."""
        return self._loops[operator.name]

    def producer(self, root: str) -> int | None:
        """The index of the operator that makes a tensor; None for a graph input."""
        return self._producers.get(root)

    def tensor_block_rows(self, root: str) -> int:
        """Rows in a block of a tensor that owns memory."""
        position = self._producers.get(root)
        if position is None:
            return self.graph.tensors[root].shape[0]
        return self.block_rows[self.graph.operators[position].name]

    def block_count(self, root: str) -> int:
        """Number of blocks of a tensor that owns memory."""
        return -(-self.graph.tensors[root].shape[0] // self.tensor_block_rows(root))

    def block_interval(self, root: str, block: int) -> Interval:
        """The rows of one block."""
        size, rows = self.tensor_block_rows(root), self.graph.tensors[root].shape[0]
        return Interval(block * size, min(rows, (block + 1) * size))

    def block_bytes(self, root: str, block: int) -> int:
        """Size of one block."""
        return len(self.block_interval(root, block)) * self.graph.tensors[root].row_bytes

    def output_rows(self, operator: Operator, block: int) -> Interval:
        """The rows one step of an operator makes."""
        return self.block_interval(operator.output, block)

    def reads(self, operator: Operator, block: int) -> tuple[Access, ...]:
        """What one step of an operator reads, one entry per input in order."""
        rows = self.output_rows(operator, block)
        nest = self.loops(operator)
        return tuple(
            self._access(tensor, nest.rows_read(operand, rows, tensor.shape[0]))
            for operand, tensor in enumerate(self.graph.input_tensors(operator))
        )

    def _access(self, tensor: Tensor, rows: Interval) -> Access:
        root = self.roots[tensor.name]
        if len(rows) == 0:
            return Access(tensor.name, rows, ())
        if root != tensor.name:  # rows of a view are not rows of what it looks at
            return Access(tensor.name, rows, tuple((root, b) for b in range(self.block_count(root))))
        size = self.tensor_block_rows(root)
        return Access(
            tensor.name, rows, tuple((root, b) for b in range(rows.lo // size, (rows.hi - 1) // size + 1))
        )


def whole(graph: Graph) -> TiledGraph:
    """The graph unsplit: every operator makes its output in one step."""
    return TiledGraph(
        graph, {operator.name: graph.tensors[operator.output].shape[0] for operator in graph.operators}
    )
