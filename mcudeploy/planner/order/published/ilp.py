"""The order with the least peak as an integer program, solved by OR-Tools CP-SAT.

Source: the published patent on exact, then heuristic, then tuned execution orders, first stage, after OLLA;
here in interval form.

1. Each step has a distinct place within [ASAP, ALAP].
2. Each buffer is an interval from its first step to its last. Sizes are divided by their greatest common
   divisor.
3. All intervals together are a cumulative resource. Its capacity is the peak, which is minimised.
4. The best known order is the warm start.

It serves small graphs, and checks the exact search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ortools.sat.python import cp_model

from mcudeploy.common.effort import UNITS_PER_SECOND, Effort
from mcudeploy.common.solver import cp_solver
from mcudeploy.planner.order.closure import Closure
from mcudeploy.planner.order.order_problem import OrderOutcome, OrderProblem, mask_of

_SOLVER_UNITS = 2.0 * UNITS_PER_SECOND
"""Effort of a unit of the solver's deterministic time."""

_Expression = cp_model.LinearExpr | int


def solve(problem: OrderProblem, warm: Sequence[int], bound: int, effort: Effort) -> OrderOutcome:
    """Return an order better than the warm start, if there is one, and what the solver has proven.

    `bound`: bytes that are known to be needed.
    """
    peak = problem.peak(warm)
    if bound >= peak or effort.is_spent():
        return OrderOutcome(None, min(bound, peak))
    program = _Program(problem, Closure.of(problem), bound, peak)
    for at, step in enumerate(warm):
        program.model.add_hint(program.place[step], at)
    solver = cp_solver(effort.clock_left, effort=effort.left / _SOLVER_UNITS)
    status = solver.solve(program.model)
    effort.spend(_SOLVER_UNITS * solver.response_proto.deterministic_time)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return OrderOutcome(None, bound)
    proven = max(bound, program.bytes_of(math.ceil(solver.best_objective_bound - 1e-6)))
    order = sorted(range(problem.steps), key=lambda step: solver.value(program.place[step]))
    # The solver may take a later in-place candidate than the first that applies, so its peak may be unreal.
    return OrderOutcome(order if problem.peak(order) < peak else None, proven)


class _Program:
    """The integer program. Buffers that are always live are in `constant` instead."""

    def __init__(self, problem: OrderProblem, closure: Closure, bound: int, peak: int) -> None:
        self.problem, self.closure = problem, closure
        self.model = cp_model.CpModel()
        always = [b for b in problem.buffers if b.kept and (b.initial or not b.touched_by)]
        self.constant = sum(buffer.size_bytes for buffer in always)
        sizes = [b.size_bytes for b in problem.buffers if b not in always and b.size_bytes]
        levels = {level for number in range(len(problem.buffers)) for level in self._levels(number)}
        self.unit = math.gcd(*sizes, *levels) or 1
        self.place = [
            self.model.new_int_var(low, high, f"t{step}")
            for step, (low, high) in enumerate(zip(closure.asap, closure.alap, strict=True))
        ]
        self.model.add_all_different(self.place)
        for step, needed in enumerate(problem.before):
            for other in needed:
                self.model.add(self.place[other] < self.place[step])
        self.taken = self._chances()
        intervals: list[cp_model.IntervalVar] = []
        demands: list[int] = []
        for number, buffer in enumerate(problem.buffers):
            if buffer not in always and buffer.size_bytes and (buffer.touched_by or buffer.initial):
                self._add(number, intervals, demands)
        # Rounded down: the bound may be that of another component, and all bounds within it are alike.
        least = max(bound - self.constant, 0) // self.unit
        capacity = self.model.new_int_var(least, max(least, -(-(peak - self.constant) // self.unit)), "peak")
        self.model.add_cumulative(intervals, demands, capacity)
        self.model.minimize(capacity)

    def bytes_of(self, capacity: int) -> int:
        """Return the peak for a value of the objective."""
        return capacity * self.unit + self.constant

    def _levels(self, number: int) -> list[int]:
        """Return the possible savings of in-place candidates on an output, ascending."""
        problem = self.problem
        return sorted({problem.saving(chance) for chance in problem.chances if chance.output == number})

    def _chances(self) -> dict[int, cp_model.IntVar]:
        """Return, for each in-place candidate that an order can use, by index, whether it is used."""
        taken: dict[int, cp_model.IntVar] = {}
        by_step: dict[int, list[cp_model.IntVar]] = {}
        for number, chance in enumerate(self.problem.chances):
            step, buffers = chance.step, self.problem.buffers
            readers = [other for other in buffers[chance.input].touched_by if other != step]
            later = [other for other in buffers[chance.output].touched_by if other != step]
            if any(self.closure.descendants[step] >> other & 1 for other in readers):
                continue
            if any(self.closure.ancestors[step] >> other & 1 for other in later):
                continue
            taken[number] = is_taken = self.model.new_bool_var(f"x{number}")
            by_step.setdefault(step, []).append(is_taken)
            for other in readers:
                self.model.add(self.place[other] < self.place[step]).only_enforce_if(is_taken)
            for other in later:
                self.model.add(self.place[other] > self.place[step]).only_enforce_if(is_taken)
        for several in by_step.values():
            self.model.add_at_most_one(several)
        return taken

    def _add(self, number: int, intervals: list[cp_model.IntervalVar], demands: list[int]) -> None:
        """Add a buffer's interval; if it can be written in place, the saved part begins a step later."""
        size = self.problem.buffers[number].size_bytes
        begin, end = self._begin(number), self._end(number)
        low = 0
        for level in (*self._levels(number), size):
            later = [
                is_taken
                for at, is_taken in self.taken.items()
                if self.problem.chances[at].output == number
                and self.problem.saving(self.problem.chances[at]) >= level
            ]
            if level > low:
                start = self._after(begin, later)
                length = self.model.new_int_var(0, self.problem.steps, f"l{number}.{level}")
                intervals.append(self.model.new_interval_var(start, length, end, f"b{number}.{level}"))
                demands.append((level - low) // self.unit)
                low = level

    def _after(self, begin: _Expression, taken: list[cp_model.IntVar]) -> _Expression:
        """Return a place: `begin`, or one later if one of these candidates is used."""
        if not taken:
            return begin
        start = self.model.new_int_var(0, self.problem.steps, "")
        self.model.add(start == cp_model.LinearExpr.sum([begin, *taken]))
        return start

    def _begin(self, number: int) -> _Expression:
        buffer = self.problem.buffers[number]
        if buffer.initial:
            return 0
        everyone = mask_of(buffer.touched_by)
        for step in buffer.touched_by:
            if not everyone & ~(self.closure.descendants[step] | 1 << step):
                return self.place[step]
        first = self.model.new_int_var(0, self.problem.steps, f"f{number}")
        self.model.add_min_equality(first, [self.place[step] for step in buffer.touched_by])
        return first

    def _end(self, number: int) -> _Expression:
        buffer = self.problem.buffers[number]
        if buffer.kept:
            return self.problem.steps
        if not buffer.touched_by:
            return 1
        everyone = mask_of(buffer.touched_by)
        for step in buffer.touched_by:
            if not everyone & ~(self.closure.ancestors[step] | 1 << step):
                return self.place[step] + 1
        last = self.model.new_int_var(0, self.problem.steps, f"e{number}")
        self.model.add_max_equality(last, [self.place[step] + 1 for step in buffer.touched_by])
        return last
