"""Contents of a program's header: the arena map, the inputs and the outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.codegen.comments import shape_text
from mcudeploy.codegen.ctext import c_elements, c_float, comment_text
from mcudeploy.common.text import agree, count_text
from mcudeploy.ir.graph import DType, GraphIO, Tensor
from mcudeploy.ir.plan import Plan, Residences, Run, memories_of
from mcudeploy.ops.host_io import is_channels_last, stored_axes
from mcudeploy.planner.place.solve import laid_out_buffers
from mcudeploy.planner.tape.plan_view import PlanView

_C_TYPES = {
    DType.INT8: "int8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.FLOAT32: "float",
}


@dataclass(frozen=True, slots=True)
class MapLine:
    """A line in the arena map of the header: a tensor, or the scratch or the loaded constants of an operator,
    `size_bytes` in a step. `peak_bytes` are alive at the step of the peak.
    """

    name: str
    shape: str
    dtype: str
    blocks: int
    size_bytes: int
    peak_bytes: int
    where: str
    live: str


@dataclass(frozen=True, slots=True)
class IoText:
    """A model input or output in the C interface; `streamed`: the application's feed delivers its rows."""

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
    least_clipped: str
    most_clipped: str
    meaning: str
    layout: str
    shape: tuple[int, ...]
    streamed: bool
    reach: str = ""
    """The DMA controllers that reach it, as a sentence; empty if the board does not state them."""

    @property
    def size_bytes(self) -> int:
        return self.shape[0] * self.row_bytes

    def on(self, board: Board) -> IoText:
        """Return the text with the controllers of a board that reach it."""
        controllers = board.memory(self.memory).dma
        if controllers is None:
            return self
        *others, last = controllers or ("no DMA controller",)
        names = f"{', '.join(others)} and {last}" if others else last
        verb = agree(len(others) + 1, "reaches", "reach")
        return replace(self, reach=f"In {self.memory}, which {names} {verb}.")


@dataclass(frozen=True, slots=True)
class StateText:
    """Lines for the states and their first values; none for zeros."""

    io: IoText
    lines: list[str]


def entries_of(view: PlanView) -> list[int]:
    """The place of each step of the schedule on the tape, where transfers and waits count as well."""
    return [at for at, entry in enumerate(view.entries) if isinstance(entry, Run)] or [0]


def arena_map(view: PlanView, places: Sequence[int]) -> list[MapLine]:
    """A line for each tensor, then for the scratch of each operator; live ranges are in steps of the program.

    `places`: of each step of the schedule.
    """
    plan, tiled, live = view.plan, view.tiled, view.lives
    at_peak = _peak_bytes(view)
    moves = Counter(transfer.tensor for transfer in plan.layout.transfers)
    lines = []
    for name, tensor in plan.graph.tensors.items():
        root, shape, dtype = tiled.flow.roots[name], shape_text(tensor), tensor.dtype.value
        if root != name:
            lines.append(MapLine(name, shape, dtype, 1, tensor.size_bytes, 0, f"view of {root}", ""))
            continue
        residences = plan.layout.blocks[name]
        blocks = slice(tiled.first_block[name], tiled.first_block[name] + len(residences))
        span = _span(places, min(live.first[blocks]), max(live.end[blocks]))
        if moves[name]:
            span += f", {count_text(moves[name], 'move')}"
        where, size = _where(plan, residences), tensor.size_bytes
        lines.append(MapLine(name, shape, dtype, len(residences), size, at_peak[name, False], where, span))
    for name, residences in plan.layout.scratch.items():
        alive = [each.life for block in residences for each in block]
        if alive:
            span = _span(places, min(it.lo for it in alive), max(it.hi for it in alive))
            where, size = _where(plan, residences), sum(view.work[name])
            scratch = f"{name}, scratch"
            lines.append(MapLine(scratch, "", "", len(residences), size, at_peak[name, True], where, span))
    for name, it in plan.layout.constants.items():
        span, where = _span(places, it.place.life.lo, it.place.life.hi), _where(plan, ((it.place,),))
        lines.append(MapLine(f"{name}, loaded constants", "", "", 1, it.size_bytes, 0, where, span))
    return lines


def _where(plan: Plan, residences: Residences) -> str:
    offsets = [each.offset for block in residences for each in block]
    where = str(offsets[0]) if len(set(offsets)) == 1 == len(residences) else f"{min(offsets)}.."
    return f"{', '.join(memories_of(residences))} {where}" if len(plan.layout.arenas) > 1 else where


def _span(places: Sequence[int], first: int, end: int) -> str:
    """A live range of steps of the schedule, in entries of the tape."""
    return f"[{places[first]}, {places[end - 1] + 1})"


def _peak_bytes(view: PlanView) -> Counter[tuple[str, bool]]:
    """The bytes alive at the step of the peak, by tensor, or by operator (True) for scratch. A block made in
    place of another counts once, for the older one.
    """
    plan, tiled = view.plan, view.tiled
    step = plan.estimate.peak_step
    alive: Counter[tuple[str, bool]] = Counter()
    for buffer in laid_out_buffers(tiled, plan.schedule.steps, view.work, plan.layout):
        if step not in buffer.life:
            continue
        if buffer.scratch_of is not None:
            alive[buffer.scratch_of[0], True] += buffer.size_bytes
            continue
        numbers = ((name, tiled.first_block[name] + block) for name, block in buffer.members)
        owner = next(name for name, number in numbers if any(step in life for life in view.lives.of(number)))
        alive[owner, False] += buffer.size_bytes
    return alive


def io_texts(view: PlanView, ios: tuple[GraphIO, ...], kind: str) -> list[IoText]:
    """The inputs or the outputs, which are called `kind`. Raises ValueError for an order without a name."""
    plan, texts, roots = view.plan, [], view.tiled.flow.roots
    fed = {operator.output for operator in plan.graph.operators if not operator.inputs}
    for position, io in enumerate(ios):
        tensor = plan.graph.tensors[io.tensor]
        first = plan.layout.blocks[roots[io.tensor]][0][0]
        quantization = None if io.dtype == "bool" else tensor.quantization
        texts.append(
            IoText(
                name=kind if len(ios) == 1 else f"{kind}_{position}",
                tensor=io.tensor,
                type=_C_TYPES[tensor.dtype],
                count=tensor.elements,
                row_bytes=tensor.row_bytes,
                memory=first.memory,
                offset=first.offset,
                quantized=quantization is not None,
                scale=c_float(quantization.scale) if quantization else "",
                zero_point=quantization.zero_point if quantization else 0,
                least_steps=c_float(-128 - quantization.zero_point) if quantization else "",
                most_steps=c_float(127 - quantization.zero_point) if quantization else "",
                least_clipped=c_float(-128.5 - quantization.zero_point) if quantization else "",
                most_clipped=c_float(127.5 - quantization.zero_point) if quantization else "",
                meaning=f"real = {quantization.scale:.9g} * (q - ({quantization.zero_point}))"
                if quantization
                else "",
                layout=_io_layout(io, tensor),
                shape=tensor.shape,
                streamed=io.tensor in fed,
            )
        )
    return texts


def states_text(view: PlanView) -> list[StateText]:
    """States: tensors that are kept between runs."""
    states = view.plan.graph.states
    ios = io_texts(view, tuple(state.before for state in states), "state")
    if view.plan.graph.hop is not None:
        ios = [replace(it, layout=_rows_layout(it)) for it in ios]
    return [
        StateText(io, c_elements(state.initial.reshape(-1)) if state.initial.any() else [])
        for io, state in zip(ios, states, strict=True)
    ]


def _rows_layout(io: IoText) -> str:
    """Meaning of a state that the ONNX model does not have: "conv_0_kept as [1][20][320], rows that stay"."""
    return f"{io.tensor} as {''.join(f'[{size}]' for size in io.shape)}, rows that stay"


def _io_layout(io: GraphIO, tensor: Tensor) -> str:
    """Meaning of an index: "ONNX x float32 [1,3,32,32] as [32][32][3], channels last"."""
    sizes = ",".join(str(size) for size in io.shape)
    if np.array_equal(io.order, np.arange(io.order.size)):
        order = "in the same order"
    elif is_channels_last(io.shape, io.order):
        order = "channels last"
    else:
        axes = stored_axes(io.shape, io.order)
        if axes is None:
            raise ValueError(f"{io.name!r} is not in an order of the ONNX model's axes")
        order = f"its axes in the order {', '.join(map(str, axes))}"
    offset = {"uint8": ", less 128", "bool": ", 0 or 1", "uint32": ", the bits of a uint32_t"}.get(
        io.dtype, ""
    )
    name = comment_text(io.name)
    return f"ONNX {name} {io.dtype} [{sizes}] as {shape_text(tensor)}, {order}{offset}"
