"""The emulated board that runs the program of a board without an emulator."""

from __future__ import annotations

from mcudeploy.boards.board import Board, list_boards

RUNS_ON = {
    "cortex-m0": "cortex-m3",
    "cortex-m0plus": "cortex-m3",
    "cortex-m23": "cortex-m33",
    "cortex-m85": "cortex-m55",
    "rv32imc": "rv32imafc",
    "rv32imac": "rv32imafc",
}
"""Cores whose instructions an emulated core of another kind executes, too, on boards with more memory."""


def stand_in(board: Board) -> Board | None:
    """Return the emulated board that runs the code of a board; None if it has an emulator, or no board can.

    It is the one with the least RAM that is not less than the board's; of two that have as much, the one with
    as many cores. Code is compiled for the core of the board.
    """
    if board.emulator is not None or board.is_host:
        return None
    core = RUNS_ON.get(board.core, board.core)
    able = [
        it
        for it in list_boards()
        if it.emulator is not None and it.core == core and it.ram_bytes >= board.ram_bytes
    ]
    if not able:
        return None
    emulated = min(able, key=lambda it: (it.ram_bytes, abs(it.cores - board.cores)))
    if emulated.toolchain != board.toolchain:
        return emulated
    return emulated.model_copy(update={"core": board.core, "cpu_flags": board.cpu_flags})
