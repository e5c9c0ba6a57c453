"""Effort is counted, and the clock is a brake."""

from __future__ import annotations

from math import inf

import pytest

from mcudeploy.common import effort
from mcudeploy.common.effort import UNITS_PER_SECOND, Effort, endless


def test_what_a_part_spends_is_gone_from_the_whole() -> None:
    whole = Effort.of(2)
    part = whole.part(0.25)
    assert part.left == UNITS_PER_SECOND / 2
    part.spend(part.left)
    assert part.is_spent() and not whole.is_spent()
    assert whole.left == 1.5 * UNITS_PER_SECOND


def test_a_part_ends_with_the_whole() -> None:
    whole = Effort(100)
    part = whole.part(1.0)
    whole.spend(90)
    assert part.left == 10
    whole.spend(20)
    assert part.is_spent() and part.left == 0


def test_the_clock_is_a_brake_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr(effort, "process_time", lambda: now)
    monkeypatch.setattr(effort, "_COMPILING_S", 0.0)
    whole = Effort.of(1)
    part = whole.part(0.5)
    now = 103.9
    assert not part.is_spent() and not caplog.records
    assert part.clock_left == pytest.approx(0.1) and endless().clock_left == inf
    now = 104.1
    part.spend(effort._CLOCK_UNITS)
    assert part.is_spent() and whole.is_spent() and part.is_spent()
    assert [record.message for record in caplog.records] == [
        "warning: planning stopped at its CPU-time cutoff; another run may give a different plan"
    ]


def test_endless_effort_is_never_spent() -> None:
    effort = endless()
    effort.spend(1e30)
    assert not effort.is_spent()


def test_rounds_of_a_short_limit_are_the_first_of_a_longer_one() -> None:
    def sizes(seconds: float, begun: float = 0.0) -> list[float]:
        whole, parts = Effort.of(seconds), []
        whole.spend(begun)
        for one in whole.rounds(seconds):
            parts.append(one.left)
            one.spend(0.9 * one.left)  # what is left is there for the next
        return parts

    short, long = sizes(5, 1000), sizes(70, 1000)
    assert short == long[: len(short)] and len(short) < len(long)
    assert short[0] == effort.ROUND_ENDS_S[0] * UNITS_PER_SECOND - 1000
    assert sizes(7) == sizes(5) and sizes(0.01) == [10_000]
    assert len(sizes(3 * effort.ROUND_ENDS_S[-1])) == len(effort.ROUND_ENDS_S) + 1
    assert [one.left for one in Effort(0).rounds(20, until=7)] == [1e6, 5e6, 7e6]
    assert [one.left for one in Effort(0).rounds(20, until=30)] == [1e6, 5e6, 1e7, 2e7]


def test_no_round_begins_after_the_cutoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "process_time", lambda: 0.0)
    whole = Effort.of(5)
    monkeypatch.setattr(effort, "process_time", lambda: 1e9)
    assert not list(whole.rounds(5))
