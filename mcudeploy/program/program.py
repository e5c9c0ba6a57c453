"""What the templates print, worked out from a plan: names, tables and records.

No arithmetic is left to a template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.text import count_text
from mcudeploy.ir.opdef import ArrayPointer, ConstantArray, KernelCall, Symbol
from mcudeploy.ir.plan import CPU, Plan
from mcudeploy.layout.arena import ARENA_GRAIN_BYTES
from mcudeploy.layout.solve import base_alignments
from mcudeploy.program.ctext import c_elements, c_float, c_int, c_type
from mcudeploy.program.header import BorderText, MapLine, arena_map, borders_text, entries_of
from mcudeploy.program.kernelfiles import AWAIT, MOVE, ON_UNIT, RUN_CORES, START
from mcudeploy.program.lanes import LaneTables, PartEntry, PartRecord
from mcudeploy.program.tape import ONE_PIECE, Moves, Named, Record, Stored, Tape, handed_over, integer_bits


@dataclass(frozen=True, slots=True)
class ConstantText:
    """An array in flash."""

    name: str
    type: str
    count: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor's record: its C name and its place in the table of offsets."""

    symbol: str
    memory: str
    first_offset: int
    row_bytes: int
    block_rows: int
    shift: int = 0
    """Bytes that it begins behind its offsets: the scratch of a further core, some columns of each row."""

    @property
    def is_whole(self) -> bool:
        """Whether one offset serves all rows."""
        return self.block_rows == ONE_PIECE


@dataclass(frozen=True, slots=True)
class ArenaText:
    """The array in one memory: its bytes, and the attributes of its declaration, with a blank in front.

    `section` is empty in the board's first memory, where the compiler puts it.
    """

    memory: str
    size_bytes: int
    attributes: str
    section: str


@dataclass(frozen=True, slots=True)
class OperatorText:
    """An operator's record. `unit`: the number of the compute unit that runs it, 0 for the first.

    `params`: those that it brings along, as `params_symbol`; none where another record has them. `tensors`:
    what it brings of those that it touches.
    """

    name: str
    number: int
    kernel: str
    params: list[tuple[str, str]]
    params_symbol: str
    tensors: list[TensorText]
    inputs: list[str]
    inputs_symbol: str
    output: str
    scratch: str
    rows: int
    block_rows: int
    unit: int


@dataclass(frozen=True, slots=True)
class MovesText:
    """The record of an engine's transfers between two memories, or within one: the old and the new places,
    and the bytes of each. `engine`: its number among the board's links; -1 for the core.
    """

    name: str
    what: str
    kernel: str
    engine: int
    old: TensorText
    new: TensorText
    count: int
    bytes_lines: list[str]


@dataclass(frozen=True, slots=True)
class WaitsText:
    """The record of the waits for an engine: of each how many transfers may be unfinished behind it."""

    name: str
    kernel: str
    engine: int
    count: int
    pending_lines: list[str]


@dataclass(frozen=True, slots=True)
class LaneText:
    """The tape of a core: its entries, and how many they are."""

    core: int
    count: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class Program:
    """Everything a template may ask for."""

    prefix: str
    constants: list[ConstantText]
    tensors: list[TensorText]
    operators: list[OperatorText]
    part_operators: list[OperatorText]
    lanes: list[LaneText]
    moves: list[MovesText]
    waits: list[WaitsText]
    marked: bool
    kernels: list[str]
    offset_lines: list[tuple[str, list[str]]]
    offset_bits: int
    code_bits: int
    code_lines: list[str]
    block_bits: int
    steps: int
    move_count: int
    peak_step: int
    alignment: int
    arenas: list[ArenaText]
    map_lines: list[MapLine]
    inputs: list[BorderText]
    outputs: list[BorderText]
    streamed: bool
    weights_bytes: int

    @property
    def sources(self) -> list[str]:
        """The files of kernels/ that it needs: its kernels, and what runs the tapes of several cores."""
        return [*self.kernels, *([RUN_CORES] if self.lanes else [])]


def make_program(plan: Plan, calls: Mapping[str, KernelCall], prefix: str, board: Board) -> Program:
    """The program of a plan for a board, whose operators call these kernels."""
    handed = handed_over(plan, board)
    tape = Tape(plan)
    constants = _Constants(prefix)
    records = [_operator_text(tape, record, calls, constants, handed) for record in tape.records]
    kernels = {record.kernel for record in records} | ({ON_UNIT} if handed else set())
    offsets = _OffsetTable(board.offset_unit)
    tensors = [
        offsets.add(
            _stored_text(tape, named, version),
            _stored_symbol(tape, named, version),
            tape.stored(named, version),
        )
        for named, version in tape.stored_as
    ]
    engines = {link.engine: number for number, link in enumerate(board.links)} | {CPU: -1}
    moves = [_moves_text(each, offsets, engines[each.engine]) for each in tape.moves]
    waits = [
        WaitsText(
            each.engine,
            AWAIT,
            engines[each.engine],
            len(each.pending),
            c_elements(np.array(each.pending, np.uint16)),
        )
        for each in tape.waits
    ]
    kernels |= {each.kernel for each in moves} | {each.kernel for each in waits}
    lanes = LaneTables.of(tape, calls)
    by_symbol = {tensor.symbol: tensor for tensor in tensors}
    largest = max(int(tape.codes.max(initial=0)), lanes.largest)
    return Program(
        prefix=prefix,
        constants=constants.texts,
        tensors=tensors,
        operators=records,
        part_operators=_each_once(
            _part_text(it, records[it.base], by_symbol, constants) for it in lanes.records
        ),
        lanes=[_lane_text(core, entries) for core, entries in enumerate(lanes.lanes)],
        moves=moves,
        waits=waits,
        marked=any(any(each.ends) for each in tape.moves),
        kernels=sorted(kernels),
        offset_lines=offsets.lines,
        offset_bits=integer_bits(offsets.largest),
        code_bits=integer_bits(largest),
        code_lines=c_elements(tape.codes),
        block_bits=tape.block_bits,
        steps=len(tape.codes),
        move_count=len(plan.layout.transfers),
        peak_step=entries_of(plan)[plan.estimate.peak_step],
        alignment=board.offset_unit,
        arenas=_arenas(plan, board),
        map_lines=arena_map(plan),
        inputs=borders_text(plan, plan.graph.inputs, "input"),
        outputs=borders_text(plan, plan.graph.outputs, "output"),
        streamed=len(plan.graph.resident_inputs()) < len(plan.graph.inputs),
        weights_bytes=constants.size_bytes,
    )


def _arenas(plan: Plan, board: Board) -> list[ArenaText]:
    """By name: that is how the host numbers them."""
    texts = []
    for memory, alignment in sorted(base_alignments(plan, board).items()):
        further = memory != board.memories[0].name
        attributes = f" MCUD_MEMORY({memory})" if further else ""
        if alignment > ARENA_GRAIN_BYTES:
            attributes += f" MCUD_ALIGNED({alignment})"
        section = f".arena.{memory}" if further else ""
        texts.append(ArenaText(memory, plan.layout.arenas[memory], attributes, section))
    return texts


class _Constants:
    """Arrays in flash; equal arrays are stored once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[tuple[str, bytes], str] = {}
        self.texts: list[ConstantText] = []
        self.size_bytes = 0

    def name_of(self, wanted: str, array: ConstantArray) -> str:
        key = (array.dtype.name, array.tobytes())
        if key not in self._names:
            name = f"{self._prefix}_{wanted}"
            while name in self._names.values():
                name += "_"
            self._names[key] = name
            self.texts.append(ConstantText(name, c_type(array), array.size, c_elements(array)))
            self.size_bytes += array.nbytes
        return self._names[key]


class _OffsetTable:
    """One table with the block offsets of all tensors, in units of the alignment."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._count = 0
        self.largest = 0
        self.lines: list[tuple[str, list[str]]] = []

    def add(self, name: str, symbol: str, stored: Stored) -> TensorText:
        """Takes in the offsets of a record."""
        if any(offset % self._alignment for offset in stored.offsets):
            raise ValueError(f"an offset of {name} is no multiple of {self._alignment}")
        units = np.array([offset // self._alignment for offset in stored.offsets], np.uint32)
        self.lines.append((name, c_elements(units)))
        self.largest = max(self.largest, int(units.max()))
        text = TensorText(symbol, stored.memory, self._count, stored.row_bytes, stored.block_rows)
        self._count += len(stored.offsets)
        return text


def _symbol(kind: str, number: int, name: str) -> str:
    """The C name of the record with this number: only what is before the `_` tells it from others."""
    return f"{kind}{number or ''}_{name}"


def _stored_symbol(tape: Tape, named: Named, version: int) -> str:
    return _symbol("s" if named.is_scratch else "t", tape.number(named, version), named.name)


def _stored_text(tape: Tape, named: Named, version: int) -> str:
    """What a table is of, for a comment."""
    where = f" in {named.memory}" if tape.is_spread(named) else ""
    return f"{named.name}{where}" + (f" after {count_text(version, 'move')}" if version else "")


def _moves_text(moves: Moves, offsets: _OffsetTable, engine: int) -> MovesText:
    source, target = moves.old.memory, moves.new.memory
    name = source if source == target else f"{source}_{target}"
    what = f"in {source}" if source == target else f"from {source} to {target}"
    if moves.engine != CPU:
        name, what = f"{moves.engine}_{name}", f"{what} by {moves.engine}"
    sizes = c_elements(np.array(moves.sizes, np.uint32))
    if any(moves.ends):
        sizes = [
            f"{size}u{' | MCUD_ENDS_SOURCE' if end else ''}"
            for size, end in zip(moves.sizes, moves.ends, strict=True)
        ]
    return MovesText(
        name,
        what,
        MOVE if moves.engine == CPU else START,
        engine,
        offsets.add(f"moved from, {what}", f"move_from_{name}", moves.old),
        offsets.add(f"moved to, {what}", f"move_to_{name}", moves.new),
        len(moves.sizes),
        sizes,
    )


def _operator_text(
    tape: Tape,
    record: Record,
    calls: Mapping[str, KernelCall],
    constants: _Constants,
    handed: Mapping[str, int],
) -> OperatorText:
    plan = tape.plan
    operator = plan.graph.operators[record.operator]
    call = calls[operator.name]
    params = _params_text(operator.name, call, constants)
    touched = [_stored_symbol(tape, *each) for each in record.touched]
    count = len(operator.inputs)
    return OperatorText(
        name=operator.name,
        number=record.number,
        kernel=call.kernel,
        params=[] if record.number else params,
        params_symbol=f"p_{operator.name}" if params else "",
        tensors=[],
        inputs=touched[:count],
        inputs_symbol=_symbol("in", record.number, operator.name),
        output=touched[count],
        scratch=f"&{touched[-1]}" if len(touched) > count + 1 else "0",
        rows=plan.graph.tensors[operator.inputs[0] if operator.op.accumulates else operator.output].shape[0],
        block_rows=plan.block_rows[operator.name],
        unit=handed.get(operator.name, 0),
    )


def _params_text(operator: str, call: KernelCall, constants: _Constants) -> list[tuple[str, str]]:
    """The parameters of a call by name."""
    params: list[tuple[str, str]] = []
    for name, value in call.params.items():
        if value is None:
            text = "0"
        elif isinstance(value, Symbol):
            text = value.name
        elif isinstance(value, ArrayPointer):
            text = f"{constants.name_of(f'{operator}_{name}', value.array)} + {value.first}"
        elif isinstance(value, np.ndarray):
            text = constants.name_of(f"{operator}_{name}", value)
        elif isinstance(value, float):
            text = c_float(value)
        else:
            text = c_int(int(value))
        params.append((name, text))
    return params


def _part_text(
    part: PartRecord, base: OperatorText, tensors: Mapping[str, TensorText], constants: _Constants
) -> OperatorText:
    """The record of parts: that of their step, with what is theirs."""
    mark = f"k{part.core}" + (f"c{part.columns.lo}to{part.columns.hi}" if part.columns else "")
    made: list[TensorText] = []

    def shifted(role: str, symbol: str, shift: int) -> str:
        if not shift:
            return symbol
        own = replace(tensors[symbol], symbol=mark + role + symbol, shift=shift)
        made.extend([own] if own not in made else [])
        return own.symbol

    inputs = [shifted("i", symbol, part.input_shift) for symbol in base.inputs]
    output = shifted("o", base.output, part.output_shift)
    scratch = base.scratch
    if scratch != "0":
        scratch = "&" + shifted("s", scratch[1:], part.scratch_shift)
    params = _params_text(base.name, part.call, constants) if part.call else []
    return replace(
        base,
        params=params,
        params_symbol=f"{mark}p_{base.name}" if params else base.params_symbol,
        tensors=made,
        inputs=inputs,
        inputs_symbol=mark + base.inputs_symbol,
        output=output,
        scratch=scratch,
    )


def _each_once(operators: Iterable[OperatorText]) -> list[OperatorText]:
    """Operators that bring along what none before them has."""
    known: set[str] = set()
    found = []
    for each in operators:
        params = [] if each.params_symbol in known else each.params
        tensors = [tensor for tensor in each.tensors if tensor.symbol not in known]
        known |= {each.params_symbol, *(tensor.symbol for tensor in tensors)}
        found.append(replace(each, params=params, tensors=tensors))
    return found


def _lane_text(core: int, entries: Sequence[PartEntry]) -> LaneText:
    lines = [
        f"{{{it.entry}, {'MCUD_CORE_WAIT' if it.record is None else it.record}, {it.first}, {it.end}}}"
        for it in entries
    ]
    rows = [", ".join(lines[at : at + 4]) for at in range(0, len(lines), 4)]
    return LaneText(core, len(lines), rows)
