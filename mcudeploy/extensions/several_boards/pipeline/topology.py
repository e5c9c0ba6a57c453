"""A file that describes a topology: equal compute units on a grid, with links between neighbours."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import BoardNotFoundError, ConfigError
from mcudeploy.common.files import read_toml
from mcudeploy.costs.estimate import load_costs
from mcudeploy.extensions.several_boards.pipeline.cost import UnitLink
from mcudeploy.extensions.several_boards.pipeline.group_line import Units

_MOST_BYTES = 2**20
_MOST_UNITS = 256
_Positive = Annotated[float, Field(gt=0)]
_Bytes = Annotated[int, Field(gt=0)]


class _TopologyFacts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LinkFacts(_TopologyFacts):
    """The link between two neighbours, in each direction. `links`: the number that a unit uses at once within
    a region.
    """

    bytes_per_second: _Positive
    latency_seconds: Annotated[float, Field(ge=0)] = 0.0
    links: Annotated[int, Field(ge=1, le=4)] = 1


class Topology(_TopologyFacts):
    """`width` x `height` units of one kind: boards, cores, or systolic arrays with `systolic` cells per row.

    Sizes are for each unit. The facts of a board are defaults.
    """

    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)] = 1
    board: str | None = None
    core: str | None = None
    systolic: Annotated[int, Field(ge=1, le=1024)] | None = None
    clock_hz: _Positive | None = None
    ram_bytes: _Bytes | None = None
    flash_bytes: _Bytes | None = None
    link: LinkFacts

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = [key for key in ("board", "core", "systolic") if getattr(self, key) is not None]
        if len(kinds) != 1:
            raise ValueError(f"one of board, core and systolic says what a unit is, not {len(kinds)} of them")
        if self.board is None and self.clock_hz is None:
            raise ValueError("clock_hz is missing: only a board states it by itself")
        if self.count > _MOST_UNITS:
            raise ValueError(f"width x height are {self.count} units; the limit is {_MOST_UNITS}")
        return self

    @property
    def count(self) -> int:
        """The number of units."""
        return self.width * self.height

    @property
    def unit_board(self) -> Board | None:
        """The board of each unit, if it is one."""
        return None if self.board is None else load_board(self.board)

    @property
    def unit_text(self) -> str:
        """The kind of each unit, as text."""
        if self.systolic is not None:
            return f"systolic array {self.systolic} x {self.systolic}"
        return str(self.board or self.core)

    @property
    def clock(self) -> float:
        """Ticks per second."""
        board = self.unit_board
        return self.clock_hz if self.clock_hz is not None else float(board.clock_hz) if board else inf

    @property
    def units(self) -> Units:
        """The units with their limits; infinite where neither the file nor a board states one."""
        board = self.unit_board
        ram = sum(map(board.room, board.memories)) if board else inf
        flash = board.flash_bytes if board else inf
        return Units(self.count, self.ram_bytes or ram, self.flash_bytes or flash)

    @property
    def ticks_link(self) -> UnitLink:
        """The links, with times in ticks of a unit."""
        return UnitLink(
            self.link.bytes_per_second / self.clock, self.link.latency_seconds * self.clock, self.link.links
        )


def load_topology(path: Path) -> Topology:
    """Return the topology of a TOML file. ConfigError names every wrong key with its reason."""
    try:
        topology = Topology.model_validate(read_toml(path, _MOST_BYTES))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, it['loc'])) or 'topology'}: {it['msg'].removeprefix('Value error, ')}"
            for it in error.errors()
        )
        raise ConfigError(f"{path.name} is not a topology: {faults}") from None
    _require_known(topology, path)
    return topology


def _require_known(topology: Topology, path: Path) -> None:
    """Raise ConfigError unless the board or core of the units exists."""
    try:
        board = topology.unit_board
    except BoardNotFoundError as error:
        raise ConfigError(f"{path.name} is not a topology: board: {error}") from None
    core = board.core if board else topology.core
    if core is not None:
        try:
            load_costs(core)
        except ConfigError as error:
            key = "board" if board else "core"
            raise ConfigError(f"{path.name} is not a topology: {key}: {error}") from None
