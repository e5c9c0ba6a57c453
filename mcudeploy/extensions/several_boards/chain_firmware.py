"""The firmware of each board of a chain: the plan of its stage, and the places of payloads in its arenas."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board, Memory
from mcudeploy.codegen.render import render, render_firmware
from mcudeploy.common.errors import FitError
from mcudeploy.common.progress import Progress
from mcudeploy.device.known import known_times
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.several_boards.link import LINK_RAM_BYTES, UartLink
from mcudeploy.extensions.several_boards.stages import Payload, Stage
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.verify.compare import Storage


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` bytes of a payload, from its byte `payload` on, which lie at `offset` of the arena with number
    `arena`: `chain_piece` in C.
    """

    payload: int
    offset: int
    count: int
    arena: int


@dataclass(frozen=True, slots=True)
class PayloadRange:
    """`count` bytes that a board copies from `start` of the received to `to` of the sent payload:
    `chain_passed` in C.
    """

    start: int
    to: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class ChainBoard:
    """A board of a chain with its planned stage.

    `target`: the board, and how to reach it; `home`: the name of the memory that holds payloads.
    """

    number: int
    stage: Stage
    target: Target
    home: str
    deployment: Deployment

    @property
    def title(self) -> str:
        """The board's name in messages."""
        return f"board {self.number + 1} ({self.target.board.name})"

    @property
    def buffer_bytes(self) -> int:
        """The RAM of payloads beside the arena."""
        return buffer_bytes(self.stage)


def buffer_bytes(stage: Stage) -> int:
    """Return the RAM of payloads beside the arena: received, sent, and bytes of the former to pass on."""
    passed_bytes = sum(tensor.size_bytes for tensor in stage.sent.tensors if tensor.name in stage.passed)
    return stage.received.size_bytes + stage.sent.size_bytes + passed_bytes


def planned(number: int, stage: Stage, target: Target, options: Options, progress: Progress) -> ChainBoard:
    """Plan a stage for its board, with room for its payloads. Raises FitError that names the board."""
    board, size = target.board, buffer_bytes(stage)
    home = _home(board, size)
    if home is None:
        raise FitError(
            f"board {number + 1} ({board.name}): no fast memory has room for payloads of {size:,} bytes: add "
            "a board, or take one with more memory"
        )
    names = {memory.name for memory in board.memories}
    limits = {name: limit for name, limit in options.memory_limits if name in names}
    reserved = Counter({board.memories[0].name: LINK_RAM_BYTES})
    reserved[home.name] += size
    for name, bytes_taken in reserved.items():
        room = board.room(board.memory(name)) - bytes_taken
        limits[name] = min(room, limits.get(name, room))
    options = replace(
        options,
        memory_limits=tuple(limits.items()),
        name=f"stage{number + 1}",
        objective="instructions",  # by which the boards of a chain are compared
    )
    try:
        plans = find_plans(stage.model, board, options, progress=progress, known=known_times(board))
    except FitError as error:
        raise FitError(f"board {number + 1}: {error}") from error
    deployment = Deployment.of(plans, plans.choices[0], board, options)
    return ChainBoard(number, stage, target, home.name, deployment)


def _home(board: Board, size: int) -> Memory | None:
    """Return the smallest of a board's fast memories with room for payloads; None if none has."""
    reached = board.reach(board.units[0])
    rooms = {
        it.name: board.room(it) - (LINK_RAM_BYTES if it is board.memories[0] else 0)
        for it in board.memories
        if it.is_fast and it.name in reached
    }
    fitting = [it for it in board.memories if rooms.get(it.name, -1) >= size]
    return min(fitting, key=lambda it: rooms[it.name], default=None)


def built(member: ChainBoard, count: int, link: UartLink, *, sanitize: bool = False) -> Firmware:
    """Build the firmware of one of `count` boards. `sanitize`: with sanitizers, on this computer only."""
    deployment = member.deployment
    files = render_firmware(deployment.program, deployment.plan, deployment.source)
    is_end = {"first": member.number == 0, "last": member.number == count - 1}
    files["chain.c"] = render("chain.c.j2", **_tables(member), **is_end)
    return build_firmware(
        deployment.firmware_board(member.target),
        files,
        deployment.program.sources,
        emulate=member.target.emulated,
        sanitize=sanitize,
        port_baud=link.baud,
    )


def _tables(member: ChainBoard) -> dict[str, object]:
    """The values that the template chain.c.j2 prints."""
    stage, plan, storage = member.stage, member.deployment.plan, member.deployment.storage
    inputs, outputs = (
        [(io.tensor, storage.blocks(io.tensor)) for io in ios]
        for ios in (plan.graph.inputs, plan.graph.outputs)
    )
    end = max(len(plan.schedule.steps) - 1, 0)
    return {
        "inputs": [
            piece
            for name, blocks in inputs
            for piece in _pieces(storage, stage.received, name, [storage.place_of(it, -1) for it in blocks])
        ],
        "outputs": [
            piece
            for name, blocks in outputs
            for piece in _pieces(storage, stage.sent, name, storage.read_at(blocks, end))
        ],
        "passed": [
            PayloadRange(stage.received.span(name).start, span.start, span.stop - span.start)
            for name in stage.passed
            for span in [stage.sent.span(name)]
        ],
        "in_bytes": stage.received.size_bytes,
        "out_bytes": stage.sent.size_bytes,
        "board": member.title,
        "section": "" if member.home == member.target.board.memories[0].name else member.home,
    }


def _pieces(storage: Storage, payload: Payload, name: str, places: list[tuple[int, int]]) -> list[Piece]:
    """Return the pieces of a tensor's blocks; contiguous blocks form one piece."""
    first = payload.span(name).start
    pieces: list[Piece] = []
    for block_id, (arena, offset) in zip(storage.blocks(name), places, strict=True):
        span = storage.span(block_id)
        last = pieces[-1] if pieces else None
        if last and (last.arena, last.offset + last.count) == (arena, offset):
            pieces[-1] = replace(last, count=last.count + span.stop - span.start)
        else:
            pieces.append(Piece(first + span.start, offset, span.stop - span.start, arena))
    return pieces
