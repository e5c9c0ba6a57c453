"""Random networks with fused chains are verified, and both checkers agree on them and their mutants."""

from __future__ import annotations

from pathlib import Path

from fuzzing.chains import draw_bottlenecks
from fuzzing.overlaps import examine_mutants
from fuzzing.running import BAD, examine

_NETWORKS, _MUTANTS = (14, 29), 10


def test_fused_networks_and_their_mutants(tmp_path: Path) -> None:
    drawn = [draw_bottlenecks(seed) for seed in _NETWORKS]
    subjects = examine([(f"g{it.seed}", it.seed, it.model) for it in drawn], tmp_path, ["fused"])
    bad = [f"{it.name} {each}" for it in subjects for each in it.findings if each.kind in BAD]
    tally = examine_mutants(subjects, _MUTANTS, 0, tmp_path / "mutants")
    assert bad + tally.findings == []
    fused = [fused for it in subjects for fused, _ in it.plans if fused.plan.form.fused]
    by_groups = [
        call for it in fused for call in it.model.calls.values() if call.params.get("summed_pixels", 0)
    ]
    assert len(fused) == 2 and len(by_groups) == 3
    assert 0 < tally.counts["mutants refused"] < _MUTANTS
