"""Residences and transfers of a plan, from those of its buffers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Residence, Residences, Step, Transfer
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import Buffer, WorkBytes, lives

BufferResidence = tuple[int, int]
"""A residence of a buffer: the index of the buffer, and the number of the residence."""

Move = tuple[int, BufferResidence, int]
"""Step before which, residence, new offset."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A schedule with its buffers, and the scratch and state of its operators. `alignment`: of offsets.

    `fixed` buffers, by index, do not move. `starts`: further alignments of buffers, by index.
    """

    tiled: TiledGraph
    steps: tuple[Step, ...]
    items: tuple[Buffer, ...]
    work: WorkBytes
    alignment: int = 1
    fixed: Collection[int] = ()
    starts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BufferTransfer:
    """A copy of a buffer by an engine from one of its residences to another, when the latter begins.

    The program waits for its end before step `end`.
    """

    engine: str
    buffer: int
    source: int
    to: int
    end: int


@dataclass(frozen=True, slots=True)
class _Stay:
    """The stay of a buffer at one place: residence `number`, or a part of it between moves.

    `transfer`: the one with which it begins. `order`: the step of the transfer, its turn before this step,
    and its number in this turn.
    """

    number: int
    place: Residence
    transfer: BufferTransfer | None = None
    order: tuple[int, int, int] = (0, 0, 0)


def reside(
    draft: Draft,
    residences: Sequence[Sequence[Residence]],
    arenas: Mapping[str, int],
    moves: Sequence[Move],
    transfers: Sequence[BufferTransfer] = (),
) -> Layout:
    """Return the layout of buffers with these residences, in time order, moves in a memory, and transfers.

    A transfer copies the block that is live then in its buffer; blocks that take over later are written at
    the new place. Before a step, transfers whose source residence ends go first, then moves within a memory,
    then all others: each finds its place free.
    """
    tiled, live = draft.tiled, lives(draft.tiled, draft.steps)
    blocks: dict[BlockId, list[Residence]] = {block_id: [] for block_id in tiled.block_ids()}
    scratch: dict[str, dict[int, list[Residence]]] = {}
    ordered: list[tuple[tuple[int, int, int], Transfer]] = []
    given = {io.tensor for io in tiled.graph.resident_inputs()}
    for item, stays in zip(draft.items, _stays(residences, moves, transfers), strict=True):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            scratch.setdefault(name, {}).setdefault(block, []).extend(stay.place for stay in stays)
        distance = 0
        for name, block in item.members:
            spans, places = live.of(tiled.first_block[name] + block), blocks[name, block]
            latest: dict[int, int] = {}
            for stay, life, lived in _used(spans, stays, name in given):
                if lived and (transfer := stay.transfer):
                    source, to = latest[transfer.source], len(places)
                    copy = Transfer(transfer.engine, name, block, source, to, transfer.end)
                    ordered.append((stay.order, copy))
                latest[stay.number] = len(places)
                places.append(Residence(life, stay.place.memory, stay.place.offset + distance))
            distance += tiled.block_bytes(name, block) if item.stack else 0
    counts = {name: tiled.block_count(name) for name in tiled.first_block}
    return Layout(
        {name: tuple(tuple(blocks[name, at]) for at in range(count)) for name, count in counts.items()},
        {name: _by_number(by_block) for name, by_block in scratch.items()},
        arenas,
        "feasible",
        tuple(copy for _, copy in sorted(ordered, key=lambda one: one[0])),
    )


def _stays(
    residences: Sequence[Sequence[Residence]], moves: Sequence[Move], transfers: Sequence[BufferTransfer]
) -> Iterator[list[_Stay]]:
    """Yield, by buffer, the stays into which moves cut its residences; those of one in the order of time."""
    stays = {
        (buffer, number): [_Stay(number, place)]
        for buffer, places in enumerate(residences)
        for number, place in enumerate(places)
    }
    for number, transfer in enumerate(transfers):
        places = residences[transfer.buffer]
        begin = places[transfer.to].life.lo
        turn = 0 if places[transfer.source].life.hi <= begin else 2
        (first,) = stays[transfer.buffer, transfer.to]
        stays[transfer.buffer, transfer.to] = [
            replace(first, transfer=transfer, order=(begin, turn, number))
        ]
    for number, (step, (buffer, at), offset) in enumerate(moves):
        before = stays[buffer, at].pop()
        life, memory = before.place.life, before.place.memory
        copy = BufferTransfer(CPU, buffer, at, at, step)
        stays[buffer, at] += [
            replace(before, place=replace(before.place, life=Interval(life.lo, step))),
            _Stay(at, Residence(Interval(step, life.hi), memory, offset), copy, (step, 1, number)),
        ]
    for buffer, places in enumerate(residences):
        yield [stay for number in range(len(places)) for stay in stays[buffer, number]]


_Used = tuple[_Stay, Interval, bool]
"""A stay that a block uses, the steps, and whether it lived before, so that it comes from elsewhere."""


def _used(spans: Iterable[Interval], stays: Sequence[_Stay], given: bool) -> list[_Used]:
    """Return the stays that a block with these live ranges uses, in the order of time.

    `given`: the application fills it before the first step. Two residences of a buffer may overlap when a
    step writes the block in place. The block is then written in the residence where it stays longer, or else
    in the later one, since the next transfer starts there.
    """
    used: list[_Used] = []
    for span in spans:
        parts = list(_parts(span, stays, given))
        written = [(stay, life) for stay, life, lived in parts if not lived]
        if written:
            best = max(written, key=lambda one: (one[1].hi, one[0].place.life.lo, one[0].number))[0]
            parts = [part for part in parts if part[2] or part[0].number == best.number]
        used += parts
    return sorted(used, key=lambda part: part[1].lo)


def _parts(span: Interval, stays: Sequence[_Stay], given: bool) -> Iterator[_Used]:
    for stay in stays:
        begin, life = stay.place.life.lo, stay.place.life.clip(span.lo, span.hi)
        lived = begin == life.lo and (span.lo < begin < span.hi or (given and span.lo == 0 == begin))
        if len(life) or len(span) == 0 or (lived and stay.transfer):
            yield stay, life, lived


def input_stacks(tiled: TiledGraph, index_of: Mapping[BlockId, int]) -> tuple[tuple[int, ...], ...]:
    """Return the rectangles of each cut graph input whose rows all have one.

    Its rows form a stack, because the application fills the input as one array.
    """
    counts = {io.tensor: tiled.block_count(io.tensor) for io in tiled.graph.resident_inputs()}
    rows = ([(name, row) for row in range(count)] for name, count in counts.items() if count > 1)
    return tuple(tuple(index_of[row] for row in each) for each in rows if set(each) <= set(index_of))


def _by_number(places: dict[int, list[Residence]]) -> Residences:
    """Return residences as a table by block number; blocks that no step needs have none."""
    return tuple(tuple(places.get(block, ())) for block in range(max(places) + 1))
