"""All schedulers of a problem, within a time limit: the best order, with what is known about better ones.

File order and heuristics come first, each forwards and backwards and tuned at its peak; then minimum cuts
raise the lower bound, the exact search and, for small problems, the integer program close the rest. Where
an order falls into pieces each piece has its own winner, and only those above the bound are worked on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from mcudeploy.scheduler import exact as exact_search
from mcudeploy.scheduler import ilp
from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.chain_dfs import chain_dfs
from mcudeploy.scheduler.lifetime_bfs import lifetime_bfs
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.refine import refine
from mcudeploy.scheduler.set_aside import ordered_apart
from mcudeploy.scheduler.slack import Slack, in_pieces, lower_bound, reverse

BEAM_WIDTHS = (1, 8, 64)
MOST_ILP_STEPS = 60  # what CP-SAT proves within a minute or so

MOST_EXACT_STEPS = 1500  # beyond that the sets of the exact search fill the memory, not the time

METHODS = ("lifetime_bfs", "chain_dfs", "set_aside", "beam", "refine", "exact", "ilp")
_HEURISTICS_SHARE = 0.5  # of the time, where proofs are looked for too
_REFINE_SHARE = 0.25  # of the heuristics' time that is left, for tuning one order


@dataclass(frozen=True, slots=True)
class Ordered:
    """A valid order and its peak. No order has a peak below `lower_bound_bytes`; `status` is `optimal` where
    that is the peak, else `feasible`. `method`: what found the order of the piece that has the peak.
    """

    order: tuple[int, ...]
    peak_bytes: int
    lower_bound_bytes: int
    status: str
    method: str


@dataclass(slots=True)
class _Piece:
    """A piece of the order, the best for it so far and its lower bound."""

    steps: list[int]
    problem: Problem
    slack: Slack
    aside: frozenset[int]
    order: tuple[int, ...]
    peak: int
    bound: int
    method: str = "file"

    def offer(self, order: Sequence[int], method: str) -> None:
        """Take an order if it is better."""
        peak = self.problem.peak(order)
        if peak < self.peak:
            self.order, self.peak, self.method = tuple(order), peak, method


def best_order(
    problem: Problem,
    seconds: float,
    exact: bool = True,
    set_aside: Collection[int] = (),
    methods: Collection[str] = METHODS,
) -> Ordered:
    """The best order that `methods` find within some `seconds`, never worse than the order of the numbers.

    `exact`: look for proofs too; else heuristics only. `set_aside`: steps, such as updates of weights,
    that may be ordered after all others.
    """
    start = monotonic()
    deadline = start + seconds
    pieces = _pieces(problem, set_aside)
    floor = max((piece.bound for piece in pieces), default=0)
    heuristics_end = start + seconds * (_HEURISTICS_SHARE if exact else 1)
    for piece in sorted(pieces, key=lambda piece: -piece.peak):
        _improve(piece, floor, heuristics_end, methods)
    if exact:
        for piece in sorted(pieces, key=lambda piece: -piece.peak):
            if piece.peak > floor:
                _close(piece, floor, deadline, methods)
                floor = max(floor, piece.bound)
    order = tuple(piece.steps[step] for piece in pieces for step in piece.order)
    peak = problem.peak(order)
    highest = max(pieces, key=lambda piece: piece.peak, default=None)
    status = "optimal" if peak <= floor else "feasible"
    return Ordered(order, peak, min(floor, peak), status, highest.method if highest else "file")


def _improve(piece: _Piece, floor: int, deadline: float, methods: Collection[str]) -> None:
    """Run the heuristics on a piece and tune what they find, until it is at `floor` or the time ends.

    The quick ones are tuned, the best first, before the beam searches begin.
    """
    for heuristics in (_quick(piece, methods), _beams(piece, floor, deadline, methods)):
        found: list[tuple[int, str, Sequence[int]]] = []
        for method, order in heuristics:
            found.append((piece.problem.peak(order), method, order))
            piece.offer(order, method)
            if piece.peak <= floor or monotonic() > deadline:
                return
        for _, method, order in sorted(found, key=lambda each: each[0]) if "refine" in methods else ():
            left = deadline - monotonic()
            if piece.peak <= floor or left <= 0:
                return
            tuned = refine(piece.problem, order, left * _REFINE_SHARE, floor)
            piece.offer(tuned, f"{method}, refined")


def _close(piece: _Piece, floor: int, deadline: float, methods: Collection[str]) -> None:
    """Raise the lower bound of a piece and lower its peak, until they or the time ends."""
    if piece.problem.steps > MOST_EXACT_STEPS:
        needs = least_needs(piece.problem, deadline, piece.peak)
        piece.bound = max(piece.bound, min(piece.peak, max(needs)))
        return
    small = "ilp" in methods and piece.problem.steps <= MOST_ILP_STEPS
    if "exact" in methods:
        seconds = (deadline - monotonic()) * (0.7 if small else 1)
        if seconds > 0:
            found = exact_search.search(piece.problem, seconds, piece.order)
            if found.order is not None:
                piece.offer(found.order, "exact")
            piece.bound = max(piece.bound, found.lower_bound_bytes)
    if small and piece.peak > max(floor, piece.bound) and monotonic() < deadline:
        solved = ilp.solve(piece.problem, piece.order, deadline - monotonic())
        piece.offer(solved.order, "ilp")
        piece.bound = max(piece.bound, min(piece.peak, solved.lower_bound_bytes))


def _pieces(problem: Problem, set_aside: Collection[int]) -> list[_Piece]:
    pieces = []
    for steps, part in in_pieces(problem, Slack.of(problem)):
        slack = Slack.of(part)
        aside = frozenset(place for place, step in enumerate(steps) if step in set_aside)
        order = tuple(range(part.steps))
        pieces.append(_Piece(steps, part, slack, aside, order, part.peak(order), lower_bound(part, slack)))
    return pieces


def _quick(piece: _Piece, methods: Collection[str]) -> Iterator[tuple[str, Sequence[int]]]:
    """Orders of a piece by one method after the other, with their names."""
    yield "file", piece.order
    if piece.problem.steps < 2:
        return
    backwards = reverse(piece.problem)
    if "lifetime_bfs" in methods:
        yield "lifetime_bfs", lifetime_bfs(piece.problem, piece.slack)
        yield "lifetime_bfs backwards", _turned(lifetime_bfs(backwards, Slack.of(backwards)))
    if "chain_dfs" in methods:
        yield "chain_dfs", chain_dfs(piece.problem)
        yield "chain_dfs backwards", _turned(chain_dfs(backwards))
    if "set_aside" in methods and piece.aside:
        apart = ordered_apart(piece.problem, piece.aside, lambda core: lifetime_bfs(core, Slack.of(core)))
        yield "set_aside", apart


def _beams(
    piece: _Piece, floor: int, deadline: float, methods: Collection[str]
) -> Iterator[tuple[str, Sequence[int]]]:
    """Orders by beam searches, the narrow ones first; a search that runs out of time has none."""
    if "beam" not in methods or piece.problem.steps < 2:
        return
    backwards = reverse(piece.problem)
    for width in BEAM_WIDTHS:
        found = beam(piece.problem, width, floor, deadline - monotonic())
        if found is not None:
            yield f"beam {width}", found
        found = beam(backwards, width, floor, deadline - monotonic())
        if found is not None:
            yield f"beam {width} backwards", _turned(found)


def _turned(order: Sequence[int]) -> list[int]:
    """An order of the problem run backwards as one of the problem."""
    return [len(order) - 1 - step for step in reversed(order)]
