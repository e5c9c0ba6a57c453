"""The quality gate: arena, cycles and flash of plans with a fixed effort, beside those of before.

A change that makes one of them worse fails. `python -m tests.gate.table` rewrites the table, for a change
that makes one worse for a reason.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.gate.networks import NETWORKS
from tests.gate.table import FIGURES, WAYS, figures, read_table

TOLERATED = 0.005
"""So much worse a figure may be, as a part of what it was; of small ones a few bytes."""


DAILY = ("keywords", "wake_words", "anomalies")
"""The others take half a minute and more each."""
CASES = [
    pytest.param(name, way, marks=() if name in DAILY else pytest.mark.weekly)
    for name, way in zip(NETWORKS, itertools.cycle(WAYS), strict=False)
]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_no_plan_is_worse(name: str, way: str, tmp_path: Path) -> None:
    old, new = read_table()[name, way], figures(name, way, tmp_path)
    text = "; ".join(f"{what} {then:,} -> {now:,}" for what, then, now in zip(FIGURES, old, new, strict=True))
    worse = [
        what
        for what, then, now in zip(FIGURES, old, new, strict=True)
        if now > then + max(16, TOLERATED * then)
    ]
    assert not worse, f"{name}, {way}: {text}"


def test_the_table_has_every_network() -> None:
    assert set(read_table()) == {(name, way) for name in NETWORKS for way in WAYS}
