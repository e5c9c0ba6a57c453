"""A chain of operators as one operator: of the tensors between them, only some rows exist, in scratch.

A call computes the rows that it needs of every stage; rows that two calls need are computed twice. In a
bottleneck (expand by 1x1, filter each channel, project by 1x1) the stages may also run for a group of the
expanded channels at a time: the projection then adds its products to 32-bit sums in scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Axis, AxisKind, Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.fused.fused_kernel import fused_kernel


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The rows of its input that an operator reads for its row r: [stride * r + lo, stride * r + hi)."""

    stride: int
    lo: int
    hi: int

    def after(self, inner: RowWindow) -> RowWindow:
        """Return the rows that the chain of `inner` and this operator reads of the input of `inner`."""
        return RowWindow(
            self.stride * inner.stride,
            self.lo * inner.stride + inner.lo,
            (self.hi - 1) * inner.stride + inner.hi,
        )

    def rows(self, read: Interval, total: int) -> Interval:
        """Return the rows, of `total`, that the rows `read` of the output need."""
        return Interval(self.stride * read.lo + self.lo, self.stride * (read.hi - 1) + self.hi).clip(0, total)


def row_window(nest: LoopNest) -> RowWindow | None:
    """Return the window along the rows of an operator with one input.

    None if its rows have no window of fixed size, or if it needs all rows of its input at once.
    """
    if len(nest.reads) != 1:
        return None
    write, read = nest.write[0], nest.reads[0][0]
    if not isinstance(write, Index) or not isinstance(read, Index) or write.offset:
        return None
    steps = dict(read.steps)
    axes = {axis.name: axis for axis in nest.axes}
    if [step for _, step in write.steps] != [1]:
        return None
    ((along, _),) = write.steps
    if steps.get(along, 0) < 1:
        return None
    first = read.reach(axes, {along: Interval(0, 1)})
    return RowWindow(steps[along], first.lo, first.hi)


@dataclass(frozen=True, slots=True)
class Fused(PlainOperator):
    """The operators `stages`, each of which reads the output of the one before.

    x -> y as the stages compute them one after the other, with the same bits. `between`: the outputs of all
    stages but the last. The constants are those of the stages.
    """

    kind: ClassVar[str] = "Fused"

    stages: tuple[Operator, ...]
    between: tuple[Tensor, ...]

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Rows of the output read a window of rows of the input, all columns and channels.

        Raises ValueError if a stage has no such window.
        """
        shapes = (inputs[0], *(tensor.shape for tensor in self.between))
        nests = [stage.op.loops((shape,)) for stage, shape in zip(self.stages, shapes, strict=True)]
        window = None
        for stage, nest in zip(self.stages, nests, strict=True):
            own = row_window(nest)
            if own is None:
                raise ValueError(f"{stage.name} has no window along its rows")
            window = own if window is None else own.after(window)
        assert window is not None
        rows, cols, channels = nests[-1].output_shape()
        axes = (
            Axis("row", rows),
            Axis("col", cols),
            Axis("ch", channels),
            Axis("r", window.hi - window.lo, AxisKind.REDUCED),
            Axis("s", inputs[0][1], AxisKind.REDUCED),
            Axis("c", inputs[0][2], AxisKind.REDUCED),
        )
        read = Index.of(row=window.stride, r=1, offset=window.lo), Index.of(s=1), Index.of(c=1)
        write = Index.of(row=1), Index.of(col=1), Index.of(ch=1)
        return LoopNest(axes, (read,), write, inner=tuple(nests))

    def windows(self, source: Shape) -> tuple[RowWindow, ...]:
        """Return the window of each stage, for an input of this shape."""
        shapes = (source, *(tensor.shape for tensor in self.between))
        found = (
            row_window(stage.op.loops((shape,))) for stage, shape in zip(self.stages, shapes, strict=True)
        )
        return tuple(window for window in found if window is not None)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """fused_rows, by groups of several sizes. Raises ValueError as the kernels of the stages do."""
        return fused_kernel(self, inputs[0], output)

    def quantization(self, output: Tensor) -> Quantization | None:
        """Return that of the last stage."""
        return self.stages[-1].op.quantization(output)
