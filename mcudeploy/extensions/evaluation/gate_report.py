"""Results of `gate`: the JSON object, a Markdown summary for a pull request, and JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from mcudeploy.common.text import plain

Report = Mapping[str, Any]
NAMES = ("arena", "ram", "flash", "stack", "latency", "accuracy")


def gate_object(
    results: Sequence[Any], against: str | None = None, base: Mapping[tuple[str, str], float] | None = None
) -> dict[str, Any]:
    """Report every budget with its figures; `results` are those of `run_gate`.

    `against`: the name of a base; `base`: its figures by the names of budget and figure.
    """
    before = base or {}
    return {
        "passed": all(it.passed for it in results),
        "against": against,
        "results": [
            {
                "name": it.budget.title,
                "model": it.budget.model.name,
                "board": it.budget.board,
                "passed": it.passed,
                "faults": list(it.faults),
                "ways": list(map(str, it.ways)),
                "figures": [
                    {
                        "figure": each.name,
                        "value": each.value,
                        "unit": each.unit,
                        "limit": each.limit,
                        "base": before.get((it.budget.title, each.name)),
                        "passed": each.passed,
                    }
                    for each in it.figures
                ],
            }
            for it in results
        ],
    }


def figure_text(figure: Report) -> str:
    """A figure with its unit, its limit, and its change against the base, as far as they are known."""
    value, unit, base = figure["value"], figure["unit"], figure["base"]
    limit = "" if figure["limit"] is None else f" / {_number(figure['limit'], unit)}"
    return _number(value, unit) + limit + ("" if base is None else f" ({_number(value - base, unit, '+')})")


def _number(value: float, unit: str, sign: str = "") -> str:
    return f"{value:{sign},.{0 if unit == 'B' else 2}f} {unit}"


def faults_of(result: Report) -> list[str]:
    """The sentences on a budget: faults of its run, limits that are not kept, and what would keep them."""
    beyond = (each for each in result["figures"] if not each["passed"])
    faults = [*result["faults"], *map(_beyond, beyond)]
    return [*faults, *(f"this fits in memory (other budgets not checked): {way}" for way in result["ways"])]


def _beyond(figure: Report) -> str:
    value, limit, unit = figure["value"], figure["limit"], figure["unit"]
    side = "above" if value > limit else "below"
    name = figure["figure"]
    return f"{name} is {_number(value, unit)}, {_number(abs(value - limit), unit)} {side} the limit"


def markdown(report: Report) -> str:
    """Return a table with a row for each budget; figures beyond their limit are bold."""
    rows = ["| | " + " | ".join(NAMES) + " |", "|---|" + "---:|" * len(NAMES)]
    faults = []
    for it in report["results"]:
        figures = {each["figure"]: each for each in it["figures"]}
        cells = [_markdown_cell(figures.get(name)) for name in NAMES]
        rows.append(
            f"| {'passed' if it['passed'] else '**failed**'}: {_escaped(it['name'])} | {' | '.join(cells)} |"
        )
        faults += [f"- {_escaped(it['name'])}: {_escaped(fault)}" for fault in faults_of(it)]
    summary = "All budgets are kept." if report["passed"] else "**Not all budgets are kept.**"
    if report["against"]:
        summary += f" In brackets: the change against {_escaped(report['against'])}."
    return "\n".join([summary, "", *rows, *([""] if faults else []), *faults, ""])


def _markdown_cell(figure: Report | None) -> str:
    if figure is None:
        return ""
    return figure_text(figure) if figure["passed"] else f"**{figure_text(figure)}**"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~&])", r"\\\1", plain(text))


def junit(report: Report) -> str:
    """Return a test case for each budget, in the form that JUnit's readers take."""
    failed = sum(not it["passed"] for it in report["results"])
    suite = Xml.Element(
        "testsuite", name="mcudeploy gate", tests=str(len(report["results"])), failures=str(failed)
    )
    for it in report["results"]:
        case = Xml.SubElement(suite, "testcase", classname=plain(it["board"]), name=plain(it["name"]))
        exceeded = [f"{each['figure']} {figure_text(each)}" for each in it["figures"] if not each["passed"]]
        reasons = [*map(plain, it["faults"]), *exceeded]
        if reasons:
            Xml.SubElement(case, "failure", message=reasons[0]).text = "\n".join(reasons)
        figures = [f"{each['figure']}: {figure_text(each)}" for each in it["figures"]]
        Xml.SubElement(case, "system-out").text = "\n".join(figures)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suite, encoding="unicode") + "\n"
