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
    `size_bytes` in a step. `peak_bytes` are alive at the step of the peak, which counts no loaded constants.
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
    """The least and the largest real value of int8, in steps of the scale."""
    least_clipped: str
    most_clipped: str
    """The same half a step further: a value beyond them is clipped, not only rounded."""
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
    """Return the number of the tape's entry for each step of the schedule; [0] without a step.

    The tape has entries for transfers and waits as well.
    """
    return [at for at, entry in enumerate(view.entries) if isinstance(entry, Run)] or [0]


def arena_map(view: PlanView, places: Sequence[int]) -> list[MapLine]:
    """Return a line for each tensor, then for the scratch of each operator, then for its loaded constants.

    `places`: the program's step of each step of the plan's schedule. Live ranges are in the program's steps.
    """
    plan, tiled, live = view.plan, view.tiled, view.lives
    tensors_at_peak, scratch_at_peak = _peak_bytes(view)
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
        peak = tensors_at_peak[name]
        lines.append(MapLine(name, shape, dtype, len(residences), size, peak, where, span))
    for name, residences in plan.layout.scratch.items():
        alive = [each.life for block in residences for each in block]
        if alive:
            span = _span(places, min(it.lo for it in alive), max(it.hi for it in alive))
            where, size = _where(plan, residences), sum(view.work[name])
            scratch = f"{name}, scratch"
            lines.append(MapLine(scratch, "", "", len(residences), size, scratch_at_peak[name], where, span))
    for name, it in plan.layout.constants.items():
        span, where = _span(places, it.place.life.lo, it.place.life.hi), _where(plan, ((it.place,),))
        lines.append(MapLine(f"{name}, loaded constants", "", "", 1, it.size_bytes, 0, where, span))
    return lines


def _where(plan: Plan, residences: Residences) -> str:
    offsets = [each.offset for block in residences for each in block]
    where = str(offsets[0]) if len(set(offsets)) == 1 == len(residences) else f"{min(offsets)}.."
    return f"{', '.join(memories_of(residences))} {where}" if len(plan.layout.arenas) > 1 else where


def _span(places: Sequence[int], first: int, end: int) -> str:
    """Return the live range [first, end) of the plan's steps as a range of the program's steps."""
    return f"[{places[first]}, {places[end - 1] + 1})"


def _peak_bytes(view: PlanView) -> tuple[Counter[str], Counter[str]]:
    """Return the bytes alive at the step of the peak: of tensors, by name, and of scratch, by operator.

    Of two blocks at one place only the older one counts.
    """
    plan, tiled = view.plan, view.tiled
    step = plan.estimate.peak_step
    of_tensors, of_scratch = Counter[str](), Counter[str]()
    for buffer in laid_out_buffers(tiled, plan.schedule.steps, view.work, plan.layout):
        if step not in buffer.life:
            continue
        if buffer.scratch_of is not None:
            of_scratch[buffer.scratch_of[0]] += buffer.size_bytes
            continue
        numbers = ((name, tiled.first_block[name] + block) for name, block in buffer.members)
        owner = next(name for name, number in numbers if any(step in life for life in view.lives.of(number)))
        of_tensors[owner] += buffer.size_bytes
    return of_tensors, of_scratch


def io_texts(view: PlanView, ios: tuple[GraphIO, ...], kind: str) -> list[IoText]:
    """Return the texts of inputs, outputs or states, whose C names begin with `kind`.

    Raises ValueError if the order of an input's elements is not one of its axes.
    """
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
    """Return the texts of the states."""
    states = view.plan.graph.states
    ios = io_texts(view, tuple(state.before for state in states), "state")
    if view.plan.graph.hop is not None:
        ios = [replace(it, layout=_rows_layout(it)) for it in ios]
    return [
        StateText(io, c_elements(state.initial.reshape(-1)) if state.initial.any() else [])
        for io, state in zip(ios, states, strict=True)
    ]


def _rows_layout(io: IoText) -> str:
    """Return the meaning of a state of kept rows: "conv_0_kept as [1][20][320], rows that stay"."""
    return f"{io.tensor} as {''.join(f'[{size}]' for size in io.shape)}, rows that stay"


def _io_layout(io: GraphIO, tensor: Tensor) -> str:
    """Return the meaning of the indices: "ONNX x float32 [1,3,32,32] as [32][32][3], channels last"."""
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
