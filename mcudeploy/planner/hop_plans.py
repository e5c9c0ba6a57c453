"""Plans of a window that moves: the rows to keep are chosen together with the plan."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError
from mcudeploy.common.interrupts import signalled
from mcudeploy.common.progress import SILENT, Progress, Report, no_report
from mcudeploy.costs.tiles import KnownSource, nothing_known
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.hop.choices import choices
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import HopCurve, HopPoint, Planned, find_plans, search_plans

_MOST = 7
"""Number of choices of kept rows that are planned."""

_SHARE = 0.5
"""Share of the time limit for planning these choices; the best one continues with the rest."""


def find_hop_plans(
    model: Model,
    board: Board,
    options: Options,
    *,
    report: Report = no_report,
    progress: Progress = SILENT,
    known: KnownSource = nothing_known,
) -> Planned:
    """Return plans of a model whose window moves, for the rows to keep that suit the limits best.

    The latency limit is relative to the fastest unsplit plan of any choice. With a RAM limit, the fastest
    plan that fits is chosen. Ctrl-C ends the search with the best of the choices planned so far. Raises
    FitError if no choice fits.
    """
    if model.window is None:
        raise ValueError("the model has no window")
    models = [model.keeping(keeping) for keeping in choices(model.window, _MOST)]
    bases = [search_plans(one, board, replace(options, split=False), known=known).baseline for one in models]
    limit = min(base.estimate.latency_ticks for base in bases) * (1 + options.overhead_limit / 100)
    share = replace(options, time_limit=options.time_limit * _SHARE / len(models))
    results: list[Planned] = []
    for number, (one, base) in enumerate(zip(models, bases, strict=True), 1):
        progress.stage(f"planning the rows to keep, choice {number} of {len(models)}")
        own = _own_overhead(base, limit, options)
        with suppress(FitError):
            plans = find_plans(one, board, replace(share, max_overhead=own), known=known)
            results.append(replace(plans, own_overhead=own))
        if signalled() or (results and results[-1].interrupted):
            break
    if not results:  # the smallest choice may fit with all the effort
        smallest = min(zip(bases, models, strict=True), key=lambda it: it[0].layout.arena_bytes)[1]
        results.append(find_plans(smallest, board, options, progress=progress, known=known))
    best = min(results, key=lambda it: _rank(it, limit, options.ram_limit))
    interrupted = any(it.interrupted for it in results)
    if options.split and not interrupted:
        same_rows, own = model.same_rows(best.baseline.graph), best.limit(options.overhead_limit)
        rest = replace(options, time_limit=options.time_limit * (1 - _SHARE), max_overhead=own)
        progress.stage("planning the chosen rows")
        start = next(iter(best.candidates), None)
        best = find_plans(same_rows, board, rest, start=start, report=report, progress=progress, known=known)
        best = replace(best, own_overhead=own)
    best = replace(best, interrupted=interrupted or best.interrupted)
    whole = search_plans(model.of_window(model.isa), board, replace(options, split=False), known=known)
    return replace(best, hop_curve=HopCurve(tuple(map(_first_point, results)), _first_point(whole)))


def smallest_choice(model: Model, board: Board, options: Options) -> Model:
    """Return the model that keeps all rows, or the input's alone, whichever has the smaller unsplit plan."""

    def arena_bytes(one: Model) -> int:
        return search_plans(one, board, replace(options, split=False)).baseline.layout.arena_bytes

    return min((model, model.keeping({})), key=arena_bytes)


def hop_point(model: Model, plan: Plan) -> HopPoint:
    """Return the point of a plan on the curve of choices; `model` has the plan's form and kernels."""
    graph, hop = plan.graph, plan.graph.hop
    return HopPoint(
        keeping=() if hop is None else hop.keeping,
        state_bytes=sum(graph.tensors[state.tensor].size_bytes for state in graph.states),
        arena_bytes=plan.layout.arena_bytes,
        macs=model.macs,
        ticks=plan.estimate.latency_ticks,
    )


def _own_overhead(base: Plan, limit: float, options: Options) -> float:
    """Return the limit of latency in percent over an unsplit plan; if that exceeds it, the options' limit."""
    ticks = base.estimate.latency_ticks
    if options.ram_limit is not None or not 0 < ticks <= limit:
        return options.overhead_limit
    return 100 * (limit / ticks - 1)


def _first_point(planned: Planned) -> HopPoint:
    plan = planned.choices[0]
    return hop_point(planned.model_of(plan), plan)


def _rank(planned: Planned, limit: float, ram_limit: int | None) -> tuple[bool, float, float]:
    """Return the key of plans, less is better: the fastest with a RAM limit, else the smallest in time."""
    if ram_limit is not None:
        plan = planned.choices[0]
        return False, plan.estimate.latency_ticks, plan.layout.arena_bytes
    within = [plan for plan in planned.choices if plan.estimate.latency_ticks <= limit * (1 + 1e-9)]
    if not within:
        return True, planned.choices[-1].estimate.latency_ticks, 0.0
    plan = min(within, key=lambda it: it.layout.arena_bytes)
    return False, plan.layout.arena_bytes, plan.estimate.latency_ticks
