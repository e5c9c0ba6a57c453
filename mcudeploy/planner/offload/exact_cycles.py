"""An exact model for small traces by CP-SAT, with one choice for each gap between two uses.

In the manner of POET. For each item and step that reads it, the model chooses whether the item stays until
then, returns, or is accessed directly; no step is repeated. The capacity holds at every step; one engine
serves transfers in sequence, over time. A version of an item is written out once at most, when it is computed
or later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcudeploy.common.effort import Effort
from mcudeploy.common.solver import cp_solver, require_solver
from mcudeploy.ir.trace import MemoryLink, Trace
from mcudeploy.planner.offload.trace_residency import Use, uses_of

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MOST_STEPS = 40
_TICKS = 200_000  # the steps of the trace together
_UNITS_PER_EFFORT = 1e6


@dataclass(frozen=True, slots=True)
class ExactBound:
    """Cycles of the best choice found, and a lower bound for any choice; `optimal` if both are equal."""

    cycles: float
    bound_cycles: float
    optimal: bool


def exact_cycles(trace: Trace, capacity_bytes: int, link: MemoryLink, effort: Effort) -> ExactBound | None:
    """Return the cycles of the best choices for a trace of at most 40 steps, or None if none was found.

    The engine must work while the core computes, and no item may be fixed and given. Raises UsageError
    without OR-Tools.
    """
    require_solver("the exact model")
    if len(trace.steps) > MOST_STEPS:
        raise ValueError(f"{len(trace.steps)} steps, the exact model takes {MOST_STEPS} at most")
    from ortools.sat.python import cp_model  # noqa: PLC0415 - slow to import

    model = cp_model.CpModel()
    built = _CyclesModel(model, trace, capacity_bytes, link)
    built.build()
    solver = cp_solver(max(1.0, effort.clock_left), effort=effort.left / _UNITS_PER_EFFORT)
    status = solver.solve(model)
    effort.spend(solver.response_proto.deterministic_time * _UNITS_PER_EFFORT)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return ExactBound(
        solver.objective_value * built.tick,
        solver.best_objective_bound * built.tick,
        status == cp_model.OPTIMAL,
    )


class _CyclesModel:
    """The variables. By step: its start, its end, the terms of its bytes (`load`) and time (`spent`)."""

    def __init__(self, model: cp_model.CpModel, trace: Trace, capacity: int, link: MemoryLink) -> None:
        self._model, self._trace, self._capacity, self._link = model, trace, capacity, link
        total = sum(step.cycles for step in trace.steps)
        self._linked = link.read_rate > 0 and link.write_rate > 0
        self.tick = max(total, 1.0) / _TICKS
        horizon = _TICKS * 50
        count = len(trace.steps)
        self._starts = [model.new_int_var(0, horizon, f"s{k}") for k in range(count + 1)]
        self._ends = [model.new_int_var(0, horizon, f"e{k}") for k in range(count)]
        self._load: list[list[Any]] = [[step.work_bytes] for step in trace.steps]
        self._spent: list[list[Any]] = [[round(step.cycles / self.tick)] for step in trace.steps]
        self._engine: list[Any] = []
        self._direct: dict[tuple[int, int], Any] = {}

    def build(self) -> None:
        """Build all variables and constraints, and the objective: the end of all steps and transfers."""
        self._uses = uses_of(self._trace)
        for number in range(len(self._trace.items)):
            self._item(number)
        for k, load in enumerate(self._load):
            self._model.add(sum(load) <= self._capacity)
            self._model.add(self._ends[k] == self._starts[k] + sum(self._spent[k]))
            self._model.add(self._starts[k + 1] >= self._ends[k])
        self._model.add_no_overlap(self._engine)
        self._model.minimize(self._starts[-1])

    def _item(self, number: int) -> None:
        """Add an item's versions in sequence, each with the steps that read it."""
        item, uses = self._trace.items[number], self._uses[number]
        end = len(self._trace.steps)
        born, reads = -1, list[int]()
        for step, reading, writing, _ in [*uses, Use(end, item.kept, writes=True, direct=False)]:
            if reading and step < end:
                reads.append(step)
            if writing:
                last = step == end
                if born >= 0 or item.given or item.loaded:
                    limit = end if last else step + reading
                    self._version(number, born, reads, limit, kept=last and item.kept)
                born, reads = step, []

    def _version(self, number: int, born: int, reads: list[int], limit: int, *, kept: bool) -> None:
        """Add a version of an item, which step `born` writes (-1: none does), and which `limit` replaces."""
        model, item = self._model, self._trace.items[number]
        initial = born < 0
        begins_fast: Any = int(item.loaded or (item.given and item.fixed)) if initial else 1
        begins_slow: Any = int(item.given) if initial else 0
        if not initial and (operand := self._operand(number, born, writes=True)) is not None:
            begins_fast = operand.negated()
            begins_slow = operand
        if born >= 0:
            self._load[born].append(item.size_bytes * begins_fast)
        saved, unsaved = self._written_out(number, born, begins_fast, limit)
        valid = model.new_bool_var("")
        model.add(valid <= saved + begins_slow)
        was_fast, last = begins_fast, born
        # By step: the variables that hold the bytes of the version in the fast memory.
        holding: dict[int, list[Any]] = {step: list(unsaved.get(step, ())) for step in range(born + 1, limit)}
        for reader in reads:
            stays, returns = (model.new_bool_var("") for _ in range(2))
            is_fast = model.new_bool_var(f"here{number}_{reader}")
            model.add(stays <= was_fast)
            model.add(is_fast == stays + returns)
            model.add(returns <= valid)
            if item.fixed:
                model.add(stays == 1)
            direct = self._operand(number, reader, writes=False)
            model.add(is_fast + (0 if direct is None else direct) >= 1)
            if direct is not None:
                model.add(direct <= valid)
                model.add(direct + is_fast <= 1)
            if born != reader:
                holding.setdefault(reader, []).append(is_fast)
            for step, begun in self._come_back(number, last, reader, returns, saved).items():
                holding[step].append(begun)
            for step in range(last + 1, reader):
                holding[step].append(stays)
            was_fast, last = is_fast, reader
        if kept:
            stays = self._kept(item.fixed, was_fast, valid)
            for step in range(last + 1, len(self._trace.steps)):
                holding[step].append(stays)
        for step, reasons in holding.items():
            self._hold(number, step, reasons)

    def _kept(self, fixed: bool, before: Any, valid: Any) -> Any:
        """Require that an item stays to the end, or else that its copy in the slow memory is valid then."""
        stay = self._model.new_bool_var("")
        self._model.add(stay <= before)
        self._model.add(stay + (0 if fixed else valid) >= 1)
        return stay

    def _hold(self, number: int, step: int, reasons: list[Any]) -> None:
        size = self._trace.items[number].size_bytes
        if reasons and size:
            held = self._model.new_bool_var("")
            for reason in reasons:
                self._model.add(held >= reason)
            self._load[step].append(size * held)

    def _operand(self, number: int, at: int, *, writes: bool) -> Any | None:
        """Return whether the operand of an access is direct; one variable for all its items."""
        step = self._trace.steps[at]
        own = next(access for access in step.accesses if access.item == number and access.writes == writes)
        group = [access for access in step.accesses if access.operand == own.operand]
        alone = all(access.operand == own.operand for access in step.accesses if access.item == number)
        if not self._linked or not alone or any(access.direct_bytes is None for access in group):
            return None
        if any(self._trace.items[access.item].fixed for access in group):
            return None
        key = at, own.operand
        if key not in self._direct:
            self._direct[key] = self._model.new_bool_var(f"direct{at}_{own.operand}")
            rates = self._link.write_rate, self._link.read_rate
            cost = sum((access.direct_bytes or 0) / rates[not access.writes] for access in group)
            self._spent[at].append(round(cost / self.tick) * self._direct[key])
        return self._direct[key]

    def _transfer(self, number: int, direction: Any, active: Any) -> Any:
        model = self._model
        size = round(self._link.cycles(self._trace.items[number].size_bytes, direction) / self.tick)
        start = model.new_int_var(0, _TICKS * 50, "")
        self._engine.append(model.new_optional_fixed_size_interval_var(start, size, active, ""))
        return start, size

    def _written_out(
        self, number: int, born: int, there: Any, limit: int
    ) -> tuple[Any, dict[int, list[Any]]]:
        """Return whether a version is written out and, by step, whether it must be held until then."""
        model = self._model
        saved = model.new_bool_var("")
        if not self._linked:
            model.add(saved == 0)
            return saved, {}
        model.add(saved <= there)
        start, size = self._transfer(number, "out", saved)
        model.add(start >= (self._ends[born] if born >= 0 else 0)).only_enforce_if(saved)
        unsaved: dict[int, list[Any]] = {}
        for step in range(born + 1, limit):
            left = model.new_bool_var("")
            model.add(start + size <= self._starts[step]).only_enforce_if(saved, left.negated())
            unsaved[step] = [left]
        self._out_end = start + size
        if limit >= len(self._trace.steps):
            model.add(start + size <= self._starts[-1]).only_enforce_if(saved)
        return saved, unsaved

    def _come_back(self, number: int, last: int, reader: int, back: Any, saved: Any) -> dict[int, Any]:
        """Return, by step, whether the transfer inwards for step `reader` has begun."""
        model = self._model
        if not self._linked:
            model.add(back == 0)
            return {}
        start, size = self._transfer(number, "in", back)
        model.add(start + size <= self._starts[reader]).only_enforce_if(back)
        model.add(start >= self._out_end).only_enforce_if(back, saved)
        model.add(start >= (self._ends[last] if last >= 0 else 0)).only_enforce_if(back)
        begun_by: dict[int, Any] = {}
        for step in range(last + 1, reader):
            begun = model.new_bool_var("")
            model.add(start >= self._ends[step]).only_enforce_if(back, begun.negated())
            begun_by[step] = begun
        return begun_by
