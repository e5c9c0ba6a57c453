"""`gate`: budgets of several models on boards, from a file, compared with runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import is_path, load_board
from mcudeploy.boards.emulated import emulated_twin
from mcudeploy.commands.commands import plan_model, run_model
from mcudeploy.commands.keywords import options_of
from mcudeploy.common.errors import ConfigError, DeployError, FitError, Proposal, UsageError
from mcudeploy.common.files import read_toml
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.sizes import parse_size
from mcudeploy.common.text import plain
from mcudeploy.device.target import Target
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.extensions.evaluation.dataset import DataRequest
from mcudeploy.extensions.evaluation.evaluate import EvaluateRequest, evaluate_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.report.objects import report_of

KEY = "gate"
"""The key of the tables in mcudeploy.toml."""

_MOST_BYTES = 2**20
_Size = Annotated[int, Field(gt=0)] | str
_Percent = Annotated[float, Field(ge=0, le=100)]
_OF_DATA = ("labels", "float_model", "samples", "min_accuracy", "max_drop")
"""Keys without meaning unless there is `data`."""


class ModelBudget(BaseModel):
    """A `[[gate]]` table: a model on a board, and what it may take. Paths are relative to the file.

    `arena`, `ram` (all static RAM and the stack), `flash` and `stack` are bytes or texts such as "64k";
    `options` are those of Python's functions. `data` asks for an accuracy, in percent.
    """

    model_config = ConfigDict(extra="forbid")

    model: Path
    board: str
    name: str | None = None
    emulate: bool = True
    arena: _Size | None = None
    ram: _Size | None = None
    flash: _Size | None = None
    stack: _Size | None = None
    latency_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    data: Path | None = None
    labels: Path | None = None
    float_model: Annotated[Path | None, Field(alias="float")] = None
    samples: Annotated[int, Field(gt=0)] | None = None
    min_accuracy: _Percent | None = None
    max_drop: _Percent | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name, by default that of the model and its board."""
        return self.name or f"{self.model.name} on {self.board}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run, in its unit; `limit`: the most that it may be, or with `at_least` the least."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the limit is kept, if there is one."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class GateResult:
    """The figures of a budget's run, and its faults: an error that ended it, or outputs that differ.

    `ways`: what would keep the limits of memory.
    """

    budget: ModelBudget
    figures: Sequence[Figure] = ()
    faults: Sequence[str] = ()
    ways: Sequence[Proposal] = ()

    @property
    def passed(self) -> bool:
        """Whether there is no fault, and every limit is kept."""
        return not self.faults and all(figure.passed for figure in self.figures)


def read_budgets(path: Path) -> list[ModelBudget]:
    """Return the `[[gate]]` tables of a file. Raises ConfigError that names the table and the key."""
    tables = read_toml(path, _MOST_BYTES).get(KEY)
    if not isinstance(tables, list) or not tables:
        raise ConfigError(
            f"{path} has no [[{KEY}]] table: write one for each model and board, with its budgets"
        )
    return [_budget(table, path, number) for number, table in enumerate(tables, 1)]


def _budget(table: object, path: Path, number: int) -> ModelBudget:
    where = f"{path}, [[{KEY}]] {number}"
    try:
        budget = ModelBudget.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        key = next(iter(first["loc"]), "the table")  # the rest are pydantic's names of types
        raise ConfigError(f"{where}: {plain(key)}: {first['msg']}") from None
    for name in ("arena", "ram", "flash", "stack"):
        try:
            _bytes(getattr(budget, name))
        except ValueError as error:
            raise ConfigError(f"{where}: {name}: {error}") from None
    if budget.data is None and any(getattr(budget, name) is not None for name in _OF_DATA):
        raise ConfigError(f"{where}: an accuracy needs `data`, a test set as `mcudeploy evaluate` takes it")
    if budget.max_drop is not None and budget.float_model is None:
        raise ConfigError(f"{where}: max_drop: `float` is missing, the model to compare with")
    base = path.resolve().parent
    stated = {name: getattr(budget, name) for name in ("model", "data", "labels", "float_model")}
    paths = {name: base / value for name, value in stated.items() if value is not None}
    missing = next((value for value in paths.values() if not value.exists()), None)
    if missing is not None:
        raise ConfigError(f"{where}: there is no {missing}")
    board = str(base / budget.board) if is_path(budget.board) else budget.board
    plan = budget.options.get("plan")
    options = {**budget.options, "plan": base / plan} if isinstance(plan, str) else budget.options
    try:
        options_of(options)  # type: ignore[arg-type] # checked there
    except (TypeError, UsageError) as error:
        raise ConfigError(f"{where}: options: {error}") from None
    return budget.model_copy(update={**paths, "board": board, "name": budget.title, "options": options})


def _bytes(size: int | str | None) -> int | None:
    return parse_size(size) if isinstance(size, str) else size


def run_gate(budgets: Sequence[ModelBudget], progress: Progress = SILENT) -> list[GateResult]:
    """Run every model and return its figures. The error of a model is its result; the others still run."""
    results = []
    for budget in budgets:
        progress.stage(budget.title)
        try:
            results.append(_result(budget, progress))
        except DeployError as error:
            ways = error.proposals if isinstance(error, FitError) else ()
            results.append(GateResult(budget, faults=str(error).splitlines()[:1], ways=ways))
    return results


def _result(budget: ModelBudget, progress: Progress) -> GateResult:
    board = load_board(budget.board)
    if budget.emulate and board.facts_only:  # there is no firmware for it: the code runs on another board
        board = emulated_twin(board) or board
    target = Target(board, None, budget.emulate and board.emulator is not None)
    options = options_of(budget.options)  # type: ignore[arg-type] # checked by `read_budgets`
    if budget.data is None:
        run = run_model(budget.model, target, options, progress=progress)
        result = GateResult(budget, _figures(budget, report_of(run)), run.verdict.reasons)
    else:
        result = _evaluated(budget, target, options, progress)
    return replace(result, ways=_ways_out(result, board, options, progress))


def _ways_out(result: GateResult, board: Board, options: Options, progress: Progress) -> Sequence[Proposal]:
    """The plan that keeps the limits of memory that were exceeded, or what `plan` proposes under them."""
    over = {it.name: it for it in result.figures if not it.passed}
    excess = {name: int(it.value - (it.limit or 0)) for name, it in over.items()}
    arena_bytes = int(next((it.value for it in result.figures if it.name == "arena"), 0))
    ram_excess = max(excess.get("arena", 0), excess.get("ram", 0))
    if ram_excess:
        options = replace(options, ram_limit=max(1, arena_bytes - ram_excess))
    if "flash" in over:
        options = replace(options, flash_limit=int(over["flash"].limit or 0))
    if not ram_excess and "flash" not in over:
        return ()
    try:
        plan = plan_model(result.budget.model, board, options, progress).plan
    except FitError as error:
        return [it for it in error.proposals if "-limit" not in it.option]  # those exceed the budget
    except DeployError:  # the measured figures suffice
        return ()
    limits = {"--ram-limit": options.ram_limit, "--flash-limit": options.flash_limit}
    option = " ".join(f"{name} {value}" for name, value in limits.items() if value)
    return [Proposal(option, f"an arena of {plan.layout.arena_bytes:,} bytes")]


def _evaluated(budget: ModelBudget, target: Target, options: Options, progress: Progress) -> GateResult:
    """The figures of a run, and the accuracy on the device."""
    data = DataRequest(Path(str(budget.data)), budget.labels, most=budget.samples, seed=options.seed)
    request = EvaluateRequest(data, float_model=budget.float_model, max_drop=budget.max_drop)
    result = evaluate_model(budget.model, [target], options, request, progress)
    run: VerifiedRun = result.run
    figures = _figures(budget, report_of(run))
    percent = result.results[0].quality.percent
    if percent is not None:
        figures.append(Figure("accuracy", percent, "%", budget.min_accuracy, at_least=True))
    elif budget.min_accuracy is not None:
        raise ConfigError(f"min_accuracy: {budget.data} has no class for every sample")
    return GateResult(budget, figures, result.failures)


def _figures(budget: ModelBudget, report: Mapping[str, Any]) -> list[Figure]:
    """The sizes and the latency of a run, each with its limit."""
    sizes = {
        "arena": report["arena_bytes"],
        "ram": report["total_ram_bytes"],
        "flash": report["flash_bytes"],
        "stack": report["stack_bytes"],
    }
    figures = [Figure(name, size, "B", _bytes(getattr(budget, name))) for name, size in sizes.items()]
    latency = report["latency"]["milliseconds"]
    return [*figures, Figure("latency", latency, "ms", budget.latency_ms)]
