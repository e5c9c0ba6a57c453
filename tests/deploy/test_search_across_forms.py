"""One search of the cuts of several forms of a graph, with and without fused chains."""

from __future__ import annotations

from pathlib import Path

from models import bottlenecks

from mcudeploy.common.effort import Effort
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.ir.plan import Rewrites
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.search.best_first import BestFirst
from mcudeploy.planner.search.cuts import Cut, Space
from mcudeploy.planner.search.fusing import FusedCuts
from mcudeploy.planner.search.seeds import Chains, CutProblem
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.squeeze import squeeze
from mcudeploy.planner.search.tile_times import Rivals, VariantTimes
from mcudeploy.tiling.blocks import whole
from mcudeploy.tiling.dataflow import Dataflow

CHAINS = tuple((f"conv_{at}", f"conv_{at + 1}", f"conv_{at + 2}") for at in (0, 3, 6))


def problem_of(model: Path, chains: Chains, most_ticks: float) -> CutProblem:
    """The cuts of a model with chains fused."""
    made = load_model(model).in_form(Rewrites(fused=chains))
    flow = Dataflow.of(made.graph)
    order = tuple(step.operator for step in reverse_post_order(whole(made.graph)).steps)
    time = estimated(load_costs("cortex-m4"))(made.graph, ())
    variants = VariantTimes.of(made, flow, Rivals.of(made, None), time)
    segments = Segments(flow, order, made.min_scratch.work)
    return CutProblem(Space.of(flow, order), segments, variants, most_ticks, chains=chains)


def test_cuts_with_fused_chains_follow_the_best_cuts_of_all_forms(tmp_path: Path) -> None:
    model = bottlenecks(tmp_path / "three.onnx", 3)
    plain = problem_of(model, (), 2e7)
    most_ticks = 3 * plain.variants.ticks(plain.space.step_rows(()))
    plain, fused = (problem_of(model, chains, most_ticks) for chains in ((), CHAINS))
    alone, across = BestFirst(plain), BestFirst(plain, seeded=False)
    alone.explore(Effort.of(0.3))
    across.add((one.problem, one.state) for one in alone.best)
    across.add([(fused, (Cut(0, 2, 4),))])
    effort = Effort.of(0.4)
    across.explore(effort.part(0.7))
    squeeze(across, effort)
    best = across.best[0]
    assert best.problem is fused and best.peak_bytes < 0.9 * alone.best[0].peak_bytes
    assert best.ticks <= most_ticks
    assert [one.peak_bytes for one in across.best] == sorted(one.peak_bytes for one in across.best)
    splits = FusedCuts.of(best.peak_bytes, fused, best.state).splits
    assert fused.space.cut_segments(fused.space.state(splits)) == best.cut_segments
