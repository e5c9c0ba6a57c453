"""Chains of operators that may run as one, and the choice among them: a shortest path over the borders.

A fused chain computes rows again instead of keeping them, so it takes less memory and more time than a
cut through its stages. For a bound on memory, the least time is a shortest path as in seeds.py. Its segments
are those of the graph without fused chains, and those of graphs with some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Split
from mcudeploy.ops.fused.fused import fused_name, is_stage
from mcudeploy.ops.fused.row_window import row_window
from mcudeploy.planner.search.cuts import State
from mcudeploy.planner.search.seeds import (
    ASSUMPTIONS,
    FINE,
    Assumption,
    Chain,
    Chains,
    CutProblem,
    PathSegment,
    Seeds,
    StoppedError,
    least_time,
)

_MOST_STAGES = 3
_BOUND_UNITS, _SEGMENT_UNITS = 1000, 60
"""Effort of a bound, and of the choice of a segment's rows without its simulation."""
_FIRST_DIVISOR = 8
"""The first bound is the peak without fused chains divided by this."""
WORTH = 0.97
"""The peak, as a part of that without fused chains, below which they are worth it."""
_GROWTH = 1.3
"""Ratio of two bounds until one keeps the latency limit."""


@dataclass(frozen=True, slots=True)
class FusedCuts:
    """The chains to fuse, and the cuts of the graph that has them as one operator each.

    `bound`: the bytes that they may take.
    """

    bound: float
    chains: Chains
    splits: tuple[Split, ...]

    @classmethod
    def of(cls, bound: float, problem: CutProblem, state: State) -> FusedCuts:
        """Return the cuts of a state."""
        space = problem.space
        names = [space.flow.graph.operators[position].name for position in space.order]
        splits = (
            Split(tuple(names[cut.first : cut.last + 1]), "row", cut.rows, cut.apart, cut.staggered)
            for cut in state
        )
        return cls(bound, problem.chains, tuple(splits))


def chains(graph: Graph) -> tuple[Chain, ...]:
    """Return chains that do not overlap, those with the widest rows between their stages first.

    A chain is worth fusing if a row between two stages is wider than those of its input and output.
    """
    readers, wanted = graph.readers(), {io.tensor for io in graph.outputs}
    operators = graph.operators

    def following(position: int) -> int | None:
        output = operators[position].output
        at = readers[output]
        return at[0] if len(at) == 1 and output not in wanted and _is_stage(graph, operators[at[0]]) else None

    candidates: list[tuple[int, int, tuple[int, ...]]] = []
    for position, operator in enumerate(operators):
        if not _is_stage(graph, operator):
            continue
        run = [position]
        while len(run) < _MOST_STAGES and (after := following(run[-1])) is not None:
            run.append(after)
            ends = operator.inputs[0], operators[run[-1]].output
            widest_end = max(graph.tensors[name].row_bytes for name in ends)
            between = max(graph.tensors[operators[at].output].row_bytes for at in run[:-1])
            if between > widest_end:
                candidates.append((-between, widest_end, tuple(run)))
    candidates.sort(key=lambda one: (*one[:2], -len(one[2]), one[2]))
    used, names = set[int](), {operator.name for operator in operators}
    result = []
    for *_, positions in candidates:
        chain = tuple(operators[at].name for at in positions)
        if used.isdisjoint(positions) and fused_name(chain) not in names:
            used.update(positions)
            names.add(fused_name(chain))
            result.append(chain)
    return tuple(result)


def _is_stage(graph: Graph, operator: Operator) -> bool:
    """Return whether an operator can be a stage, and some of its rows need only a part of its input."""
    if not is_stage(graph, operator):
        return False
    source, output = graph.tensors[operator.inputs[0]], graph.tensors[operator.output]
    window = row_window(graph.loops(operator))
    return output.shape[0] > 1 and window is not None and window.hi - window.lo < source.shape[0]


class FusedSeeds:
    """The cuts with the least time under falling bounds, with some of the chains fused.

    `forms`: the seeds of the graph without fused chains, then those of graphs with some of `every` fused.
    `spend` receives the effort.
    """

    def __init__(
        self, forms: Sequence[Seeds], every: Sequence[Chain], spend: Callable[[float], None]
    ) -> None:
        self._spend = spend
        self._forms = tuple(forms)
        plain, *fused = forms
        self._chains = {fused_name(chain): chain for chain in every}
        self._places = [
            range(len(plain.names) + 1),
            *(_places(plain.names, it.names, self._chains) for it in fused),
        ]
        # By form, and by place: the number of fused chains before it.
        self._fused_before = [
            list(accumulate((name in self._chains for name in it.names), initial=0)) for it in forms
        ]

    def states(self, high: float) -> Iterator[FusedCuts | None]:
        """Yield cuts under bounds below `high` bytes, down to the least that keeps the latency limit.

        The highest bound under the last assumption comes first: if no cuts keep the limit there, none do.
        Then low bounds come first: few segments fit, so they take the least effort. A None says that the
        search was stopped; it may resume.
        """
        highest = WORTH * high
        if (yield from self._under(highest, ASSUMPTIONS[-1])) is None:
            return
        for assumption in ASSUMPTIONS:
            low = max(float(self._forms[0].least_bytes - 1), high // _FIRST_DIVISOR)
            top, known = highest, False
            while top - low > max(1, top // FINE):
                bound = (low + top) // 2 if known else min(_GROWTH * low + 1, top - 1)
                cuts = yield from self._under(bound, assumption)
                if cuts is None:
                    low = bound
                else:
                    top, known = bound, True

    def _under(
        self, bound: float, assumption: Assumption
    ) -> Generator[FusedCuts | None, None, FusedCuts | None]:
        """Yield and return the cuts under a bound, if they keep the latency limit."""
        while True:
            try:
                cuts = self._least_time(bound, assumption)
            except StoppedError:
                yield None
                continue
            if cuts is not None:
                yield cuts
            return cuts

    def _least_time(self, bound: float, assumption: Assumption) -> FusedCuts | None:
        plain = self._forms[0]
        borders = plain.borders(bound)
        self._spend(_BOUND_UNITS)

        def between(places: range, is_cut: bool) -> Iterator[PathSegment]:
            assumed = assumption.after(is_cut)
            for number, own in self._places_by_form(places):
                for segment in self._forms[number].segments(own, bound, assumed):
                    yield replace(segment, form=number)

        path = least_time(borders, len(plain.names), plain.limit, between)
        return None if path is None else self._cuts(bound, path)

    def _places_by_form(self, plain: range) -> Iterator[tuple[int, range]]:
        """Yield each form that has both ends of places of the plain order, and a fused chain between them.

        The first form has no chains, and is always among them.
        """
        for number, places in enumerate(self._places):
            begin, end = places[plain.start], places[plain.stop]
            has_borders = 0 <= begin < end
            before = self._fused_before[number]
            if has_borders and (not number or before[begin] < before[end]):
                self._spend(_SEGMENT_UNITS)
                yield number, range(begin, end)

    def _cuts(self, bound: float, path: Sequence[PathSegment]) -> FusedCuts:
        fused: list[Chain] = []
        splits: list[Split] = []
        for segment in path:
            names, cut = self._forms[segment.form].names, segment.cut
            inside = (names[segment.place],) if cut is None else names[cut.first : cut.last + 1]
            if segment.form:
                fused += [self._chains[name] for name in inside if name in self._chains]
            if cut is not None:
                splits.append(Split(tuple(inside), "row", cut.rows, cut.apart, cut.staggered))
        ordered = (chain for chain in self._chains.values() if chain in fused)
        return FusedCuts(bound, tuple(ordered), tuple(splits))


def families(every: Sequence[Chain]) -> Iterator[tuple[Chain, ...]]:
    """Yield sets of chains: all of them, then the widest alone, twice as many, and so on."""
    yield tuple(every)
    count = 1
    while count < len(every):
        yield tuple(every[:count])
        count *= 2


def _places(plain: Sequence[str], fused: Sequence[str], stages: Mapping[str, Chain]) -> list[int]:
    """Return, by border of the plain order, the border of the fused order; -1 within a chain."""
    at = {name: place for place, name in enumerate(plain)}
    spans = [[at[stage] for stage in stages.get(name, (name,))] for name in fused]
    places = []
    for border in range(len(plain) + 1):
        before = [max(span) < border for span in spans]
        straddles = any(min(span) < border <= max(span) for span in spans)
        places.append(-1 if straddles or before != sorted(before, reverse=True) else sum(before))
    return places
