"""Changes of fused chains beside changes of cuts: the same cuts in other forms, and searches across forms."""

from __future__ import annotations

import pytest
from models import bottlenecks

from mcudeploy.common.effort import Effort
from mcudeploy.costs.estimate import estimated, load_costs
from mcudeploy.ir.plan import Rewrites
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.search.best_first import BestFirst
from mcudeploy.planner.search.chain_moves import Forms
from mcudeploy.planner.search.cuts import Cut, Space
from mcudeploy.planner.search.fusing import FusedCuts
from mcudeploy.planner.search.seeds import Chains, CutProblem
from mcudeploy.planner.search.segments import Segments
from mcudeploy.planner.search.squeeze import squeeze
from mcudeploy.planner.search.tile_times import Rivals, VariantTimes
from mcudeploy.tiling.blocks import whole
from mcudeploy.tiling.dataflow import Dataflow

FIRST, SECOND, THIRD = ((f"conv_{at}", f"conv_{at + 1}", f"conv_{at + 2}") for at in (0, 3, 6))
OVERLAPPING = ("conv_2", "conv_3")


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    """Forms of three bottlenecks, in three times the time at most, and a chain that overlaps two of them."""
    model = load_model(bottlenecks(tmp_path_factory.mktemp("chains") / "three.onnx", 3))

    def problem_of(chains: Chains) -> CutProblem:
        made = model.in_form(Rewrites(fused=chains))
        flow = Dataflow.of(made.graph)
        order = tuple(step.operator for step in reverse_post_order(whole(made.graph)).steps)
        time = estimated(load_costs("cortex-m4"))(made.graph, ())
        variants = VariantTimes.of(made, flow, Rivals.of(made, None), time)
        space = Space.of(flow, order)
        most_ticks = most[0] if most else 3.0 * variants.ticks(space.step_rows(()))
        most.append(most_ticks)
        segments = Segments(flow, order, made.min_scratch.work)
        return CutProblem(space, segments, variants, most_ticks, chains=chains)

    most: list[float] = []
    return Forms((FIRST, SECOND, THIRD, OVERLAPPING), problem_of)


def named(problem: CutProblem, *cuts: Cut) -> list[tuple[tuple[str, ...], int]]:
    """The operators and the rows of cuts."""
    return [(split.operators, split.rows) for split in FusedCuts.of(0, problem, cuts).splits]


def test_a_chain_more_or_less_leaves_the_cuts_as_they_are(forms: Forms) -> None:
    plain = forms.of(())
    beside = {problem.chains: cuts for problem, cuts in forms.moves(plain, (Cut(0, 8, 1),), 4)}
    assert set(beside) == {(FIRST,), (SECOND,), (THIRD,), (OVERLAPPING,)}
    fused = forms.of((FIRST,))
    assert named(fused, *beside[(FIRST,)]) == [
        (("conv_0_to_conv_2", *(f"conv_{at}" for at in range(3, 9))), 1)
    ]
    back = {problem.chains: cuts for problem, cuts in forms.moves(fused, beside[(FIRST,)], 2)}
    assert set(back) == {(), (FIRST, SECOND), (FIRST, THIRD), (OVERLAPPING,)}
    assert back[()] == (Cut(0, 8, 1),)


def test_chains_outside_the_segment_of_the_peak_are_not_fused(forms: Forms) -> None:
    cuts = Cut(0, 5, 2), Cut(6, 8, 1, apart=True)
    beside = [problem.chains for problem, _ in forms.moves(forms.of(()), cuts, 7)]
    assert beside == [(THIRD,)]
    assert not list(forms.moves(forms.of(()), (Cut(0, 5, 2),), 7))  # it is not cut there


def test_a_chain_that_two_cuts_share_is_in_the_first(forms: Forms) -> None:
    cuts = Cut(0, 3, 2), Cut(4, 8, 1)
    beside = {problem.chains: (problem, cut) for problem, cut in forms.moves(forms.of(()), cuts, 4)}
    problem, changed = beside[(SECOND,)]
    assert named(problem, *changed) == [
        (("conv_0", "conv_1", "conv_2", "conv_3_to_conv_5"), 2),
        (("conv_6", "conv_7", "conv_8"), 1),
    ]


def test_a_search_across_forms_finds_cuts_that_no_plain_form_has(forms: Forms) -> None:
    plain = forms.of(())
    alone, across = BestFirst(plain), BestFirst(plain, chain_moves=forms.moves)
    alone.explore(Effort.of(0.3))
    across.add((one.problem, one.state) for one in alone.best)
    effort = Effort.of(0.4)
    across.explore(effort.part(0.7))
    squeeze(across, effort)
    best = across.best[0]
    assert best.problem.chains and best.peak_bytes < 0.9 * alone.best[0].peak_bytes
    assert best.ticks <= plain.most_ticks
    assert [one.peak_bytes for one in across.best] == sorted(one.peak_bytes for one in across.best)
