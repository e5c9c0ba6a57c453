"""Owners of a library's arenas, and whether a board has room for those of all its models together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from mcudeploy.boards.board import Board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.texts import ArenaText
from mcudeploy.common.errors import FitError, Proposal, UsageError
from mcudeploy.common.text import agree
from mcudeploy.planner.place.placement_problem import align_up

ArenaKind = Literal["own", "shared", "extern", "init"]
"""own: each model has its arenas. shared: models without states share one arena in each memory. extern:
arrays that the application defines. init: buffers that the application passes at run time.
"""
ARENA_KINDS: tuple[ArenaKind, ...] = get_args(ArenaKind)


@dataclass(frozen=True, slots=True)
class Share:
    """One model's share of a board: bytes in each memory, bytes of constants and tables in flash, and whether
    it keeps states between runs.
    """

    name: str
    arenas: Mapping[str, int]
    flash_bytes: int
    stateful: bool


def share_of(program: Program, tables_bytes: int) -> Share:
    """Return the share of a program with tables of `tables_bytes`. Arenas are padded to their alignment."""
    arenas = {it.memory: align_up(it.size_bytes, it.alignment) for it in program.arenas}
    return Share(program.prefix, arenas, program.weights_bytes + tables_bytes, bool(program.states))


def with_arenas(programs: Sequence[Program], kind: ArenaKind, library: str) -> list[Program]:
    """Return the programs with arenas of this kind. Raises UsageError if there is nothing to share."""
    if kind == "shared":
        _require_sharing(programs)
    return [
        program
        if kind == "shared" and program.states
        else replace(program, arena=kind, arena_owner=library if kind == "shared" else program.prefix)
        for program in programs
    ]


def shared_arenas(programs: Sequence[Program]) -> list[ArenaText]:
    """Return, for each memory, the arena with room for each of the programs that share it."""
    widest_arenas: dict[str, ArenaText] = {}
    for arena in (arena for program in programs if program.arena == "shared" for arena in program.arenas):
        other = widest_arenas.setdefault(arena.memory, arena)
        widest = max(arena, other, key=lambda it: it.alignment)
        widest_arenas[arena.memory] = replace(widest, size_bytes=max(arena.size_bytes, other.size_bytes))
    return [widest_arenas[memory] for memory in sorted(widest_arenas)]


def together(shares: Sequence[Share], kind: ArenaKind) -> dict[str, int]:
    """Return the bytes of all arenas of a library, by memory."""
    separate = [it for it in shares if kind != "shared" or it.stateful]
    at_once = [it for it in shares if it not in separate]
    return {
        memory: sum(it.arenas.get(memory, 0) for it in separate)
        + max((it.arenas.get(memory, 0) for it in at_once), default=0)
        for memory in sorted({name for it in shares for name in it.arenas})
    }


def require_room(shares: Sequence[Share], board: Board, kind: ArenaKind) -> None:
    """Raise FitError if several models together are more than a board has room for.

    The application places its own arenas, which may overlap.
    """
    short = [] if kind in {"extern", "init"} else _short_memories(shares, board, kind)
    flash = sum(it.flash_bytes for it in shares)
    proposals = []
    if short:
        short.append("Smaller arenas: --ram-limit for each model, or --max-overhead.")
        several = sum(not it.stateful for it in shares) > 1
        if kind == "own" and several and not _short_memories(shares, board, "shared"):
            arenas = _sizes(together(shares, "shared"))
            proposals = [Proposal("--arena shared", f"{arenas}, for models of which one runs at a time")]
    if flash > board.flash_room:
        each = ", ".join(f"{it.name} {it.flash_bytes:,}" for it in shares)
        short.append(
            f"weights and tables of {len(shares)} models need {flash:,} bytes, the flash of {board.name} has "
            f"room for {board.flash_room:,}: {flash - board.flash_room:,} too many ({each})."
        )
    if short:
        raise FitError(" ".join(short), tuple(proposals))


def _short_memories(shares: Sequence[Share], board: Board, kind: ArenaKind) -> list[str]:
    """Return a sentence for every memory that the arenas exceed, with the share of each model."""
    short = []
    for memory, needed in together(shares, kind).items():
        room = board.room(board.memory(memory))
        if needed > room:
            each = ", ".join(f"{it.name} {it.arenas.get(memory, 0):,}" for it in shares)
            short.append(
                f"the arenas of {len(shares)} models need {needed:,} bytes, {memory} of {board.name} has "
                f"room for {room:,} beside the stack: {needed - room:,} too many ({each})."
            )
    return short


def _sizes(arenas: Mapping[str, int]) -> str:
    return ", ".join(f"{size:,} bytes in {memory}" for memory, size in arenas.items())


def _require_sharing(programs: Sequence[Program]) -> None:
    if len(programs) == 1:
        raise UsageError("--arena shared is for several models: build them with one command")
    stateful = [program.prefix for program in programs if program.states]
    if len(programs) - len(stateful) < 2:
        raise UsageError(
            f"--arena shared: {', '.join(stateful)} {agree(len(stateful), 'keeps', 'keep')} states between "
            "runs, which another model would overwrite; fewer than two others are left to share an arena"
        )
