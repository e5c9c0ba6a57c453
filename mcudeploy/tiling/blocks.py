"""The blocks that every step of a cut graph reads and writes.

A block is a run of rows; the first and the last one of a tensor may be shorter. A tensor is cut like its
producer. The result of an operator that accumulates is one block. If anything is cut, a graph input has one
block per row, so that its rows can die early. A view and its underlying tensor are one block.

Steps and blocks are numbered consecutively, so that the search's inner loops work on plain integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Plan, Step, Transfer
from mcudeploy.tiling.dataflow import Dataflow

BlockId = tuple[str, int]
"""A tensor that owns memory, and the index of one of its blocks."""


class TiledGraph:
    """A graph with the number of iteration rows that each operator computes in one step. Immutable.

    `leads`: by operator, the rows by which its first step is shorter, if any; see `BlockRows`.
    """

    def __init__(
        self, flow: Dataflow, block_rows: Mapping[str, int], leads: Mapping[str, int] | None = None
    ) -> None:
        graph = flow.graph
        self.flow, self.graph = flow, graph
        self.block_rows, self.leads = dict(block_rows), dict(leads or {})
        sizes = [
            BlockRows(self.block_rows[operator.name], self.leads.get(operator.name, 0))
            for operator in graph.operators
        ]
        counts = [
            0 if operator.op.is_view else size.count(rows)
            for operator, rows, size in zip(graph.operators, flow.iteration_rows, sizes, strict=True)
        ]
        self.step_rows = sizes
        self.step_counts = counts
        self.first_step = [0, *accumulate(counts)]
        cut = any(count > 1 for count in counts)
        self._rows_of: dict[str, BlockRows] = {
            io.tensor: BlockRows(flow.input_rows(io.tensor, cut=cut)) for io in graph.resident_inputs()
        }
        for operator, size in zip(graph.operators, sizes, strict=True):
            rows = graph.tensors[operator.output].shape[0]
            whole = operator.op.accumulates or size.rows >= rows
            self._rows_of[operator.output] = BlockRows(rows) if whole else size
        owners = [name for name in self._rows_of if flow.roots[name] == name]
        ends = list(accumulate(self.block_count(name) for name in owners))
        self.first_block = dict(zip(owners, [0, *ends], strict=False))
        self.blocks = ends[-1] if ends else 0
        self.reads = self._all_reads()

    @classmethod
    def of(cls, plan: Plan) -> TiledGraph:
        """Return the cut graph of a plan."""
        return cls(Dataflow.of(plan.graph), plan.block_rows, plan.leads)

    def _all_reads(self) -> list[tuple[tuple[int, int], ...]]:
        """Return, for each step and input, the range of blocks that it reads."""
        result: list[tuple[tuple[int, int], ...]] = []
        for position, readings in enumerate(self.flow.readings):
            size, total = self.step_rows[position], self.flow.iteration_rows[position]
            sources = [(r, self.first_block[r.root], self._rows_of[r.root]) for r in readings]
            for block in range(self.step_counts[position]):
                step = size.interval(block, total)
                ranges = []
                for reading, base, rows in sources:
                    if reading.whole:
                        ranges.append((base, base + self.block_count(reading.root)))
                        continue
                    lo, hi = reading.reach(step.lo, step.hi)
                    first, last = rows.block_of(lo), rows.block_of(hi - 1)
                    ranges.append((base + first, base + last + 1) if lo < hi else (0, 0))
                result.append(tuple(ranges))
        return result

    def awaited(self, step: Step) -> Iterator[int]:
        """Yield the blocks that are computed before a step although it does not read them."""
        if step.block == self.step_counts[step.operator] - 1:
            for reading in self.flow.readings[step.operator]:
                if reading.awaited:
                    base = self.first_block[reading.root]
                    yield from range(base, base + self.block_count(reading.root))

    def written(self, position: int, block: int) -> int:
        """Return the index of the block that a step of an operator writes."""
        operator = self.graph.operators[position]
        return self.first_block[operator.output] + (0 if operator.op.accumulates else block)

    def added_to(self, step: Step) -> BlockId | None:
        """Return the block to which a step of an accumulating operator adds in place, before the last one."""
        if not self.graph.operators[step.operator].op.accumulates:
            return None
        if step.block == self.step_counts[step.operator] - 1:
            return None
        read = self.blocks_read(step)
        return next((read[at][0] for at in self.flow.overwrites[step.operator] if read[at]), None)

    def tensor_block_rows(self, root: str) -> BlockRows:
        """Return the blocks of a tensor that owns memory."""
        return self._rows_of[root]

    def block_count(self, root: str) -> int:
        """Return the number of blocks of a tensor that owns memory."""
        return self._rows_of[root].count(self.graph.tensors[root].shape[0])

    def block_interval(self, root: str, block: int) -> Interval:
        """Return the rows of one block."""
        return self._rows_of[root].interval(block, self.graph.tensors[root].shape[0])

    def block_bytes(self, root: str, block: int) -> int:
        """Return the size of one block in memory, in bytes."""
        tensor = self.graph.tensors[root]
        return self._rows_of[root].rows_held(block, tensor.shape[0]) * tensor.row_bytes

    def moved_bytes(self, layout: Layout, transfer: Transfer) -> int:
        """Return the bytes that a transfer of a layout copies."""
        if (constants := layout.loaded_by(transfer)) is not None:
            return constants.size_bytes
        return self.block_bytes(transfer.tensor, transfer.block)

    def stacked_outputs(self) -> tuple[str, ...]:
        """Return the graph outputs that are computed in parts; the application reads each as one array."""
        roots = dict.fromkeys(self.flow.roots[io.tensor] for io in self.graph.outputs)
        resident = {io.tensor for io in self.graph.resident_inputs()}
        return tuple(name for name in roots if self.block_count(name) > 1 and name not in resident)

    def block_ids(self) -> list[BlockId]:
        """Return the tensor and index of every block, by global block number."""
        return [(name, block) for name in self.first_block for block in range(self.block_count(name))]

    def blocks_read(self, step: Step) -> list[list[BlockId]]:
        """Return, for each input of a step, the blocks that it reads."""
        operator = self.graph.operators[step.operator]
        ranges = self.reads[self.first_step[step.operator] + step.block]
        roots = (self.flow.roots[name] for name in operator.inputs)
        return [
            [(root, block - self.first_block[root]) for block in range(lo, hi)] if lo < hi else []
            for root, (lo, hi) in zip(roots, ranges, strict=True)
        ]


def whole(graph: Graph) -> TiledGraph:
    """Return the unsplit graph: every operator computes its output in one step."""
    flow = Dataflow.of(graph)
    names = (operator.name for operator in graph.operators)
    return TiledGraph(flow, dict(zip(names, flow.iteration_rows, strict=True)))
