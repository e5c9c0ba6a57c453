"""What the templates print, worked out from a plan: names, tables and records.

No arithmetic is left to a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcudeploy.board import Board
from mcudeploy.borders import is_channels_last
from mcudeploy.codegen.ctext import c_elements, c_float, c_int, c_type, comment_text
from mcudeploy.codegen.tape import handed_over, integer_bits, step_codes, stored_offsets
from mcudeploy.graph import Border, DType, Operator, Tensor
from mcudeploy.kernelfiles import ON_UNIT
from mcudeploy.layout.solve import ARENA_GRAIN_BYTES, base_alignments
from mcudeploy.ops.opdef import ConstantArray, KernelCall, Symbol
from mcudeploy.plan import Placement, Plan
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import lives


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

    name: str
    memory: str
    first_offset: int
    row_bytes: int
    block_rows: int


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
class MapLine:
    """A tensor's line in the arena map of the header."""

    name: str
    shape: str
    dtype: str
    blocks: int
    size_bytes: int
    where: str
    live: str


@dataclass(frozen=True, slots=True)
class OperatorText:
    """An operator's record. `unit`: the number of the compute unit that runs it, 0 for the first."""

    name: str
    kernel: str
    params: list[tuple[str, str]]
    inputs: list[str]
    output: str
    has_scratch: bool
    rows: int
    block_rows: int
    unit: int


@dataclass(frozen=True, slots=True)
class BorderText:
    """A model input or output in the C interface."""

    name: str
    tensor: str
    type: str
    count: int
    row_bytes: int
    memory: str
    offset: int
    quantized: bool
    scale: str
    zero_point: int
    least_steps: str
    most_steps: str
    meaning: str
    layout: str


@dataclass(frozen=True, slots=True)
class Program:
    """Everything a template may ask for."""

    prefix: str
    constants: list[ConstantText]
    tensors: list[TensorText]
    scratch: list[TensorText]
    operators: list[OperatorText]
    kernels: list[str]
    offset_lines: list[tuple[str, str]]
    offset_bits: int
    code_bits: int
    code_lines: list[str]
    block_bits: int
    steps: int
    alignment: int
    arenas: list[ArenaText]
    map_lines: list[MapLine]
    inputs: list[BorderText]
    outputs: list[BorderText]
    streamed: bool
    weights_bytes: int


def make_program(plan: Plan, calls: Mapping[str, KernelCall], prefix: str, board: Board) -> Program:
    """The program of a plan for a board, whose operators call these kernels."""
    handed = handed_over(plan, board)
    operators = [operator for operator in plan.graph.operators if not operator.op.is_view]
    constants = _Constants(prefix)
    records = [
        _operator_text(plan, operator, calls[operator.name], constants, handed.get(operator.name, 0))
        for operator in operators
    ]
    kernels = {record.kernel for record in records} | ({ON_UNIT} if handed else set())
    offsets = _OffsetTable(board.offset_unit)
    tensors = [
        offsets.tensor(name, tensor.row_bytes, plan.layout.tensors[name])
        for name, tensor in plan.graph.tensors.items()
    ]
    scratch = [offsets.tensor(name, 0, plan.layout.scratch[name]) for name in plan.layout.scratch]
    block_bits, codes = step_codes(plan)
    return Program(
        prefix=prefix,
        constants=constants.texts,
        tensors=tensors,
        scratch=scratch,
        operators=records,
        kernels=sorted(kernels),
        offset_lines=offsets.lines,
        offset_bits=integer_bits(offsets.largest),
        code_bits=integer_bits(int(codes.max(initial=0))),
        code_lines=c_elements(codes),
        block_bits=block_bits,
        steps=len(plan.schedule.steps),
        alignment=board.offset_unit,
        arenas=_arenas(plan, board),
        map_lines=_arena_map(plan),
        inputs=_borders(plan, plan.graph.inputs, "input"),
        outputs=_borders(plan, plan.graph.outputs, "output"),
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
        self.lines: list[tuple[str, str]] = []

    def tensor(self, name: str, row_bytes: int, placement: Placement) -> TensorText:
        offsets, block_rows = stored_offsets(row_bytes, placement)
        if any(offset % self._alignment for offset in offsets):
            raise ValueError(f"an offset of {name} is no multiple of {self._alignment}")
        units = np.array([offset // self._alignment for offset in offsets], np.uint32)
        self.lines.append((name, ", ".join(c_elements(units))))
        self.largest = max(self.largest, int(units.max()))
        text = TensorText(name, placement.memory, self._count, row_bytes, block_rows)
        self._count += len(offsets)
        return text


def _operator_text(
    plan: Plan, operator: Operator, call: KernelCall, constants: _Constants, unit: int
) -> OperatorText:
    params: list[tuple[str, str]] = []
    for name, value in call.params.items():
        if value is None:
            text = "0"
        elif isinstance(value, Symbol):
            text = value.name
        elif isinstance(value, np.ndarray):
            text = constants.name_of(f"{operator.name}_{name}", value)
        elif isinstance(value, float):
            text = c_float(value)
        else:
            text = c_int(int(value))
        params.append((name, text))
    return OperatorText(
        name=operator.name,
        kernel=call.kernel,
        params=params,
        inputs=list(operator.inputs),
        output=operator.output,
        has_scratch=operator.name in plan.layout.scratch,
        rows=plan.graph.tensors[operator.inputs[0] if operator.op.accumulates else operator.output].shape[0],
        block_rows=plan.block_rows[operator.name],
        unit=unit,
    )


def _arena_map(plan: Plan) -> list[MapLine]:
    tiled = TiledGraph(Flow.of(plan.graph), plan.block_rows)
    found = lives(tiled, plan.schedule.steps)
    lines = []
    for name, tensor in plan.graph.tensors.items():
        root = tiled.flow.roots[name]
        if root != name:
            lines.append(_map_line(tensor, 1, f"view of {root}", ""))
            continue
        offsets = plan.layout.tensors[name].offsets
        blocks = slice(tiled.first_block[name], tiled.first_block[name] + len(offsets))
        where = str(offsets[0]) if len(offsets) == 1 else f"{min(offsets)}.."
        if len(plan.layout.arenas) > 1:
            where = f"{plan.layout.tensors[name].memory} {where}"
        span = f"[{min(found.first[blocks])}, {max(found.end[blocks])})"
        lines.append(_map_line(tensor, len(offsets), where, span))
    return lines


def _map_line(tensor: Tensor, blocks: int, where: str, live: str) -> MapLine:
    return MapLine(tensor.name, _shape(tensor), tensor.dtype.value, blocks, tensor.size_bytes, where, live)


def _shape(tensor: Tensor) -> str:
    return "".join(f"[{size}]" for size in tensor.shape)


def _borders(plan: Plan, borders: tuple[Border, ...], kind: str) -> list[BorderText]:
    texts = []
    for position, border in enumerate(borders):
        tensor = plan.graph.tensors[border.tensor]
        placement = plan.layout.tensors[border.tensor]
        quantization = tensor.quantization
        texts.append(
            BorderText(
                name=kind if len(borders) == 1 else f"{kind}_{position}",
                tensor=border.tensor,
                type="int8_t" if tensor.dtype is DType.INT8 else "float",
                count=tensor.elements,
                row_bytes=tensor.row_bytes,
                memory=placement.memory,
                offset=placement.offsets[0],
                quantized=quantization is not None,
                scale=c_float(quantization.scale) if quantization else "",
                zero_point=quantization.zero_point if quantization else 0,
                least_steps=c_float(-128 - quantization.zero_point) if quantization else "",
                most_steps=c_float(127 - quantization.zero_point) if quantization else "",
                meaning=f"real = {quantization.scale:.9g} * (q - ({quantization.zero_point}))"
                if quantization
                else "",
                layout=_border_layout(border, tensor),
            )
        )
    return texts


def _border_layout(border: Border, tensor: Tensor) -> str:
    """What an index means: "ONNX x float32 [1,3,32,32] as [32][32][3], channels last"."""
    sizes = ",".join(str(size) for size in border.shape)
    if np.array_equal(border.order, np.arange(border.order.size)):
        order = "in the same order"
    elif is_channels_last(border.shape, border.order):
        order = "channels last"
    else:
        raise ValueError(f"{border.name!r} is neither in the order of the ONNX model nor channels last")
    offset = ", less 128" if border.dtype == "uint8" else ""
    name = comment_text(border.name)
    return f"ONNX {name} {border.dtype} [{sizes}] as {_shape(tensor)}, {order}{offset}"
