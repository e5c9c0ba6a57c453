"""The peak of a cut graph, computed by segment: evaluating a move re-simulates only the segments it changes.

A schedule is a sequence of segments, in the unsplit order: stretches of operators that are cut together, or
single operators. A segment completes all outputs that are read after it before the next one begins. Its
effect on memory depends on its rows, and on the blocks of its inputs from outside. It also depends on which
blocks of inputs and outputs are read later. The segment is simulated once for each such key. Live ranges are
those of `tiling/live.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.plan import Step
from mcudeploy.planner.search.ordered_graph import OrderedGraph, Segment
from mcudeploy.planner.search.segment_simulation import InPlaceCandidate, Walk, same_block, simulate_segment
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import WorkBytes

CutSegments = tuple[Segment, ...]
"""The cut segments of a graph, ascending and disjoint; every other operator is a separate segment."""

_MOST_STEPS_KEPT = 1_000_000
"""The total number of steps above which cached walks are dropped: a bound on memory."""

_ALL = -1
"""The set of all blocks, as bits."""

_KEY_UNITS, _WALK_UNITS, _PROFILE_UNITS = 7, 6, 1
"""Effort of the key of a segment, and per step of a walk and of a profile."""


class _Key(NamedTuple):
    """The facts on which the profile of a segment depends.

    `dying`: how every tensor from outside is cut, and the blocks read for the last time. `later`: the
    blocks of every output that are read later. Both sets are bits. `unread_bytes` are graph inputs that
    nothing reads: they die after the first step of the schedule.
    """

    segment: Segment
    dying: tuple[tuple[BlockRows, int], ...]
    later: tuple[int, ...]
    unread_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Profile:
    """Bytes relative to the segment's start: at its peak (at place `peak_operator`) and at its end.

    `loads`: the most while each operator runs, by place.
    """

    peak_bytes: int
    net_bytes: int
    peak_operator: int
    loads: Mapping[int, int]


class Segments:
    """The segments of one graph in one order of its operators, with a cache of simulations.

    `effort_units`: the effort of all simulations so far. The caller charges it to a budget.
    """

    def __init__(self, flow: Dataflow, order: Sequence[int], work: WorkBytes) -> None:
        self.work, self.effort_units = work, 0
        self._graph = OrderedGraph(flow, order, work)
        self._singles: list[Segment] = [(place, (rows,)) for place, rows in enumerate(self._graph.whole)]
        self._borders: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._walks: dict[Segment, Walk] = {}
        self._steps_kept = 0
        self._last_reads: dict[tuple[Segment, int, BlockRows], tuple[int, dict[int, int]]] = {}
        self._profiles: dict[_Key, _Profile] = {}
        self._alone: dict[tuple[Segment, bool], Mapping[int, int]] = {}

    def peak(self, cut_segments: CutSegments) -> tuple[int, int, int]:
        """Return the largest sum of live bytes, the place of the operator where it first occurs, and the
        number of segments where it occurs.
        """
        tensors = self._graph.tensors
        load = sum(tensors[number].size_bytes for number in self._graph.inputs)
        most, peak_operator, occurrences = load, 0, 0
        keys = self._keys(cut_segments)
        self.effort_units += _KEY_UNITS * len(keys)
        for key in keys:
            profile = self._profile(key)
            if load + profile.peak_bytes > most:
                most, peak_operator, occurrences = load + profile.peak_bytes, profile.peak_operator, 0
            occurrences += load + profile.peak_bytes == most
            load += profile.net_bytes
        return most, peak_operator, occurrences

    def exceeds(self, cut_segments: CutSegments, most_bytes: float) -> bool:
        """Return whether some part of a cut schedule certainly takes more bytes.

        Each part is examined alone, as if tensors lived until their last readers run, all rows alike. Cut
        segments are simulated only if the other parts fit.
        """
        rows = {first + at: one for first, sizes in cut_segments for at, one in enumerate(sizes)}
        uncut = (load for place, load in enumerate(self._uncut_bytes) if place not in rows)
        ends = (place for first, sizes in cut_segments for place in (first, first + len(sizes)))
        if max((*uncut, *(self.border_bytes[place] for place in ends))) > most_bytes:
            return True
        return any(self._least_bytes(segment, rows) > most_bytes for segment in cut_segments)

    @cached_property
    def _uncut_bytes(self) -> list[int]:
        """The least bytes while each operator runs uncut, by place."""
        return [
            min(max(self.alone(single, by_rows).values(), default=0) for by_rows in (False, True))
            for single in self._singles
        ]

    def _least_bytes(self, segment: Segment, cut_rows: Mapping[int, BlockRows]) -> int:
        """Return a bound below the bytes of a segment, if the operators at some places are cut."""
        self.effort_units += _KEY_UNITS
        sources, results = self._outside(segment)
        dying = tuple(self._dying(segment, one, self._rows_of(one, cut_rows)) for one in sources)
        profile = self._profile(_Key(segment, dying, (_ALL,) * len(results)))
        return self.border_bytes[segment[0]] + profile.peak_bytes

    def _rows_of(self, number: int, cut_rows: Mapping[int, BlockRows]) -> BlockRows:
        """Return the blocks of a tensor if the operators at some places run in these."""
        tensor = self._graph.tensors[number]
        if tensor.writer < 0:
            return tensor.cut_rows
        return self._graph.written_rows(number, cut_rows.get(number, self._graph.whole[number]))

    def loads(self, cut_segments: CutSegments) -> dict[int, int]:
        """Return the largest sum of live bytes while each operator runs, by place."""
        load = sum(self._graph.tensors[number].size_bytes for number in self._graph.inputs)
        loads: dict[int, int] = {}
        keys = self._keys(cut_segments)
        self.effort_units += _KEY_UNITS * len(keys)
        for key in keys:
            profile = self._profile(key)
            loads.update((place, load + most) for place, most in profile.loads.items())
            load += profile.net_bytes
        return loads

    def steps(self, cut_segments: CutSegments) -> tuple[Step, ...]:
        """Return the schedule of the whole graph, segment by segment."""
        span = self._graph.span
        return tuple(
            Step(self._graph.order[number // span], number % span)
            for segment in self._all(cut_segments)
            for number in self._walk(segment).steps
        )

    def alone(self, segment: Segment, by_rows: bool) -> Mapping[int, int]:
        """Return the most bytes while each operator of a segment runs, by place.

        The live bytes at its start are those of the unsplit order. Its inputs from outside arrive row by row,
        or (except graph inputs) each tensor in one block.
        """
        key = (segment, by_rows)
        if key not in self._alone:
            sources, results = self._outside(segment)
            dying = []
            for number in sources:
                tensor = self._graph.tensors[number]
                if tensor.writer < 0:
                    rows = tensor.cut_rows
                else:
                    in_rows = by_rows and not self._graph.accumulates[tensor.writer]
                    rows = BlockRows(1 if in_rows else tensor.rows)
                dying.append(self._dying(segment, number, rows))
            profile = self._profile(_Key(segment, tuple(dying), (_ALL,) * len(results)))
            begin = self.border_bytes[segment[0]]
            self._alone[key] = {place: begin + load for place, load in profile.loads.items()}
        return self._alone[key]

    def _dying(self, segment: Segment, number: int, rows: BlockRows) -> tuple[BlockRows, int]:
        """Return the blocks of a tensor from outside, and those that die if it dies with its last reader."""
        tensor = self._graph.tensors[number]
        dies = tensor.last < segment[0] + len(segment[1]) and not tensor.kept
        return rows, self._reads(segment, number, rows)[0] if dies else 0

    @cached_property
    def border_bytes(self) -> tuple[int, ...]:
        """Return, by place and at the end, the bytes of all tensors at the begin of a segment there."""
        change = [0] * (len(self._singles) + 2)
        for tensor in self._graph.tensors:
            change[tensor.writer + 1] += tensor.size_bytes
            if not tensor.kept:
                change[max(tensor.last, tensor.writer) + 1] -= tensor.size_bytes
        return tuple(accumulate(change[:-1]))

    def _all(self, cut_segments: CutSegments) -> list[Segment]:
        result: list[Segment] = []
        place = 0
        for segment in cut_segments:
            result += self._singles[place : segment[0]]
            result.append(segment)
            place = segment[0] + len(segment[1])
        return result + self._singles[place:]

    def _keys(self, cut_segments: CutSegments) -> list[_Key]:
        """Return the keys of all segments in order, computed from the end, where nothing is read any more."""
        block_rows = self._block_rows(cut_segments)
        later = {number: _ALL for number, tensor in enumerate(self._graph.tensors) if tensor.kept}
        key_parts = []
        for segment in reversed(self._all(cut_segments)):
            sources, results = self._outside(segment)
            dying = []
            for source in sources:
                rows = block_rows[source]
                read, _ = self._reads(segment, source, rows)
                after = later.get(source, 0)
                dying.append((rows, read & ~after))
                later[source] = after | read
            key_parts.append((segment, tuple(dying), tuple(later.get(one, 0) for one in results)))
        unread = sum(self._unread(one, block_rows[one], later.get(one, 0)) for one in self._graph.inputs)
        first = len(key_parts) - 1
        keys = [_Key(*parts, unread if at == first else 0) for at, parts in enumerate(key_parts)]
        return keys[::-1]

    def _outside(self, segment: Segment) -> tuple[tuple[int, ...], tuple[int, ...]]:
        span = (segment[0], len(segment[1]))
        if span not in self._borders:
            self._borders[span] = self._graph.borders(segment)
        return self._borders[span]

    def _block_rows(self, cut_segments: CutSegments) -> list[BlockRows]:
        """Return the blocks of every tensor. Graph inputs are cut if anything is."""
        rows = list(self._graph.whole)
        for first, sizes in cut_segments:
            rows[first : first + len(sizes)] = sizes
        written = [self._graph.written_rows(place, size) for place, size in enumerate(rows)]
        inputs = (self._graph.tensors[one] for one in self._graph.inputs)
        return written + [tensor.cut_rows if cut_segments else BlockRows(tensor.rows) for tensor in inputs]

    def _unread(self, number: int, rows: BlockRows, read: int) -> int:
        tensor = self._graph.tensors[number]
        blocks = (block for block in range(rows.count(tensor.rows)) if not read >> block & 1)
        return sum(tensor.block_bytes(rows, block) for block in blocks)

    def _walk(self, segment: Segment) -> Walk:
        if segment not in self._walks:
            if self._steps_kept > _MOST_STEPS_KEPT:
                self._walks.clear()
                self._last_reads.clear()
                self._steps_kept = 0
            self._walks[segment] = simulate_segment(self._graph, segment)
            self._steps_kept += len(self._walks[segment].steps)
            self.effort_units += _WALK_UNITS * len(self._walks[segment].steps)
        return self._walks[segment]

    def _reads(self, segment: Segment, number: int, rows: BlockRows) -> tuple[int, dict[int, int]]:
        """Return, of a tensor from outside in blocks of `rows`, the blocks read as bits, and last reads."""
        key = (segment, number, rows)
        if key not in self._last_reads:
            last: dict[int, int] = {}
            for at, lo, hi in sorted(self._walk(segment).reads.get(number, ())):
                last.update(dict.fromkeys(range(rows.block_of(lo), rows.block_of(hi - 1) + 1), at))
            self._last_reads[key] = sum(1 << block for block in last), last
        return self._last_reads[key]

    def _profile(self, key: _Key) -> _Profile:
        if key not in self._profiles:
            self._profiles[key] = self._new_profile(key)
        return self._profiles[key]

    def _new_profile(self, key: _Key) -> _Profile:
        walk = self._walk(key.segment)
        first, sizes = key.segment
        sources, results = self._outside(key.segment)
        blocks: dict[int, tuple[BlockRows, dict[int, int]]] = {}  # how it is cut, the death of each block
        for number, (rows, dying) in zip(sources, key.dying, strict=True):
            last = self._reads(key.segment, number, rows)[1] if dying else {}
            blocks[number] = rows, {block: at for block, at in last.items() if dying >> block & 1}
        for number, later in zip(results, key.later, strict=True):
            events = walk.events[number] if later != _ALL else {}
            rows = self._graph.written_rows(number, sizes[number - first])
            blocks[number] = rows, {block: at for block, at in events.items() if not later >> block & 1}
        change = list(walk.change)
        self.effort_units += _PROFILE_UNITS * len(change)
        change[1] -= key.unread_bytes
        for number, (rows, deaths) in blocks.items():
            tensor = self._graph.tensors[number]
            for block, at in deaths.items():
                change[at + 1] -= tensor.block_bytes(rows, block)
        for chance in walk.chances:
            if self._applies(chance, blocks):
                change[chance.time] -= chance.target.size_bytes
                change[chance.time + 1] += chance.target.size_bytes
        *loads, net = accumulate(change[:-1])
        most = max(loads, default=0)
        span = self._graph.span
        by_place: dict[int, int] = {}
        for step, load in zip(walk.steps, loads, strict=False):
            place = step // span
            by_place[place] = max(load, by_place.get(place, load))
        peak_operator = walk.steps[loads.index(most)] // span if loads else first
        return _Profile(most, net, peak_operator, by_place)

    def _applies(
        self, chance: InPlaceCandidate, blocks: Mapping[int, tuple[BlockRows, dict[int, int]]]
    ) -> bool:
        for number, row in chance.sources:
            if number < 0:
                return True
            tensor, (rows, deaths) = self._graph.tensors[number], blocks[number]
            movable = rows.rows == tensor.rows or not tensor.unaligned  # rows match the input's array
            dies = deaths.get(rows.block_of(row)) == chance.time
            if movable and dies and same_block(self._graph, number, rows, chance.target):
                return True
        return False
