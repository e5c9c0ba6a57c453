"""The content of a report for one board: figures as text, bars in percent, pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.codegen.html_template import as_data, trusted
from mcudeploy.common.text import count_text, plain
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.clock import CALIBRATED_UNIT, manner_of, milliseconds
from mcudeploy.ir.plan import Measurement, constants_name
from mcudeploy.planner.flash_curve import flash_curve
from mcudeploy.planner.tape.footprint import weights_bytes
from mcudeploy.report import chart
from mcudeploy.report.chart.drawing import Drawing
from mcudeploy.report.chart.svg import px, round_steps, safe, scales
from mcudeploy.report.html.budgets import budgets
from mcudeploy.report.html.curve import FLASH, RAM, Curve, Point, curve_picture
from mcudeploy.report.output_curves import OutputCurve, output_curves
from mcudeploy.report.times import StepTimes, latency_text, step_times
from mcudeploy.report.wording import (
    cut_bounds_text,
    error_text,
    litert_text,
    operators_text,
    outputs_text,
    smaller_facts,
    steps_text,
)

View = dict[str, Any]
Report = Mapping[str, Any]

_WIDTH, _HEIGHT = 720, 120
_LEFT, _RIGHT, _TOP, _FOOT = 90, 24, 10, 28
"""Pixels of the picture of an output: its sizes, and those of its margins."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A plan for a board, the JSON object of the command, and measurements of the plan.

    `command_within`: a function from a limit of the overhead, in percent, to the command line with it.
    """

    deployment: Deployment
    report: Report
    measured: Measurement | None = None
    command_within: Callable[[int], str] | None = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """A board that the model does not fit, and the error."""

    board: Board
    message: str


def misfit_view(misfit: Misfit) -> View:
    """Return the view of a board that the model does not fit."""
    lines = [plain(line) for line in misfit.message.splitlines()]
    return _about(misfit.board) | {"fits": False, "message": lines, "milliseconds": None}


def subject_view(subject: Subject) -> View:
    """Return the view of a plan."""
    deployment, report, board = subject.deployment, subject.report, subject.deployment.board
    times = step_times(deployment, subject.measured)
    ticks = sum(times.ticks) if subject.measured is None else subject.measured.latency
    clocks = _in_clocks(deployment, times)
    modelled = report.get("estimated_latency")
    spent = modelled["value"] if modelled and not clocks.measured else ticks
    drawing = chart.draw(deployment.view, deployment.model.path.name)
    return _about(board) | {
        "fits": True,
        "arena": f"{deployment.plan.layout.arena_bytes:,} B",
        "unsplit_arena": f"{deployment.planned.baseline.layout.arena_bytes:,} B",
        "saved": _saved(deployment),
        "flash": f"{weights_bytes(deployment.model.calls) + report['tables_bytes']:,} B",
        "latency": latency_text(spent, clocks.unit, board) or f"{ticks:,.0f} {times.unit}",
        "ticks": f"{ticks:,.0f} {times.unit}" + ("" if clocks is times else " counted"),
        "milliseconds": None if board.is_host else milliseconds(spent, clocks.unit, board.clock_hz),
        "source": manner_of(clocks.unit) if clocks.measured else _how(modelled),
        "counted": manner_of(times.unit) if times.measured else "estimated",
        "overhead": _overhead(report),
        "way": _way(deployment),
        "facts": list(_facts(deployment, report)),
        "budgets": budgets(deployment, report),
        "picture": trusted(chart.svg_picture(drawing)),
        "blocks": as_data(_blocks_of(deployment, drawing)),
        "curves": [(curve.words.title, trusted(curve_picture(curve))) for curve in _curves(subject)],
        "operators": _operators(deployment, times, clocks),
        "unit": times.unit,
        "verdict": _verdict(report),
        "runs": not board.facts_only and "verified" not in report,
    }


def _how(estimate: Report | None) -> str:
    calibrated = estimate is not None and estimate["unit"] == CALIBRATED_UNIT
    return "calibrated" if calibrated else "modelled"


def _about(board: Board) -> View:
    return {
        "board": board.name,
        "about": plain(board.title) + ("" if "MHz" in board.title else f", {board.clock_hz / 1e6:g} MHz"),
    }


def _saved(deployment: Deployment) -> str:
    whole, arena = deployment.planned.baseline.layout.arena_bytes, deployment.plan.layout.arena_bytes
    return f"{100 * (1 - arena / whole):.0f} % less than {whole:,} B unsplit" if arena < whole else ""


def _way(deployment: Deployment) -> str:
    split = "split" if deployment.plan.splits else "unsplit"
    return split + (", input streamed" if deployment.plan.form.streamed else "")


def _overhead(report: Report) -> str:
    percent = report.get("overhead_percent")
    return "" if percent is None else f"{percent:+.2f} % of the unsplit plan, {report['overhead_source']}"


def _facts(deployment: Deployment, report: Report) -> Iterator[tuple[str, str]]:
    plan, search = deployment.plan, report["search"]
    yield "model", f"{plain(deployment.model.path.name)}, sha256 {deployment.model.sha256[:16]}"
    yield "MACs", f"{report['macs']:,}"
    arenas = ", ".join(f"{name} {size:,} B" for name, size in plan.layout.arenas.items())
    yield "arenas", arenas
    yield "live peak", f"{plan.estimate.peak_bytes:,} B at step {plan.estimate.peak_step:,}"
    yield "lower bound over all cuts", cut_bounds_text(report) or "not computed: no cuts were searched"
    yield "steps", steps_text(report)
    cuts = (
        f"{plain(split.operators[0])} to {plain(split.operators[-1])}, "
        f"{count_text(split.rows, 'row')} per part"
        for split in plan.splits
    )
    yield "split", "; ".join(cuts) or "none"
    yield "search", f"{count_text(search['candidates'], 'candidate')} in {search['seconds']:.1f} s"
    yield from ((name, text) for name, text in smaller_facts(report) if text)


def _curves(subject: Subject) -> Iterator[Curve]:
    """Yield RAM against latency, and flash if other kernels would take less of it."""
    deployment, report = subject.deployment, subject.report
    planned = deployment.planned
    unit = planned.objective if planned.costs_of else "ticks"
    measured_point = None
    baseline_ticks = planned.baseline.estimate.ticks
    if report.get("overhead_source") not in (None, "estimated") and baseline_ticks:
        ticks = baseline_ticks * (1 + report["overhead_percent"] / 100)
        measured_point = (deployment.plan.layout.arena_bytes, ticks)

    def point(plan: Any) -> tuple[int, float]:
        return plan.layout.arena_bytes, plan.estimate.ticks

    yield Curve(
        RAM,
        candidates=planned.points,
        front=tuple(point(plan) for plan in planned.choices if plan.estimate.ticks),
        reference=point(deployment.planned.baseline),
        chosen=point(deployment.plan),
        measured=measured_point,
        unit=f"{unit}, {'estimated' if planned.costs_of else 'by timed tiles'}",
        commands=_commands(subject),
    )
    flash = flash_curve(deployment.plan, deployment.model, deployment.board)
    if flash is not None and len(flash.points) > 1:
        points = flash.points
        yield Curve(FLASH, (), points, points[0], flash.chosen, None, f"{flash.latency.unit}, estimated")


def _commands(subject: Subject) -> dict[Point, str]:
    """Return the command line of each plan that takes less RAM for more time, by its point."""
    planned, within = subject.deployment.planned, subject.command_within
    ticks = planned.baseline.estimate.ticks
    if within is None or not ticks:
        return {}
    return {
        (plan.layout.arena_bytes, plan.estimate.ticks): within(
            max(0, ceil(100 * (plan.estimate.ticks / ticks - 1)))
        )
        for plan in planned.candidates
    }


def _in_clocks(deployment: Deployment, times: StepTimes) -> StepTimes:
    """Return the times for milliseconds: estimated cycles if only instructions were counted."""
    estimated = step_times(deployment, None)
    counted = times.measured and times.unit.endswith("instructions")
    return estimated if counted and estimated.unit == "cycles" else times


def _operators(deployment: Deployment, times: StepTimes, clocks: StepTimes) -> list[View]:
    """Return a row for each operator in the order of the graph; milliseconds come from `clocks`."""
    plan = deployment.plan
    ticks: dict[str, float] = {}
    steps: dict[str, int] = {}
    spent_ms: dict[str, float] = {}
    steps_ms = clocks.milliseconds(deployment.board)
    for step, step_ticks, step_ms in zip(plan.schedule.steps, times.ticks, steps_ms, strict=True):
        name = plan.graph.operators[step.operator].name
        ticks[name], steps[name] = ticks.get(name, 0.0) + step_ticks, steps.get(name, 0) + 1
        spent_ms[name] = spent_ms.get(name, 0.0) + step_ms
    total, most = sum(ticks.values()) or 1.0, max(ticks.values(), default=0.0) or 1.0
    rows = []
    for operator in plan.graph.operators:
        if operator.name not in ticks:
            continue
        macs, spent = deployment.model.graph.loops(operator).macs(), ticks[operator.name]
        rows.append(
            {
                "name": plain(operator.name),
                "kind": operator.op.kind,
                "kernel": plan.kernels.get(operator.name, ""),
                "steps": f"{steps[operator.name]:,}",
                "macs": f"{macs:,}" if macs else "",
                "ticks": f"{spent:,.0f}",
                "milliseconds": "" if deployment.board.is_host else f"{spent_ms[operator.name]:.3f}",
                "share": f"{100 * spent / total:.1f} %",
                "bar": f"{100 * spent / most:.1f}",
            }
        )
    return rows


def _verdict(report: Report) -> View | None:
    """Return the verdict of `run` on the outputs; None if nothing ran."""
    if "verified" not in report or report["verified"] is None:
        return None
    ties, all_checks = report["ties_resolved"], report["operator_checks"] or {}
    lines = [f"{count_text(report['elements'], 'output element')}, {outputs_text(report, resolved=False)}"]
    if ties:
        lines.append(
            f"with {count_text(ties, 'rounding tie')} resolved {outputs_text(report, resolved=True)}"
        )
    lines += [plain(line) for line in (report["reason"] or "").splitlines()]
    if litert := report.get("litert"):
        lines.append(plain(litert_text(litert)))
    differing = [
        {
            "name": plain(name),
            "elements": f"{check['elements']:,}",
            "mismatches": f"{check['mismatches']:,}",
            "ties": f"{check['ties']:,}",
            "worst": error_text(check),
        }
        for name, check in all_checks.items()
        if not check["within_tolerance"] or (check["mismatches"] and check["error_unit"] == "LSB")
    ]
    drawn = output_curves(report["outputs"])
    return {
        "curves": [(plain(f"{it.name}: {it.summary}"), trusted(_picture(it))) for it in drawn],
        "verified": report["verified"],
        "lines": lines,
        "operators": operators_text(all_checks) if all_checks else "",
        "differing": differing,
    }


def _blocks_of(deployment: Deployment, drawing: Drawing) -> View:
    """Return names, and for each panel its position in the picture and its blocks.

    A block is its name, row range [first, end) (scratch, constants: -1, -1), step range [first, end), offset,
    and bytes.
    """
    plan, tiled, work = deployment.plan, deployment.view.tiled, deployment.view.work
    names = [*plan.layout.blocks, *plan.layout.scratch, *map(constants_name, plan.layout.constants)]
    first_scratch = len(plan.layout.blocks)
    panels = []
    for panel, scale in zip(drawing.panels, scales(drawing), strict=True):
        rectangles: list[list[int]] = []
        for number, (name, blocks) in enumerate(plan.layout.blocks.items()):
            for block, residences in enumerate(blocks):
                rows = tiled.block_interval(name, block)
                size = tiled.block_bytes(name, block)
                rectangles += (
                    [number, rows.lo, rows.hi, each.life.lo, each.life.hi, each.offset, size]
                    for each in residences
                    if each.memory == panel.memory and len(each.life)
                )
        for number, (name, blocks) in enumerate(plan.layout.scratch.items(), first_scratch):
            rectangles += (
                [number, -1, -1, each.life.lo, each.life.hi, each.offset, sum(work[name])]
                for residences in blocks
                for each in residences
                if each.memory == panel.memory and len(each.life)
            )
        loaded = enumerate(plan.layout.constants.values(), first_scratch + len(plan.layout.scratch))
        rectangles += (
            [number, -1, -1, it.place.life.lo, it.place.life.hi, it.place.offset, it.size_bytes]
            for number, it in loaded
            if it.place.memory == panel.memory
        )
        panels.append(
            {
                "memory": panel.memory,
                "frame": [scale.left, scale.bottom, scale.per_step, scale.per_byte],
                "blocks": rectangles,
            }
        )
    operators = [plan.graph.operators[step.operator].name for step in plan.schedule.steps]
    known = {name: number for number, name in enumerate(dict.fromkeys(operators))}
    return {
        "names": [plain(name) for name in names],
        "operators": [plain(name) for name in known],
        "steps": [known[name] for name in operators],
        "panels": panels,
    }


def _picture(curve: OutputCurve) -> str:
    """Return the picture as SVG; its colours are the page's."""
    low, high = curve.reach
    tall, wide = _HEIGHT - _TOP - _FOOT, _WIDTH - _LEFT - _RIGHT
    last = max(len(curve.values) - 1, 1)

    def x(run: float) -> str:
        return px(_LEFT + wide * run / last)

    def y(value: float) -> str:
        return px(_TOP + tall * ((high - value) / (high - low) if high > low else 0.5))

    path = "M" + "L".join(f"{x(run)} {y(value)}" for run, value in enumerate(curve.values))
    bottom = _HEIGHT - _FOOT
    parts = [
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{safe(curve.name)}: {safe(curve.summary)}</title>",
        f'<path class="axis-line" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/>',
    ]
    for value in dict.fromkeys(curve.reach):
        parts.append(
            f'<text class="label" x="{_LEFT - 8}" y="{y(value)}" dy="4" text-anchor="end">{value:.4g}</text>'
        )
    for run in round_steps(last, 6):
        parts.append(f'<text class="label" x="{x(run)}" y="{bottom + 18}" text-anchor="middle">{run}</text>')
    return "\n".join([*parts, f'<path class="stairs" d="{path}"/>', "</svg>"])
