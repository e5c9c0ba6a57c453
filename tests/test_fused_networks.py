"""Random networks with fused chains are verified, and both checkers agree on them and their mutants."""

from __future__ import annotations

from pathlib import Path

from fuzzing.chains import draw_bottlenecks
from fuzzing.overlaps import examine_mutants
from fuzzing.running import BAD, examine

from mcudeploy.boards.catalogue import load_board
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans

_NETWORKS, _MUTANTS = (14, 29), 10

_MISLED = 7
"""A network for which a search within 25 % alone ends at 552 B, and one within 5 % at 544 B."""


def test_a_looser_limit_needs_no_more_memory(tmp_path: Path) -> None:
    board, arenas = load_board("mps2-an386"), []
    (tmp_path / "model.onnx").write_bytes(draw_bottlenecks(_MISLED).model.SerializeToString())
    for limit in (5.0, 25.0):
        options = Options(max_overhead=limit, time_limit=5.0, stream_input=True)
        model = read_model(tmp_path / "model.onnx", options, isa=board.isa)
        planned = find_plans(model, board, options)
        arenas.append(planned.choices[0].layout.arena_bytes)
        assert planned.candidates and len(planned.points) > len(planned.candidates)
    assert arenas[1] <= arenas[0]


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
