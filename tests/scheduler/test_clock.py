"""Deadlines: CPU time and the clock each end one; shares are of CPU time."""

from __future__ import annotations

import time
from math import inf

from mcudeploy.scheduler.clock import NEVER, Deadline


def test_sleep_uses_no_cpu_time() -> None:
    cpu, clock = Deadline.after(0.02, inf), Deadline.after(inf, 0.02)
    time.sleep(0.05)
    assert clock.passed() and not cpu.passed()
    while not cpu.passed():
        pass
    assert cpu.left() < 0


def test_a_share_is_of_cpu_time() -> None:
    whole = Deadline.after(10, 8)
    part = whole.share(0.25)
    assert part.clock == whole.clock
    assert 2 < part.left() <= 2.5
    assert 7 < whole.left() <= 8 and 4 < whole.left(2) <= 5


def test_never_stays_away() -> None:
    assert NEVER.share(0.1) == NEVER and not NEVER.passed() and NEVER.left() == inf
