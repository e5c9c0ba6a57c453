"""The emulated board that runs the code of another board, compiled with the same flags."""

from __future__ import annotations

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards
from mcudeploy.boards.emulated import compiled_alike, executing
from mcudeploy.boards.facts import Memory
from mcudeploy.common.errors import ConfigError
from mcudeploy.execution.unit_model import require_no_unit
from mcudeploy.ir.plan import Plan

_ARM = "arm-none-eabi"


def twin_of(board: Board, plan: Plan) -> Board:
    """Return the board itself if it is emulated, or an emulated one with its memories. Raises ConfigError."""
    twin = require_twin(board)
    if twin == board:
        return board
    return _with_memories(compiled_alike(twin, board), board, plan)


def require_twin(board: Board) -> Board:
    """Return the emulated board that executes the instructions of a board's core: itself, if it is emulated.

    Raises ConfigError, with boards that have bounds, if there is none.
    """
    if board.toolchain == "platformio" and board.core.startswith("cortex"):
        raise ConfigError(
            f"bounds hold for one compiler, and PlatformIO compiles for {board.name} with another: leave out "
            "--bounds, or build for a board with this core that `mcudeploy boards` lists without pio:."
        )
    require_no_unit(board, "--bounds")
    if board.toolchain != _ARM:
        raise ConfigError(
            f"bounds are read from the instructions of Arm cores, and {board.name} has a {board.core}: "
            "leave out --bounds, or build for a board with a Cortex-M, such as mps2-an386."
        )
    if board.emulator is not None and not board.facts_only:
        return board
    twin = next((it for it in executing(board) if it.emulated_only), None)
    if twin is None:
        emulated = [it for it in list_boards() if it.emulated_only and it.toolchain == _ARM]
        raise ConfigError(
            f"bounds are counted in an emulator, and no emulated board has the core of {board.name}, a "
            f"{board.core}: leave out --bounds, or build for {', '.join(it.name for it in emulated)}."
        )
    return twin


def _with_memories(twin: Board, board: Board, plan: Plan) -> Board:
    """Return the twin with memories of the board's names, as large as the plan needs, one after another."""
    arenas = plan.layout.arenas
    ends = {memory.name: memory.origin for memory in twin.memories}
    placed: list[Memory] = []
    for number, memory in enumerate(board.memories):
        size = memory.bytes if number == 0 else max(arenas.get(memory.name, 0), memory.alignment)
        size += -size % memory.alignment
        room = next((it for it in twin.memories if it.origin + it.bytes - ends[it.name] >= size), None)
        if room is None:
            raise ConfigError(
                f"{twin.name} emulates the core of {board.name}, and has no room for {memory.name} of "
                f"{size:,} B: plan with less memory (--memory), or leave out --bounds."
            )
        origin = ends[room.name] + -ends[room.name] % memory.alignment
        ends[room.name] = origin + size
        placed.append(memory.model_copy(update={"origin": origin, "bytes": size, "emulated_origin": None}))
    return twin.model_copy(update={"memories": tuple(placed)})
