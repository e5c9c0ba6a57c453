"""The page of a dossier: what a library is, what was checked and with which result, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from mcudeploy.codegen.folder import digests_of
from mcudeploy.codegen.html_template import render_page
from mcudeploy.common.text import count_text, plain
from mcudeploy.extensions.dossier.dossier import Dossier
from mcudeploy.extensions.dossier.flash_constants import TracedConstant
from mcudeploy.ir.graph import Operator
from mcudeploy.report.objects import report_of
from mcudeploy.report.wording import steps_text

_DIGITS = 16
"""Digits of a SHA-256 in a table; the files have them whole."""
_LONGEST_NAME = 60
"""Characters of a node's name in a table."""


def dossier_page(dossier: Dossier, command: Sequence[str]) -> str:
    """Return the page of a dossier; `command` is the command line to show."""
    built = dossier.built
    deployment, report = built.deployment, report_of(built)
    return render_page(
        "dossier",
        title=plain(f"Dossier of {deployment.prefix} for {deployment.board.name}"),
        facts=_facts(dossier, report),
        memory=_memory(report),
        bounds=[
            (f"{deployment.prefix.upper()}_{name}", f"{value:,}")
            for name, value in (built.program.bounds.macros if built.program.bounds else {}).items()
        ],
        checked=plain(dossier.checked),
        samples=count_text(len(built.verdict.host) if built.verdict else 0, "drawn input"),
        operators=_operators(dossier, report),
        resolved=_resolved(report),
        has_compiler=bool(dossier.compiler),
        outputs=(f"{report['elements']:,}", f"{report['mismatches']:,}", _error(report)),
        constants=[_constant(it) for it in dossier.constants],
        analysis=dossier.analysis,
        deviations=[
            (it.rule.removeprefix("misra-c2012-"), f"{it.places:,}", ", ".join(it.files), it.reason)
            for it in dossier.analysis.deviations
        ],
        undecided=sum(not it.reason for it in dossier.analysis.deviations),
        files=[(plain(path), digest[:_DIGITS]) for path, digest in digests_of(dossier.files).items()],
        command=plain(shlex.join(("mcudeploy", *command))),
    )


def _facts(dossier: Dossier, report: dict[str, Any]) -> list[tuple[str, str]]:
    deployment = dossier.built.deployment
    return [
        ("model", plain(f"{deployment.model.path.name}, SHA-256 {deployment.model.sha256}")),
        ("board", plain(f"{deployment.board.name}, {deployment.board.core}")),
        ("compiler", plain(dossier.compiler) or "not on the computer that wrote this"),
        ("options for the core", " ".join(deployment.board.cpu_flags) or "none"),
        ("operators", f"{len(deployment.plan.graph.operators):,}"),
        ("steps", steps_text(report)),
    ]


def _memory(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The bytes of each memory that the library takes; without firmware some are not known."""
    lines = [(f"arena in {memory}", f"{size:,} B") for memory, size in report["arenas"].items()]
    names = {
        "weights_bytes": "weights in flash",
        "tables_bytes": "tables in flash",
        "code_bytes": "code of the firmware",
    }
    lines += [(text, f"{report[key]:,} B") for key, text in names.items() if key in report]
    stack = report.get("library_stack_bound_bytes")
    known = f"at most {stack:,} B for a call" if stack is not None else report["stack_unknown"]
    return [*lines, ("stack", plain(known))]


def _resolved(report: dict[str, Any]) -> str:
    """The outputs with the reference's choice at ties of rounding, if that was needed."""
    if not report["ties_resolved"]:
        return ""
    ties = count_text(report["ties_resolved"], "tie")
    error = f"{report['max_abs_error_resolved']:.3g}"
    unit = " LSB" if report["error_unit"] == "LSB" else ""
    differing = f"{report['mismatches_resolved']:,}"
    return f"With the reference's choice at {ties} of rounding, {differing} differ, by at most {error}{unit}."


def _operators(dossier: Dossier, report: dict[str, Any]) -> list[tuple[str, ...]]:
    deployment = dossier.built.deployment
    rows: list[tuple[str, ...]] = []
    for operator in deployment.plan.graph.operators:
        check = report["operator_checks"].get(operator.name)
        if check is not None:
            counts = (f"{check['elements']:,}", f"{check['mismatches']:,}", f"{check['ties']:,}")
            kernel = deployment.model.calls[operator.name].kernel
            rows.append((operator.name, kernel, _first_node(operator), *counts, _error(check)))
    return rows


def _first_node(operator: Operator) -> str:
    """The first node that an operator implements, cut to one line; network.json has them all."""
    names = operator.onnx_nodes or ("",)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    name = names[0] if len(names[0]) <= _LONGEST_NAME else f"{names[0][:_LONGEST_NAME]}..."
    return plain(name) + more


def _error(check: dict[str, Any]) -> str:
    return f"{check['max_abs_error']:.3g}" + (" LSB" if check["error_unit"] == "LSB" else "")


def _constant(it: TracedConstant) -> tuple[str, ...]:
    place = "" if it.address is None else f"{it.address:#010x}"
    return (it.symbol, ", ".join(it.readers), f"{it.size_bytes:,}", place, it.sha256[:_DIGITS])
