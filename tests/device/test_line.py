"""Every command completes over a bad line, and nothing is executed twice."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from bad_line import PATIENT, BadLine, Faults
from line_runs import one_run

from mcudeploy.device.session import Session
from mcudeploy.device.transport import ProcessTransport

LINES = {
    "clean": Faults(),
    "drop": Faults(drop=0.002),
    "corrupt": Faults(corrupt=0.002),
    "insert": Faults(insert=0.002),
    "repeat": Faults(repeat=0.4),
    "lose": Faults(lose=0.15),
    "delay": Faults(delay=0.3, delay_s=0.06),
    "all": Faults(drop=0.001, corrupt=0.001, insert=0.001, repeat=0.1, lose=0.05, delay=0.1),
}


def counters(session: Session) -> tuple[int, int]:
    runs, total = struct.unpack("<II", session.read(0, 0, 8))
    return runs, total


@pytest.mark.parametrize(("name", "seed"), [*((name, 1) for name in LINES), ("all", 2)])
def test_every_command_over_a_bad_line(program: Path, name: str, seed: int) -> None:
    line = BadLine(ProcessTransport([program]), LINES[name], seed)
    rng = np.random.default_rng(seed)
    with Session(line, timing=PATIENT) as session:
        assert session.hello().board == "host"
        blob = rng.bytes(3000)
        session.write(0, 1000, blob)
        session.write(0, 0, bytes(12))
        runs = total = 0
        for _ in range(4):
            first = int(rng.integers(0, 20))
            count = int(rng.integers(1, 20))
            session.run(first, count)
            runs, total = runs + count, total + sum(range(first + 1, first + count + 1))
            assert counters(session) == (runs, total)
            timed = session.time_steps(first, count)
            assert timed.ticks == tuple(range(first, first + count))
            runs, total = runs + count, total + sum(range(first + 1, first + count + 1))
            assert counters(session) == (runs, total)
        assert len(session.kernels()) == 5
        assert session.stack().used_bytes > 0
        assert session.read(0, 1000, 3000) == blob
    if name not in ("clean", "delay"):
        assert line.damaged > 3


def test_a_lost_request_is_resent_soon_and_a_running_one_is_not_disturbed(program: Path) -> None:
    with Session(ProcessTransport([program])) as session:
        session.write(0, 0, bytes(12))
        session.run()
        assert session.resends == 0
        assert not session.run().disturbed


def test_sessions_are_right_or_end_in_one_error(program: Path) -> None:
    """Spoilt bytes, resets, unplugged ports; benchmarks/line_faults.py has many more."""
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda seed: one_run(program, seed), range(70)))
    assert any(end == "survived" for end in ends)
    assert any("was reset" in end for end in ends)
    assert any(end.startswith("lost PORT") for end in ends)
