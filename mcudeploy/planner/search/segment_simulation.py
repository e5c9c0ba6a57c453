"""Simulation of one segment: the order of its steps, and the changes of memory that depend on it alone.

Live ranges are those of `tiling/live.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.planner.order.depth_first import depth_first, without_delay
from mcudeploy.planner.search.ordered_graph import Needs, OrderedGraph, Segment


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The output of a step: rows [lo, hi), their bytes, and the lead of the tensor's blocks."""

    lo: int
    hi: int
    size_bytes: int
    lead: int


@dataclass(frozen=True, slots=True)
class InPlaceCandidate:
    """An option at step `time` to write the output over one of `sources`, best first.

    Sources are tensors, each with the row to examine. The option applies if the row's block has the target's
    rows and bytes, and dies there; tensor -1 always qualifies.
    """

    time: int
    target: StepOutput
    sources: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """The steps of a segment by number, and the change of memory before each of them, in bytes.

    `reads`: for each tensor from outside, the times at which rows [lo, hi) are read. `events`: for each
    tensor that may be read later, the last access here by block number. The other segments determine the
    further life of these, and which `chances` apply.
    """

    steps: tuple[int, ...]
    change: list[int]
    reads: dict[int, list[tuple[int, int, int]]]
    events: dict[int, dict[int, int]]
    chances: list[InPlaceCandidate]


def simulate_segment(graph: OrderedGraph, segment: Segment) -> Walk:
    """Simulate a segment."""
    return _Walker(graph, segment).walk()


class _Walker:
    def __init__(self, graph: OrderedGraph, segment: Segment) -> None:
        self._graph = graph
        first, sizes = segment
        self._size = dict(zip(range(first, first + len(sizes)), sizes, strict=True))
        self._results = graph.borders(segment)[1]
        needs = self._needs()
        dependences = needs | self._awaiting(needs)
        prompt = {place for place in self._results if graph.shrinks[place]}
        self._time = depth_first(self._begins(), dependences)
        if len(self._results) > 1 and prompt:
            self._time = without_delay(self._time, dependences, lambda step: step // graph.span in prompt)
        self._end = dict(self._time)
        for step, at in self._time.items():
            self._end.update(dict.fromkeys(needs[step], at))
        self._walk = Walk(tuple(self._time), [0] * (len(self._time) + 2), {}, {}, [])

    def walk(self) -> Walk:
        for place in self._size:
            if any(step in self._time for step in self._graph.steps(place, self._size[place])):
                self._count_work(place)
                self._count_output(place)
                self._record_outside_reads(place)
        for place in self._size:
            self._find_in_place_candidates(place)
        return self._walk

    def _needs(self) -> Needs:
        needs: Needs = {}
        for place, size in self._size.items():
            producers = tuple(self._size.get(source) for source in self._graph.sources[place])
            needs.update(self._graph.needs(place, size, producers))
        return needs

    def _awaiting(self, needs: Needs) -> Needs:
        """Return the dependences of steps that also come after steps whose results they do not read."""
        result: Needs = {}
        for place, size in self._size.items():
            if not self._graph.sources[place]:  # an application delivers rows in ascending order
                result.update((step, (step - 1,)) for step in self._graph.steps(place, size)[1:])
            producers = tuple(self._size.get(source) for source in self._graph.sources[place])
            awaited = self._graph.awaited(place, producers)
            if awaited:
                last = self._graph.steps(place, size)[-1]
                result[last] = needs[last] + awaited
        return result

    def _begins(self) -> list[int]:
        """Return the steps that write what is read outside: the tensors advance side by side."""
        begins: list[tuple[float, int, int]] = []
        for place in self._results:
            steps = self._graph.steps(place, self._size[place])
            begins += [((number + 1) / len(steps), place, step) for number, step in enumerate(steps)]
        return [step for *_, step in sorted(begins)]

    def _count_work(self, place: int) -> None:
        """Count scratch in every step, and state from the first to the last."""
        scratch, state = self._graph.work[place]
        change, steps = self._walk.change, self._graph.steps(place, self._size[place])
        if scratch:
            for at in [self._time[step] for step in steps if step in self._time]:
                change[at] += scratch
                change[at + 1] -= scratch
        if state:
            change[self._time[steps[0]]] += state
            change[self._time[steps[-1]] + 1] -= state

    def _count_output(self, place: int) -> None:
        """Count the blocks of an operator's output, and the end of those that are not read outside."""
        tensor, size, time = self._graph.tensors[place], self._size[place], self._time
        change, steps = self._walk.change, self._graph.steps(place, size)
        if self._graph.accumulates[place]:
            steps, size = steps[-1:], BlockRows(tensor.rows)  # its last step writes it
        if tensor.kept:  # it is contiguous
            change[min(time[step] for step in steps)] += tensor.size_bytes
            return
        events: dict[int, int] = {}
        for block, step in enumerate(steps):
            block_bytes = tensor.block_bytes(size, block)
            if step in time:
                change[time[step]] += block_bytes
                events[block] = self._end[step]
                if place not in self._results:
                    change[self._end[step] + 1] -= block_bytes
        if place in self._results:
            self._walk.events[place] = events

    def _record_outside_reads(self, place: int) -> None:
        size = self._size[place]
        for operand, source in enumerate(self._graph.sources[place]):
            if source not in self._size:
                reads = self._walk.reads.setdefault(source, [])
                steps = self._graph.steps(place, size)
                for step, (lo, hi) in zip(steps, self._graph.reach(place, operand, size), strict=True):
                    if lo < hi and step in self._time:
                        reads.append((self._time[step], lo, hi))

    def _find_in_place_candidates(self, place: int) -> None:
        """Count the certain in-place candidates of an operator, and record the others."""
        graph, size, tensor = self._graph, self._size[place], self._graph.tensors[place]
        output = graph.written_rows(place, size)
        if not graph.overwrites[place] or (tensor.kept and output.rows < tensor.rows):
            return
        steps = graph.steps(place, size)
        writing = steps[-1:] if graph.accumulates[place] else steps
        for block, step in enumerate(writing):
            if step not in self._time:
                continue
            target = StepOutput(*tensor.block(output, block), tensor.block_bytes(output, block), output.lead)
            at, sources = self._time[step], self._sources(place, step, target)
            if sources[:1] == [(-1, 0)]:
                self._walk.change[at] -= target.size_bytes
                self._walk.change[at + 1] += target.size_bytes
            elif sources:
                self._walk.chances.append(InPlaceCandidate(at, target, tuple(sources)))

    def _sources(self, place: int, step: int, target: StepOutput) -> list[tuple[int, int]]:
        graph, size = self._graph, self._size[place]
        sources: list[tuple[int, int]] = []
        for operand in graph.overwrites[place]:
            source = graph.sources[place][operand]
            lo, hi = graph.reach(place, operand, size)[step - graph.steps(place, size)[0]]
            if graph.tensors[source].kept or (lo, hi) != (target.lo, target.hi):
                continue
            if source not in self._size or source in self._walk.events:
                sources.append((source, lo))
                continue
            rows = self._size[source]
            dies = self._end[graph.producer(source, rows, lo)] == self._time[step]
            if dies and same_block(graph, source, graph.written_rows(source, rows), target):
                return [*sources, (-1, 0)]
        return sources


def same_block(graph: OrderedGraph, source: int, rows: BlockRows, target: StepOutput) -> bool:
    """Return whether a tensor, in blocks of `rows`, has a block with the rows and bytes of a target."""
    tensor, block = graph.tensors[source], rows.block_of(target.lo)
    same_bytes = tensor.block_bytes(rows, block) == target.size_bytes and rows.lead == target.lead
    return same_bytes and tensor.block(rows, block) == (target.lo, target.hi)
