"""Plans with blocks that move: made of plans without, by more arena than they need."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import lives
from tests.residing import Move, elsewhere, moving, offsets_of


def with_moves(plan: Plan, seed: int = 0, *, share: float = 0.5, alignment: int = 4) -> Plan:
    """The plan with moves of blocks before a share of its steps.

    Blocks go above the arena of the plan, if nothing is born, and there up and down by a few bytes or
    far. What is made in place of a block that lies there is made there, or where the plan has it.
    """
    return _Mover(plan, random.Random(seed), alignment).moved(share) if share else plan


@dataclass
class _Mover:
    plan: Plan
    random: random.Random
    alignment: int
    moves: list[Move] = field(default_factory=list)
    above: dict[BlockId, Interval] = field(default_factory=dict)
    births: dict[BlockId, int] = field(default_factory=dict)

    def moved(self, share: float) -> Plan:
        steps = self.plan.schedule.steps
        self.tiled = TiledGraph.of(self.plan)
        self.ids, self.lives = self.tiled.block_ids(), lives(self.tiled, steps)
        ((self.memory, self.base),) = self.plan.layout.arenas.items()
        self.movable = set(self._movable())
        for time, step in enumerate(steps):
            while self.random.random() < share:
                self._move(time)
            written = self.tiled.written(step.operator, step.block)
            self._bear(written, time)
            for number, block_id in enumerate(self.ids):
                if not any(time + 1 in life for life in self.lives.of(number)):
                    self.above.pop(block_id, None)
        return self._moved_plan()

    def _movable(self) -> Iterator[int]:
        graph, roots = self.plan.graph, self.tiled.flow.roots
        fixed = {roots[io.tensor] for io in (*graph.outputs, *graph.resident_inputs())}
        for number, (name, _) in enumerate(self.ids):
            offsets = offsets_of(self.plan, name)
            if name not in fixed and not any(offset % self.alignment for offset in offsets):
                yield number

    def _bear(self, block: int, time: int) -> None:
        for number, successor in enumerate(self.lives.successors):
            inherits = successor == block and self.lives.first[block] == time and block in self.movable
            if inherits and self.ids[number] in self.above and self.random.random() < 0.7:
                self.above[self.ids[block]] = place = self.above[self.ids[number]]
                self.births[self.ids[block]] = place.lo

    def _move(self, time: int) -> None:
        spans = {number: self.lives.of(number) for number in self.movable}
        alive = [n for n, lives_of in spans.items() if any(life.lo < time < life.hi for life in lives_of)]
        if not alive:
            return
        block_id = self.ids[self.random.choice(alive)]
        size, now = self.tiled.block_bytes(*block_id), self.above.get(block_id)
        others = [span for other, span in self.above.items() if other != block_id]
        for _ in range(20):
            if now is not None and self.random.random() < 0.7:
                lo = now.lo + self.random.choice((-3, -1, 1, 2, 5)) * self.alignment
            else:
                lo = align_up(self.base, self.alignment) + self.random.randrange(300) * self.alignment
            if now is not None and lo == now.lo:
                continue
            if lo >= self.base and not any(span.overlaps(Interval(lo, lo + size)) for span in others):
                self.above[block_id] = Interval(lo, lo + size)
                self.moves.append(Move(time, *block_id, lo))
                return

    def _moved_plan(self) -> Plan:
        plan = self.plan
        for (name, block), offset in self.births.items():
            plan = elsewhere(plan, name, block, 0, offset)
        ends = [offset + self.tiled.block_bytes(*block_id) for block_id, offset in self.births.items()]
        ends += [move.offset + self.tiled.block_bytes(move.tensor, move.block) for move in self.moves]
        size = align_up(max([self.base, *ends]), ARENA_GRAIN_BYTES)
        return moving(plan, *self.moves, **{self.memory: size})
