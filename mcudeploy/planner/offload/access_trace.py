"""The access trace of a schedule: the reads and writes of its steps, as the offload search needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.ir.plan import Plan, Step
from mcudeploy.ir.trace import Item, ItemAccess, Trace, TraceStep
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.residences import Draft
from mcudeploy.planner.place.solve import pinned, start_alignments
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Buffer, WorkBytes, buffers
from mcudeploy.tiling.traffic import step_loads

_LARGE_DIVISOR = 8
"""Graph inputs, outputs or states first go to the slow memory above the fast one's bytes divided by this."""


@dataclass(frozen=True, slots=True)
class IoPlacement:
    """The memory of graph inputs and outputs, as buffers by index.

    `fixed` buffers are in the fast memory, `away` ones permanently in the slow memory, `given` ones exist at
    the start. `homes` are states whose place between runs is in the slow memory. Homes and all other buffers
    are free to move.
    """

    fixed: Collection[int]
    away: Collection[int]
    given: Collection[int]
    homes: Collection[int] = ()


def with_repeats(draft: Draft, io: IoPlacement, steps: tuple[Step, ...]) -> tuple[Draft, IoPlacement]:
    """Return a draft with these steps, some of them repeated, and where its graph inputs and outputs lie.

    The blocks that take over from each other in place must be those of the draft.
    """
    items = buffers(draft.tiled, steps, draft.work)

    def same(buffers_of: Collection[int]) -> list[int]:
        members = {draft.items[at].members for at in buffers_of}
        return [at for at, item in enumerate(items) if item.members in members]

    starts = {draft.items[at].members: start for at, start in draft.starts.items()}
    changed = replace(
        draft,
        steps=steps,
        items=items,
        fixed=same(draft.fixed),
        starts={at: starts[item.members] for at, item in enumerate(items) if item.members in starts},
    )
    return changed, IoPlacement(same(io.fixed), same(io.away), same(io.given), same(io.homes))


def trace_of(draft: Draft, io: IoPlacement, cycles: Sequence[float]) -> tuple[Trace, list[int]]:
    """Return the trace of a schedule with these step cycles, and the buffer of each of its items, by index.

    Scratch is memory that a step needs in addition to its items; `away` buffers are not items.
    """
    items, last = draft.items, len(draft.steps)
    buffer_of = [
        at
        for at, item in enumerate(items)
        if at not in io.away and len(item.life) and (item.members or _is_state(draft, item))
    ]
    accesses_of = _ItemAccesses(draft, {at: number for number, at in enumerate(buffer_of)})
    factors = step_loads(draft.tiled, draft.work)
    graph, steps = draft.tiled.graph, []
    for time, (step, cost) in enumerate(zip(draft.steps, cycles, strict=True)):
        operator = graph.operators[step.operator]
        accesses = tuple(accesses_of.step(step, time, factors[step.operator]))
        scratch = align_up(draft.work.get(operator.name, (0, 0))[0], draft.alignment)
        continues = operator.op.accumulates or any(it.is_continued_by(operator) for it in graph.states)
        repeatable = bool(operator.inputs) and not continues
        steps.append(TraceStep(operator.name, cost, accesses, scratch, repeatable, time))
    return Trace(
        tuple(
            Item(
                name=f"{item.members[0][0]}[{item.members[0][1]}]" if item.members else "state",
                size_bytes=align_up(item.size_bytes, draft.alignment),
                given=at in io.given,
                kept=at in io.homes or (at in io.fixed and item.life.hi == last),
                fixed=at in io.fixed,
                home=at in io.homes,
            )
            for at, item in ((at, items[at]) for at in buffer_of)
        ),
        tuple(steps),
    ), buffer_of


def _is_state(draft: Draft, item: Buffer) -> bool:
    return item.scratch_of is not None and draft.work[item.scratch_of[0]][1] > 0


def draft_of(tiled: TiledGraph, plan: Plan, work: WorkBytes, board: Board) -> Draft:
    """Return the schedule of a plan with its buffers; all have one alignment, and some a second one."""
    wanted = needs(tiled.graph, board, plan.functions)
    items = buffers(tiled, plan.schedule.steps, work)
    alignment = lcm(*(need.alignment for need in (*wanted.tensors.values(), *wanted.work.values())))
    alignment = lcm(alignment, *(it.alignment for it in board.memories))
    fixed = pinned(tiled, items, wanted, board, plan.functions)
    starts = start_alignments(items, wanted)
    return Draft(tiled, plan.schedule.steps, items, work, alignment, fixed, starts)


def io_placements(draft: Draft, fast_bytes: int, *, takes_io: bool = True) -> Iterator[IoPlacement]:
    """Yield placements of graph inputs, outputs and states in the fast or the slow memory.

    The first has no large ones in the fast memories of `fast_bytes`. If the fast memory takes neither inputs
    nor outputs, only states differ. Rows of an input that break the alignment stay, and so does a state that
    the last step uses: it could not return to the slow memory.
    """
    graph, roots = draft.tiled.graph, draft.tiled.flow.roots
    states = {roots[name] for state in graph.states for name in state.chain}
    inputs = {io.tensor for io in graph.resident_inputs()} - states
    outputs = {roots[io.tensor] for io in graph.outputs} - states

    def of(names: set[str]) -> list[int]:
        return [at for at, item in enumerate(draft.items) if any(name in names for name, _ in item.members)]

    def is_large(names: set[str]) -> bool:
        return _LARGE_DIVISOR * sum(graph.tensors[name].size_bytes for name in names) > fast_bytes

    inputs_only, all_outputs = of(inputs - outputs), of(outputs)
    unaligned = of({
        name
        for name in inputs - outputs
        if draft.tiled.block_count(name) > 1 and graph.tensors[name].row_bytes % draft.alignment
    })  # fmt: skip
    used_last = set(of(_used(draft, draft.steps[-1])))
    homes = [at for at in of(states) if at not in used_last and at in set(draft.fixed)]
    never_slow = sorted(set(draft.fixed) - {*inputs_only, *all_outputs, *homes})
    large_inputs = bool(inputs_only) and is_large(inputs)
    large_outputs = bool(all_outputs) and is_large(outputs)
    # Whether inputs, and whether outputs, are in the slow memory.
    slow = [
        (slow_inputs, slow_outputs)
        for slow_outputs in ([True, False] if large_outputs else [False])
        for slow_inputs in ([large_inputs, not large_inputs] if inputs_only else [False])
    ]
    if not takes_io:
        slow = [(bool(inputs_only), bool(all_outputs))]
    used_first = set(of(_used(draft, draft.steps[0])))  # the core waits for these at the start
    large_states = bool(homes) and is_large({state.tensor for state in graph.states})
    choices = [(*one, homes if large_states else []) for one in slow]
    if large_states:
        choices += [(*slow[0], [at for at in homes if at not in used_first]), (*slow[0], [])]
    for slow_inputs, slow_outputs, slow_states in choices:
        fixed = [
            *never_slow,
            *([] if slow_inputs else inputs_only),
            *([] if slow_outputs else all_outputs),
            *(at for at in homes if at not in slow_states),
        ]
        away = [*(all_outputs if slow_outputs else []), *(unaligned if slow_inputs else [])]
        yield IoPlacement(fixed, away, of(inputs | states), slow_states)


def _used(draft: Draft, step: Step) -> set[str]:
    """Return the tensors that a step uses."""
    tiled = draft.tiled
    read = {name for each in tiled.blocks_read(step) for name, _ in each}
    return read | {tiled.graph.operators[step.operator].output}


class _ItemAccesses:
    """The items that each step accesses."""

    def __init__(self, draft: Draft, number: dict[int, int]) -> None:
        self._draft, self._number = draft, number
        self._of_block: dict[int, list[int]] = {}
        self._states: dict[str, int] = {}
        for at in number:
            item = draft.items[at]
            if item.scratch_of is not None:
                self._states[item.scratch_of[0]] = at
            for name, block in item.members:
                self._of_block.setdefault(draft.tiled.first_block[name] + block, []).append(at)

    def step(self, step: Step, time: int, factors: Sequence[float]) -> Iterator[ItemAccess]:
        """Yield the accesses of a step; `factors`: by operand, the number of reads of each of its bytes."""
        tiled = self._draft.tiled
        operator = tiled.graph.operators[step.operator]
        roots = [tiled.flow.roots[name] for name in operator.inputs]
        operand_of: dict[int, int] = {}
        for operand, (lo, hi) in enumerate(tiled.reads[tiled.first_step[step.operator] + step.block]):
            for block in range(lo, hi):
                at = self._at(block, time)
                if at is not None and at not in operand_of:
                    operand_of[at] = roots.index(roots[operand])
                    size = int(self._draft.items[at].size_bytes * factors[operand])
                    yield ItemAccess(self._number[at], False, operand_of[at], size)
        last = tiled.step_counts[step.operator] - 1
        if added := tiled.added_to(step):
            at = self._at(tiled.first_block[added[0]] + added[1], time)
            if at is not None:
                size = self._draft.items[at].size_bytes
                yield ItemAccess(self._number[at], True, operand_of[at], size)
        if not operator.op.accumulates or step.block == last:
            at = self._at(tiled.written(step.operator, step.block), time)
            if at is not None:
                size = self._draft.items[at].size_bytes
                yield ItemAccess(self._number[at], True, operand_of.get(at, len(roots)), size)
        state = self._states.get(operator.name)
        if state is not None:
            if time > self._draft.items[state].life.lo:
                yield ItemAccess(self._number[state], False, -1)
            yield ItemAccess(self._number[state], True, -1)

    def _at(self, block: int, time: int) -> int | None:
        """Return the buffer that contains a block at a step, if the trace includes it."""
        here = (at for at in self._of_block.get(block, ()) if time in self._draft.items[at].life)
        return next(here, None)
