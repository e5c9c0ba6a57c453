"""Plans of one model that must all have the same result: searched for, cut at random, moved, spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from moves import with_moves
from residing import repeating

from fuzzing.chains import drawn_chains
from mcudeploy.boards.board import Board, Memory, Unit
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.common.effort import Effort
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan, Rewrites, Split
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES, Budget
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options, Placement
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.cuts import ROWS_TRIED, Cut, Space
from mcudeploy.planner.search.placing import placed
from mcudeploy.tiling.blocks import TiledGraph, whole
from mcudeploy.tiling.dataflow import Dataflow

OFFSET_UNIT = 4
"""Bytes that offsets are counted in, on all boards here."""

_TINY_BYTES = (4, 8, 28, 64, 200)
"""Of a fast memory in which hardly anything finds room."""

_SECONDS = 0.15
"""Seconds for one search."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedPlan:
    """A plan that passed the checker, the model in its form, and the board it is for."""

    way: str
    plan: Plan
    model: Model
    board: Board


def _board(*units: Unit, memories: tuple[str, ...] = ("ram",), first_bytes: int = 1 << 24) -> Board:
    """The host with these units and memories."""
    memories_of_board = tuple(
        Memory(
            name=name,
            origin=0x10000000 + (at << 26),
            bytes=1 << 24,
            alignment=OFFSET_UNIT,
            read_rate=1 / at if at else None,
            write_rate=1 / at if at else None,
            arena_limit=None if at else first_bytes,
        )
        for at, name in enumerate(memories)
    )
    return load_board("host").model_copy(
        update={"units": units or load_board("host").units, "memories": memories_of_board}
    )


HOST = _board()


def unsplit(model: Model) -> JudgedPlan:
    """The plan that all others are compared with."""
    planned = find_plans(model, HOST, Options(split=False))
    return JudgedPlan("unsplit", planned.baseline, planned.model_of(planned.baseline), HOST)


def others(model: Model, base: JudgedPlan, seed: int) -> Iterator[tuple[str, Callable[[], JudgedPlan]]]:
    """The other plans by method, each computed on its call."""
    splitting = Options(time_limit=_SECONDS, max_overhead=100)
    yield "split", lambda: searched("split", model, HOST, splitting)
    yield "streamed", lambda: searched("streamed", model, HOST, replace(splitting, stream_input=True))
    yield "cut", lambda: _cut(model, np.random.default_rng(seed))
    yield "fused", lambda: replace(_fused(model, seed), way="fused")
    yield "moved", lambda: replace(_moved(_cut(model, np.random.default_rng(seed)), seed), way="moved")
    yield "again", lambda: _again(_cut(model, np.random.default_rng(seed)), np.random.default_rng(seed))
    if seed % 3 == 0:
        tags = Options(split=False, placement="tags")
        yield "tags", lambda: searched("tags", model, HOST, tags)
    if seed % 4 < 2:
        yield "tiny", lambda: _beside_tiny(model, np.random.default_rng(seed))
    if seed % 2:
        yield "memories", lambda: _apart(model, base, np.random.default_rng(seed))
    else:
        yield "units", lambda: _on_units(model, np.random.default_rng(seed))


def with_splits(judged: JudgedPlan) -> JudgedPlan:
    """A plan that is cut at random, with a split for each operator, as its file needs them."""
    tiled = TiledGraph.of(judged.plan)
    rows = zip(judged.plan.block_rows.items(), tiled.step_counts, strict=True)
    splits = tuple(Split((name,), "row", size) for (name, size), steps in rows if steps > 1)
    return replace(judged, plan=replace(judged.plan, splits=splits))


def searched(way: str, model: Model, board: Board, options: Options) -> JudgedPlan:
    """The plan with the least arena that the search finds."""
    planned = find_plans(model, board, options)
    plan = planned.choices[0]
    return JudgedPlan(way, plan, planned.model_of(plan), board)


def _cut(model: Model, random: np.random.Generator, *, fused: bool = False) -> JudgedPlan:
    """Random cuts, kernels and streamed inputs, and chains if `fused`: plans that a search would never choose
    must be right as well.
    """
    form = Rewrites(streamed=bool(random.random() < 0.5), accumulating=True)
    plain = model.in_form(form)
    chains = drawn_chains(plain.graph, random) if fused else ()
    model = model.in_form(replace(form, fused=chains)) if chains else plain
    calls = {name: _drawn_call(ways, random) for name, ways in model.variants.items()}
    model = model.with_calls(calls)
    flow = Dataflow.of(model.graph)
    order = tuple(step.operator for step in reverse_post_order(whole(model.graph)).steps)
    space = Space.of(flow, order)
    cuts, first = [], 0
    while first < len(order):
        last = min(len(order) - 1, first + int(random.integers(0, 8)))
        if random.random() < 0.7:
            rows = int(random.choice(ROWS_TRIED[:6]))
            apart, staggered = (bool(random.random() < share) for share in (0.2, 0.5))
            cuts.append(Cut(first, last, rows, apart, staggered))
        first = last + 1
    state = tuple(cuts)
    tiled = space.tiled(state)
    schedule = reverse_post_order(tiled, first_input_first=bool(random.random() < 0.5))
    splits = tuple(
        Split(
            tuple(model.graph.operators[order[at]].name for at in range(it.first, it.last + 1)),
            "row",
            it.rows,
            staggered=it.staggered,
        )
        for it in state
    )
    plan = placed(model, HOST, tiled, schedule, splits=splits)
    check(plan, model.work, HOST)
    return JudgedPlan("cut", plan, model, HOST)


def _fused(model: Model, seed: int) -> JudgedPlan:
    """Random chains and cuts, with random moves, with rematerialised blocks, or without either."""
    random = np.random.default_rng(seed)
    judged = _cut(model, random, fused=True)
    match seed % 3:
        case 0:
            return judged
        case 1:
            return _moved(judged, seed)
        case _:
            return _again(judged, random)


def _drawn_call(variants: Sequence[KernelCall], random: np.random.Generator) -> KernelCall:
    """Any variant; of a fused chain more often one by groups of channels, which few have."""
    by_groups = [it for it in variants if it.params.get("summed_pixels")]
    among = by_groups if by_groups and random.random() < 0.6 else variants
    return among[int(random.integers(len(among)))]


def _moved(judged: JudgedPlan, seed: int) -> JudgedPlan:
    plan = with_moves(judged.plan, seed, share=0.3)
    check(plan, judged.model.work, HOST)
    return replace(judged, plan=plan)


def _again(judged: JudgedPlan, random: np.random.Generator) -> JudgedPlan:
    """Blocks that are rematerialised, elsewhere and with moves if that saves RAM, else with random moves."""
    plan, graph = judged.plan, judged.model.graph
    tiled = TiledGraph.of(plan)
    outputs = {tiled.flow.roots[io.tensor] for io in graph.outputs}
    blocks = [
        (step.operator, step.block)
        for step in plan.schedule.steps
        if graph.operators[step.operator].inputs
        and not graph.operators[step.operator].op.accumulates
        and graph.operators[step.operator].output not in outputs
    ]
    some = random.permutation(len(blocks))[: int(random.integers(1, 12))]
    again = [(graph.operators[blocks[at][0]].output, blocks[at][1]) for at in some]
    schedule = repeating(tiled, plan.schedule, *again)
    budget = Budget(CopyCost(30.0, 60.0, 0.4), Effort(100_000))
    plan = placed(judged.model, HOST, tiled, schedule, splits=plan.splits, budget=budget)
    check(plan, judged.model.work, HOST)
    repeated = replace(judged, way="again", plan=plan)
    return repeated if plan.layout.transfers else _moved(repeated, int(random.integers(1 << 30)))


def _apart(model: Model, base: JudgedPlan, random: np.random.Generator) -> JudgedPlan:
    """Two memories; the fast one is too small for everything, but has room for what cannot lie elsewhere."""
    some = int(base.plan.layout.arena_bytes * random.uniform(0.2, 0.9)) // 4 * 4
    board = _board(memories=("ram", "bulk"), first_bytes=max(some, _least_fast_bytes(model)))
    return searched("memories", model, board, _drawn(random))


def _beside_tiny(model: Model, random: np.random.Generator) -> JudgedPlan:
    """Two memories; the fast one is tiny, but has room for what cannot lie elsewhere."""
    tiny = max(int(random.choice(_TINY_BYTES)), _least_fast_bytes(model))
    board = _board(memories=("ram", "bulk"), first_bytes=tiny)
    return searched("tiny", model, board, _drawn(random))


def _least_fast_bytes(model: Model) -> int:
    """Bytes of the largest scratch, and of the largest input that nothing reads."""
    graph = model.graph
    read = {name for operator in graph.operators for name in operator.inputs}
    unread = (graph.tensors[it.tensor].size_bytes for it in graph.inputs if it.tensor not in read)
    needed = max(model.min_scratch.calls[name].scratch_bytes for name in model.calls)
    return align_up(max(needed, *unread, 0), ARENA_GRAIN_BYTES)


def _on_units(model: Model, random: np.random.Generator) -> JudgedPlan:
    """Operators on two units that share memory after caches, or that share none and need copies."""
    if random.random() < 0.5:
        cached = ("ram",)
        units = (
            Unit(name="core", cached=cached),
            Unit(name="npu", kind="accelerator", alignment=16, cached=cached),
        )
        board = _board(*units)
    else:
        units = (
            Unit(name="core", memories=("ram",)),
            Unit(name="npu", memories=("own",)),
            Unit(name="mover"),
        )
        board = _board(*units, memories=("ram", "own"))
    names = [operator.name for operator in model.graph.operators if not operator.op.is_view]
    there = [name for name in names if random.random() < 0.4] or names[:1]
    rules = (f"npu={','.join(there)}",)
    options = replace(_drawn(random), assign=rules)
    placement: Placement = "tags" if not options.split and random.random() < 0.5 else "blocks"
    return searched("units", model, board, replace(options, placement=placement))


def _drawn(random: np.random.Generator) -> Options:
    split, streamed = (bool(random.random() < 0.5) for _ in range(2))
    return Options(time_limit=_SECONDS, max_overhead=100, split=split, stream_input=streamed)
