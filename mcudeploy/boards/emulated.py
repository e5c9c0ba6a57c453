"""The emulated board that runs the code of another board."""

from __future__ import annotations

from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards

_RUNS_ON = {
    "cortex-m0": "cortex-m3",
    "cortex-m0plus": "cortex-m3",
    "cortex-m23": "cortex-m33",
    "cortex-m85": "cortex-m55",
    "rv32imc": "rv32imafc",
    "rv32imac": "rv32imafc",
}
"""Cores whose instructions an emulated core of another kind executes, too, on boards with more memory."""


def executing(board: Board) -> list[Board]:
    """Return the emulated boards whose core executes the instructions of a board's core.

    They have a model of an NPU if the board has an NPU, else none.
    """
    core = _RUNS_ON.get(board.core, board.core)
    emulated = (it for it in list_boards() if it.emulator is not None)
    return [it for it in emulated if it.core == core and (it.npu is None) == (board.npu is None)]


def compiled_alike(emulated: Board, board: Board) -> Board:
    """Return an emulated board with the core and the compiler's flags of another board.

    Its model of an NPU has the multipliers of the other board's NPU.
    """
    facts: dict[str, Any] = {"core": board.core, "cpu_flags": board.cpu_flags}
    if board.npu is not None:
        facts["npu"] = board.npu.model_copy(update={"base": None, "irq": None})
    return emulated.model_copy(update=facts)


def emulated_twin(board: Board) -> Board | None:
    """Return the emulated board that runs the code of a board; None if it has an emulator, or no board can.

    It has the least RAM that is at least the board's, or else the most RAM; of two with the same RAM, it has
    the closer number of cores. Its flash waits as long as the board's. A board of PlatformIO gets the code of
    a board with the same core.
    """
    if board.emulator is not None or board.is_host:
        return None
    able = executing(board)
    if not able:
        return None
    missing = {it.name: max(0, board.ram_bytes - it.ram_bytes) for it in able}
    emulated = min(able, key=lambda it: (missing[it.name], it.ram_bytes, abs(it.cores - board.cores)))
    native = (it for it in list_boards() if it.core == board.core and it.toolchain == emulated.toolchain)
    alike = next((it for it in (board, *native) if it.toolchain == emulated.toolchain), None)
    if alike is None:
        return None
    flash = emulated.flash.waiting_as(board.flash)
    return compiled_alike(emulated, alike).model_copy(update={"flash": flash})
