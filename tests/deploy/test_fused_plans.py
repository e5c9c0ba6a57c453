"""Plans with fused chains: verified, stored, judged; what excludes them; faulty files and layouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import bottlenecks, skipping

from mcudeploy.boards.board import FIRMWARE_RAM_BYTES
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.codegen.program import make_program
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import CallTable
from mcudeploy.ir.plan import Plan, Residence, Rewrites
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.fusing import FusedSeeds
from mcudeploy.planner.search.placing import placed
from mcudeploy.planner.tape import footprint
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import whole
from mcudeploy.toolchain.stack import stack_bound
from mcudeploy.verify.samples import load_samples
from tests.weekly import sample

HOST = load_board("host")
BOTH = [["conv_0", "conv_1", "conv_2"], ["conv_3", "conv_4", "conv_5"]]
OPTIONS = Options(time_limit=0.5, max_overhead=200)

Stored = tuple[Path, Path, api.Deployment]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A model, the file of its plan, and the plan: both bottlenecks are fused, and cut."""
    folder = tmp_path_factory.mktemp("fused")
    model = bottlenecks(folder / "small.onnx")
    deployment = api.plan_model(model, HOST, OPTIONS)
    api.save_plan(deployment, folder / "plan.json")
    return model, folder / "plan.json", deployment


def test_a_fused_plan_is_smaller_and_stays_the_same_in_a_file(stored: Stored) -> None:
    model, file, deployment = stored
    assert [list(chain) for chain in deployment.plan.form.fused] == BOTH
    assert deployment.plan.layout.arena_bytes < min(
        plan.layout.arena_bytes for plan in deployment.planned.choices if not plan.form.fused
    )
    again = api.plan_model(model, HOST, replace(OPTIONS, plan_file=file)).plan
    assert (again.form, again.layout.blocks, again.kernels) == (
        deployment.plan.form,
        deployment.plan.layout.blocks,
        deployment.plan.kernels,
    )


def test_a_search_goes_on_from_a_fused_plan(stored: Stored) -> None:
    model, file, deployment = stored
    options = replace(OPTIONS, plan_file=file, resume=True, time_limit=0.01)
    assert api.plan_model(model, HOST, options).plan.layout.arena_bytes <= deployment.plan.layout.arena_bytes


def test_ctrl_c_while_chains_are_chosen_keeps_the_plans(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FusedSeeds, "states", interrupted)
    model = load_model(stored[0], isa=HOST.isa)
    planned = find_plans(model, HOST, OPTIONS)
    assert planned.interrupted and planned.choices


def test_ties_between_stages_are_not_errors(stored: Stored) -> None:
    """Each moves later stages by more than its own step, so outputs are held against the unsplit plan."""
    _, _, deployment = stored
    samples = load_samples(deployment.model.graph, [], [], 0)
    verdict = api.verdict_on_host(deployment, samples, SILENT)
    assert verdict.reasons == ()
    assert set(verdict.operators) == {f"conv_{at}" for at in range(6)}
    assert sum(diff.ties for diff in verdict.operators.values()) > 0


def test_other_bits_than_those_of_the_unsplit_plan_are_an_error(stored: Stored) -> None:
    _, _, deployment = stored
    samples = load_samples(deployment.model.graph, [], [], 0)
    calls = dict(deployment.model.calls)
    name = "conv_0_to_conv_2"
    table = calls[name].params["calls"]
    assert isinstance(table, CallTable)
    moved = tuple(
        replace(it, params={**it.params, "quant.zero_point": int(it.params["quant.zero_point"]) + 1})
        for it in table.calls
    )
    calls[name] = replace(calls[name], params={**calls[name].params, "calls": CallTable(moved)})
    wrong = replace(deployment, model=replace(deployment.model, calls=calls))
    verdict = api.verdict_on_host(wrong, samples, SILENT)
    assert "computed by fused chains differs from that of the unsplit plan" in verdict.reasons[0]


def test_boards_reserve_more_stack_for_fused_chains(stored: Stored) -> None:
    plan, calls = stored[2].plan, stored[2].model.calls
    first = HOST.memories[0]

    def missing(bytes_beside: int) -> list[str]:
        size = HOST.stack_bytes + FIRMWARE_RAM_BYTES + plan.layout.arenas[first.name] + bytes_beside
        small = HOST.model_copy(update={"memories": (first.model_copy(update={"bytes": size}),)})
        return footprint.missing(PlanView(plan, calls), small, None)

    assert missing(plan.form.stack_bytes) == []
    assert "1 too many" in missing(plan.form.stack_bytes - 1)[0]


def test_the_reserved_stack_is_enough(stored: Stored) -> None:
    """With an interrupt, on the board that reserves least."""
    board = load_board("microbit")
    deployment = api.plan_model(stored[0], board, replace(OPTIONS, stream_input=True))
    assert deployment.plan.form.fused
    target = Target(board, emulate=True)
    bound = stack_bound(deployment.build(target))
    assert bound is not None
    needed = bound.program_bytes + bound.interrupt_bytes
    assert board.stack_bytes < needed <= deployment.firmware_board(target).stack_bytes


def test_infinite_bounds_of_stages_need_their_header(tmp_path: Path) -> None:
    plain = load_model(skipping(tmp_path / "floats.onnx"))
    model = plain.in_form(Rewrites(accumulating=True, fused=(("conv_1", "conv_2"),)))
    tiled = whole(model.graph)
    plan = placed(model, HOST, tiled, reverse_post_order(tiled))
    assert make_program(PlanView(plan, model.calls), "floats", HOST).holds_infinity


def test_an_output_between_stages_is_not_fused_away(tmp_path: Path) -> None:
    model = load_model(bottlenecks(tmp_path / "outputs.onnx", between="q_0"))
    planned = find_plans(model, HOST, OPTIONS)
    fused = [chain for plan in planned.candidates for chain in plan.form.fused]
    assert all("conv_0" not in chain[:-1] for chain in fused)
    assert all("q_0" in {it.name for it in plan.graph.outputs} for plan in planned.choices)


@pytest.mark.parametrize(
    "options", [replace(OPTIONS, split=False), replace(OPTIONS, replaceable=("conv_0",))]
)
def test_what_excludes_fused_chains(stored: Stored, options: Options) -> None:
    model, file, _ = stored
    planned = api.plan_model(model, HOST, options).planned
    assert not any(plan.form.fused for plan in planned.choices)
    if options.replaceable:
        with pytest.raises(ConfigError, match="exclude fused chains"):
            api.plan_model(model, HOST, replace(options, plan_file=file))


File = dict[str, Any]
CHAINS: dict[str, Any] = {
    "an unknown operator": [["conv_0", "other"]],
    "no stage": [[], *BOTH],
    "one stage": [["conv_0"]],
    "stages too many": [[f"conv_{at % 6}" for at in range(9)]],
    "a huge chain": [["conv_0"] * 10**5],
    "many chains": BOTH * 10**4,
    "a chain twice": [*BOTH, BOTH[0]],
    "chains that overlap": [["conv_0", "conv_1", "conv_2"], ["conv_2", "conv_3"]],
    "a stage is left out": [["conv_0", "conv_2"]],
    "a chain backwards": [["conv_1", "conv_0"]],
    "a stage follows itself": [["conv_0", "conv_0"]],
    "no chains": [],
    "a chain too few": BOTH[:1],
    "a longer chain": [[f"conv_{at}" for at in range(6)]],
    "a text": "conv_0",
    "numbers": [[0, 1]],
    "deeper lists": [BOTH],
}


@pytest.mark.parametrize("chains", CHAINS.values(), ids=CHAINS)
def test_chains_that_were_tampered_with(stored: Stored, chains: object, tmp_path: Path) -> None:
    model, file, _ = stored
    content = json.loads(file.read_text()) | {"fused": chains}
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        api.plan_model(model, HOST, Options(plan_file=tmp_path / "plan.json"))
    assert len(str(caught.value)) < 500


def _scratch_over(plan: Plan, random: np.random.Generator) -> Plan:
    """Scratch of a step on a block that is live there."""
    scratch = dict(plan.layout.scratch)
    name = list(scratch)[int(random.integers(len(scratch)))]
    number = int(random.integers(len(scratch[name])))
    (own,) = scratch[name][number]
    live = [
        it.offset
        for blocks in plan.layout.blocks.values()
        for block in blocks
        for it in block
        if it.life.lo <= own.life.lo < it.life.hi and it.memory == own.memory
    ]
    offset = live[int(random.integers(len(live)))]
    changed = list(scratch[name])
    changed[number] = (replace(own, offset=offset),)
    scratch[name] = tuple(changed)
    return replace(plan, layout=replace(plan.layout, scratch=scratch))


def _changed_block(plan: Plan, random: np.random.Generator, change: Callable[[Residence], Residence]) -> Plan:
    tensors = dict(plan.layout.blocks)
    name = list(tensors)[int(random.integers(len(tensors)))]
    blocks = list(tensors[name])
    number = int(random.integers(len(blocks)))
    blocks[number] = (change(blocks[number][0]), *blocks[number][1:])
    tensors[name] = tuple(blocks)
    return replace(plan, layout=replace(plan.layout, blocks=tensors))


def _shorter_life(plan: Plan, random: np.random.Generator) -> Plan:
    """A fused chain reads rows of its input again: they must stay until then."""
    return _changed_block(plan, random, lambda it: replace(it, life=Interval(it.life.lo, it.life.hi - 1)))


@pytest.mark.parametrize("seed", sample(range(14), 4))
@pytest.mark.parametrize("mutate", [_scratch_over, _shorter_life])
def test_mutants_are_refused(
    stored: Stored, mutate: Callable[[Plan, np.random.Generator], Plan], seed: int
) -> None:
    _, _, deployment = stored
    check(deployment.plan, deployment.model.work, HOST)
    with pytest.raises(PlanFaultError):
        check(mutate(deployment.plan, np.random.default_rng(seed)), deployment.model.work, HOST)
