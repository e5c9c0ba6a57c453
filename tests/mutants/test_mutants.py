"""Damaged files are refused with an error of mcudeploy, or accepted and right. benchmarks/mutants.py
tries more.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import mutant_runner
import pytest
from absurd_sizes import EVERY, AbsurdSubject
from mutant_runner import run
from mutant_subjects import KINDS

from mcudeploy.common.errors import ModelError
from tests.weekly import sample

COUNTS = {
    "onnx": 500,
    "tflite": 500,
    "plan": 300,
    "board": 300,
    "database": 500,
    "frames": 1500,
    "samples": 400,
    "maps": 200,
}


@pytest.mark.parametrize("part", sample([5, 1], 1), ids="1/{}".format)
@pytest.mark.parametrize("kind", COUNTS)
def test_mutants(kind: str, part: int) -> None:
    count = COUNTS[kind] // part
    tally = run(KINDS[kind], kind, 1, range(count))
    assert tally.findings == {}
    assert tally.taken > 0 and tally.refused.total() > 0
    assert tally.taken + tally.refused.total() == count


def test_absurd_sizes_are_bounded() -> None:
    """Each takes far less than 10 s and 1 GiB."""
    tally = run(AbsurdSubject, "absurd", 1, range(len(EVERY)))
    assert tally.findings == {}
    assert tally.taken > 10 and tally.refused["ModelError"] > 60


def _bad(what: str) -> Callable[[Path], Callable[[random.Random], object]]:
    hoard = []

    def subject(_: random.Random) -> None:
        match what:
            case "raises":
                raise KeyError("oh")
            case "hangs":
                while True:
                    pass
            case "sleeps":
                time.sleep(60)
            case "hoards":
                hoard.append(bytearray(2 * mutant_runner.BYTES))
            case "dies":
                import ctypes  # noqa: PLC0415

                ctypes.string_at(0)
            case "gives up for want of memory":
                raise ModelError("Unable to allocate 8.00 GiB for an array")

    return lambda _: subject


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("raises", "KeyError in the test: 'oh'"),
        ("hangs", "more than 0 s of processor time"),
        ("sleeps", "nothing for 1 s"),
        ("hoards", "MemoryError in the test: "),
        ("dies", "death by SIGSEGV"),
        ("gives up for want of memory", "more than 1024 MiB: Unable to allocate 8.00 GiB for an array"),
    ],
)
def test_what_the_runner_finds(what: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant_runner, "CPU_S", 0.2)
    if what == "sleeps":
        monkeypatch.setattr(mutant_runner, "CLOCK_S", 1.0)
    tally = run(_bad(what), what, 1, range(2))
    assert tally.findings == {words: [0, 1]}
