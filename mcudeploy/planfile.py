"""Plans as JSON: decisions only. The graph comes from the model, whose hash the file carries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcudeploy.errors import ConfigError
from mcudeploy.graph import Graph
from mcudeploy.plan import Estimate, Form, Layout, Placement, Plan, Schedule, Split, Step

_Offset = Annotated[int, Field(ge=0, lt=2**32)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Placement(_Model):
    memory: str
    block_rows: Annotated[int, Field(ge=1)]
    offsets: Annotated[list[_Offset], Field(min_length=1)]


class _Split(_Model):
    operators: Annotated[list[str], Field(min_length=1)]
    axis: Literal["row"]
    rows: Annotated[int, Field(ge=1)]


class _PlanFile(_Model):
    format: Literal[2]
    model_sha256: str
    board: str
    streamed: bool
    accumulating: bool
    splits: list[_Split]
    block_rows: dict[str, Annotated[int, Field(ge=1)]]
    steps: list[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]]
    order_status: Literal["optimal", "feasible"]
    layout_status: Literal["optimal", "feasible"]
    tensors: dict[str, _Placement]
    scratch: dict[str, _Placement]
    arenas: dict[str, _Offset]
    peak_bytes: int
    peak_step: int
    lower_bound_bytes: int


def save_plan(plan: Plan, model_sha256: str, path: Path) -> None:
    """Writes a plan. Raises OSError where it cannot be written."""
    path.write_text(plan_text(plan, model_sha256), encoding="utf-8")


def plan_text(plan: Plan, model_sha256: str) -> str:
    """A plan as JSON: the same text for the same plan."""

    def placements(table: dict[str, Placement]) -> dict[str, _Placement]:
        return {
            name: _Placement(memory=p.memory, block_rows=p.block_rows, offsets=list(p.offsets))
            for name, p in table.items()
        }

    content = _PlanFile(
        format=2,
        model_sha256=model_sha256,
        board=plan.board,
        streamed=plan.form.streamed,
        accumulating=plan.form.accumulating,
        splits=[_Split(operators=list(s.operators), axis="row", rows=s.rows) for s in plan.splits],
        block_rows=dict(plan.block_rows),
        steps=[(step.operator, step.block) for step in plan.schedule.steps],
        order_status="optimal" if plan.schedule.status == "optimal" else "feasible",
        layout_status="optimal" if plan.layout.status == "optimal" else "feasible",
        tensors=placements(dict(plan.layout.tensors)),
        scratch=placements(dict(plan.layout.scratch)),
        arenas=dict(plan.layout.arenas),
        peak_bytes=plan.estimate.peak_bytes,
        peak_step=plan.estimate.peak_step,
        lower_bound_bytes=plan.estimate.lower_bound_bytes,
    )
    return json.dumps(content.model_dump(), indent=1) + "\n"


def _read(path: Path) -> _PlanFile:
    try:
        return _PlanFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path} is not a plan: {place}: {first['msg']}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def load_form(path: Path) -> Form:
    """The form that the graph of a plan must have. Raises ConfigError for a file that is no plan."""
    content = _read(path)
    return Form(content.streamed, content.accumulating)


def load_plan(path: Path, graph: Graph, model_sha256: str, board: str) -> Plan:
    """Reads a plan and joins it with the graph of the same model and form. It still has to pass the checker.

    Raises ConfigError for a file that is no plan, or is one of another model or board.
    """
    content = _read(path)
    if content.model_sha256 != model_sha256:
        raise ConfigError(
            f"{path} is a plan of another model. Make a new one: mcudeploy plan MODEL -o {path}"
        )
    if content.board != board:
        raise ConfigError(f"{path} is a plan for {content.board}, not for {board}")
    names = {operator.name for operator in graph.operators}
    if set(content.tensors) != set(graph.tensors) or set(content.block_rows) != names:
        raise ConfigError(f"{path} was made by another version of mcudeploy. Make a new plan")
    if any(operator >= len(graph.operators) for operator, _ in content.steps):
        raise ConfigError(f"{path} names an operator that the model does not have")

    def placements(table: dict[str, _Placement]) -> dict[str, Placement]:
        return {name: Placement(p.memory, p.block_rows, tuple(p.offsets)) for name, p in table.items()}

    return Plan(
        graph=graph,
        board=board,
        block_rows=content.block_rows,
        schedule=Schedule(tuple(Step(o, b) for o, b in content.steps), content.order_status),
        layout=Layout(
            placements(content.tensors), placements(content.scratch), content.arenas, content.layout_status
        ),
        estimate=Estimate(content.peak_bytes, content.peak_step, content.lower_bound_bytes),
        form=Form(content.streamed, content.accumulating),
        splits=tuple(Split(tuple(s.operators), s.axis, s.rows) for s in content.splits),
    )
