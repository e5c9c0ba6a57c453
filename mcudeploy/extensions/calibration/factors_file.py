"""Files of factors, which people contribute to boards/measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from mcudeploy import __version__
from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import measured_file
from mcudeploy.boards.fact_types import BoardName, Core, Facts, Line
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import write_file
from mcudeploy.common.json_file import read_json
from mcudeploy.costs.estimate import TimeUnit, unit_of_model
from mcudeploy.costs.factors import KernelFactors, Kind
from mcudeploy.toolchain.firmware_build import compiler_version

MOST_FACTOR = 1000
"""A larger factor comes from a wrong counter, not from a chip."""
_Factor = Annotated[float, Field(gt=0, le=MOST_FACTOR, allow_inf_nan=False, strict=True)]


class FactorsFile(Facts):
    """Factors of a board at a clock: measured cycles for each estimated one, or instruction.

    `estimates`: which of both. `version`: that of mcudeploy. `whole`: the factor of kinds without their own.
    """

    board: BoardName
    core: Core
    clock_hz: Annotated[int, Field(gt=0, strict=True)]
    estimates: TimeUnit
    version: Line
    compiler: Line
    factors: Annotated[dict[Kind, _Factor], Field(min_length=1)]
    whole: _Factor


def write_factors(factors: KernelFactors, board: Board, path: Path) -> None:
    """Write the factors of a board."""
    file = FactorsFile(
        board=board.name,
        core=board.core,
        clock_hz=board.clock_hz,
        estimates=unit_of_model(board),
        version=__version__,
        compiler=compiler_version(board),
        factors={kind: round(factor, 4) for kind, factor in factors.kinds.items()},
        whole=round(factors.whole, 4),
    )
    write_file(path, file.model_dump_json(indent=2) + "\n")


def factors_of_file(board: Board) -> KernelFactors | None:
    """Return the factors of a board in boards/measured, None without a file.

    Raises ConfigError for a file with wrong keys or values, or about another board, core or clock.
    """
    path = measured_file(board)
    if not path.is_file():
        return None
    file = read_json(path, FactorsFile, "a file of factors, as `mcudeploy calibrate -o` writes it")
    wanted = {
        "board": board.name,
        "core": board.core,
        "clock_hz": board.clock_hz,
        "estimates": unit_of_model(board),
    }
    for name, value in wanted.items():
        if (stated := getattr(file, name)) != value:
            raise ConfigError(
                f"{path}: {name} is {stated}, but has to be {value} for {board.name}: calibrate the board "
                "again, or remove the file"
            )
    return KernelFactors(file.factors, file.whole)
