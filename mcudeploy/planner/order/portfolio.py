"""All schedulers of a problem, within some effort: the best order and a lower bound.

Quick heuristics come first, forwards and backwards and refined at their peaks. Minimum cuts then raise the
lower bound. Beam searches and the exact search on the contracted problem close the remaining gap. Each
component of the series decomposition has its own best order, and only components above the bound get effort.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.common.effort import Effort
from mcudeploy.common.solver import require_solver
from mcudeploy.planner.order.beam import beam
from mcudeploy.planner.order.bounds import least_needs, sure_needs
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.contract import contracted
from mcudeploy.planner.order.derived import reverse, turned
from mcudeploy.planner.order.exact import best_first
from mcudeploy.planner.order.order_problem import OrderProblem
from mcudeploy.planner.order.published.chain_dfs import chain_dfs
from mcudeploy.planner.order.published.deferred_updates import with_deferred_updates
from mcudeploy.planner.order.published.lifetime_bfs import lifetime_bfs
from mcudeploy.planner.order.published.refine import refine
from mcudeploy.planner.order.rpo import reverse_post_order_of
from mcudeploy.planner.order.series import in_series

_LOG = logging.getLogger(__name__)

METHODS = ("rpo", "lifetime_bfs", "chain_dfs", "deferred_updates", "refine", "beam", "exact", "ilp")
DEFAULT = METHODS[:-1]
"""The integer program proves nothing that the exact search does not."""

_FALL_BACK = ("lifetime_bfs", "chain_dfs", "refine")
"""The published methods for graphs that are too large for the integer program."""
_PROGRAM_SHARE = 0.8
"""The share of the effort for the integer program; the rest is for refinement after it."""

BEAM_WIDTHS = (1, 8, 64, 256)
_STEP_UNITS = 16.0
"""Effort of a quick heuristic per step."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """A valid order and its peak.

    No order has a peak below `lower_bound_bytes`; `status` is `optimal` if that equals the peak, else
    `feasible`. `method` names the method that produced the order of the component with the peak.
    """

    order: tuple[int, ...]
    peak_bytes: int
    lower_bound_bytes: int
    status: str
    method: str


@dataclass(slots=True)
class _Component:
    """A component, the certain needs of its steps, the best order so far and its lower bound."""

    steps: list[int]
    problem: OrderProblem
    needs: list[int]
    updates: frozenset[int]
    order: tuple[int, ...]
    peak: int
    bound: int
    method: str = "file"
    smaller: tuple[OrderProblem, list[int]] | None = None

    def contracted(self, effort: Effort) -> tuple[OrderProblem, list[int]]:
        """Return the problem with the dependences that cost nothing, and its steps' numbers here."""
        if self.smaller is None:
            self.smaller = contracted(self.problem, effort)
        return self.smaller

    def offer(self, order: Sequence[int], method: str) -> int:
        """Take an order if it is better; return its peak."""
        peak = self.problem.peak(order)
        if peak < self.peak:
            self.order, self.peak, self.method = tuple(order), peak, method
        return peak


def best_order(
    problem: OrderProblem,
    effort: Effort,
    methods: Collection[str] = DEFAULT,
    *,
    updates: Collection[int] = (),
    interruptible: bool = False,
) -> Ordered:
    """Return the best order that `methods` produce with some effort, never worse than the numbered order.

    `updates`: steps, such as updates of weights, that may be deferred. `interruptible`: Ctrl-C ends the
    search, not the program. Raises UsageError for `ilp` without OR-Tools.
    """
    if "ilp" in methods:
        require_solver("the method ilp")
    components = [_component(steps, part, updates) for steps, part in in_series(problem)]
    floor = max((component.bound for component in components), default=0)
    try:
        for bound in _search(components, floor, effort, methods):
            floor = max(floor, bound)
    except KeyboardInterrupt:
        if not interruptible:
            raise
        _LOG.warning("interrupted: the search ends with the best order so far")
    order = tuple(component.steps[step] for component in components for step in component.order)
    peak = problem.peak(order)
    method = next((component.method for component in _highest_first(components)), "file")
    return Ordered(order, peak, min(floor, peak), "optimal" if peak <= floor else "feasible", method)


def _component(steps: list[int], problem: OrderProblem, updates: Collection[int]) -> _Component:
    needs = sure_needs(problem, Closure.of(problem))
    own = frozenset(place for place, step in enumerate(steps) if step in updates)
    order = tuple(range(problem.steps))
    return _Component(steps, problem, needs, own, order, problem.peak(order), max(needs, default=0))


def _highest_first(components: list[_Component]) -> list[_Component]:
    return sorted(components, key=lambda component: -component.peak)


def _search(
    components: list[_Component], floor: int, effort: Effort, methods: Collection[str]
) -> Iterator[int]:
    """Lower peaks and raise lower bounds until they meet or the effort is spent; yield the bounds.

    Only components above the highest bound get effort.
    """
    for stage, share in _STAGES if "exact" in methods else ((stage, 1.0) for stage, _ in _STAGES):
        within = effort.part(share)
        left = [each for each in _highest_first(components) if each.peak > floor]
        for place, component in enumerate(left):
            if component.peak > floor and not within.is_spent():
                own = within.part(1 / (len(left) - place))
                floor = max(floor, stage(component, floor, own, methods))
                yield floor


def _heuristics(component: _Component, floor: int, effort: Effort, methods: Collection[str]) -> int:
    """Run quick heuristics, then refine their orders, the best first."""
    found = []
    for method, order in _quick(component, methods):
        effort.spend(_STEP_UNITS * component.problem.steps)
        found.append((component.offer(order, method), method, order))
        if component.peak <= floor:
            return floor
    if "refine" in methods:
        for _, method, order in sorted(found, key=lambda each: each[0]):
            _refine(component, floor, effort, method, order)
    return floor


def _refine(component: _Component, floor: int, effort: Effort, method: str, order: Sequence[int]) -> None:
    if component.peak > floor and not effort.is_spent():
        component.offer(refine(component.problem, order, effort, floor), f"{method}, refined")


def _quick(component: _Component, methods: Collection[str]) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the orders of a component by each method in turn, with the methods' names."""
    problem = component.problem
    backwards = reverse(problem)
    yield "file", component.order
    if "rpo" in methods:
        yield "rpo", reverse_post_order_of(problem)
        yield "rpo backwards", turned(reverse_post_order_of(backwards))
    if "lifetime_bfs" in methods:
        yield "lifetime_bfs", lifetime_bfs(problem)
        yield "lifetime_bfs backwards", turned(lifetime_bfs(backwards))
    if "chain_dfs" in methods:
        yield "chain_dfs", chain_dfs(problem)
        yield "chain_dfs backwards", turned(chain_dfs(backwards))
    if "deferred_updates" in methods and component.updates:
        for solve in (chain_dfs, lifetime_bfs):
            yield "deferred_updates", with_deferred_updates(problem, component.updates, solve)


def _minimum_cuts(component: _Component, floor: int, effort: Effort, methods: Collection[str]) -> int:
    """Raise the lower bound by minimum cuts."""
    if "exact" not in methods:
        return floor
    return max(least_needs(component.problem, component.needs, effort, component.peak))


def _beams(component: _Component, floor: int, effort: Effort, methods: Collection[str]) -> int:
    """Run beam searches on the contracted problem, the narrow ones first, forwards and backwards."""
    if "beam" not in methods:
        return floor
    problem, numbers = component.contracted(effort)
    backwards = reverse(problem)
    for width in BEAM_WIDTHS:
        for name, way in (f"beam {width}", problem), (f"beam {width} backwards", backwards):
            if component.peak <= floor or effort.is_spent():
                return floor
            beam_order = beam(way, width, floor, effort)
            if beam_order is not None:
                order = [numbers[step] for step in (turned(beam_order) if way is backwards else beam_order)]
                component.offer(order, name)
                if "refine" in methods:
                    _refine(component, floor, effort, name, order)
    return floor


def _prove(component: _Component, floor: int, effort: Effort, methods: Collection[str]) -> int:
    """Run the exact search on the contracted problem."""
    if "exact" not in methods:
        return floor
    problem, numbers = component.contracted(effort)
    outcome = best_first(problem, floor, component.peak, effort)
    if outcome.order is not None:
        component.offer([numbers[step] for step in outcome.order], "exact")
    return outcome.bound_bytes


def _program(component: _Component, floor: int, effort: Effort, methods: Collection[str]) -> int:
    """Solve the integer program; where the effort ends before its proof, use the heuristics of its source."""
    if "ilp" not in methods:
        return floor
    from mcudeploy.planner.order.published import ilp  # noqa: PLC0415 - the solver takes long to import

    outcome = ilp.solve(component.problem, component.order, floor, effort.part(_PROGRAM_SHARE))
    if outcome.order is not None:
        component.offer(outcome.order, "ilp")
    if component.peak > outcome.bound_bytes:
        _heuristics(component, outcome.bound_bytes, effort, _FALL_BACK)
    return outcome.bound_bytes


_STAGES = ((_heuristics, 0.3), (_minimum_cuts, 0.4), (_beams, 0.5), (_prove, 1.0), (_program, 1.0))
"""The stages in sequence, each with its share of the remaining effort, if optimality is to be proven."""
