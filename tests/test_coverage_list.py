"""docs/coverage.md is whole: its tables add up, and nothing in them is wrong."""

from __future__ import annotations

import re
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "coverage.md"


def rows(heading: str) -> dict[str, list[int]]:
    """The table under a heading: the first cell, and the numbers of the others, 0 if one is empty."""
    section = FILE.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return {name.strip(): [number(cell) for cell in cells] for name, *cells in lines[2:]}


def number(cell: str) -> int:
    """The beginning of a cell."""
    match = re.match(r"\s*(\d+)", cell)
    return int(match[1]) if match else 0


def test_the_operators_are_the_subset() -> None:
    operators, totals = rows("By operator"), rows("Totals")
    subset, whole = totals["**subset**"], totals["all"]
    sums = [sum(column) for column in zip(*operators.values(), strict=True)]
    assert len(operators) > 150 and sums[:5] == subset[:5]
    tests, _, _, passed, refused, wrong = subset
    assert (tests, wrong) == (passed + refused, 0)
    assert sum(group[0] for name, group in totals.items() if name != "all") == whole[0]
    assert whole[5] == 0


def test_the_refusals_are_all_named() -> None:
    listed = re.findall(r"^\| (\d+) \| .+ \| .+ \|$", FILE.read_text("utf-8"), re.M)
    assert sum(map(int, listed)) == rows("Totals")["**subset**"][4]
