"""Random networks over windows that move: each run equals the whole window, bit for bit."""

from __future__ import annotations

from pathlib import Path

from fuzzing.hops import examine_hops

_SEEDS = range(6)


def test_runs_of_new_rows_equal_the_window(tmp_path: Path) -> None:
    findings = examine_hops(_SEEDS, tmp_path)
    bad = [f"{it.seed}: {it.text}" for it in findings if it.verdict not in ("verified", "refused")]
    assert not bad, "\n".join(bad)
    assert sum(it.verdict == "verified" for it in findings) >= 5
    assert max(it.saved for it in findings) > 0.3
