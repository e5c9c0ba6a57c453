"""The savings of shared memory: a chain by hand, and a network with copies and caches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from drawn import board
from test_transfers import chain

from mcudeploy.boards.board import Unit
from mcudeploy.checker.judge import check
from mcudeploy.commands import commands as api
from mcudeploy.common.effort import Effort
from mcudeploy.ir.plan import Rewrites
from mcudeploy.planner.cores.functions import Assignment
from mcudeploy.planner.model.model import Model, kernel_variants
from mcudeploy.planner.place.sharing import Sharing, sharing
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.search.placing import tagged_plan, unsplit_plan, unsplit_schedule
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.report import as_json
from tests.networks.small import residual_network

TWO = board(Unit(name="core"), Unit(name="npu", alignment=16, prefers=("Conv2d",)))


def chain_model() -> Model:
    """A chain x, a, b, c of 96 bytes each, whose b is computed on the npu."""
    graph = chain()
    variants = kernel_variants(graph)
    calls = {name: ways[0] for name, ways in variants.items()}
    model = Model(Path("chain"), "", graph, Rewrites(), variants, calls)
    return model.on_units(TWO, Assignment("core", {"make_b": "npu"}))


def test_a_chain_in_one_place() -> None:
    """All tensors overwrite one another. Separately: 96 bytes on core, 96 on npu, two buffers of 96."""
    model = chain_model()
    plan = unsplit_plan(model, TWO, unsplit_schedule(model, Effort.of(5)))
    shares = sharing(PlanView(plan, model.calls), TWO)
    assert shares == Sharing(2, 2 * 96, 4 * 96, 3 * 96, 0)


def test_a_chain_by_tags() -> None:
    """The tag of x stays, like that of any input, so a, b and c have another tag."""
    model = chain_model()
    plan = tagged_plan(model, TWO)
    check(plan, model.work, TWO)
    assert plan.layout.arena_bytes == 2 * 96
    offsets = {name: blocks[0][0].offset for name, blocks in plan.layout.blocks.items()}
    assert len(set(offsets.values())) == 2
    (first,) = (io.tensor for io in model.graph.resident_inputs())
    assert [name for name, offset in offsets.items() if offset == offsets[first]] == [first]


@pytest.mark.parametrize("rules", [(), ("auto",)])
def test_tagged_plans_pass_the_checker_and_take_no_less(tmp_path: Path, rules: tuple[str, ...]) -> None:
    model = residual_network(tmp_path / "residual.onnx")
    options = Options(split=False, assign=rules)
    by_room, by_tags = (
        api.plan_model(model, TWO, replace(options, placement=placement)).plan.layout
        for placement in ("blocks", "tags")
    )
    assert by_tags.arena_bytes >= by_room.arena_bytes
    assert by_tags.blocks.keys() == by_room.blocks.keys()


@pytest.mark.parametrize("split", [False, True])
def test_it_saves_the_border_tensors_at_least(tmp_path: Path, split: bool) -> None:
    model = residual_network(tmp_path / "residual.onnx")
    options = Options(time_limit=0.5, split=split, assign=("auto",))
    report = as_json(api.plan_model(model, TWO, options))
    shares = report["sharing"]
    assert {function["unit"] for function in shares["functions"]} == {"core", "npu"}
    assert shares["saved_bytes"] >= shares["border_bytes"] > 0
    assert shares["saved_bytes"] == shares["separate_bytes"] - report["arena_bytes"]
    assert as_json(api.plan_model(model, TWO, Options(split=False)))["sharing"] is None
