"""The operators of a graph in one order, by place, and the reads of their steps as plain numbers.

A tensor has the number of the place of its operator; graph inputs have numbers after the last place. A step
has the number `place * span + block`. The last step of an operator is the one that completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import ANY_ALIGNMENT, WorkBytes

_FEWER = 4
"""An operator shrinks if its output has this many times fewer bytes than each input."""

Segment = tuple[int, tuple[BlockRows, ...]]
"""The place of its first operator in the order, and the blocks of its operators, in order."""

Needs = dict[int, tuple[int, ...]]
"""The direct dependences of each step, in the order in which depth first runs them."""


@dataclass(frozen=True, slots=True)
class OwnedTensor:
    """A tensor that the operator at place `writer` writes (-1 for a graph input), last read at place `last`.

    `kept`: it is a graph output. `unaligned`: it is a graph input with rows at any address. `cut_rows`: the
    blocks of a graph input if anything is cut.
    """

    rows: int
    row_bytes: int
    writer: int
    last: int
    kept: bool
    unaligned: bool
    cut_rows: BlockRows

    @property
    def size_bytes(self) -> int:
        """Size of the whole tensor in bytes."""
        return self.rows * self.row_bytes

    def block(self, size: BlockRows, number: int) -> tuple[int, int]:
        """Return the first row and the end of a block, for blocks of `size`."""
        rows, lead = size
        return max(0, number * rows - lead), min((number + 1) * rows - lead, self.rows)

    def block_bytes(self, size: BlockRows, number: int) -> int:
        """Return the bytes of a block in memory, for blocks of `size`."""
        rows, lead = size
        return min(rows, self.rows + lead - number * rows) * self.row_bytes


class OrderedGraph:
    """The facts of every operator and tensor in this order, and the reads of steps of any number of rows."""

    def __init__(self, flow: Dataflow, order: Sequence[int], work: WorkBytes) -> None:
        graph = flow.graph
        operators = [graph.operators[position] for position in order]
        inputs = [io.tensor for io in graph.resident_inputs()]
        names = [operator.output for operator in operators] + inputs
        kept = {flow.roots[io.tensor] for io in graph.outputs}
        number = {name: at for at, name in enumerate(names)}
        self.order = tuple(order)
        self.rows = [flow.iteration_rows[position] for position in order]
        self.whole = [BlockRows(rows) for rows in self.rows]
        self.accumulates = [operator.op.accumulates for operator in operators]
        self.overwrites = [flow.overwrites[position] for position in order]
        self.readings = [flow.readings[position] for position in order]
        self.sources = [[number[reading.root] for reading in readings] for readings in self.readings]
        self.work = [work[operator.name] for operator in operators]
        self.inputs = range(len(order), len(names))
        last = {
            source: place
            for place, sources in enumerate(self.sources)
            for source, reading in zip(sources, self.readings[place], strict=True)
            if not reading.awaited
        }
        self.tensors = [
            OwnedTensor(
                graph.tensors[name].shape[0],
                graph.tensors[name].row_bytes,
                at if at < len(order) else -1,
                last.get(at, -1),
                name in kept,
                at >= len(order) and graph.tensors[name].row_bytes % ANY_ALIGNMENT > 0,
                BlockRows(flow.input_rows(name, cut=True) if at >= len(order) else 1),
            )
            for at, name in enumerate(names)
        ]
        self.shrinks: list[bool] = [self._shrinks(place) for place in range(len(order))]
        self.span = max([1, *self.rows]) + 1
        self._reach: dict[tuple[int, int, BlockRows], list[tuple[int, int]]] = {}
        self._needs: dict[tuple[int, BlockRows, tuple[BlockRows | None, ...]], Needs] = {}

    def _shrinks(self, place: int) -> bool:
        """Return whether steps of an operator leave less memory in use if nothing else reads their inputs."""
        sizes = [self.tensors[source].size_bytes for source in self.sources[place]]
        return self.accumulates[place] or _FEWER * self.tensors[place].size_bytes <= min(sizes, default=0)

    def written_rows(self, place: int, size: BlockRows) -> BlockRows:
        """Return the output blocks of an operator in steps of `size`."""
        rows = self.tensors[place].rows
        return BlockRows(rows) if self.accumulates[place] or size.rows >= rows else size

    def steps(self, place: int, size: BlockRows) -> range:
        """Return the steps of an operator, of `size`."""
        first = place * self.span
        return range(first, first + size.count(self.rows[place]))

    def producer(self, place: int, size: BlockRows, row: int) -> int:
        """Return the step that writes a row."""
        steps = self.steps(place, size)
        return steps[-1] if self.accumulates[place] else steps[size.block_of(row)]

    def reach(self, place: int, operand: int, size: BlockRows) -> list[tuple[int, int]]:
        """Return, for each step of an operator, the rows [lo, hi) that it reads of one operand's memory."""
        key = (place, operand, size)
        if key not in self._reach:
            reading, total = self.readings[place][operand], self.rows[place]
            rows = self.tensors[self.sources[place][operand]].rows
            ranges = []
            for block in range(size.count(total)):
                first, end = max(0, size.start(block)), min(total, size.start(block + 1))
                lo, hi = (0, rows) if reading.whole else reading.reach(first, end)
                ranges.append((lo, hi) if lo < hi else (0, 0))
            self._reach[key] = ranges
        return self._reach[key]

    def needs(self, place: int, size: BlockRows, producers: tuple[BlockRows | None, ...]) -> Needs:
        """Return the dependences of an operator's steps.

        `producers`: for each operand the blocks of its producer, None if that is outside the segment.
        """
        key = (place, size, producers)
        if key not in self._needs:
            steps = self.steps(place, size)
            earlier: dict[int, list[int]] = {step: [] for step in steps}
            if self.accumulates[place]:
                for step in steps[1:]:
                    earlier[step].append(step - 1)
            for operand, rows in enumerate(producers):
                if rows is None:
                    continue
                source = self.sources[place][operand]
                for step, (lo, hi) in zip(steps, self.reach(place, operand, size), strict=True):
                    if lo < hi:
                        one, other = self.producer(source, rows, lo), self.producer(source, rows, hi - 1)
                        earlier[step].extend(range(one, other + 1))
            self._needs[key] = {step: tuple(before) for step, before in earlier.items()}
        return self._needs[key]

    def awaited(self, place: int, producers: tuple[BlockRows | None, ...]) -> tuple[int, ...]:
        """Return the steps after which the last step of an operator comes without reading their results.

        `producers`: as for `needs`.
        """
        return tuple(
            step
            for operand, rows in enumerate(producers)
            if rows is not None and self.readings[place][operand].awaited
            for step in self.steps(self.sources[place][operand], rows)
        )

    def borders(self, segment: Segment) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of the tensors that a segment reads from outside, and of its outputs."""
        inside = range(segment[0], segment[0] + len(segment[1]))
        read = dict.fromkeys(
            source
            for place in inside
            for source, reading in zip(self.sources[place], self.readings[place], strict=True)
            if not reading.awaited
        )
        results = (
            place for place in inside if self.tensors[place].kept or self.tensors[place].last >= inside.stop
        )
        return tuple(source for source in read if source not in inside), tuple(results)
