"""Plans as JSON: decisions only. The graph comes from the model, whose hash the file carries; what follows
from the decisions (peak, bound, statuses) is worked out anew, so that a file cannot lie about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcudeploy.errors import ConfigError
from mcudeploy.files import read_limited, write_file
from mcudeploy.graph import Graph
from mcudeploy.layout.arena import ARENA_GRAIN_BYTES
from mcudeploy.layout.problem import align_up
from mcudeploy.layout.solve import estimate, layout_status
from mcudeploy.plan import Form, Function, Layout, Move, Placement, Plan, Schedule, Split, Step
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import WorkBytes
from mcudeploy.wording import count_text

_FORMAT: Literal[7] = 7
MOST_MOVES = 4096
"""Moves of a plan that a search may end with; more of them are no plan."""

_MOST_BYTES = 16 * 2**20
"""A plan of ten thousand steps takes less than one of them."""

_Offset = Annotated[int, Field(ge=0, lt=2**32)]
_Rows = Annotated[int, Field(ge=1, lt=2**32)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Placement(_Model):
    memory: str
    block_rows: _Rows
    offsets: Annotated[list[_Offset], Field(min_length=1)]


class _Split(_Model):
    operators: Annotated[list[str], Field(min_length=1)]
    axis: Literal["row"]
    rows: _Rows
    apart: bool


class _Function(_Model):
    unit: str
    operators: Annotated[list[str], Field(min_length=1)]


class _PlanFile(_Model):
    format: Literal[7]
    model_sha256: str
    board: str
    streamed: bool
    accumulating: bool
    functions: list[_Function]
    kernels: dict[str, str]
    splits: list[_Split]
    block_rows: dict[str, _Rows]
    steps: list[tuple[_Offset, _Offset]]
    tensors: dict[str, _Placement]
    scratch: dict[str, _Placement]
    moves: Annotated[list[tuple[_Offset, str, _Offset, _Offset]], Field(max_length=MOST_MOVES)]
    arenas: dict[str, _Offset]


def save_plan(plan: Plan, model_sha256: str, path: Path) -> None:
    """Writes a plan. Raises OSError where it cannot be written."""
    write_file(path, plan_text(plan, model_sha256))


def plan_text(plan: Plan, model_sha256: str) -> str:
    """A plan as JSON: the same text for the same plan."""

    def placements(table: dict[str, Placement]) -> dict[str, _Placement]:
        return {
            name: _Placement(memory=p.memory, block_rows=p.block_rows, offsets=list(p.offsets))
            for name, p in table.items()
        }

    content = _PlanFile(
        format=_FORMAT,
        model_sha256=model_sha256,
        board=plan.board,
        streamed=plan.form.streamed,
        accumulating=plan.form.accumulating,
        functions=[_Function(unit=f.unit, operators=list(f.operators)) for f in plan.functions],
        kernels=dict(plan.kernels),
        splits=[
            _Split(operators=list(s.operators), axis="row", rows=s.rows, apart=s.apart) for s in plan.splits
        ],
        block_rows=dict(plan.block_rows),
        steps=[(step.operator, step.block) for step in plan.schedule.steps],
        tensors=placements(dict(plan.layout.tensors)),
        scratch=placements(dict(plan.layout.scratch)),
        moves=[(move.before, move.tensor, move.block, move.offset) for move in plan.layout.moves],
        arenas=dict(plan.layout.arenas),
    )
    return json.dumps(content.model_dump(), indent=1) + "\n"


def _read(path: Path, model_sha256: str, board: str) -> _PlanFile:
    try:
        content = _PlanFile.model_validate_json(read_limited(path, _MOST_BYTES))
    except ValidationError as error:
        other = next((it["input"] for it in error.errors() if it["loc"] == ("format",)), None)
        if isinstance(other, int):
            raise no_plan(path, f"its format is {other}, not {_FORMAT}") from error
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path} is not a plan: {place}: {first['msg']}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if content.model_sha256 != model_sha256:
        raise ConfigError(
            f"{path} is a plan of another model. Make a new one: mcudeploy plan MODEL -o {path}"
        )
    if content.board != board:
        raise ConfigError(
            f"{path} is a plan for {content.board}, not for {board}. "
            f"Make a new one: mcudeploy plan MODEL --board {board} -o {path}"
        )
    return content


def load_form(
    path: Path, model_sha256: str, board: str
) -> tuple[Form, tuple[Function, ...], Mapping[str, str]]:
    """The form that the graph of a plan must have, what units run, and the kernel variant of every operator.

    Raises ConfigError for a file that is no plan, or is one of another model or board.
    """
    content = _read(path, model_sha256, board)
    return Form(content.streamed, content.accumulating), _functions(content), content.kernels


def _functions(content: _PlanFile) -> tuple[Function, ...]:
    return tuple(Function(each.unit, tuple(each.operators)) for each in content.functions)


def no_plan(path: Path, fault: object) -> ConfigError:
    """What is wrong with a plan file, and what to do about it."""
    return ConfigError(
        f"{path} is no plan of this model: {fault}. It was changed, or made by another version of "
        f"mcudeploy. Make a new one: mcudeploy plan MODEL -o {path}"
    )


def load_plan(path: Path, graph: Graph, model_sha256: str, board: str, work: WorkBytes) -> Plan:
    """Reads a plan and joins it with the graph of the same model and form. It still has to pass the checker.

    `work`: scratch and state of every operator. Raises ConfigError for a file that is no plan, is one of
    another model or board, or is not of one piece.
    """
    content = _read(path, model_sha256, board)
    flow = Flow.of(graph)
    fault = next(_faults(content, flow, work), None)
    if fault is not None:
        raise no_plan(path, fault)

    def placements(table: dict[str, _Placement]) -> dict[str, Placement]:
        return {name: Placement(p.memory, p.block_rows, tuple(p.offsets)) for name, p in table.items()}

    tiled = TiledGraph(flow, content.block_rows)
    schedule = Schedule(tuple(Step(o, b) for o, b in content.steps), "feasible")
    layout = Layout(
        placements(content.tensors),
        placements(content.scratch),
        content.arenas,
        "feasible",
        tuple(Move(*move) for move in content.moves),
    )
    predicted = estimate(tiled, schedule, work, layout)
    status = layout_status(content.arenas, predicted.peak_bytes)
    return Plan(
        graph=graph,
        board=board,
        block_rows=content.block_rows,
        schedule=schedule,
        layout=replace(layout, status=status),
        estimate=predicted,
        form=Form(content.streamed, content.accumulating),
        kernels=content.kernels,
        splits=tuple(Split(tuple(s.operators), s.axis, s.rows, s.apart) for s in content.splits),
        functions=_functions(content),
    )


def _faults(content: _PlanFile, flow: Flow, work: WorkBytes) -> Iterator[str]:
    """What of a plan does not go together: every table has the entries, and every entry the size, that the
    graph cut by `block_rows` gives it. Whether the plan computes what it should is for the checker.
    """
    names = [operator.name for operator in flow.graph.operators]
    if set(content.block_rows) != set(names):
        yield "block_rows has other operators"
        return
    for name, rows in zip(names, flow.iteration_rows, strict=True):
        if content.block_rows[name] > rows:
            yield f"{name} has {count_text(rows, 'row')}, not {content.block_rows[name]}"
            return
    tiled = TiledGraph(flow, content.block_rows)
    yield from _step_faults(content, tiled)
    yield from _split_faults(content, tiled)
    yield from _table_faults("tensors", content.tensors, _tensor_shapes(tiled))
    yield from _table_faults("scratch", content.scratch, _work_shapes(content, tiled, work))
    yield from _view_faults(content, flow)
    yield from _move_faults(content, tiled)
    ends: dict[str, int] = {}
    places = [
        (name, block, offset)
        for name in tiled.first_block
        for block, offset in enumerate(content.tensors[name].offsets)
    ]
    for name, block, offset in places + [(name, block, offset) for _, name, block, offset in content.moves]:
        memory, end = content.tensors[name].memory, offset + tiled.block_bytes(name, block)
        ends[memory] = max(ends.get(memory, 0), end)
    for name, placement in content.scratch.items():
        end = max(placement.offsets) + sum(work[name])
        ends[placement.memory] = max(ends.get(placement.memory, 0), end)
    needed = {memory: align_up(end, ARENA_GRAIN_BYTES) for memory, end in ends.items()}
    if content.arenas != needed:
        yield f"the arenas are {content.arenas}, what lies in them needs {needed}"


def _step_faults(content: _PlanFile, tiled: TiledGraph) -> Iterator[str]:
    steps = {(at, block) for at, count in enumerate(tiled.step_counts) for block in range(count)}
    wrong = next((step for step in content.steps if step not in steps), None)
    if wrong is not None:
        yield f"there is no step {list(wrong)}"


def _move_faults(content: _PlanFile, tiled: TiledGraph) -> Iterator[str]:
    latest = 0
    for before, name, block, _ in content.moves:
        if name not in tiled.first_block:
            yield f"{name!r} is moved, but is no tensor that owns memory"
        elif block >= tiled.block_count(name):
            yield f"{name} has no block {block} to move"
        elif before >= len(content.steps):
            yield f"block {block} of {name} is moved before step {before}, of {len(content.steps)}"
        elif before < latest:
            yield f"block {block} of {name} is moved before step {before}, after a move before step {latest}"
        latest = before


def _split_faults(content: _PlanFile, tiled: TiledGraph) -> Iterator[str]:
    names = [operator.name for operator in tiled.graph.operators]
    cut = {name: tiled.block_rows[name] for name, n in zip(names, tiled.step_counts, strict=True) if n > 1}
    said = [(name, split.rows) for split in content.splits for name in split.operators]
    if sorted(said) != sorted(cut.items()):
        yield "its splits are not those of block_rows"


def _tensor_shapes(tiled: TiledGraph) -> dict[str, tuple[int, int]]:
    """Of every tensor the rows in a block, and how many blocks its memory has."""
    shapes = {}
    for name, tensor in tiled.graph.tensors.items():
        root = tiled.flow.roots[name]
        rows = tiled.tensor_block_rows(root) if root == name else tensor.shape[0]
        shapes[name] = rows, tiled.block_count(root)
    return shapes


def _work_shapes(content: _PlanFile, tiled: TiledGraph, work: WorkBytes) -> dict[str, tuple[int, int]]:
    """Of every operator with scratch or state the rows of a step, and how many places it needs.

    Blocks behind the last one that anything reads have no step, and no scratch.
    """
    last = dict(sorted(content.steps))
    shapes = {}
    for position, block in last.items():
        name = tiled.graph.operators[position].name
        scratch, state = work.get(name, (0, 0))
        if scratch + state > 0:
            shapes[name] = tiled.block_rows[name], block + 1 if scratch else 1
    return shapes


def _table_faults(
    what: str, table: Mapping[str, _Placement], shapes: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    other = sorted(set(table) ^ set(shapes))
    if other:
        yield f"{what} has {other[0]} too much" if other[0] in table else f"{what} lacks {other[0]}"
    for name, (rows, blocks) in shapes.items():
        found = table.get(name)
        if found is not None and (found.block_rows, len(found.offsets)) != (rows, blocks):
            yield (
                f"{name} in {what} has {count_text(len(found.offsets), 'block')} of "
                f"{count_text(found.block_rows, 'row')}, "
                f"not {blocks} of {rows}"
            )


def _view_faults(content: _PlanFile, flow: Flow) -> Iterator[str]:
    for name, root in flow.roots.items():
        view, seen = content.tensors[name], content.tensors[root]
        if (view.memory, view.offsets) != (seen.memory, seen.offsets):
            yield f"{name} does not lie where {root} does"
