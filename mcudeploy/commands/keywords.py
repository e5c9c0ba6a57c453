"""The keyword arguments of `mcudeploy.plan`, `build` and `run`: the command line's options by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypedDict

from mcudeploy.boards.board import Board, load_board
from mcudeploy.planner.planner import Options

Named = str | Board
"""A board, or the name of one, of a family, or of a board file."""


class Choices(TypedDict, total=False):
    """What may be chosen; sizes are bytes, `max_overhead` is percent, `time_limit` seconds."""

    max_overhead: float
    time_limit: float
    ram_limit: int
    memory: Mapping[str, int]
    dma_io: bool
    split: bool
    stream_input: bool
    assign: tuple[str, ...]
    parallel: int
    objective: Literal["instructions", "cycles"]
    seed: int
    float_io: bool
    stateful: bool
    shapes: Mapping[str, tuple[int, ...]]
    plan: str | Path
    name: str


def options_of(choices: Choices) -> Options:
    """The options of a search. Raises TypeError for a name that is none of them."""
    given = dict(choices)
    unknown = given.keys() - Choices.__annotations__
    if unknown:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}; see mcudeploy.Choices")
    plan = choices.get("plan")
    renamed = {
        "memory_limits": tuple(choices.get("memory", {}).items()),
        "shapes": tuple(choices.get("shapes", {}).items()),
        "cores": choices.get("parallel"),
        "plan_file": None if plan is None else Path(plan),
    }
    same = given.keys() - {"memory", "shapes", "parallel", "plan"}
    return Options(**{name: given[name] for name in same}, **renamed)  # type: ignore[arg-type]


def board_of(board: Named) -> Board:
    """The board of that name. Raises BoardNotFoundError."""
    return load_board(board) if isinstance(board, str) else board
