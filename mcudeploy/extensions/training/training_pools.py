"""Operators of a training step: gradients of pools, and the tap numbers that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.extensions.training.training_counts import pool_gradient_counts
from mcudeploy.extensions.training.training_operators import reaching, require_floats
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ELEMENTWISE, OFFSET_BYTES, reduced_axis, spatial_axes, within
from mcudeploy.ops.conv.windows import sliding
from mcudeploy.ops.pool.pool import AveragePool, MaxPool, window_fields
from mcudeploy.ops.pool.pool_counts import int16_counts

MOST_TAPS = 256
"""Taps of a window that a byte can number."""


@dataclass(frozen=True, slots=True)
class MaxPoolTaps(PlainOperator):
    """The tap, numbered in row-major order, of the first largest x in each window of `pool`, float32 -> int8.

    The gradient needs only this byte for each result, not the four bytes of each x. The byte is a uint8.
    """

    kind: ClassVar[str] = "MaxPoolTaps"
    named: ClassVar[str] = "max_pool_taps"

    pool: MaxPool

    def __post_init__(self) -> None:
        _require_numbers(self.pool)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of the pool."""
        return self.pool.loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `maxpool_f32_taps`. Raises ValueError for a result of another type than int8."""
        require_floats(*inputs)
        _require_bytes(output)
        fields = window_fields(self.pool, inputs[0])
        scratch = self.pool.kernel_shape[0] * OFFSET_BYTES
        return KernelCall("maxpool_f32_taps", fields, scratch, counts=int16_counts(fields))


@dataclass(frozen=True, slots=True)
class MaxPoolGradient(PlainOperator):
    """The gradient of the input (H, W, C) of `pool` from the gradient of its output and its MaxPoolTaps.

    A value of the output's gradient goes to the tap that was the largest. Both inputs are (OH, OW, C).
    """

    kind: ClassVar[str] = "MaxPoolGradient"
    named: ClassVar[str] = "max_pool_gradient"

    pool: MaxPool
    input_shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        _require_numbers(self.pool)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An input row reads the output rows whose windows reach it. Raises ValueError for other shapes."""
        return _gradient_loops(self.pool, self.input_shape, inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `maxpool_f32_gradient`. Raises ValueError for taps of another type than int8."""
        gradient, taps = inputs
        require_floats(gradient, output)
        _require_bytes(taps)
        fields = window_fields(self.pool, output) | {"output_rows": gradient.shape[0]}
        return KernelCall("maxpool_f32_gradient", fields, counts=pool_gradient_counts(fields))


@dataclass(frozen=True, slots=True)
class AveragePoolGradient(PlainOperator):
    """The gradient of the input (H, W, C) of `pool` from that of its output (OH, OW, C), times `factor`.

    `factor` is 1 / n if every window counts n values. Otherwise it is 1, and an operator before this one
    multiplies the output's gradient by the factor of each window.
    """

    kind: ClassVar[str] = "AveragePoolGradient"
    named: ClassVar[str] = "average_pool_gradient"

    pool: AveragePool
    input_shape: tuple[int, int, int]
    factor: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """An input row reads the output rows whose windows reach it. Raises ValueError for other shapes."""
        return _gradient_loops(self.pool, self.input_shape, inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `avgpool_f32_gradient`."""
        (gradient,) = inputs
        require_floats(gradient, output)
        rows, cols, channels = output.shape
        dims: Params = {
            "input_rows": rows,
            "input_cols": cols,
            "input_channels": channels,
            "output_cols": gradient.shape[1],
            "output_channels": channels,
        }
        pool = self.pool
        window = sliding(pool.kernel_shape, pool.stride, pool.dilation, pool.pads)
        fields = within("dims", dims) | window | {"output_rows": gradient.shape[0]}
        params = fields | {"factor": self.factor}
        return KernelCall("avgpool_f32_gradient", params, counts=pool_gradient_counts(fields))


def _gradient_loops(
    pool: MaxPool | AveragePool, input_shape: tuple[int, int, int], inputs: tuple[Shape, ...]
) -> LoopNest:
    """The loops over input values and the windows that reach them; `inputs` have the shape of the output."""
    output = pool.loops((input_shape,)).output_shape()
    for shape in inputs:
        if shape != output:
            raise ValueError(f"{shape} is not the shape of the output for {input_shape}")
    rows, cols, _ = input_shape
    taps = [-(-size // step) for size, step in zip(pool.kernel_shape, pool.stride, strict=True)]
    axes = (*spatial_axes(input_shape), reduced_axis("r", taps[0]), reduced_axis("s", taps[1]))
    read = (
        reaching(pool, 0, "row", rows, output[0]),
        reaching(pool, 1, "col", cols, output[1]),
        Index.of(ch=1),
    )
    return LoopNest(axes, (read,) * len(inputs), ELEMENTWISE)


def _require_numbers(pool: MaxPool) -> None:
    """Raise ValueError for windows with more taps than a byte can number."""
    rows, cols = pool.kernel_shape
    if rows * cols > MOST_TAPS:
        raise ValueError(f"a window of {rows} x {cols} has more than {MOST_TAPS} taps")


def _require_bytes(tensor: Tensor) -> None:
    if tensor.dtype != "int8":
        raise ValueError("numbers of taps are stored as int8")
