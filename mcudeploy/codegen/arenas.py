"""Owners of a library's arenas, and whether a board has room for those of all its models together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Literal, get_args

from mcudeploy.boards.board import Board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.texts import ArenaText
from mcudeploy.common.errors import FitError, Proposal, UsageError
from mcudeploy.planner.place.placement_problem import align_up

ArenaKind = Literal["own", "shared", "extern", "init"]
"""own: each model has its arenas. shared: all models share one arena in each memory, with the states of each
at its start. extern: arrays that the application defines. init: buffers that the application passes at run
time.
"""
ARENA_KINDS: tuple[ArenaKind, ...] = get_args(ArenaKind)


@dataclass(frozen=True, slots=True)
class Share:
    """A model's share of a board, by memory: the bytes of its arena, those of its states among them, and the
    arena's alignment; bytes of constants and tables in flash.
    """

    name: str
    arenas: Mapping[str, int]
    flash_bytes: int
    states: Mapping[str, int]
    alignments: Mapping[str, int]


def share_of(program: Program, tables_bytes: int) -> Share:
    """Return the share of a program with tables of `tables_bytes`. Arenas are padded to their alignment."""
    arenas = {it.memory: align_up(it.size_bytes, it.alignment) for it in program.arenas}
    alignments = {it.memory: it.alignment for it in program.arenas}
    flash = program.weights_bytes + tables_bytes
    return Share(program.prefix, arenas, flash, program.states_ends, alignments)


def with_arenas(programs: Sequence[Program], kind: ArenaKind, library: str) -> list[Program]:
    """Return the programs with arenas of this kind. Programs that share one need plans with states first.

    Raises UsageError if there is nothing to share, and for a program that loads constants: kernels find them
    in its own arena.
    """
    loading = next((it.prefix for it in programs if kind != "own" and it.loads_constants), None)
    if loading is not None:
        raise UsageError(
            f"--arena {kind}: {loading} loads constants from flash into its own arena; add "
            "--load-constants never"
        )
    if kind != "shared":
        return [replace(program, arena=kind, arena_owner=program.prefix) for program in programs]
    if len(programs) == 1:
        raise UsageError("--arena shared is for several models: build them with one command")
    shares = [share_of(program, 0) for program in programs]
    *begins_of_states, ends = _state_offsets(shares)
    sharing: list[Program] = []
    if library in {program.prefix for program in programs}:
        library = f"{library}_models"  # the macros of the model have the plain name
    for program, share, shifts in zip(programs, shares, begins_of_states, strict=True):
        begins = {memory: ends[memory] - share.states[memory] for memory in share.arenas}
        sharing.append(program.sharing(library, begins, shifts))
    return sharing


def _state_offsets(shares: Sequence[Share]) -> list[dict[str, int]]:
    """Return the offset at which each model's states begin in shared arenas, by memory; at last, where all
    end.
    """
    alignments: dict[str, int] = {}
    for memory, alignment in (it for each in shares for it in each.alignments.items()):
        alignments[memory] = lcm(alignments.get(memory, 1), alignment)
    offsets = [dict.fromkeys(alignments, 0)]
    for share in shares:
        sizes = {memory: align_up(share.states.get(memory, 0), it) for memory, it in alignments.items()}
        offsets.append({memory: begin + sizes[memory] for memory, begin in offsets[-1].items()})
    return offsets


def shared_arenas(programs: Sequence[Program]) -> list[ArenaText]:
    """Return, for each memory, the arena with room for each of the programs that share it."""
    arenas: dict[str, ArenaText] = {}
    for program in programs:
        for arena in program.arenas:
            size = program.arena_begins.get(arena.memory, 0) + arena.size_bytes
            other = arenas.setdefault(arena.memory, arena)
            aligned = max(arena, other, key=lambda it: it.alignment)
            arenas[arena.memory] = replace(aligned, size_bytes=max(size, other.size_bytes))
    return [arenas[memory] for memory in sorted(arenas)]


def library_arenas(shares: Sequence[Share], kind: ArenaKind) -> dict[str, int]:
    """Return the bytes of all arenas of a library, by memory."""
    memories = sorted({name for it in shares for name in it.arenas})
    if kind != "shared":
        return {memory: sum(it.arenas.get(memory, 0) for it in shares) for memory in memories}
    ends_of_states = _state_offsets(shares)[-1]
    return {
        memory: ends_of_states[memory]
        + max(it.arenas[memory] - it.states[memory] for it in shares if memory in it.arenas)
        for memory in memories
    }


def require_room(shares: Sequence[Share], board: Board, kind: ArenaKind) -> None:
    """Raise FitError if several models together are more than a board has room for.

    The application places its own arenas, which may overlap.
    """
    faults = [] if kind in {"extern", "init"} else _short_memories(shares, board, kind)
    flash = sum(it.flash_bytes for it in shares)
    proposals = []
    if faults:
        faults.append("Smaller arenas: --ram-limit for each model, or --max-overhead.")
        if kind == "own" and len(shares) > 1 and not _short_memories(shares, board, "shared"):
            arenas = _sizes(library_arenas(shares, "shared"))
            proposals = [Proposal("--arena shared", f"{arenas}, for models of which one runs at a time")]
    if flash > board.flash_room:
        each = ", ".join(f"{it.name} {it.flash_bytes:,}" for it in shares)
        faults.append(
            f"weights and tables of {len(shares)} models need {flash:,} bytes, the flash of {board.name} has "
            f"room for {board.flash_room:,}: {flash - board.flash_room:,} too many ({each})."
        )
    if faults:
        raise FitError(" ".join(faults), tuple(proposals))


def _short_memories(shares: Sequence[Share], board: Board, kind: ArenaKind) -> list[str]:
    """Return a sentence for every memory that the arenas exceed, with the share of each model."""
    short = []
    for memory, needed in library_arenas(shares, kind).items():
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
