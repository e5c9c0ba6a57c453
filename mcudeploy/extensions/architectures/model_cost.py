"""`mcudeploy.cost`: the bytes and the time of a model on a board, for an architecture search."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Unpack, cast

from pydantic import BaseModel, Field

from mcudeploy.boards.board import Board
from mcudeploy.commands.keywords import Choices, Named, Reading, board_of, checked, options_of
from mcudeploy.commands.loaded import load_for
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.sizes import parse_size
from mcudeploy.common.text import described, plain
from mcudeploy.planner.fit import Fit, unsplit_fit

_Size = Annotated[int, Field(gt=0)] | str


class _Limits(BaseModel):
    """The values of a budget."""

    arena: _Size | None = None
    ram: _Size | None = None
    flash: _Size | None = None
    latency_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Figures of a model's unsplit plan on a board, estimated by the costs of its core.

    `ram_bytes`: the arena, the data of the firmware and its stack. `flash_bytes`: weights and tables, without
    code. `ticks`, in `unit`, and `milliseconds` are None on the host. `violation`: the sum of the relative
    excesses of RAM, flash and latency over the board and the budget, 0.0 if and only if the model `fits`.
    """

    board: str
    arena_bytes: int
    ram_bytes: int
    flash_bytes: int
    ticks: int | None
    unit: str | None
    milliseconds: float | None
    fits: bool
    violation: float


def cost(
    model: Any,
    board: Named,
    budget: Mapping[str, float | str] | None = None,
    *,
    sample: tuple[Any, ...] | None = None,
    **reading: Unpack[Reading],
) -> ModelCost:
    """Estimate the bytes and the time of a model on a board, without a search.

    `model`: as `load` takes it, or a torch module, which is exported with `sample`, the tuple of its inputs.
    `budget`: limits of `arena`, `ram` and `flash`, in bytes or as "64k", and of `latency_ms`.
    Raises ModelError for a model that is not supported, UsageError for a wrong budget, TypeError for an
    option of a search, which would change nothing.
    """
    for name in reading.keys() - Reading.__annotations__:
        known = ", ".join(Reading.__annotations__)
        raise TypeError(f"cost has no option {name}; it has budget, sample, {known}")
    target, limits = board_of(board), _limits({} if budget is None else budget)
    if target.is_host and "latency_ms" in limits:
        raise UsageError(f"budget: latency_ms needs a board: the time on {target.name} is not estimated")
    choices = cast("Choices", reading)
    loaded = load_for(_without_torch(model, sample), target.isa, choices)
    try:
        fit = unsplit_fit(loaded.model, target, options_of(choices))
    finally:
        if loaded.folder is not None:
            loaded.folder.cleanup()
    return _cost(fit, target, limits)


def _cost(fit: Fit, board: Board, limits: dict[str, float]) -> ModelCost:
    latency = fit.latency
    duration = None if latency is None else latency.milliseconds
    taken = {
        "arena": fit.chosen.plan.layout.arena_bytes,
        "ram": fit.ram_bytes,
        "flash": fit.flash_bytes,
        "latency_ms": duration or 0.0,
    }
    excess = sum(max(0.0, taken[name] / limit - 1) for name, limit in limits.items())
    return ModelCost(
        board.name,
        arena_bytes=fit.chosen.plan.layout.arena_bytes,
        ram_bytes=fit.ram_bytes,
        flash_bytes=fit.flash_bytes,
        ticks=None if latency is None else round(latency.ticks),
        unit=None if latency is None else latency.unit,
        milliseconds=duration,
        fits=fit.fits and excess == 0,
        violation=excess + fit.relative_excess,
    )


def _limits(budget: Mapping[str, float | str]) -> dict[str, float]:
    """Return the limits as numbers. Raises UsageError."""
    names = list(_Limits.model_fields)
    if not isinstance(budget, Mapping) or not budget.keys() <= set(names):
        raise UsageError(f"budget={budget!r:.80}: it must be a mapping with any of {', '.join(names)}")
    if any(isinstance(limit, bool) for limit in budget.values()):
        raise UsageError(f"budget={budget!r:.80}: a limit is a number or a size such as '64k', not a bool")
    limits: dict[str, float] = {}
    for name, limit in checked("budget", budget, _Limits):
        try:
            if limit is not None:
                limits[name] = parse_size(limit) if isinstance(limit, str) else limit
        except ValueError as error:
            raise UsageError(f"budget: {name}: {error}") from None
    return limits


def _without_torch(model: Any, sample: tuple[Any, ...] | None) -> Any:
    """Return the ONNX model of a torch module, and any other model as it is.

    Raises UsageError for a module without a sample, or a sample without a module, and ModelError for a module
    that torch cannot export. torch is not a dependency: a torch module exists only if torch is imported.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        if sample is not None:
            raise UsageError(f"sample= is for torch modules, not for {type(model).__name__}: leave it out")
        return model
    name = type(model).__name__
    if not isinstance(sample, tuple):
        raise UsageError(f"{name} is a torch module: add sample=(torch.zeros(1, 3, 96, 96),), its inputs")
    try:
        program = torch.onnx.export(copy.deepcopy(model).eval(), sample, dynamo=True, verbose=False)
        return program.model_proto
    except Exception as fault:  # the code of the module raises anything
        cause = fault.__cause__ if isinstance(fault.__cause__, Exception) else fault  # a text of many lines
        raise ModelError(f"torch cannot export {name}: {plain(described(cause))}") from fault
