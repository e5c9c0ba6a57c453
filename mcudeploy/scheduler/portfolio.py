"""All schedulers of a problem, within a time limit: the best order, with what is known about better ones.

File order and heuristics come first, each forwards and backwards and tuned at its peak; then minimum cuts
raise the lower bound, the exact search and, for small problems, the integer program close the rest. Where
an order falls into pieces each piece has its own winner, and only those above the bound are worked on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.scheduler import exact, ilp
from mcudeploy.scheduler.beam import beam
from mcudeploy.scheduler.bounds import least_needs
from mcudeploy.scheduler.chain_dfs import chain_dfs
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.lifetime_bfs import lifetime_bfs
from mcudeploy.scheduler.pieces import in_pieces, reverse, turned
from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.refine import refine
from mcudeploy.scheduler.rpo import reverse_post_order_of
from mcudeploy.scheduler.set_aside import ordered_apart
from mcudeploy.scheduler.slack import Slack, sure_needs

BEAM_WIDTHS = (1, 8, 64)
MOST_ILP_STEPS = 60  # what CP-SAT proves within a minute or so

MOST_EXACT_STEPS = 1500  # beyond that the sets of the exact search fill the memory, not the time

HEURISTICS = ("rpo", "lifetime_bfs", "chain_dfs", "set_aside", "beam", "refine")
METHODS = (*HEURISTICS, "exact", "ilp")
_HEURISTICS_SHARE = 0.3  # of the CPU time, where proofs are looked for too
_BOUND_SHARE = 0.5  # of the time left then, for the minimum cuts of a piece
_EXACT_SHARE = 0.7  # of a piece's time, where the integer program comes too
# These are brakes: each method has its own measure of effort, and as a rule ends by that.


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
    set_aside: Collection[int] = (),
    methods: Collection[str] = METHODS,
    *,
    clock_seconds: float | None = None,
    interruptible: bool = False,
) -> Ordered:
    """The best order that `methods` find within some `seconds` of CPU time, never worse than the order of the
    numbers.

    `set_aside`: steps, such as updates of weights, that may be ordered after all others. `clock_seconds`:
    the time by the clock after which it ends anyway, by default as many. `interruptible`: Ctrl-C ends the
    search, not the program.
    """
    deadline = Deadline.after(seconds, seconds if clock_seconds is None else clock_seconds)
    pieces = _pieces(problem, set_aside)
    floor = max((piece.bound for piece in pieces), default=0)
    proofs = any(method not in HEURISTICS for method in methods)
    heuristics_end = deadline.share(_HEURISTICS_SHARE) if proofs else deadline
    try:
        for piece in _highest_first(pieces):
            _improve(piece, floor, heuristics_end, methods)
        if proofs:
            for bound in _close(pieces, floor, deadline, methods):
                floor = bound
    except KeyboardInterrupt:
        if not interruptible:
            raise
    order = tuple(piece.steps[step] for piece in pieces for step in piece.order)
    peak = problem.peak(order)
    method = next((piece.method for piece in _highest_first(pieces)), "file")
    return Ordered(order, peak, min(floor, peak), "optimal" if peak <= floor else "feasible", method)


def _highest_first(pieces: list[_Piece]) -> list[_Piece]:
    return sorted(pieces, key=lambda piece: -piece.peak)


def _improve(piece: _Piece, floor: int, deadline: Deadline, methods: Collection[str]) -> None:
    """Run the heuristics on a piece and tune what they find, until it is at `floor` or the time ends.

    The quick ones are tuned, the best first, before the beam searches begin. Of a wide piece only the best
    is: annealing, with which the exact search begins there, gains more in less time.
    """
    most = 1 if "exact" in methods and _is_wide(piece.problem) else None
    for heuristics in (_quick(piece, methods), _beams(piece, floor, deadline, methods)):
        found: list[tuple[int, str, Sequence[int]]] = []
        for method, order in heuristics:
            found.append((piece.problem.peak(order), method, order))
            piece.offer(order, method)
            if piece.peak <= floor or deadline.passed():
                return
        for _, method, order in sorted(found, key=lambda each: each[0])[:most] if "refine" in methods else ():
            if piece.peak <= floor or deadline.passed():
                return
            tuned = refine(piece.problem, order, deadline, floor)
            piece.offer(tuned, f"{method}, refined")


def _is_wide(problem: Problem) -> bool:
    return exact.WIDE_STEPS < problem.steps <= MOST_EXACT_STEPS


def _close(pieces: list[_Piece], floor: int, deadline: Deadline, methods: Collection[str]) -> Iterator[int]:
    """Raise the lower bounds of pieces and lower their peaks, until they meet or the time ends; the highest
    bound, ever higher. Only pieces above it are worked on.
    """
    for piece in _highest_first(pieces) if "exact" in methods else ():
        if piece.peak > floor:
            until = deadline if piece.problem.steps > MOST_EXACT_STEPS else deadline.share(_BOUND_SHARE)
            floor = max(floor, *least_needs(piece.problem, until, piece.peak))
            yield floor
    left = [piece for piece in _highest_first(pieces) if piece.problem.steps <= MOST_EXACT_STEPS]
    while left:
        piece = left.pop(0)
        if piece.peak > floor:
            others = sum(other.peak > floor for other in left)
            for bound in _prove(piece, floor, deadline.share(1 / (1 + others)), methods):
                floor = max(floor, bound)
                yield floor


def _prove(piece: _Piece, bound: int, deadline: Deadline, methods: Collection[str]) -> Iterator[int]:
    """Search a piece that has more than `bound` bytes; what is proven, ever more."""
    small = "ilp" in methods and piece.problem.steps <= MOST_ILP_STEPS
    if "exact" in methods and not deadline.passed():
        until = deadline.share(_EXACT_SHARE) if small else deadline
        for found in exact.search(piece.problem, piece.order, bound, until):
            piece.offer(found.order, "exact")
            bound = found.lower_bound_bytes
            yield bound
    if small and piece.peak > bound:
        found = ilp.solve(piece.problem, piece.order, bound, deadline)
        piece.offer(found.order, "ilp")
        yield found.lower_bound_bytes


def _pieces(problem: Problem, set_aside: Collection[int]) -> list[_Piece]:
    pieces = []
    for steps, part in in_pieces(problem):
        slack = Slack.of(part)
        aside = frozenset(place for place, step in enumerate(steps) if step in set_aside)
        order, bound = tuple(range(part.steps)), max(sure_needs(part, slack))
        pieces.append(_Piece(steps, part, slack, aside, order, part.peak(order), bound))
    return pieces


def _quick(piece: _Piece, methods: Collection[str]) -> Iterator[tuple[str, Sequence[int]]]:
    """Orders of a piece by one method after the other, with their names."""
    yield "file", piece.order
    if piece.problem.steps < 2:
        return
    backwards = reverse(piece.problem)
    if "rpo" in methods:
        yield "rpo", reverse_post_order_of(piece.problem)
        yield "rpo backwards", turned(reverse_post_order_of(backwards))
    if "lifetime_bfs" in methods:
        yield "lifetime_bfs", lifetime_bfs(piece.problem, piece.slack)
        yield "lifetime_bfs backwards", turned(lifetime_bfs(backwards, Slack.of(backwards)))
    if "chain_dfs" in methods:
        yield "chain_dfs", chain_dfs(piece.problem)
        yield "chain_dfs backwards", turned(chain_dfs(backwards))
    if "set_aside" in methods and piece.aside:
        apart = ordered_apart(piece.problem, piece.aside, lambda core: lifetime_bfs(core, Slack.of(core)))
        yield "set_aside", apart


def _beams(
    piece: _Piece, floor: int, deadline: Deadline, methods: Collection[str]
) -> Iterator[tuple[str, Sequence[int]]]:
    """Orders by beam searches, the narrow ones first; a search that runs out of time has none."""
    if "beam" not in methods or piece.problem.steps < 2:
        return
    backwards = reverse(piece.problem)
    for width in BEAM_WIDTHS:
        found = beam(piece.problem, width, floor, deadline)
        if found is not None:
            yield f"beam {width}", found
        found = beam(backwards, width, floor, deadline)
        if found is not None:
            yield f"beam {width} backwards", turned(found)
