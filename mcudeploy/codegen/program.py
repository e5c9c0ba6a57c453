"""Variables of the templates, computed from a plan: names, tables and records.

The templates do no arithmetic.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.codegen.comments import ScheduleRun, operator_text
from mcudeploy.codegen.ctext import c_elements, c_type
from mcudeploy.codegen.header import (
    IoText,
    MapLine,
    StateText,
    arena_map,
    io_texts,
    states_text,
)
from mcudeploy.codegen.kernelfiles import (
    AWAIT,
    MOVE,
    ON_UNIT,
    PARAMETERS,
    RUN_CORES,
    START,
    STREAMS,
    UNIT_SUFFIX,
)
from mcudeploy.codegen.operators import (
    ConstantPool,
    each_once,
    lane_text,
    params_lines,
    part_text,
    pointing_lines,
    stage_texts,
)
from mcudeploy.codegen.program_schedule import ProgramSchedule, ScheduleKind
from mcudeploy.codegen.texts import (
    ArenaText,
    ConstantText,
    HeadText,
    InstancesText,
    LaneText,
    MovesText,
    OperatorText,
    ParameterText,
    StreamsText,
    TableText,
    TensorText,
    TrainingText,
    WaitsText,
    symbol,
)
from mcudeploy.common.text import count_text
from mcudeploy.ir.constant_block import ConstantBlock
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.graph import Hop
from mcudeploy.ir.opdef import UNIT_ALIGNMENT, KernelCall
from mcudeploy.ir.operator_facts import facts_hash, operator_facts
from mcudeploy.ir.plan import Plan, Run, Transfer, Wait
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.solve import base_alignments
from mcudeploy.planner.place.states_first import state_tensors
from mcudeploy.planner.tape.core_tables import PartRecord
from mcudeploy.planner.tape.joined_streams import CONSTANTS, UnitStream
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.planner.tape.tape import (
    ONE_PIECE,
    Moves,
    NamedRange,
    Stored,
    Tape,
    Waits,
    handed_over,
    integer_bits,
)

LOADED = "loaded"
"""The C name, after the prefix, of the table in flash with the constants that are loaded."""


@dataclass(frozen=True, slots=True)
class CallBounds:
    """The most instructions and cycles of a call of the library, over all data; None: no bound is known.

    `compiler` and `core`: the compiler and the cycle model that they hold for.
    """

    run_instructions: int | None
    run_cycles: int | None
    step_instructions: int | None
    step_cycles: int | None
    compiler: str
    core: str

    @property
    def macros(self) -> dict[str, int]:
        """The known bounds, by the name of their macro without the model's prefix."""
        named = {
            "RUN_MAX_INSTRUCTIONS": self.run_instructions,
            "RUN_MAX_CYCLES": self.run_cycles,
            "STEP_MAX_INSTRUCTIONS": self.step_instructions,
            "STEP_MAX_CYCLES": self.step_cycles,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Program:
    """All values that the templates use."""

    prefix: str
    constants: list[ConstantText]
    tensors: list[TensorText]
    operators: list[OperatorText]
    part_operators: list[OperatorText]
    lanes: list[LaneText]
    moves: list[MovesText]
    waits: list[WaitsText]
    streams: StreamsText | None
    """Joined command streams of a unit beside the core, if the schedule has some."""
    marked: bool
    kernels: list[str]
    offset_lines: list[tuple[str, list[str]]]
    offset_bits: int
    code_bits: int
    schedule: list[ScheduleRun]
    block_bits: int
    steps: int
    step_kinds: str
    peak_step: int
    alignment: int
    fuses_products: bool
    pairs_loads: bool
    arenas: list[ArenaText]
    map_lines: list[MapLine]
    inputs: list[IoText]
    outputs: list[IoText]
    states: list[StateText]
    streamed: bool
    cache_line: int
    """Bytes of a line of the data cache through which the application may see inputs and outputs, or 1."""
    weights_bytes: int
    stack_bytes: int | None = None
    """Maximum stack of a header function beyond its caller's, compiled by GCC for the board."""
    bounds: CallBounds | None = None
    hop: Hop | None = None
    external_flash: str = ""
    """The address of a second flash for the constants; "" without one."""
    arena: str = "own"
    arena_owner: str = ""
    """See `arenas.ArenaKind`; the prefix of the C names of arenas outside of the program."""
    arena_begins: Mapping[str, int] = field(default_factory=dict)
    """The bytes from the start of an arena outside of the program to offset 0, by memory; 0 by default."""
    parameters: TableText | None = None
    """The constants that the application may replace; None if no operator is replaceable."""
    head: HeadText | None = None
    """The classifier on the output that learns on the device, if there is one."""
    training: TrainingText | None = None
    """The target, loss and parameters of a training step; None for a model."""
    instances: InstancesText | None = None
    """The instances that an application selects; None for one."""

    def away(self, io: IoText) -> str:
        """Return the C text that moves an input, output or state to the selected instance; "" for one."""
        text = self.instances and self.instances.ios.get(io.name)
        return f" + {text}" if text else ""

    @property
    def has_streams(self) -> bool:
        """Whether a unit beside the core runs command streams of its kernels."""
        return any(kernel.endswith(UNIT_SUFFIX) for kernel in self.kernels)

    @property
    def loads_constants(self) -> bool:
        """Whether transfers load constants from flash."""
        return any(it.old.memory == FLASH for it in self.moves)

    @property
    def states_bytes(self) -> int:
        """The bytes of the states in the arena."""
        return sum(state.io.size_bytes for state in self.states)

    @property
    def initial_bytes(self) -> int:
        """The bytes of the first values of states in flash."""
        return sum(state.io.size_bytes for state in self.states if state.lines)

    @property
    def bases(self) -> dict[str, str]:
        """The C expression of the arena's first byte, by memory."""
        return self._bases(self.arena_begins)

    @property
    def states_bases(self) -> dict[str, str]:
        """The C expression of the byte from which the offsets of states count, by memory."""
        return self._bases({})

    def _bases(self, begins: Mapping[str, int]) -> dict[str, str]:
        patterns = {
            "own": "arena_{memory}.bytes",
            "shared": "{owner}_arena_{memory}.bytes{begin}",
            "extern": "{owner}_arena_{memory}",
            "init": "arenas[{number}].base",
        }
        pattern = patterns[self.arena]
        added = {memory: f" + {begin}" for memory, begin in begins.items() if begin}
        return {FLASH: f"(uint8_t *)(uintptr_t){self.prefix}_{LOADED}"} | {
            it.memory: pattern.format(
                memory=it.memory, owner=self.arena_owner, number=number, begin=added.get(it.memory, "")
            )
            for number, it in enumerate(self.arenas)
        }

    @property
    def states_ends(self) -> dict[str, int]:
        """The bytes of states by memory, up to the first byte of all else, in a plan with states first."""
        ends = {arena.memory: 0 for arena in self.arenas}
        for io in (state.io for state in self.states):
            ends[io.memory] = max(ends[io.memory], io.offset + io.size_bytes)
        return {it.memory: align_up(ends[it.memory], it.alignment) for it in self.arenas}

    def sharing(self, owner: str, begins: Mapping[str, int], shifts: Mapping[str, int]) -> Program:
        """Return the program in the shared arenas of `owner`. By memory, its states begin `shifts` bytes from
        the start of the arena, and offset 0 of all else is at `begins`.
        """

        def moved(io: IoText) -> IoText:
            return replace(io, offset=io.offset + shifts[io.memory])

        def placed(tensors: list[TensorText]) -> list[TensorText]:
            return [replace(it, shift=it.shift + shifts[it.memory]) if it.state else it for it in tensors]

        return replace(
            self,
            arena="shared",
            arena_owner=owner,
            arena_begins=begins,
            tensors=placed(self.tensors),
            part_operators=[replace(it, tensors=placed(it.tensors)) for it in self.part_operators],
            states=[replace(it, io=moved(it.io)) for it in self.states],
        )

    @property
    def continues(self) -> bool:
        """Whether a run continues from states or rows that earlier runs left."""
        return bool(self.states) or self.hop is not None

    @property
    def begins(self) -> bool:
        """Whether the first run sets values in RAM before its first step."""
        return self.continues or (self.parameters is not None and not self.parameters.assignments)

    @property
    def symbol(self) -> str:
        """The C name of the program's `mcud_model`."""
        return f"{self.prefix}_program"

    @property
    def arena_alignment(self) -> int:
        """The least alignment of every arena's address."""
        return max(it.alignment for it in self.arenas)

    @property
    def all_tensors(self) -> list[TensorText]:
        """Every record that states the arena of a tensor."""
        parts = (tensor for part in self.part_operators for tensor in part.tensors)
        arenas = self.streams.arenas if self.streams else ()
        moved = (it for moves in self.moves for it in (moves.old, moves.new))
        return [*self.tensors, *moved, *arenas, *parts]

    @property
    def sources(self) -> list[str]:
        """The sources that the program needs: kernels, the runner of several tapes, that of parameters."""
        return [
            *self.kernels,
            *([RUN_CORES] if self.lanes else []),
            *([PARAMETERS] if self.parameters or self.head else []),
            *([f"mcud_{self.head.kind}"] if self.head else []),
            *(["mcud_statistics"] if self.head and self.head.statistics else []),
        ]

    @property
    def is_infinite(self) -> bool:
        """Whether a parameter is infinite, which needs a macro of math.h."""
        records = (*self.operators, *self.part_operators)
        stages = (stage for record in records for stage in record.stages)
        texts = (*(it.params for it in records), *(it.params for it in stages))
        return any("INFINITY" in line for lines in texts for line in lines)


@dataclass(frozen=True, slots=True)
class _Records:
    """The records that a tape names by number, in this order: steps, moves, waits, parts of steps."""

    steps: list[OperatorText]
    tensors: list[TensorText]
    moves: list[MovesText]
    waits: list[WaitsText]
    streams: StreamsText | None
    parts: list[tuple[OperatorText, PartRecord]]

    @classmethod
    def of(
        cls,
        schedule: ProgramSchedule,
        handed: Mapping[str, int],
        constants: ConstantPool,
        offsets: _OffsetTable,
        engines: Mapping[str, int],
    ) -> _Records:
        """Return the records of a schedule; their arrays are added to the constants and the offsets.

        `handed`: the other units that run operators, by operator; `engines`: the numbers of engines.
        """
        tape = schedule.tape
        steps = [_operator_text(schedule, it, constants, handed) for it in range(len(schedule.records))]
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
        return {it.kernel for it in self.steps} | stages | copies | ({STREAMS} if self.streams else set())

    @property
    def step_tensors(self) -> list[TensorText]:
        """The tensors that steps name."""
        named = {name for it in self.steps for name in (*it.inputs, it.output, it.scratch.removeprefix("&"))}
        return [tensor for tensor in self.tensors if tensor.symbol in named]


def make_program(view: PlanView, prefix: str, board: Board, kind: ScheduleKind = "steps") -> Program:
    """Return the program of a plan for a board."""
    plan, lanes = view.plan, view.lanes
    schedule = ProgramSchedule.of(view, kind)
    handed = handed_over(plan, board)
    constants = ConstantPool(prefix, plan.parameters, _loaded_places(view))
    if plan.layout.constants:
        constants.shared(LOADED, _loaded_table(view), ARENA_GRAIN_BYTES)
    offsets = _OffsetTable(board.offset_unit)
    engines = {link.engine: number for number, link in enumerate(board.links)} | {CPU: -1}
    records = _Records.of(schedule, handed, constants, offsets, engines)
    inputs = [it.on(board) for it in io_texts(view, plan.graph.own_inputs(), "input")]
    outputs = [it.on(board) for it in io_texts(view, plan.graph.own_outputs(), "output")]
    return Program(
        prefix=prefix,
        constants=constants.texts,
        tensors=records.step_tensors,
        operators=records.steps,
        part_operators=each_once(text for text, _ in records.parts),
        lanes=[lane_text(core, entries) for core, entries in enumerate(lanes.lanes)],
        moves=records.moves,
        waits=records.waits,
        streams=records.streams,
        marked=any(any(each.ends) for each in schedule.tape.moves),
        kernels=sorted(records.kernels | ({ON_UNIT} if handed else set())),
        offset_lines=offsets.lines,
        offset_bits=integer_bits(offsets.largest),
        code_bits=integer_bits(max(schedule.largest_code, lanes.largest)),
        schedule=schedule.runs(records.steps),
        block_bits=schedule.tape.block_bits,
        steps=schedule.steps,
        step_kinds=_step_kinds(schedule),
        peak_step=schedule.places[plan.estimate.peak_step],
        alignment=board.offset_unit,
        fuses_products=board.fuses_products,
        pairs_loads=board.pairs_loads,
        arenas=_arenas(plan, board),
        map_lines=arena_map(view, schedule.places),
        inputs=inputs,
        outputs=outputs,
        cache_line=max(board.cache_line_of(it.memory) for it in (*inputs, *outputs)),
        states=states_text(view),
        streamed=len(plan.graph.resident_inputs()) < len(plan.graph.inputs),
        weights_bytes=constants.size_bytes + plan.parameters.size_bytes,
        parameters=_table_text(plan, schedule.calls, records),
        hop=plan.graph.hop,
        external_flash=f"{board.flash.external.origin:#010x}" if board.flash.external else "",
    )


def _loaded_places(view: PlanView) -> dict[tuple[str, str], str]:
    """Return the C expression of the byte at which each array of loaded constants begins in an arena."""
    return {
        (name, parameter): f"arena_{it.place.memory}.bytes + {it.place.offset + offset}"
        for name, it in view.plan.layout.constants.items()
        for parameter, offset in ConstantBlock.of(view.calls[name]).offsets.items()
    }


def _loaded_table(view: PlanView) -> NDArray[np.uint32]:
    """Return the words of all constants that are loaded, each operator's at its home."""
    table = bytearray(max(it.home + it.size_bytes for it in view.plan.layout.constants.values()))
    for name, it in view.plan.layout.constants.items():
        table[it.home : it.home + it.size_bytes] = ConstantBlock.of(view.calls[name]).content(it.size_bytes)
    return np.frombuffer(bytes(table), np.uint32)


def _table_text(plan: Plan, calls: Mapping[str, KernelCall], records: _Records) -> TableText | None:
    """Return the struct of parameters; None if no operator is replaceable."""
    table = plan.parameters
    if not table.parameters:
        return None
    ends = [*(it.offset for it in table.parameters[1:]), table.size_bytes]
    members = [
        ParameterText(
            f"{it.operator}_{it.name}",
            c_type(it.values),
            it.values.size,
            it.offset,
            end - it.end,
            c_elements(it.values),
        )
        for it, end in zip(table.parameters, ends, strict=True)
    ]
    digest = facts_hash(operator_facts(plan.graph, calls, table.operators))
    hash_text = ", ".join(f"0x{byte:02x}" for byte in digest)
    lines: list[str] = []
    if table.in_flash:
        pointed = [(name, f"p_{name}", calls[name]) for name in table.operators]
        others = [(it.name, it.params_symbol, part.call) for it, part in records.parts if part.call]
        pointed += [each for each in others if each[0] in table.operators]
        lines = [line for name, symbol, call in pointed for line in pointing_lines(symbol, name, call)]
    return TableText(
        members, ", ".join(table.operators), table.size_bytes, hash_text, list(dict.fromkeys(lines))
    )


def _step_kinds(schedule: ProgramSchedule) -> str:
    """The numbers of steps that compute, move and wait, as a comment; "" if all compute."""
    if not schedule.view.plan.layout.transfers and schedule.streams is None:
        return ""
    kinds = {UnitStream: "of the unit", Run: "of operators", Transfer: "of moves", Wait: "of waits"}
    counts = Counter(map(type, schedule.items))
    return ", ".join(f"{counts[kind]} {text}" for kind, text in kinds.items() if counts[kind])


def _arenas(plan: Plan, board: Board) -> list[ArenaText]:
    """Return the arenas by name, as the host numbers them. They end with a line of the cache, if any."""
    texts = []
    for memory, alignment in sorted(base_alignments(plan, board).items()):
        further = memory != board.memories[0].name
        attributes = f" MCUD_MEMORY({memory})" if further else ""
        if alignment > ARENA_GRAIN_BYTES:
            attributes += f" MCUD_ALIGNED({alignment})"
        section = f".arena.{memory}" if further else ""
        size = align_up(plan.layout.arenas[memory], lcm(board.io_align, board.cache_line_of(memory)))
        texts.append(ArenaText(memory, size, attributes, section, alignment))
    return texts


class _OffsetTable:
    """One table with the block offsets of all tensors, in units of the alignment."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._count = 0
        self.largest = 0
        self.lines: list[tuple[str, list[str]]] = []

    def tensors_of(self, tape: Tape, stored_as: Sequence[tuple[NamedRange, int]]) -> list[TensorText]:
        """Add the offsets of tensors and scratch of a tape."""
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

    def add(self, name: str, symbol: str, stored: Stored, *, state: str = "") -> TensorText:
        """Add the offsets of a record."""
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


def _moves_text(moves: Moves, offsets: _OffsetTable, engine: int, number: int) -> MovesText:
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


def _streams_text(schedule: ProgramSchedule, offsets: _OffsetTable, constants: ConstantPool) -> StreamsText:
    """Return the record of joined streams; each arena has a tensor of one row at its first byte."""
    streams, arenas = schedule.streams, schedule.view.plan.layout.arenas
    assert streams is not None
    whole = Stored("", (0,), 0, ONE_PIECE)
    words = np.array([word for each in streams.streams for word in each.words], np.uint32)
    return StreamsText(
        summary=f"{schedule.stream_record}: {count_text(len(streams.streams), 'command stream')}",
        constants=constants.shared(CONSTANTS, streams.constants, UNIT_ALIGNMENT),
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
    schedule: ProgramSchedule, number: int, constants: ConstantPool, handed: Mapping[str, int]
) -> OperatorText:
    tape, plan, at = schedule.tape, schedule.view.plan, schedule.records[number]
    record = tape.records[at]
    operator = plan.graph.operators[record.operator]
    call = schedule.calls[operator.name]
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
