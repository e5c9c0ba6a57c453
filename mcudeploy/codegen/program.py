"""Variables of the templates, computed from a plan: names, tables and records.

The templates do no arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import Board
from mcudeploy.codegen.comments import ScheduleRun
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
    ON_UNIT,
    PARAMETERS,
    RUN_CORES,
    UNIT_SUFFIX,
)
from mcudeploy.codegen.operators import (
    ConstantPool,
    each_once,
    lane_text,
    pointing_lines,
)
from mcudeploy.codegen.program_schedule import ProgramSchedule, ScheduleKind
from mcudeploy.codegen.records import OffsetTable, Records
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
)
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.constant_block import ConstantBlock
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.graph import Hop
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.operator_facts import facts_hash, operator_facts
from mcudeploy.ir.plan import Plan, Run, Transfer, Wait
from mcudeploy.ops.move.constant_pieces import STREAM
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.solve import base_alignments
from mcudeploy.planner.tape.joined_streams import UnitStream
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.planner.tape.tape import (
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


_MOST_CALLS = 8
"""Steps whose calls take less flash than the loop that runs a schedule, and the schedule."""


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
    marks_ends: bool
    """Whether sizes of moves have the mark MCUD_ENDS_SOURCE."""
    kernels: list[str]
    offset_lines: list[tuple[str, list[str]]]
    offset_bits: int
    code_bits: int
    schedule: list[ScheduleRun]
    calls: list[int]
    """Numbers of the operators of a short schedule, each whole, in its order: it needs no loop. Else none."""
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
    """See `arenas.ArenaKind`."""
    arena_owner: str = ""
    """The prefix of the C names of arenas outside of the program."""
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

    def to_instance(self, io: IoText) -> str:
        """Return " + " and the bytes, in C, from an input, output or state to that of the selected instance.

        Empty if the program has one instance, or all share it.
        """
        distance = self.instances and self.instances.ios.get(io.name)
        return f" + {distance}" if distance else ""

    @property
    def has_streams(self) -> bool:
        """Whether a unit beside the core runs command streams of its kernels."""
        return any(kernel.endswith(UNIT_SUFFIX) for kernel in self.kernels)

    @property
    def loads_constants(self) -> bool:
        """Whether transfers load constants from flash."""
        return STREAM in self.kernels or any(it.old.memory == FLASH for it in self.moves)

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
    def sets_values(self) -> bool:
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
        """The C sources that the program needs: kernels, and files for cores, parameters and a head."""
        return [
            *self.kernels,
            *([RUN_CORES] if self.lanes else []),
            *([PARAMETERS] if self.parameters or self.head else []),
            *([f"mcud_{self.head.kind}"] if self.head else []),
            *(["mcud_statistics"] if self.head and self.head.statistics else []),
        ]

    @property
    def holds_infinity(self) -> bool:
        """Whether a parameter is infinite, which needs a macro of math.h."""
        records = (*self.operators, *self.part_operators)
        stages = (stage for record in records for stage in record.stages)
        texts = (*(it.params for it in records), *(it.params for it in stages))
        return any("INFINITY" in line for lines in texts for line in lines)


def make_program(view: PlanView, prefix: str, board: Board, kind: ScheduleKind = "steps") -> Program:
    """Return the program of a plan for a board."""
    plan, lanes = view.plan, view.lanes
    schedule = ProgramSchedule.of(view, kind)
    handed = handed_over(plan, board)
    constants = ConstantPool(prefix, plan.parameters, _loaded_places(view))
    if len(plan.layout.constants) > len(view.piece_loads):
        constants.stored(LOADED, _loaded_table(view), ARENA_GRAIN_BYTES)
    offsets = OffsetTable(board.offset_unit)
    engines = {link.engine: number for number, link in enumerate(board.links)} | {CPU: -1}
    records = Records.of(schedule, handed, constants, offsets, engines)
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
        marks_ends=any(any(each.ends) for each in schedule.tape.moves),
        kernels=sorted(records.kernels | ({ON_UNIT} if handed else set())),
        offset_lines=offsets.lines,
        offset_bits=integer_bits(offsets.largest),
        code_bits=integer_bits(max(schedule.largest_code, lanes.largest)),
        schedule=schedule.runs(records.steps),
        calls=[] if records.parts or handed else _whole_calls(schedule, records.steps),
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
        if it.pieces is None
        for parameter, offset in ConstantBlock.of(view.calls[name]).offsets.items()
    } | {
        key: place
        for name, pieces in view.piece_loads.items()
        for key, place in pieces.places(name, view.plan.layout.constants[name]).items()
    }


def _loaded_table(view: PlanView) -> NDArray[np.uint32]:
    """Return the words of all constants that are loaded whole; `home` is the place of an operator's."""
    whole = {name: it for name, it in view.plan.layout.constants.items() if it.pieces is None}
    table = bytearray(max(it.home + it.size_bytes for it in whole.values()))
    for name, it in whole.items():
        table[it.home : it.home + it.size_bytes] = ConstantBlock.of(view.calls[name]).content(it.size_bytes)
    return np.frombuffer(bytes(table), np.uint32)


def _table_text(plan: Plan, calls: Mapping[str, KernelCall], records: Records) -> TableText | None:
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


def _whole_calls(schedule: ProgramSchedule, records: Sequence[OperatorText]) -> list[int]:
    """Return the record's number of each step if steps are few, and all compute an operator as a whole."""
    tape = schedule.tape
    is_plain = schedule.streams is None and not tape.moves and not tape.waits
    if not is_plain or schedule.steps > _MOST_CALLS or tape.block_bits:
        return []
    codes = [int(code) for code in tape.codes]
    return codes if all(records[it].block_rows == BlockRows(records[it].rows) for it in codes) else []


def _step_kinds(schedule: ProgramSchedule) -> str:
    """Return the numbers of steps that compute, move and wait, for a comment; "" if all compute."""
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
