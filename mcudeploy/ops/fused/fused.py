"""A chain of operators as one operator: of the tensors between them, only some rows exist, in scratch.

A call computes the rows that it needs of every stage, so rows that two calls need are computed twice. In a
*bottleneck* (1x1 expansion, depthwise filter, 1x1 projection) the stages may also run for a group of the
expanded channels at a time: the projection then adds its products to 32-bit sums in scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.ir.graph import Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import Axis, AxisKind, Index, KernelCall, LoopNest, PlainOperator
from mcudeploy.ops.fused.fused_kernel import fused_kernel
from mcudeploy.ops.fused.row_window import RowWindow, row_window

MOST_STAGES = 8
"""The most stages of a chain: MCUD_MOST_STAGES of fused_rows.h."""


def is_stage(graph: Graph, operator: Operator) -> bool:
    """Whether an operator computes rows of its output from a window of rows of its only input."""
    has_rows = len(operator.inputs) == 1 and not operator.op.is_view and not operator.op.accumulates
    return has_rows and row_window(graph.loops(operator)) is not None


def fused_name(stages: Sequence[str]) -> str:
    """Return the name of the operator that fuses stages of these names."""
    return f"{stages[0]}_to_{stages[-1]}"


@dataclass(frozen=True, slots=True)
class Fused(PlainOperator):
    """The operators `stages`, each of which reads the output of the one before.

    x -> y with the same bits as the stages in sequence. `between`: the outputs of all stages but the last.
    The stages have their constants.
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
            of_stage = row_window(nest)
            if of_stage is None:
                raise ValueError(f"{stage.name} has no window along its rows")
            window = of_stage if window is None else of_stage.after(window)
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
        windows = (
            row_window(stage.op.loops((shape,))) for stage, shape in zip(self.stages, shapes, strict=True)
        )
        return tuple(window for window in windows if window is not None)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """fused_rows, by groups of several sizes. Raises ValueError as the kernels of the stages do."""
        tensors = (inputs[0], *self.between, output)
        return fused_kernel(self.stages, tensors, self.windows(inputs[0].shape))

    def quantization(self, output: Tensor) -> Quantization | None:
        """Return the quantisation of the last stage."""
        return self.stages[-1].op.quantization(output)
