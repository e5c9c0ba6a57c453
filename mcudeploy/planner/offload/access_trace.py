"""The access trace of a schedule: the reads and writes of its steps, as the offload search needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcudeploy.ir.plan import Step
from mcudeploy.ir.trace import Item, ItemAccess, Trace, TraceStep
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import Buffer, WorkBytes
from mcudeploy.tiling.traffic import step_loads


@dataclass(frozen=True, slots=True)
class Draft:
    """A schedule with its buffers, and the scratch and state of its operators. `alignment`: of offsets."""

    tiled: TiledGraph
    steps: tuple[Step, ...]
    items: tuple[Buffer, ...]
    work: WorkBytes
    alignment: int


@dataclass(frozen=True, slots=True)
class IoPlacement:
    """The placement of graph inputs and outputs, as buffers by index.

    `fixed` buffers are in the fast memory, `away` ones permanently in the slow memory, `given` ones exist at
    the start. All others are free to move.
    """

    fixed: Collection[int]
    away: Collection[int]
    given: Collection[int]


def trace_of(scene: Draft, homes: IoPlacement, cycles: Sequence[float]) -> tuple[Trace, list[int]]:
    """Return the trace of a schedule with these step cycles, and the buffer of each of its items, by index.

    Scratch is memory that a step needs in addition to its items; `away` buffers are not items.
    """
    items, last = scene.items, len(scene.steps)
    buffer_of = [
        at
        for at, item in enumerate(items)
        if at not in homes.away and len(item.life) and (item.members or _is_state(scene, item))
    ]
    number = {at: index for index, at in enumerate(buffer_of)}
    touching = _ItemAccesses(scene, number)
    factors = step_loads(scene.tiled, scene.work)
    steps = []
    for time, (step, cost) in enumerate(zip(scene.steps, cycles, strict=True)):
        operator = scene.tiled.graph.operators[step.operator]
        found = tuple(touching.accesses(step, time, factors[step.operator]))
        scratch = align_up(scene.work.get(operator.name, (0, 0))[0], scene.alignment)
        steps.append(TraceStep(operator.name, cost, found, scratch, bool(operator.inputs), time))
    named = (items[at] for at in buffer_of)
    return Trace(
        tuple(
            Item(
                name=f"{item.members[0][0]}[{item.members[0][1]}]" if item.members else "state",
                size_bytes=align_up(item.size_bytes, scene.alignment),
                given=at in homes.given,
                kept=at in homes.fixed and item.life.hi == last,
                fixed=at in homes.fixed,
            )
            for at, item in zip(buffer_of, named, strict=True)
        ),
        tuple(steps),
    ), buffer_of


def _is_state(scene: Draft, item: Buffer) -> bool:
    return item.scratch_of is not None and scene.work[item.scratch_of[0]][1] > 0


class _ItemAccesses:
    """The items that each step accesses."""

    def __init__(self, scene: Draft, number: dict[int, int]) -> None:
        self._scene, self._number = scene, number
        self._of_block: dict[int, list[int]] = {}
        self._states: dict[str, int] = {}
        for at in number:
            item = scene.items[at]
            if item.scratch_of is not None:
                self._states[item.scratch_of[0]] = at
            for name, block in item.members:
                self._of_block.setdefault(scene.tiled.first_block[name] + block, []).append(at)

    def accesses(self, step: Step, time: int, factors: Sequence[float]) -> Iterator[ItemAccess]:
        """Yield the accesses of a step; `factors`: by operand, the number of reads of each of its bytes."""
        tiled = self._scene.tiled
        operator = tiled.graph.operators[step.operator]
        roots = [tiled.flow.roots[name] for name in operator.inputs]
        seen: dict[int, int] = {}
        for operand, (lo, hi) in enumerate(tiled.reads[tiled.first_step[step.operator] + step.block]):
            for block in range(lo, hi):
                at = self._at(block, time)
                if at is not None and at not in seen:
                    seen[at] = roots.index(roots[operand])
                    size = int(self._scene.items[at].size_bytes * factors[operand])
                    yield ItemAccess(self._number[at], False, seen[at], size)
        last = tiled.step_counts[step.operator] - 1
        if not operator.op.accumulates or step.block == last:
            at = self._at(tiled.written(step.operator, step.block), time)
            if at is not None:
                size = self._scene.items[at].size_bytes
                yield ItemAccess(self._number[at], True, seen.get(at, len(roots)), size)
        state = self._states.get(operator.name)
        if state is not None:
            if time > self._scene.items[state].life.lo:
                yield ItemAccess(self._number[state], False, -1)
            yield ItemAccess(self._number[state], True, -1)

    def _at(self, block: int, time: int) -> int | None:
        """Return the buffer that contains a block at a step, if the trace includes it."""
        here = (at for at in self._of_block.get(block, ()) if time in self._scene.items[at].life)
        return next(here, None)
