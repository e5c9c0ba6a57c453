"""Cuts of a graph: stretches of operators that run in parts of a given number of rows.

The operators stand in the order of the unsplit schedule. A stretch of that order is convex: a path that
leaves it never returns. A tensor inside a stretch is shared, not recomputed: its rows stay until the last
part that reads them has run. Adjacent cuts are one segment, unless the second stands `apart`. A tensor
between two segments, or after one, is whole.

The windows of a part reach beyond it. In a `staggered` cut the first part of an operator is shorter, so that
parts end where the windows of its first reader end: the windows of 4 rows then touch two blocks of 4 rows,
not three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.plan import Split
from mcudeploy.planner.axes import components
from mcudeploy.planner.search.segments import CutSegments
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow, RowAccess

ROWS_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The numbers of rows of a part that the search proposes."""

_NEAR = 2
"""The distance from the peak, in places, within which a cut may grow to it."""


_NEW_CUT_REACH = 6
"""The maximum distance of both ends of a new cut from the peak, in places."""


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """Operators first..last (inclusive, places in the order) that are cut into parts of `rows` rows.

    `apart`: tensors that it reads from a cut right before it are whole. `staggered`: parts end where the
    windows of their first readers end.
    """

    first: int
    last: int
    rows: int
    apart: bool = False
    staggered: bool = False


State = tuple[Cut, ...]
"""Cuts that do not overlap, ascending."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The possible cuts.

    `order` contains the operators' positions, `most_rows` the number of rows below which each can be cut (1:
    it cannot be cut). `whole_rows`: by position, the one block of an operator that is not cut. `readers`: by
    place, the place of the first operator that reads the output, and its access; None if the output cannot
    have a lead.
    """

    flow: Dataflow
    order: tuple[int, ...]
    most_rows: tuple[int, ...]
    whole_rows: tuple[BlockRows, ...]
    readers: tuple[tuple[int, RowAccess] | None, ...]

    @classmethod
    def of(cls, flow: Dataflow, order: tuple[int, ...]) -> Space:
        """Return the space of a graph whose unsplit schedule is `order`.

        An operator can be cut if it belongs to a component or streams an input, and if no view reads its
        output.
        """
        graph = flow.graph
        inside = frozenset().union(*components(graph))
        most = []
        for position, operator in enumerate(graph.operators):
            fed = not operator.inputs
            whole = operator.op.is_view or operator.output in flow.viewed or not (fed or position in inside)
            most.append(1 if whole else flow.iteration_rows[position])
        whole_rows = tuple(BlockRows(total) for total in flow.iteration_rows)
        return cls(flow, order, tuple(most), whole_rows, _readers(flow, order))

    def state(self, splits: tuple[Split, ...]) -> State:
        """Return the cuts of a plan with these splits; none if they are not of this order."""
        places = {self.flow.graph.operators[at].name: place for place, at in enumerate(self.order)}
        cuts = []
        for split in splits:
            cut_places = [places[name] for name in split.operators if name in places]
            if cut_places and split.axis == "row":
                cuts.append(Cut(min(cut_places), max(cut_places), split.rows, split.apart, split.staggered))
        cuts.sort()
        disjoint = all(one.last < other.first for one, other in pairwise(cuts))
        return tuple(cuts) if disjoint else ()

    def step_rows(self, state: State) -> tuple[BlockRows, ...]:
        """Return the blocks of every operator, by position."""
        rows = list(self.whole_rows)
        for cut in reversed(state):
            for place in range(cut.last, cut.first - 1, -1):
                position = self.order[place]
                if cut.rows < self.most_rows[position]:
                    rows[position] = BlockRows(cut.rows, self._lead(place, cut, rows))
        return tuple(rows)

    def _lead(self, place: int, cut: Cut, rows: Sequence[BlockRows]) -> int:
        """Return the rows that the first block of an operator lacks, given the blocks of later ones."""
        first_reader = self.readers[place] if cut.staggered else None
        if first_reader is None:
            return 0
        reader, access = first_reader
        position = self.order[reader]
        step = rows[position]
        if step.rows >= self.flow.iteration_rows[position]:
            return 0
        return -access.reach(0, step.rows - step.lead)[1] % cut.rows

    def tiled(self, state: State) -> TiledGraph:
        """Return the graph in the blocks of a state."""
        step_rows = self.step_rows(state)
        names = [operator.name for operator in self.flow.graph.operators]
        leads = {name: lead for name, (_, lead) in zip(names, step_rows, strict=True) if lead}
        rows = {name: rows for name, (rows, _) in zip(names, step_rows, strict=True)}
        return TiledGraph(self.flow, rows, leads)

    def cut_segments(self, state: State) -> CutSegments:
        """Return the segments that are cut; adjacent cuts are one, whole operators at the ends are excluded.

        Two states with the same cut_segments are equal.
        """
        whole = [self.flow.iteration_rows[position] for position in self.order]
        by_position = self.step_rows(state)
        rows = [by_position[position] for position in self.order]
        spans: list[tuple[int, int]] = []
        for cut in state:
            touches = bool(spans) and spans[-1][1] == cut.first - 1 and not cut.apart
            first = spans.pop()[0] if touches else cut.first
            spans.append((first, cut.last))
        result = []
        for first, last in spans:
            small = [place for place in range(first, last + 1) if rows[place].rows < whole[place]]
            if small:
                result.append((small[0], tuple(rows[small[0] : small[-1] + 1])))
        return tuple(result)

    def prefixes(self) -> Iterator[State]:
        """Yield one cut from the input on, of every length, in parts of every size."""
        for last in range(len(self.order)):
            for rows in ROWS_TRIED:
                if rows < self.most_rows[self.order[last]]:
                    yield (Cut(0, last, rows),)
                    if rows > 1:
                        yield (Cut(0, last, rows, staggered=True),)

    def halves(self, border_bytes: Sequence[int]) -> Iterator[State]:
        """Yield two cuts that meet where the fewest bytes pass, in parts of every size.

        A training step has such a place before its backward part. There are none if either side cannot be
        cut. `border_bytes`: the bytes of all tensors before each place.
        """
        count = len(self.order)
        middle = min(range(1, count), key=lambda place: border_bytes[place], default=0)
        most = [
            max((self.most_rows[at] for at in part), default=1)
            for part in (self.order[:middle], self.order[middle:])
        ]
        for rows in ROWS_TRIED:
            if rows < min(most):
                for staggered in (False, True) if rows > 1 else (False,):
                    first = Cut(0, middle - 1, rows, staggered=staggered)
                    yield first, Cut(middle, count - 1, rows, apart=True, staggered=staggered)

    def moves(self, state: State, peak_operator: int) -> Iterator[State]:
        """Yield states one step away: a cut longer or shorter, in larger or smaller parts, in two, or none.

        They also include a new cut around the peak. Only changes at the peak can lower it, so of a cut
        elsewhere only variants that may save time are tried.
        """
        for index, cut in enumerate(state):
            rest = state[:index] + state[index + 1 :]
            yield rest
            if not cut.first - _NEAR <= peak_operator <= cut.last + _NEAR:
                for other in self._cheaper(cut):
                    yield from self._joined(rest, (other,))
                continue
            for other in self._variants(cut):
                yield from self._joined(rest, (other,))
            for middle in range(cut.first, cut.last):
                left = replace(cut, last=middle)
                right = replace(cut, first=middle + 1, apart=False)
                yield from self._joined(rest, (left, right))
                yield from self._joined(rest, (left, replace(right, apart=True)))
                for rows in self._neighbours(cut.rows):
                    yield from self._joined(rest, (left, replace(right, rows=rows)))
                    yield from self._joined(rest, (replace(left, rows=rows), right))
        if all(not cut.first <= peak_operator <= cut.last for cut in state):
            for rows in ROWS_TRIED:
                for first in range(max(0, peak_operator - _NEW_CUT_REACH), peak_operator + 1):
                    for last in range(peak_operator, min(len(self.order), peak_operator + _NEW_CUT_REACH)):
                        yield from self._joined(state, (Cut(first, last, rows),))

    def _cheaper(self, cut: Cut) -> Iterator[Cut]:
        """Yield variants of a cut that may save time."""
        yield replace(cut, staggered=False)
        if cut.first < cut.last:
            yield replace(cut, first=cut.first + 1)
            yield replace(cut, last=cut.last - 1)
        for rows in self._neighbours(cut.rows):
            if rows > cut.rows:
                yield replace(cut, rows=rows)

    def _variants(self, cut: Cut) -> Iterator[Cut]:
        for first in (cut.first - 1, cut.first + 1):
            yield replace(cut, first=first)
        for last in (cut.last - 1, cut.last + 1, cut.last + 2):
            yield replace(cut, last=last)
        for rows in self._neighbours(cut.rows):
            yield replace(cut, rows=rows)
        yield replace(cut, apart=not cut.apart)
        yield replace(cut, staggered=not cut.staggered)

    def _neighbours(self, rows: int) -> Iterator[int]:
        """Yield the next two smaller and larger numbers of rows: a block of 4 may pay where 3 does not."""
        yield from [other for other in ROWS_TRIED if other < rows][-2:]
        yield from [other for other in ROWS_TRIED if other > rows][:2]

    def _joined(self, rest: State, added: State) -> Iterator[State]:
        """Yield the state of all these cuts, if they are within the order and do not overlap."""
        state = tuple(sorted((*rest, *added)))
        inside = all(0 <= cut.first <= cut.last < len(self.order) for cut in added)
        if inside and all(one.last < other.first for one, other in pairwise(state)):
            yield state


def _readers(flow: Dataflow, order: Sequence[int]) -> tuple[tuple[int, RowAccess] | None, ...]:
    """Return, by place, the first reader of each output that may have a lead, and its access."""
    graph = flow.graph
    kept = {flow.roots[io.tensor] for io in graph.outputs}
    first: dict[str, tuple[int, RowAccess]] = {}
    for place, position in enumerate(order):
        for access in flow.readings[position]:
            first.setdefault(access.root, (place, access))

    def reader(position: int) -> tuple[int, RowAccess] | None:
        operator = graph.operators[position]
        if operator.output not in first or operator.op.accumulates or operator.output in kept:
            return None
        place, access = first[operator.output]
        return None if access.whole or access.step < 1 else (place, access)

    return tuple(reader(position) for position in order)
