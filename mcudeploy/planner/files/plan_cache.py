"""Plans of earlier searches in the cache, by everything that decides them.

plans/<key>/0.json, 1.json ...: plan files of the candidates, the last one of the unsplit plan
plans/<key>/search.json: the other figures of the search
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt, ValidationError

from mcudeploy import __version__
from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError, ModelError
from mcudeploy.common.fast import lacking
from mcudeploy.common.files import read_regular, write_file
from mcudeploy.common.resources import cache_dir
from mcudeploy.costs.factors import factors_of
from mcudeploy.extension import foreign_digest
from mcudeploy.ir.plan import Plan, Search
from mcudeploy.planner.cut_bounds import CutBounds
from mcudeploy.planner.files import planfile
from mcudeploy.planner.files.lanefile import FileModel
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.plan_options import Options

_LOG = logging.getLogger(__name__)
_MOST_ENTRIES = 200
_MOST_BYTES = 2**22
_IRRELEVANT = frozenset({"plan_file", "resume", "name", "fresh"})
"""Options that do not change what a search finds."""


class _Unwritten(FileModel):
    """Figures of a plan that the search knows and the plan's file does not contain."""

    schedule: str
    schedule_bound_bytes: NonNegativeInt
    layout: str
    ticks: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _SearchFile(FileModel):
    """Figures of all plans, statistics of the search, arena and latency of every split plan it has built."""

    plans: Annotated[list[_Unwritten], Field(min_length=1)]
    seconds: float
    tried: int
    duplicates: int
    points: list[tuple[int, float]]
    costs_of: str
    cut_bounds: tuple[NonNegativeInt, NonNegativeInt] | None


@dataclass(frozen=True, slots=True, eq=False)
class StoredSearch:
    """Plans of an earlier search: cut ones and the unsplit one, as `Planned` has them."""

    candidates: tuple[Plan, ...]
    baseline: Plan
    search: Search
    points: tuple[tuple[int, float], ...]
    costs_of: str
    cut_bounds: CutBounds | None


@dataclass(frozen=True, slots=True)
class PlanCache:
    """The entry of a search. A cache that cannot be read or written is not an error: the search runs."""

    folder: Path

    @classmethod
    def of(cls, model: Model, board: Board, options: Options) -> PlanCache:
        """Return the entry for a model, a board with its limits, and the options of a search."""
        return cls(cache_dir() / "plans" / search_key(model.sha256, board, options))

    def load(self, model: Model, read: Callable[[Path], Plan]) -> StoredSearch | None:
        """Return the plans of an earlier search; None if there are none, or if one of them is not valid.

        `read` returns the plan of a file, checked against the model, with its times.
        """
        try:
            text = read_regular(self.folder / "search.json", _MOST_BYTES)
            file = _SearchFile.model_validate_json(text)
            paths = [self.folder / f"{number}.json" for number in range(len(file.plans))]
            if not all(path.is_file() for path in paths):  # a plan of the user may come through a pipe
                raise ValueError("a plan is missing")
            plans = [
                _with_figures(read(path), figures) for path, figures in zip(paths, file.plans, strict=True)
            ]
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, ConfigError, ModelError, ValueError) as error:
            _LOG.info("%s holds no plans of %s: %s", self.folder, model.path.name, error)
            return None
        with suppress(OSError):
            os.utime(self.folder)
        search = Search(file.seconds, file.tried, file.duplicates)
        bounds = None if file.cut_bounds is None else CutBounds(*file.cut_bounds)
        return StoredSearch(tuple(plans[:-1]), plans[-1], search, tuple(file.points), file.costs_of, bounds)

    def store(self, stored: StoredSearch, model: Model) -> None:
        """Write the plans, whole or not at all."""
        parent, temporary = self.folder.parent, None
        try:
            parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix="tmp-", dir=parent))
            plans = (*stored.candidates, stored.baseline)
            for number, plan in enumerate(plans):
                planfile.save_plan(plan, model.sha256, temporary / f"{number}.json")
            content = _SearchFile(
                plans=[_figures_of(plan) for plan in plans],
                seconds=stored.search.seconds,
                tried=stored.search.candidates,
                duplicates=stored.search.duplicates,
                points=list(stored.points),
                costs_of=stored.costs_of,
                cut_bounds=None if stored.cut_bounds is None else astuple(stored.cut_bounds),
            )
            write_file(temporary / "search.json", content.model_dump_json())
            shutil.rmtree(self.folder, ignore_errors=True)
            temporary.rename(self.folder)
            _prune(parent)
        except OSError as error:
            _LOG.info("the plans of %s are not kept: %s", model.path.name, error)
        finally:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)


def search_key(model_sha256: str, board: Board, options: Options) -> str:
    """Return the digest of everything that decides the plans of a search."""
    names = [it.name for it in fields(options) if it.name not in _IRRELEVANT]
    parts = (
        __version__,
        _sources(),
        foreign_digest(),
        model_sha256,
        repr([(name, getattr(options, name)) for name in names]),
        board.model_dump_json(),
        repr(factors_of(board)),
        str(os.cpu_count()),  # on the host, all cores may run the plan
        repr(lacking()),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _figures_of(plan: Plan) -> _Unwritten:
    return _Unwritten(
        schedule=plan.schedule.status,
        schedule_bound_bytes=plan.schedule.lower_bound_bytes,
        layout=plan.layout.status,
        ticks=plan.estimate.ticks,
    )


def _with_figures(plan: Plan, figures: _Unwritten) -> Plan:
    schedule = plan.schedule
    return replace(
        plan,
        schedule=replace(schedule, status=figures.schedule, lower_bound_bytes=figures.schedule_bound_bytes),
        layout=replace(plan.layout, status=figures.layout),
        estimate=replace(plan.estimate, ticks=figures.ticks),
    )


def _prune(parent: Path) -> None:
    """Keep the entries that were used last, up to the limit."""
    ages = []
    for path in parent.iterdir():
        with suppress(OSError):
            ages.append((path.stat().st_mtime, path))
    for _, path in sorted(ages, reverse=True)[_MOST_ENTRIES:]:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _sources() -> str:
    """Return a digest of the sizes and times of the program's files: a checkout keeps its version number."""
    package = Path(__file__).resolve().parents[2]
    states = []
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".csv", ".toml"):
            state = path.stat()
            states.append(f"{path.relative_to(package)} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(states).encode()).hexdigest()
