"""Plans as JSON: decisions only.

The graph comes from the model, whose hash the file contains. Derived figures (peak, bound, statuses) are
recomputed, so that a file cannot misstate them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited, write_file
from mcudeploy.common.text import count_text
from mcudeploy.ir.graph import Graph, KeptRows
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import (
    Function,
    Layout,
    LoadedConstants,
    Pieces,
    Plan,
    Residence,
    Residences,
    Rewrites,
    Schedule,
    Split,
    Step,
    Transfer,
    constants_name,
)
from mcudeploy.planner.files.lanefile import EntryModel, FileModel, Offset, Rows, lane_entry, lane_of
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.solve import estimate
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import WorkBytes, buffers, joined, lives

_FORMAT: Literal[10] = 10
_MOST_BYTES = 16 * 2**20
"""The maximum size of a plan file; a plan of ten thousand steps takes about 2 MiB."""

_Residence = tuple[Offset, Offset, str, Offset]
"""The first step, the end (last step + 1), the memory, the offset."""

_Transfer = tuple[str, str, Offset, Offset, Rows, Offset]
"""The engine, the tensor, its block, source and target residence, and the step that waits for the end."""

_Constants = tuple[Rows, Offset, _Residence]
"""The bytes of an operator's loaded constants, their home in the table, and their residence in an arena."""

_Pieces = tuple[str, Rows, Rows, Rows, Rows]
"""The engine of pieces, the channels of each, and the numbers of pieces, of arrays and of bytes."""


class SplitEntry(FileModel):
    """A cut by the names of its operators; other fields as those of `Split`."""

    operators: Annotated[list[str], Field(min_length=1)]
    axis: Literal["row"] = "row"
    rows: Rows
    apart: bool = False
    staggered: bool = False


class _Function(FileModel):
    unit: str
    operators: Annotated[list[str], Field(min_length=1)]


class _Hop(FileModel):
    rows: Rows
    keeping: dict[str, KeptRows]


class PlanFile(FileModel):
    """The content of a plan file: tables of the decisions, by name."""

    format: Literal[10]
    model_sha256: str
    board: str
    streamed: bool
    accumulating: bool
    fused: list[list[str]] = Field(default_factory=list)
    hop: _Hop | None = None
    functions: list[_Function]
    kernels: dict[str, str]
    splits: list[SplitEntry]
    block_rows: dict[str, Rows]
    leads: dict[str, Rows] = Field(default_factory=dict)
    steps: list[tuple[Offset, Offset]]
    blocks: dict[str, list[list[_Residence]]]
    scratch: dict[str, list[list[_Residence]]]
    transfers: list[_Transfer]
    arenas: dict[str, Offset]
    lanes: list[list[EntryModel]]
    constants: dict[str, _Constants] | None = None
    pieces: dict[str, _Pieces] | None = None

    @property
    def form(self) -> Rewrites:
        """The form of the graph."""
        return Rewrites(self.streamed, self.accumulating, tuple(map(tuple, self.fused)))

    @property
    def by_unit(self) -> tuple[Function, ...]:
        """The functions of the compute units."""
        return tuple(Function(each.unit, tuple(each.operators)) for each in self.functions)

    @property
    def cores(self) -> int:
        """The number of cores that run the plan."""
        return max(1, len(self.lanes))


def save_plan(plan: Plan, model_sha256: str, path: Path) -> None:
    """Write a plan. Raises OSError if it cannot be written."""
    write_file(path, plan_text(plan, model_sha256))


def plan_text(plan: Plan, model_sha256: str) -> str:
    """Return a plan as JSON: the same text for the same plan."""

    def residences(table: Mapping[str, Residences]) -> dict[str, list[list[_Residence]]]:
        return {
            name: [[(it.life.lo, it.life.hi, it.memory, it.offset) for it in block] for block in blocks]
            for name, blocks in table.items()
        }

    hop = plan.graph.hop
    content = PlanFile(
        format=_FORMAT,
        model_sha256=model_sha256,
        board=plan.board,
        streamed=plan.form.streamed,
        accumulating=plan.form.accumulating,
        fused=[list(names) for names in plan.form.fused],
        hop=None if hop is None else _Hop(rows=hop.new_rows, keeping=dict(hop.keeping)),
        functions=[_Function(unit=f.unit, operators=list(f.operators)) for f in plan.functions],
        kernels=dict(plan.kernels),
        splits=[SplitEntry(**asdict(it) | {"operators": list(it.operators)}) for it in plan.splits],
        block_rows=dict(plan.block_rows),
        leads=dict(plan.leads),
        steps=[(step.operator, step.block) for step in plan.schedule.steps],
        blocks=residences(plan.layout.blocks),
        scratch=residences(plan.layout.scratch),
        transfers=[
            (it.engine, it.tensor, it.block, it.source, it.to, it.end) for it in plan.layout.transfers
        ],
        arenas=dict(plan.layout.arenas),
        lanes=[[lane_entry(each) for each in lane] for lane in plan.lanes],
        constants={name: _constants_entry(it) for name, it in plan.layout.constants.items()} or None,
        pieces={name: astuple(pieces) for name, _, pieces in plan.layout.in_pieces()} or None,
    )
    return json.dumps(content.model_dump(exclude_none=True), indent=1) + "\n"


def _constants_entry(constants: LoadedConstants) -> _Constants:
    place = constants.place
    return constants.size_bytes, constants.home, (place.life.lo, place.life.hi, place.memory, place.offset)


def _constants_of(content: PlanFile) -> dict[str, LoadedConstants]:
    pieces = {name: Pieces(*each) for name, each in (content.pieces or {}).items()}
    return {
        name: LoadedConstants(size, home, Residence(Interval(lo, hi), memory, offset), pieces.get(name))
        for name, (size, home, (lo, hi, memory, offset)) in (content.constants or {}).items()
    }


def _layout_status(arenas: Mapping[str, int], peak_bytes: int) -> str:
    """Return `optimal` if the only arena equals the peak, the lower bound of any placement.

    The status of a larger arena, or of several, is unknown without a search.
    """
    least = len(arenas) == 1 and sum(arenas.values()) <= align_up(peak_bytes, ARENA_GRAIN_BYTES)
    return "optimal" if least else "feasible"


def read_plan(path: Path, model_sha256: str, board: str) -> PlanFile:
    """Return the content of a plan file.

    Raises ConfigError for a file that is not a plan, or is one of another model or board.
    """
    try:
        content = PlanFile.model_validate_json(read_limited(path, _MOST_BYTES))
    except ValidationError as error:
        other = next((it["input"] for it in error.errors() if it["loc"] == ("format",)), None)
        if isinstance(other, int):
            raise wrong_plan(path, f"its format is {other}, not {_FORMAT}") from error
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        text = " ".join(f"{place}: {first['msg']}".split())  # keys of a file may have any characters
        raise ConfigError(f"{path} is not a plan: {text}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if content.model_sha256 != model_sha256:
        raise ConfigError(
            f"{path} is a plan of another model, or with another --shape. Make a new one: "
            f"mcudeploy plan MODEL -o {path}"
        )
    if content.board != board:
        raise ConfigError(
            f"{path} is a plan for {' '.join(content.board.split())}, not for {board}. "
            f"Make a new one: mcudeploy plan MODEL --board {board} -o {path}"
        )
    return content


def kept_rows(content: PlanFile, path: Path, hop: int | None) -> Mapping[str, KeptRows] | None:
    """Return the tensors whose rows a stored plan keeps, and which rows; None for a plan without a hop.

    Raises ConfigError if the plan's hop is not `hop`.
    """
    stored = content.hop
    if (None if stored is None else stored.rows) != hop:
        own = "without --hop: leave it out" if stored is None else f"with --hop {stored.rows}: give the same"
        raise ConfigError(f"{path} is a plan {own}, or make a new plan")
    return None if stored is None else stored.keeping


def wrong_plan(path: Path, fault: object) -> ConfigError:
    """Return the error for a plan file that the model refuses, with the way out."""
    text = " ".join(str(fault).split())  # names of a file may have any characters
    return ConfigError(
        f"{path} is not a plan of this model: {text}. It was changed, or made by another version of "
        "mcudeploy, or with another choice of --float-io, --keep-constant-channels, --stateful, --rounding, "
        "--hop or --replaceable. "
        f"Make a new one: mcudeploy plan MODEL -o {path}"
    )


def plan_of(content: PlanFile, path: Path, graph: Graph, work: WorkBytes) -> Plan:
    """Join a plan file with the graph of the same model and form. The checker must still accept the plan.

    `work`: scratch and state of every operator. Raises ConfigError for an inconsistent file.
    """
    flow = Dataflow.of(graph)
    fault = next(_faults(content, flow, work), None)
    if fault is not None:
        raise wrong_plan(path, fault)

    def residences(table: Mapping[str, list[list[_Residence]]]) -> dict[str, Residences]:
        return {
            name: tuple(
                tuple(Residence(Interval(lo, hi), memory, offset) for lo, hi, memory, offset in block)
                for block in blocks
            )
            for name, blocks in table.items()
        }

    try:
        lanes = tuple(lane_of(lane) for lane in content.lanes)
    except ValueError as error:
        raise wrong_plan(path, error) from error
    tiled = TiledGraph(flow, content.block_rows, content.leads)
    schedule = Schedule(tuple(Step(o, b) for o, b in content.steps), "feasible")
    layout = Layout(
        residences(content.blocks),
        residences(content.scratch),
        content.arenas,
        "feasible",
        tuple(Transfer(*transfer) for transfer in content.transfers),
        _constants_of(content),
    )
    predicted = estimate(tiled, schedule.steps, work, layout)
    status = _layout_status(content.arenas, predicted.peak_bytes)
    plan = Plan(
        graph=graph,
        board=content.board,
        block_rows=content.block_rows,
        leads=content.leads,
        schedule=schedule,
        layout=replace(layout, status=status),
        estimate=predicted,
        form=content.form,
        kernels=content.kernels,
        splits=tuple(Split(tuple(s.operators), s.axis, s.rows, s.apart, s.staggered) for s in content.splits),
        functions=content.by_unit,
        lanes=lanes,
    )
    if any(each.entry >= len(plan.tape) for lane in lanes for each in lane):
        raise wrong_plan(path, f"lanes: the tape has {len(plan.tape):,} entries")
    return plan


def _faults(content: PlanFile, flow: Dataflow, work: WorkBytes) -> Iterator[str]:
    """Yield inconsistencies of a plan.

    Every table must have the entries, and every entry the size, that the graph cut by `block_rows` requires.
    The checker decides whether the plan computes the right values.
    """
    names = [operator.name for operator in flow.graph.operators]
    if set(content.block_rows) != set(names):
        yield "block_rows has other operators"
        return
    for name, rows in zip(names, flow.iteration_rows, strict=True):
        if content.block_rows[name] > rows:
            yield f"{name} has {count_text(rows, 'row')}, not {content.block_rows[name]}"
            return
    for name, lead in content.leads.items():
        if lead >= content.block_rows.get(name, 0):
            yield f"{name} has no steps of more than {count_text(lead, 'row')}"
            return
    tiled = TiledGraph(flow, content.block_rows, content.leads)
    yield from _step_faults(content, tiled)
    yield from _split_faults(content, tiled)
    of_blocks, of_scratch = _live_ranges(tiled, tuple(Step(*step) for step in content.steps), work)
    yield from _residence_faults("blocks", content.blocks, of_blocks)
    yield from _residence_faults("scratch", content.scratch, of_scratch)
    yield from _transfer_faults(content)
    yield from _arena_faults(content, tiled, work)


def _arena_faults(content: PlanFile, tiled: TiledGraph, work: WorkBytes) -> Iterator[str]:
    ends: dict[str, int] = {}
    of_blocks = (
        (place, tiled.block_bytes(name, number))
        for name, blocks in content.blocks.items()
        for number, block in enumerate(blocks)
        for place in block
    )
    of_work = ((it, sum(work[name])) for name, own in content.scratch.items() for step in own for it in step)
    of_constants = ((place, size) for size, _, place in (content.constants or {}).values())
    for (_, _, memory, offset), size in chain(of_blocks, of_work, of_constants):
        ends[memory] = max(ends.get(memory, 0), offset + size)
    needed = {memory: align_up(end, ARENA_GRAIN_BYTES) for memory, end in ends.items()}
    if content.arenas != needed:
        yield f"the arenas are {content.arenas}, what lies in them needs {needed}"


def _step_faults(content: PlanFile, tiled: TiledGraph) -> Iterator[str]:
    steps = {(at, block) for at, count in enumerate(tiled.step_counts) for block in range(count)}
    wrong = next((step for step in content.steps if step not in steps), None)
    if wrong is not None:
        yield f"there is no step {list(wrong)}"


def _split_faults(content: PlanFile, tiled: TiledGraph) -> Iterator[str]:
    names = [operator.name for operator in tiled.graph.operators]
    cut = {name: tiled.block_rows[name] for name, n in zip(names, tiled.step_counts, strict=True) if n > 1}
    stated = [(name, split.rows) for split in content.splits for name in split.operators]
    if sorted(stated) != sorted(cut.items()):
        yield "its splits are not those of block_rows"


LifeTable = dict[str, list[tuple[Interval, ...]]]
"""The live ranges of each block, by tensor that owns memory or operator with scratch or state."""


def _live_ranges(tiled: TiledGraph, steps: tuple[Step, ...], work: WorkBytes) -> tuple[LifeTable, LifeTable]:
    """Return the live ranges of blocks, and those of scratch."""
    all_lives = lives(tiled, steps)
    of_blocks = {
        name: [all_lives.of(base + block) for block in range(tiled.block_count(name))]
        for name, base in tiled.first_block.items()
    }
    of_scratch: dict[str, dict[int, list[Interval]]] = {}
    for item in buffers(tiled, steps, work):
        if item.scratch_of is not None:
            name, block = item.scratch_of
            of_scratch.setdefault(name, {}).setdefault(block, []).append(item.life)
    return of_blocks, {
        name: [joined(spans.get(block, ())) for block in range(max(spans) + 1)]
        for name, spans in of_scratch.items()
    }


def _residence_faults(
    what: str, table: Mapping[str, Sequence[Sequence[_Residence]]], live_ranges: LifeTable
) -> Iterator[str]:
    """Yield residences that do not match the live ranges of their block."""
    other = sorted(set(table) ^ set(live_ranges))
    if other:
        yield f"{what} has {other[0]} too much" if other[0] in table else f"{what} lacks {other[0]}"
    for name, blocks in live_ranges.items():
        if len(table[name]) != len(blocks):
            yield f"{name} in {what} has {count_text(len(table[name]), 'block')}, not {len(blocks)}"
        for number, (found, wanted) in enumerate(zip(table[name], blocks, strict=True)):
            turned = next(((lo, hi) for lo, hi, *_ in found if hi < lo), None)
            if turned is not None:
                yield f"block {number} of {name} in {what} resides from step {turned[0]} to {turned[1]}"
            there = joined(Interval(lo, hi) for lo, hi, *_ in found)
            if there != wanted:
                yield (
                    f"block {number} of {name} in {what} resides at {_text(there)}, "
                    f"it is needed at {_text(wanted)}"
                )


def _text(spans: Sequence[Interval]) -> str:
    return " and ".join(map(str, spans)) or "no step"


def _transfer_faults(content: PlanFile) -> Iterator[str]:
    """Yield transfers that refer to missing residences. The checker decides whether they are possible."""
    loaded = {constants_name(name) for name in content.constants or {}}
    for _, name, block, source, to, _ in content.transfers:
        if name in loaded:
            continue
        if name not in content.blocks:
            yield f"{name!r} is moved, but is not a tensor that owns memory"
        elif block >= len(content.blocks[name]):
            yield f"{name} has no block {block} to move"
        elif max(source, to) >= (count := len(content.blocks[name][block])):
            yield f"block {block} of {name} is moved to its residence {max(source, to)}, of {count}"
