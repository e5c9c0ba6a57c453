"""A sample of `benchmarks/npu_judges.py`: random graphs on the unit, and mutants of its streams."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from fuzzing.flat import draw_flat
from fuzzing.generate import draw
from fuzzing.running import examine
from fuzzing.units import on_unit, runs_on_unit

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")

from stream_mutants import judged

SEEDS = (301, 304)


@pytest.mark.parametrize("seed", range(10))
def test_the_checker_refuses_mutants_that_touch_other_bytes(model: ctypes.CDLL, seed: int) -> None:
    found, accepted = judged(model, seed, 12)
    assert not accepted and len(found) > 3


def test_graphs_on_the_unit_have_the_bytes_of_the_core(tmp_path: Path) -> None:
    """Odd seeds are .tflite files."""
    drawn = [
        (f"f{seed}", seed, draw_flat(seed)) if seed % 2 else (f"g{seed}", seed, draw(seed).model)
        for seed in SEEDS
    ]
    with on_unit(256):
        subjects = examine(drawn, tmp_path)
    assert [(it.verdict, it.findings) for it in subjects] == [("verified", [])] * len(SEEDS)
    assert all(runs_on_unit(it.path) for it in subjects)
    for subject in subjects:
        by_way = {made.way: made.model.calls.values() for made, _ in subject.plans}
        assert set(by_way) - {"split"} == {"unsplit", "core", "cut"}
        assert any(call.isa.unit for call in by_way["cut"])
        assert not any(call.isa.unit for call in by_way["core"])
