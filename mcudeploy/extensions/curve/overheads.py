"""Plans of a model under rising limits of the latency overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import FitError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.plan_options import Options

LIMITS = (0.0, 2.0, 5.0, 10.0, 25.0, 60.0, 100.0)
"""The limits of the overhead in percent that are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoint:
    """The smallest plan within a limit in percent; `deployment` is None if no plan fits the board."""

    max_overhead: float
    deployment: Deployment | None


def curve_points(
    path: Path, board: Board, options: Options, limits: Sequence[float] = LIMITS, progress: Progress = SILENT
) -> tuple[CurvePoint, ...]:
    """Return a point for each limit that allows a smaller arena than the limits below it.

    Every point is a plan that `plan --max-overhead` finds in as much time. Raises FitError if none fits.
    """
    points = tuple(_smaller(path, board, options, limits, progress))
    if all(point.deployment is None for point in points):
        plan_model(path, board, replace(options, max_overhead=limits[-1]), progress)  # raises the FitError
    return points


def _smaller(
    path: Path, board: Board, options: Options, limits: Sequence[float], progress: Progress
) -> Iterator[CurvePoint]:
    least: int | None = None
    for limit in limits:
        try:
            deployment = plan_model(path, board, replace(options, max_overhead=limit), progress)
        except FitError:
            yield CurvePoint(limit, None)
            continue
        arena_bytes = deployment.plan.layout.arena_bytes
        if least is None or arena_bytes < least:
            least = arena_bytes
            yield CurvePoint(limit, deployment)
