"""Bounds of instructions and cycles as a JSON object, and as the Markdown page of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcudeploy.common.text import plain
from mcudeploy.extensions.bounds.program_bounds import Dependence, ProgramBounds, StepBound, combined

JsonObject = dict[str, Any]
_ASSUMED = (
    "the object code has the instructions of the counted one: same compiler, same flags",
    "no kernel writes outside of its output, its scratch and its frame",
    "the functions that the application provides (feeds, hooks) and its interrupts are not counted",
    "MODEL_reset(), which the first run of a model with states calls, is not counted",
)
"""Conditions under which the bounds of instructions hold."""
_MEANING = {
    Dependence.NONE: "All data execute the same instructions.",
    Dependence.TABLES: "All data execute the same instructions. Some addresses, or operands of divisions, "
    "depend on data.",
    Dependence.BRANCHES: "Branches depend on data. The bound takes the longest path.",
    Dependence.LOOPS: "Data decide how often a loop runs, or what is called: there is no bound.",
}


def bounds_report(bounds: ProgramBounds) -> JsonObject:
    """Return the bounds of a program; null where there is none."""
    core = bounds.core
    return {
        "board": bounds.board,
        "compiler": bounds.compiler,
        "cycle_model": None if core is None else core.name,
        "left_out": [] if core is None else list(core.left_out),
        "assumptions": list(_ASSUMED),
        "counted": bounds.counted,
        "run_instructions": bounds.run_instructions,
        "run_cycles": bounds.run_cycles,
        "step_instructions": bounds.step_instructions,
        "step_cycles": bounds.step_cycles,
        "steps": [_step(step) for step in bounds.steps],
        "operators": [_operator(steps) for steps in bounds.by_operator],
    }


def _step(step: StepBound) -> JsonObject:
    return {
        "operator": step.operator,
        "kernel": step.kernel,
        "data": str(step.dependence),
        "counted": step.counted,
        "instructions": step.instructions,
        "cycles": step.cycles,
        "reason": step.reason or None,
    }


def _operator(steps: Sequence[StepBound]) -> JsonObject:
    """Sum the steps of an operator; its dependence is that of its worst step."""
    order = list(Dependence)
    worst = max(steps, key=lambda step: order.index(step.dependence))
    return _step(worst) | {
        "steps": len(steps),
        "counted": sum(step.counted for step in steps),
        "instructions": combined(sum, [step.instructions for step in steps]),
        "cycles": combined(sum, [step.cycles for step in steps]),
        "longest_step": combined(max, [step.instructions for step in steps]),
    }


def bounds_page(name: str, report: JsonObject) -> str:
    """Return the page of a library that states the bounds of a model, as Markdown."""
    upper = name.upper()
    rows = [
        (f"`{upper}_RUN_MAX_INSTRUCTIONS`", report["run_instructions"]),
        (f"`{upper}_RUN_MAX_CYCLES`", report["run_cycles"]),
        (f"`{upper}_STEP_MAX_INSTRUCTIONS`", report["step_instructions"]),
        (f"`{upper}_STEP_MAX_CYCLES`", report["step_cycles"]),
    ]
    lines = [
        f"# Bounds of {name}",
        "",
        "The most instructions and cycles over all inputs.",
        f"Counted on {report['board']}, compiled by {report['compiler']}.",
        "",
        "| macro | value |",
        "|---|---:|",
        *(f"| {macro} | {_number(value)} |" for macro, value in rows),
        "",
        "| operator | kernel | data | steps | counted | bound | longest step | cycles |",
        "|---|---|---|---:|---:|---:|---:|---:|",
        *map(_line, report["operators"]),
        "",
        *_meaning(report["operators"]),
        "",
        "The bounds hold under these conditions:",
        "",
        *(f"- {text}" for text in report["assumptions"]),
    ]
    if report["cycle_model"] is not None:
        lines += [
            "",
            f"Cycles are those of the model of {report['cycle_model']}, at its worst. It leaves out:",
            "",
            *(f"- {text}" for text in report["left_out"]),
        ]
    return "\n".join(lines) + "\n"


def _line(operator: JsonObject) -> str:
    texts = (
        plain(operator["operator"]),
        operator["kernel"],
        operator["data"],
        operator["steps"],
        *(_number(operator[key]) for key in ("counted", "instructions", "longest_step", "cycles")),
    )
    return f"| {' | '.join(map(str, texts))} |"


def _meaning(operators: Sequence[JsonObject]) -> list[str]:
    used = {operator["data"] for operator in operators}
    lines = [f"- *{kind}*: {text}" for kind, text in _MEANING.items() if kind in used]
    reasons = [
        f"- {plain(operator['operator'])} has no bound: {operator['reason']}"
        for operator in operators
        if operator["reason"]
    ]
    return [*lines, *reasons]


def _number(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"
