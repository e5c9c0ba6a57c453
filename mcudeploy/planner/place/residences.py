"""Residences and transfers of a plan, from the places of its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mcudeploy.ir.engine import CPU
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Residence, Residences, Transfer
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.live import Buffer, Lives

Move = tuple[int, int, int]
"""Step before which, stay, new offset."""


@dataclass(frozen=True, slots=True)
class BufferStay:
    """The steps for which a buffer, by index, has bytes in a memory, and its first offset there."""

    buffer: int
    life: Interval
    memory: str
    offset: int


@dataclass(frozen=True, slots=True)
class BufferTransfer:
    """A copy of a buffer by an engine from one stay to another, by index, when the latter begins.

    The program waits for its end before step `end`.
    """

    engine: str
    source: int
    to: int
    end: int


@dataclass(frozen=True, slots=True)
class Places:
    """The places of buffers over time: stays, in time order per buffer; moves in a memory; transfers between.

    Moves and transfers are in order.
    """

    stays: Sequence[BufferStay]
    moves: Sequence[Move] = ()
    passages: Sequence[BufferTransfer] = ()

    def pieces(self) -> list[_Piece]:
        """Return the pieces into which moves cut the stays; those of a stay in the order of time."""
        found = [[_Piece(at, -1, it.life, it.offset)] for at, it in enumerate(self.stays)]
        for number, (step, index, offset) in enumerate(self.moves):
            last = found[index].pop()
            before = replace(last, life=Interval(last.life.lo, step))
            found[index] += [before, _Piece(index, number, Interval(step, last.life.hi), offset)]
        return [piece for pieces in found for piece in pieces]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a stay, and the move with which it begins; -1 for the first."""

    stay: int
    move: int
    life: Interval
    offset: int


@dataclass(frozen=True, slots=True)
class Resided:
    """The residences of tensors and of operators' scratch, and the transfers, in the form of a layout."""

    blocks: dict[str, Residences]
    scratch: dict[str, Residences]
    transfers: tuple[Transfer, ...]


def reside(tiled: TiledGraph, lives: Lives, items: Sequence[Buffer], places: Places) -> Resided:
    """Return all residences and transfers.

    A transfer copies the block that is live then in its buffer; blocks that take over later are written at
    the new place. Before a step, blocks that leave nothing in their source memory go first, then moves within
    a memory, then all others: each finds its place free.
    """
    pieces: list[list[_Piece]] = [[] for _ in items]
    for piece in places.pieces():
        pieces[places.stays[piece.stay].buffer].append(piece)
    blocks: dict[BlockId, list[Residence]] = {block_id: [] for block_id in tiled.block_ids()}
    scratch: dict[str, dict[int, list[Residence]]] = {}
    made: list[tuple[_Order, Transfer]] = []
    given = {border.tensor for border in tiled.graph.resident_inputs()}
    coming = {passage.to: number for number, passage in enumerate(places.passages)}
    for item, mine in zip(items, pieces, strict=True):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            found = (_residence(piece, piece.life, 0, places) for piece in mine)
            scratch.setdefault(name, {}).setdefault(block, []).extend(found)
        distance = 0
        for name, block in item.members:
            spans, first = lives.of(tiled.first_block[name] + block), len(blocks[name, block])
            taken = _taken(spans, mine, first, name in given)
            blocks[name, block] += (
                _residence(part.piece, part.life, distance, places) for part in taken.values()
            )
            made += _transfers((name, block), taken, places, coming)
            distance += tiled.block_bytes(name, block) if item.stack else 0
    counts = {name: tiled.block_count(name) for name in tiled.first_block}
    return Resided(
        {name: tuple(tuple(blocks[name, at]) for at in range(count)) for name, count in counts.items()},
        {name: _by_number(by_block) for name, by_block in scratch.items()},
        tuple(transfer for _, transfer in sorted(made, key=lambda one: one[0])),
    )


_Order = tuple[int, int, int]
"""The order of transfers: the step before which one begins, its turn then, and its number in this turn."""


def _residence(piece: _Piece, life: Interval, distance: int, places: Places) -> Residence:
    return Residence(life, places.stays[piece.stay].memory, piece.offset + distance)


@dataclass(frozen=True, slots=True)
class _LivedPiece:
    """A piece during which a block lives; `lived`: it lived before, so it must come from somewhere."""

    piece: _Piece
    life: Interval
    lived: bool


def _taken(
    spans: Iterable[Interval], pieces: Sequence[_Piece], first: int, given: bool
) -> dict[int, _LivedPiece]:
    """Return the pieces that a block with these live ranges uses, by the number of its residence.

    `given`: it is there before all steps. If the step that writes it reads its in-place input elsewhere, the
    block is written where it stays longer.
    """
    found: list[_LivedPiece] = []
    for span in spans:
        found += _made_once(list(_parts(span, pieces, given)))
    return dict(enumerate(sorted(found, key=lambda part: part.life.lo), first))


def _made_once(parts: list[_LivedPiece]) -> list[_LivedPiece]:
    made = [part for part in parts if not part.lived]
    if len({part.piece.stay for part in made}) < 2:
        return parts
    best = max(made, key=lambda part: (part.life.hi, part.piece.life.lo))
    return [part for part in parts if part.lived or part.piece.stay == best.piece.stay]


def _parts(span: Interval, pieces: Sequence[_Piece], given: bool) -> Iterator[_LivedPiece]:
    for piece in pieces:
        life = piece.life.clip(span.lo, span.hi)
        comes = piece.life.lo == life.lo and (
            span.lo < life.lo < span.hi or (given and span.lo == 0 == life.lo)
        )
        if len(life) or len(span) == 0 or (piece.move >= 0 and comes):
            yield _LivedPiece(piece, life, comes)


def _transfers(
    block_id: BlockId, parts: Mapping[int, _LivedPiece], places: Places, coming: Mapping[int, int]
) -> Iterator[tuple[_Order, Transfer]]:
    """Yield the transfers into those residences of a block in which no step writes it."""
    name, block = block_id
    latest: dict[int, int] = {}
    for number, part in parts.items():
        begin, stay = part.life.lo, part.piece.stay
        if part.lived and part.piece.move >= 0:
            yield (begin, 1, part.piece.move), Transfer(CPU, name, block, latest[stay], number, begin)
        elif part.lived and stay in coming:
            passage = places.passages[coming[stay]]
            turn = 0 if places.stays[passage.source].life.hi <= begin else 2
            there = Transfer(passage.engine, name, block, latest[passage.source], number, passage.end)
            yield (begin, turn, coming[stay]), there
        latest[stay] = number


def _by_number(stays: dict[int, list[Residence]]) -> Residences:
    """Return residences as a table by block number; blocks that no step needs have none."""
    return tuple(tuple(stays.get(block, ())) for block in range(max(stays) + 1))
