"""The functions of an extension for a unit beside the core, which runs command streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.extension import added
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.tape.joined_streams import UnitStreams


@dataclass(frozen=True, slots=True)
class UnitSupport:
    """The functions that the core asks about a unit."""

    calls: Callable[
        [Operator, tuple[Tensor, ...], Tensor, tuple[KernelCall, ...], Isa], tuple[KernelCall, ...]
    ]
    """From an operator, its inputs and output, the core's kernel calls and an `Isa` to calls by the unit,
    with the same bits.
    """
    reason_against: Callable[[Operator, tuple[Tensor, ...], Tensor], str | None]
    """Why an operator has none, None if it has some."""
    settled: Callable[[Plan, Model], dict[str, str]]
    """The variants of a plan's operators, without more scratch, once all places are known."""
    check: Callable[[Plan, Model], None]
    """Raises PlanFaultError for a plan whose streams touch other bytes than its steps."""
    joined: Callable[[Plan, Mapping[str, KernelCall]], UnitStreams | None]
    """The streams of consecutive steps of a plan, None if the unit has none."""
    start_ticks: float
    """The ticks of a start of the unit."""
    hal_sources: Callable[[Board], list[str]]
    """The sources that run the streams on a board."""
    packages: Mapping[str, str]
    """Requirements beyond those of mcudeploy, by package."""
    installed: Callable[[], bool]
    """Whether these packages are there."""


def start_ticks() -> float:
    """Return the ticks of a start of the unit; of several kinds of units, those of the slowest."""
    units: Iterable[UnitSupport] = added("unit")
    return max(unit.start_ticks for unit in units)
