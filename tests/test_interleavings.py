"""Random plans that several cores run together: in threads, under the sanitizer of threads, with other delays
in each run, the bits of one core. `benchmarks/interleavings.py` has more of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fuzzing.together import Figures, awaits_of, drawn, interleaved, shared_out, without
from fuzzing.trips import Trip, models, unsplit

from mcudeploy.toolchain.project import SoftEngine
from tests.weekly import sample

_GRAPHS, _TOGETHER, _RUNS = 14, 12, 8


@pytest.mark.parametrize("engine", sample(["half", None], 1))
def test_interleavings_change_no_bit_of_an_output(engine: SoftEngine | None, tmp_path: Path) -> None:
    trips = drawn(_TOGETHER, 0 if engine is None else 1, _GRAPHS)
    figures = Figures.of([it.judged.plan for it in trips])
    assert figures.awaits > 3 * _TOGETHER and figures.columns > 3
    wrong = list(interleaved(trips, tmp_path, _RUNS, engine))
    assert not wrong, "\n".join(wrong)


def test_missing_waits_are_found(tmp_path: Path) -> None:
    """Of a plan in some of whose runs nothing goes wrong the order of memory accesses tells."""
    model = models(2)[0]
    judged = shared_out(model, "cut", 1, 3)
    awaits = awaits_of(judged.plan)
    trips = [
        Trip(f"without {core}, {at}", unsplit(model), replace(judged, plan=without(judged.plan, core, at)))
        for core, at in awaits
    ]
    wrong = list(interleaved(trips, tmp_path, 20))
    assert len(trips) > 12
    caught = {it.name for it in trips for line in wrong if line.startswith(f"{it.name}:")}
    assert len(caught) >= 0.8 * len(trips), f"{len(caught)} of {len(trips)}"
    assert all("data race" in line or "bytes that differ" in line for line in wrong)
