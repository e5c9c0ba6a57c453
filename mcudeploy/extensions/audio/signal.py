"""Operators on the samples of a signal: windows, gain, energy, overlapping frames, and states of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Axis, CountsOf, Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, WIDE_INTEGERS, ElementwiseOperator, reduced_axis, spatial_axes

ROW, CHANNEL = Index.of(row=1), Index.of(ch=1)
VECTOR = (ROW, Index(), CHANNEL)
"""Element (row, 0, ch) of an input for element (row, 0, ch) of the output."""
WHOLE_ROW = (ROW, Index(), Index.of(at=1))
"""All elements of an input row."""


def vector_axes(channels: int) -> tuple[Axis, ...]:
    """The axes of an output of one row and one column."""
    return Axis("row", 1), Axis("ch", channels)


def require_types(name: str, tensors: tuple[Tensor, ...], *types: DType) -> None:
    """Raise ValueError unless the tensors have these types."""
    dtypes = [tensor.dtype.value for tensor in tensors]
    if dtypes != [it.value for it in types]:
        raise ValueError(f"{name} takes and makes {', '.join(types)}, not {', '.join(dtypes)}")


def require_bits(most: int, **bits: int) -> None:
    """Raise ValueError unless all numbers of bits are from 0 to `most`."""
    for name, count in bits.items():
        if not 0 <= count <= most:
            raise ValueError(f"{name} is {count}; 0 to {most} bits are possible")


def by_element(elements: int) -> CountsOf:
    """Counts of a call that computes all elements of one row."""
    return lambda _: {"calls": 1, "elements": elements}


@dataclass(frozen=True, slots=True)
class SignalWindow(ElementwiseOperator):
    """x (rows, 1, count) int16 times constants["weights"] [count] int16 / 2^shift, saturated."""

    kind: ClassVar[str] = "SignalWindow"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    shift: int

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `signal_window`."""
        require_types(self.kind, (*inputs, output), DType.INT16, DType.INT16)
        require_bits(31, shift=self.shift)
        weights, count = operator.constants["weights"], output.shape[2]
        if weights.shape != (count,) or output.shape[1] != 1:
            raise ValueError(f"{weights.size} weights do not fit rows {output.shape[1:]}")
        return KernelCall("signal_window", {"weights": weights, "count": count, "shift": self.shift})


@dataclass(frozen=True, slots=True)
class SignalHeadroom(PlainOperator):
    """x (1, 1, count) int16 -> (1, 1, 1) int32: the bits by which all x can be shifted left without overflow.
    """

    kind: ClassVar[str] = "SignalHeadroom"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The result reads all samples."""
        ((rows, cols, count),) = inputs
        if (rows, cols) != (1, 1):
            raise ValueError(f"{inputs[0]} is not a vector")
        return LoopNest((*vector_axes(1), reduced_axis("at", count)), (WHOLE_ROW,), VECTOR)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `signal_headroom`."""
        require_types(self.kind, (*inputs, output), DType.INT16, DType.INT32)
        count = inputs[0].elements
        return KernelCall("signal_headroom", {"count": count}, counts=by_element(count))


@dataclass(frozen=True, slots=True)
class SignalShift(PlainOperator):
    """x (1, 1, count) int16 and a number of bits (1, 1, 1) int32 -> x * 2^bits, int16."""

    kind: ClassVar[str] = "SignalShift"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every element reads its sample and the bits."""
        x, bits = inputs
        if x[:2] != (1, 1) or bits != (1, 1, 1):
            raise ValueError(f"expected a vector and a scalar, found {x} and {bits}")
        return LoopNest(vector_axes(x[2]), (VECTOR, (ROW, Index(), Index())), VECTOR)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `signal_shift`."""
        require_types(self.kind, (*inputs, output), DType.INT16, DType.INT32, DType.INT16)
        count = output.elements
        return KernelCall("signal_shift", {"count": count}, counts=by_element(count))


@dataclass(frozen=True, slots=True)
class SignalEnergy(PlainOperator):
    """x (1, 1, 2 * points) int16 -> (1, 1, points) unsigned: the energies of points `first` to `end` - 1.

    The energies of other points are 0.
    """

    kind: ClassVar[str] = "SignalEnergy"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    first: int
    end: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every energy reads a real and an imaginary part."""
        ((rows, cols, parts),) = inputs
        if (rows, cols) != (1, 1) or parts % 2 or not 0 <= self.first <= self.end <= parts // 2:
            raise ValueError(f"{inputs[0]} has no points from {self.first} to {self.end}")
        axes = (*vector_axes(parts // 2), reduced_axis("at", 2))
        return LoopNest(axes, ((ROW, Index(), Index.of(ch=2, at=1)),), VECTOR)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `signal_energy`."""
        require_types(self.kind, (*inputs, output), DType.INT16, DType.INT32)
        points = output.elements
        params = {"points": points, "first": self.first, "end": self.end}
        return KernelCall("signal_energy", params, counts=by_element(points))


@dataclass(frozen=True, slots=True)
class OverlapAdd(PlainOperator):
    """x (1, frames, size) and a state (1, 1, size) -> (1, frames, step): the sums of overlapping frames.

    The state holds the sums that later frames complete; no other operator reads it.
    """

    kind: ClassVar[str] = "OverlapAdd"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    step: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A value reads its frame, the frames before it, and the state."""
        x, state = inputs
        rows, frames, size = x
        if rows != 1 or state != (1, 1, size) or not 1 <= self.step <= size:
            raise ValueError(f"frames {x}, a state {state} and a step of {self.step} do not fit")
        axes = *spatial_axes((1, frames, self.step)), reduced_axis("frame", frames), reduced_axis("at", size)
        frame, place = Index.of(frame=1), Index.of(at=1)
        return LoopNest(axes, ((ROW, frame, place), (ROW, Index(), place)), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """overlap_add_s16 or overlap_add_f32."""
        dtype = output.dtype
        require_types(self.kind, inputs, dtype, dtype)
        suffix = {DType.INT16: "s16", DType.FLOAT32: "f32"}.get(dtype)
        if suffix is None:
            raise ValueError(f"frames of {dtype} are not added; int16 and float32 are")
        _, frames, size = inputs[0].shape
        counts = {
            "calls": 1,
            "frames": frames,
            "elements": frames * size,
            "moves": frames * (size - self.step),
        }
        params = {"frames": frames, "size": size, "step": self.step}
        return KernelCall(f"overlap_add_{suffix}", params, counts=lambda _: dict(counts))


@dataclass(frozen=True, slots=True)
class RunCount(PlainOperator):
    """A state (1, 1, 1) int32 that counts runs -> (1, 1, 2) int8: whether this run is due, and whether it is
    the first run. Run number `first`, counted from 0, is due, and every `period` runs after it.
    """

    kind: ClassVar[str] = "RunCount"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    first: int
    period: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Both flags read the state."""
        if inputs != ((1, 1, 1),) or self.first < 0 or self.period < 1:
            raise ValueError(f"{inputs} is not a count of runs: {self.first} first, then every {self.period}")
        return LoopNest(vector_axes(2), ((ROW, Index(), Index()),), VECTOR)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `run_count`."""
        require_types(self.kind, (*inputs, output), DType.INT32, DType.INT8)
        params = {"first": self.first, "period": self.period}
        return KernelCall("run_count", params, counts=lambda _: {"calls": 1})


@dataclass(frozen=True, slots=True)
class SignalStack(PlainOperator):
    """x (1, 1, channels), a state (1, frames, channels) and the flags of RunCount -> the next state.

    Frames move by one, and x is the last frame; in the first run x fills all frames. The result takes the
    memory of the state.
    """

    kind: ClassVar[str] = "SignalStack"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (1,)
    """The state, whose next content is the output."""

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A frame comes from the state, one frame further, or from x."""
        x, state, flags = inputs
        if x != (1, 1, state[2]) or state[0] != 1 or flags != (1, 1, 2):
            raise ValueError(f"a row {x} and flags {flags} do not fit frames {state}")
        axes = *spatial_axes(state), reduced_axis("flag", 2)
        reads = (
            (ROW, Index(), CHANNEL),
            (ROW, Index.of(1, col=1), CHANNEL),
            (ROW, Index(), Index.of(flag=1)),
        )
        return LoopNest(axes, reads, ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `signal_stack`."""
        require_types(self.kind, (*inputs, output), DType.INT16, DType.INT16, DType.INT8, DType.INT16)
        _, frames, channels = output.shape
        counts = {"calls": 1, "frames": frames, "elements": frames * channels}
        params = {"frames": frames, "frame_bytes": inputs[0].size_bytes}
        return KernelCall("signal_stack", params, counts=lambda _: dict(counts))
