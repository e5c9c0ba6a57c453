"""The records that a tape names by number, and the table with the offsets of their tensors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.codegen.comments import operator_text
from mcudeploy.codegen.ctext import c_elements
from mcudeploy.codegen.kernelfiles import AWAIT, MOVE, START, STREAMS
from mcudeploy.codegen.operators import ConstantPool, params_lines, part_text, stage_texts
from mcudeploy.codegen.program_schedule import ProgramSchedule
from mcudeploy.codegen.texts import (
    MovesText,
    OperatorText,
    StreamsText,
    TensorText,
    WaitsText,
    symbol,
)
from mcudeploy.common.text import count_text
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.opdef import UNIT_ALIGNMENT, KernelCall
from mcudeploy.ops.move.constant_pieces import STREAM
from mcudeploy.planner.place.states_first import state_tensors
from mcudeploy.planner.tape.core_tables import SliceRecord
from mcudeploy.planner.tape.joined_streams import CONSTANTS
from mcudeploy.planner.tape.tape import ONE_PIECE, Moves, NamedRange, Tape, TensorRecord, Waits


@dataclass(frozen=True, slots=True)
class Records:
    """The records that a tape names by number, in this order: steps, moves, waits, parts of steps."""

    steps: list[OperatorText]
    tensors: list[TensorText]
    moves: list[MovesText]
    waits: list[WaitsText]
    streams: StreamsText | None
    parts: list[tuple[OperatorText, SliceRecord]]

    @classmethod
    def of(
        cls,
        schedule: ProgramSchedule,
        handed: Mapping[str, int],
        constants: ConstantPool,
        offsets: OffsetTable,
        engines: Mapping[str, int],
    ) -> Records:
        """Return the records of a schedule; their arrays are added to the constants and the offsets.

        `handed`: the other units that run operators, by operator; `engines`: the numbers of engines.
        """
        tape = schedule.tape
        view, calls = schedule.view, dict(schedule.calls)
        for name, loaded, pieces in view.plan.layout.in_pieces():
            calls[name] = view.piece_loads[name].streaming(name, loaded, engines[pieces.engine])
        numbered = range(len(schedule.records))
        steps = [_operator_text(schedule, it, calls, constants, handed) for it in numbered]
        tensors = offsets.tensors_of(tape, schedule.stored)
        numbers = itertools.count(len(steps))
        moves = [_moves_text(it, offsets, engines[it.engine], next(numbers)) for it in tape.moves]
        waits = [_waits_text(it, engines[it.engine], next(numbers)) for it in tape.waits]
        streams = _streams_text(schedule, offsets, constants) if schedule.streams else None
        by_symbol = {tensor.symbol: tensor for tensor in tensors}
        parts = [
            (part_text(next(numbers), it, steps[it.base], by_symbol, constants), it)
            for it in schedule.view.lanes.records
        ]
        return cls(steps, tensors, moves, waits, streams, parts)

    @property
    def kernels(self) -> set[str]:
        """The kernels that the records call."""
        stages = {stage.kernel for step in self.steps for stage in step.stages}
        copies = {it.kernel for it in self.moves} | {it.kernel for it in self.waits}
        own = {it.kernel for it in self.steps}
        engine = {START, AWAIT} if STREAM in own else set()
        return own | stages | copies | engine | ({STREAMS} if self.streams else set())

    @property
    def step_tensors(self) -> list[TensorText]:
        """The tensors that steps name."""
        named = {name for it in self.steps for name in (*it.inputs, it.output, it.scratch.removeprefix("&"))}
        return [tensor for tensor in self.tensors if tensor.symbol in named]


class OffsetTable:
    """One table with the block offsets of all tensors, in units of the alignment."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._count = 0
        self.largest = 0
        self.lines: list[tuple[str, list[str]]] = []

    def tensors_of(self, tape: Tape, stored_as: Sequence[tuple[NamedRange, int]]) -> list[TensorText]:
        """Add the offsets of tensors and scratch of a tape, and return their records."""
        states = state_tensors(tape.plan.graph)
        return [
            self.add(
                _stored_text(tape, *key),
                _stored_symbol(tape, *key),
                tape.stored(*key),
                state=key[0].name if key[0].name in states and not key[0].is_scratch else "",
            )
            for key in stored_as
        ]

    def add(self, name: str, symbol: str, stored: TensorRecord, *, state: str = "") -> TensorText:
        """Add the offsets of a tensor, and return its record. `name`: for a comment."""
        if any(offset % self._alignment for offset in stored.offsets):
            raise ValueError(f"an offset of {name} is not a multiple of {self._alignment}")
        units = np.array([offset // self._alignment for offset in stored.offsets], np.uint32)
        self.lines.append((name, c_elements(units)))
        self.largest = max(self.largest, int(units.max()))
        text = TensorText(
            symbol, stored.memory, self._count, stored.row_bytes, stored.block_rows, stored.lead, state=state
        )
        self._count += len(stored.offsets)
        return text


def _stored_symbol(tape: Tape, named: NamedRange, version: int) -> str:
    return symbol("s" if named.is_scratch else "t", tape.number(named, version), named.name)


def _stored_text(tape: Tape, named: NamedRange, version: int) -> str:
    """Return the name of the tensor or the scratch of a table, for a comment."""
    where = f" in {named.memory}" if tape.is_spread(named) else ""
    name = f"{named.name}, scratch" if named.is_scratch else named.name
    return f"{name}{where}" + (f" after {count_text(version, 'move')}" if version else "")


def _moves_text(moves: Moves, offsets: OffsetTable, engine: int, number: int) -> MovesText:
    source, target = moves.old.memory, moves.new.memory
    name = source if source == target else f"{source}_{target}"
    where = f"in {source}" if source == target else f"from {source} to {target}"
    if moves.engine != CPU:
        name, where = f"{moves.engine}_{name}", f"{where} by {moves.engine}"
    sizes = c_elements(np.array(moves.sizes, np.uint32))
    if any(moves.ends):
        sizes = [
            f"{size}u{' | MCUD_ENDS_SOURCE' if end else ''}"
            for size, end in zip(moves.sizes, moves.ends, strict=True)
        ]
    return MovesText(
        name,
        where,
        f"{number}: {count_text(len(moves.sizes), 'move')} {where}",
        MOVE if moves.engine == CPU else START,
        engine,
        offsets.add(f"moved from, {where}", f"move_from_{name}", moves.old),
        offsets.add(f"moved to, {where}", f"move_to_{name}", moves.new),
        len(moves.sizes),
        sizes,
    )


def _waits_text(waits: Waits, engine: int, number: int) -> WaitsText:
    return WaitsText(
        waits.engine,
        f"{number}: wait for {waits.engine}, {count_text(len(waits.pending), 'time')}",
        AWAIT,
        engine,
        len(waits.pending),
        c_elements(np.array(waits.pending, np.uint16)),
    )


def _streams_text(schedule: ProgramSchedule, offsets: OffsetTable, constants: ConstantPool) -> StreamsText:
    """Return the record of joined streams; each arena has a tensor of one row at its first byte."""
    streams, arenas = schedule.streams, schedule.view.plan.layout.arenas
    assert streams is not None
    whole = TensorRecord("", (0,), 0, ONE_PIECE)
    words = np.array([word for each in streams.streams for word in each.words], np.uint32)
    return StreamsText(
        summary=f"{schedule.stream_record}: {count_text(len(streams.streams), 'command stream')}",
        constants=constants.stored(CONSTANTS, streams.constants, UNIT_ALIGNMENT),
        constant_bytes=streams.constants.nbytes,
        count=len(streams.streams),
        word_lines=c_elements(words),
        begin_lines=c_elements(np.array(streams.begins, np.uint32)),
        arenas=[
            offsets.add(f"arena in {it}", f"arena_of_{it}", replace(whole, memory=it))
            for it in streams.memories
        ],
        regions=[
            (region, arenas[memory]) for region, memory in zip(streams.regions, streams.memories, strict=True)
        ],
    )


def _operator_text(
    schedule: ProgramSchedule,
    number: int,
    calls: Mapping[str, KernelCall],
    constants: ConstantPool,
    handed: Mapping[str, int],
) -> OperatorText:
    tape, plan, at = schedule.tape, schedule.view.plan, schedule.records[number]
    record = tape.records[at]
    operator = plan.graph.operators[record.operator]
    call = calls[operator.name]
    params = params_lines(operator.name, call, constants)
    touched = [_stored_symbol(tape, *each) for each in record.touched]
    count = len(operator.inputs)
    return OperatorText(
        name=operator.name,
        number=record.number,
        summary=f"{number}: {operator_text(plan.graph, operator)}{', after moves' if record.number else ''}",
        kernel=call.kernel,
        params=[] if record.number else params,
        params_symbol=f"p_{operator.name}" if params else "",
        tensors=[],
        about="",
        inputs=touched[:count],
        inputs_symbol=symbol("in", record.number, operator.name),
        output=touched[count],
        scratch=f"&{touched[-1]}" if len(touched) > count + 1 else "0",
        rows=plan.graph.tensors[operator.inputs[0] if operator.op.accumulates else operator.output].shape[0],
        block_rows=plan.rows_of(operator.name),
        unit=handed.get(operator.name, 0),
        stages=() if record.number else stage_texts(operator.name, call, constants),
        repointed=plan.parameters.in_flash and operator.name in plan.parameters.operators,
    )
