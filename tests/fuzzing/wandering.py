"""Plans whose blocks move to other memories and back: changed at random, each change checked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from random import Random

from mcudeploy.boards.board import Board, Memory
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Link
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Plan, Residence, Residences, Transfer
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import WorkBytes
from tests.residing import inserted, places_of, with_arenas, with_block, with_life

MEMORIES = ("ram", "bulk", "far")
_UNIT = 4
"""Bytes that offsets are multiples of."""
_FLIGHT = 6
"""Limit of the steps of a transfer."""


def wandering_board(memories: Collection[str], *links: tuple[str, tuple[str, ...]]) -> Board:
    """The host with these memories, of which "ram" is fast, and engines that join some."""
    memories_of_board = tuple(
        Memory(
            name=name,
            origin=0x10000000 + (at << 26),
            bytes=1 << 24,
            alignment=_UNIT,
            read_rate=None if name == "ram" else 0.25,
            write_rate=None if name == "ram" else 0.25,
        )
        for at, name in enumerate(memories)
    )
    engines = tuple(
        Link(engine=engine, memories=joined, setup_cycles=50, bytes_per_cycle=2.0) for engine, joined in links
    )
    return load_board("host").model_copy(update={"memories": memories_of_board, "links": engines})


BOARDS = (
    wandering_board(("ram", "bulk"), ("dma0", ("ram", "bulk"))),
    wandering_board(("bulk", "ram"), ("dma0", ("ram", "bulk")), ("dma1", ("ram", "bulk"))),
    wandering_board(MEMORIES, ("dma0", ("bulk", "ram")), ("dma1", ("ram", "far")), ("dma2", MEMORIES)),
    wandering_board(("ram", "bulk")),
)


def wandering(plan: Plan, work: WorkBytes, board: Board, random: Random, changes: int) -> Plan:
    """The plan, which is for the single memory "ram", after `changes` random changes that pass the check, or
    as many as are found.
    """
    draft = _Draft(replace(plan, board=board.name), work, board, random)
    ways = tuple(_WAYS)
    weights = [_WAYS[way] for way in ways]
    left = changes
    for _ in range(4 * changes):
        (way,) = random.choices(ways, weights)
        left -= draft.changed(way)
        if not left:
            break
    return draft.plan


def engines_between(board: Board, one: str, other: str) -> list[str]:
    """Engines that copy from a memory to another, or within one."""
    joined = [link.engine for link in board.links if {one, other} <= set(link.memories)]
    return [CPU, *joined, *joined]  # the core less often


@dataclass
class _Draft:
    plan: Plan
    work: WorkBytes
    board: Board
    random: Random

    def __post_init__(self) -> None:
        self.tiled = TiledGraph.of(self.plan)
        self.ids = self.tiled.block_ids()

    def changed(self, way: Callable[[_Draft], Layout | None]) -> bool:
        """Whether a change was found that passes the check; it is then applied."""
        layout = way(self)
        if layout is None or layout == self.plan.layout:
            return False
        plan = with_arenas(self.plan, layout, self.work, self.board)
        try:
            check(plan, self.work, self.board)
        except PlanFaultError:
            return False
        self.plan = plan
        return True

    def free(self, layout: Layout, life: Interval, memory: str, size: int) -> int:
        """A free offset for a life; at times an occupied one."""
        others = [
            Interval(place.offset, place.offset + bytes_)
            for place, bytes_ in places_of(layout, self.tiled, self.work)
            if place.memory == memory and place.life.overlaps(life)
        ]
        spots = [0, *(align_up(other.hi, _UNIT) for other in others)]
        spots += [max(0, other.lo - size) // _UNIT * _UNIT for other in others]
        top = max(spots)
        spots += [self.random.randrange(0, top // _UNIT + 16) * _UNIT for _ in range(6)]
        if self.random.random() < 0.05:
            return self.random.choice(spots)
        fit = [at for at in spots if not any(Interval(at, at + size).overlaps(other) for other in others)]
        return self.random.choice(fit)

    def sent(
        self, layout: Layout, block_id: BlockId, source: int, memory: str, life: Interval, end: int
    ) -> tuple[Layout, int]:
        """The layout with a copy of a block in a memory for a life, and its number; it is there by step
        `end`, or at once.
        """
        came = layout.blocks[block_id[0]][block_id[1]][source]
        engine = self.random.choice(engines_between(self.board, came.memory, memory))
        offset = self.free(layout, life, memory, self.tiled.block_bytes(*block_id))
        transfer = Transfer(engine, *block_id, source, 0, life.lo if engine == CPU else end)
        return inserted(layout, transfer, Residence(life, memory, offset), self.random.random())

    def some_stay(self) -> tuple[BlockId, int, Residence] | None:
        """A residence of a block that has steps inside."""
        for _ in range(20):
            block_id = self.random.choice(self.ids)
            block = self.plan.layout.blocks[block_id[0]][block_id[1]]
            at = self.random.randrange(len(block))
            if len(block[at].life) > 1:
                return block_id, at, block[at]
        return None

    def other_memory(self, memory: str) -> str:
        """Another one than this."""
        return self.random.choice([it.name for it in self.board.memories if it.name != memory])

    def window(self, life: Interval) -> tuple[int, int]:
        """Inside a life the steps that a transfer begins and ends with."""
        begin = self.random.randrange(life.lo + (life.lo > 0), life.hi)
        return begin, min(life.hi - 1, begin + self.random.randrange(_FLIGHT))


def _away_and_back(draft: _Draft) -> Layout | None:
    """A block moves to another memory and comes back before it dies."""
    span = draft.some_stay()
    if span is None:
        return None
    block_id, source, stay = span
    begin, end = draft.window(stay.life)
    back = draft.random.randrange(end, stay.life.hi)
    there = min(stay.life.hi - 1, back + draft.random.randrange(_FLIGHT))
    leaves = draft.random.randint(end, back)
    stays_until = draft.random.choice((there, draft.random.randint(there, stay.life.hi)))
    layout = with_life(draft.plan.layout, block_id, source, Interval(stay.life.lo, leaves))
    memory = draft.other_memory(stay.memory)
    layout, away = draft.sent(layout, block_id, source, memory, Interval(begin, stays_until), end)
    return draft.sent(layout, block_id, away, stay.memory, Interval(back, stay.life.hi), there)[0]


def _gone(draft: _Draft) -> Layout | None:
    """A block leaves for another memory and is read there from then on."""
    stay = draft.some_stay()
    return None if stay is None else _leave(draft, draft.plan.layout, *stay, copy=False)


def _copied(draft: _Draft) -> Layout | None:
    """A block has a copy elsewhere for some time."""
    stay = draft.some_stay()
    return None if stay is None else _leave(draft, draft.plan.layout, *stay, copy=True)


def _leave(
    draft: _Draft, layout: Layout, block_id: BlockId, source: int, stay: Residence, copy: bool
) -> Layout:
    begin, end = draft.window(stay.life)
    there = Interval(begin, stay.life.hi)
    if copy:
        there = Interval(begin, draft.random.randint(end, stay.life.hi))
    else:
        leaves = draft.random.randint(end, stay.life.hi)
        layout = with_life(layout, block_id, source, Interval(stay.life.lo, leaves))
    return draft.sent(layout, block_id, source, draft.other_memory(stay.memory), there, end)[0]


def _operand_gone(draft: _Draft) -> Layout | None:
    """All blocks that a step reads of a tensor leave before it, and are read there."""
    time = draft.random.randrange(len(draft.plan.schedule.steps))
    read = [it for it in draft.tiled.blocks_read(draft.plan.schedule.steps[time]) if it]
    if not read:
        return None
    layout, blocks = draft.plan.layout, sorted(set(draft.random.choice(read)))
    name = blocks[0][0]
    memory = draft.random.choice([it.name for it in draft.board.memories])
    for block_id in blocks:
        there = list(enumerate(layout.blocks[name][block_id[1]]))
        here = [(at, each) for at, each in there if time in each.life and each.memory != memory]
        if not here or any(each.memory == memory and time in each.life for _, each in there):
            continue
        source, stay = draft.random.choice(here)
        if stay.life.lo >= time:
            continue
        begin = draft.random.randrange(max(stay.life.lo + (stay.life.lo > 0), time - _FLIGHT), time + 1)
        end = draft.random.randint(begin, time)
        leaves = draft.random.choice((stay.life.hi, draft.random.randint(end, time)))
        layout = with_life(layout, block_id, source, Interval(stay.life.lo, leaves))
        layout, _ = draft.sent(layout, block_id, source, memory, Interval(begin, stay.life.hi), end)
    return layout


def _moved(draft: _Draft) -> Layout | None:
    """A block moves within its arena, far or over itself."""
    span = draft.some_stay()
    if span is None:
        return None
    block_id, source, stay = span
    begin, _ = draft.window(stay.life)
    layout = with_life(draft.plan.layout, block_id, source, Interval(stay.life.lo, begin))
    life = Interval(begin, stay.life.hi)
    if draft.random.random() < 0.6:
        return draft.sent(layout, block_id, source, stay.memory, life, begin)[0]
    offset = max(0, stay.offset + draft.random.choice((-3, -1, 1, 2)) * _UNIT)
    transfer = Transfer(CPU, *block_id, source, 0, begin)
    return inserted(layout, transfer, Residence(life, stay.memory, offset), draft.random.random())[0]


def _born_elsewhere(draft: _Draft) -> Layout | None:
    """A tensor is written to another memory, or a block of it to another offset; an input or output as a
    whole.
    """
    layout = draft.plan.layout
    name = draft.random.choice(list(layout.blocks))
    filled = {(each.block, each.to) for each in layout.transfers if each.tensor == name}
    memory = draft.random.choice([it.name for it in draft.board.memories])
    blocks = layout.blocks[name]
    own = [
        [at for at in range(len(block)) if (number, at) not in filled] for number, block in enumerate(blocks)
    ]
    ios = {draft.tiled.flow.roots[it.tensor] for it in draft.plan.graph.outputs}
    ios |= {it.tensor for it in draft.plan.graph.resident_inputs()}
    hull = Interval(0, len(draft.plan.schedule.steps))
    at = draft.free(layout, hull, memory, draft.plan.graph.tensors[name].size_bytes)
    some = draft.random.randrange(len(blocks)) if draft.random.random() < 0.5 else None
    for number, block in enumerate(blocks):
        there, size = list(block), draft.tiled.block_bytes(name, number)
        for place in own[number] if name in ios or some in (None, number) else ():
            offset = at if name in ios else draft.free(layout, block[place].life, memory, size)
            there[place] = replace(block[place], memory=memory, offset=offset)
        layout = with_block(layout, (name, number), tuple(there))
        at += size
    return layout


def _works_elsewhere(draft: _Draft) -> Layout | None:
    """The scratch of an operator in another memory."""
    layout = draft.plan.layout
    if not layout.scratch:
        return None
    name = draft.random.choice(list(layout.scratch))
    memory = draft.random.choice([it.name for it in draft.board.memories])
    size = sum(draft.work[name])

    def there(place: Residence) -> Residence:
        return replace(place, memory=memory, offset=draft.free(layout, place.life, memory, size))

    steps: Residences = tuple(tuple(map(there, step)) for step in layout.scratch[name])
    return replace(layout, scratch={**layout.scratch, name: steps})


def _other_turn(draft: _Draft) -> Layout | None:
    """Two transfers that begin at the same step swap places."""
    layout, transfers = draft.plan.layout, list(draft.plan.layout.transfers)
    pairs = [
        at
        for at in range(1, len(transfers))
        if layout.begin(transfers[at - 1]) == layout.begin(transfers[at])
    ]
    if not pairs:
        return None
    at = draft.random.choice(pairs)
    transfers[at - 1 : at + 1] = transfers[at], transfers[at - 1]
    return replace(layout, transfers=tuple(transfers))


_WAYS: dict[Callable[[_Draft], Layout | None], float] = {
    _away_and_back: 5,
    _gone: 2,
    _copied: 2,
    _operand_gone: 3,
    _moved: 3,
    _born_elsewhere: 1,
    _works_elsewhere: 0.5,
    _other_turn: 0.5,
}
