"""Operators of a training step that change states in place: weights, biases, and sums of their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mcudeploy.extensions.training.training_counts import bias_update_counts, update_counts
from mcudeploy.extensions.training.training_operators import (
    ONCE,
    kernel_family,
    multiplier_field,
    require_floats,
    require_parameters,
    weight_index,
)
from mcudeploy.extensions.training.training_optimizer import AWAITED, OPTIMIZER, require_optimizer
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import (
    Access,
    AnyIndex,
    Axis,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
    TableIndex,
)
from mcudeploy.ops.common import OFFSET_BYTES, reduced_axis
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.windows import window_fields

_STATE = 2
"""The operand that a weight update overwrites: the weights, or a sum of gradients."""
_VECTOR: Access = (Index(), Index(), Index.of(k=1))
"""A vector with an element for each value of axis "k"."""


@dataclass(frozen=True, slots=True)
class Conv2dWeightUpdate(PlainOperator):
    """Weights of `conv`, in place: weights - rate * (gradient + weight_decay * weights), float32.

    Inputs: the gradient (OH, OW, K) of the convolution's output; its input (H, W, C); the weights in the
    stored order of TrainedConv2d; the optimizer (1, 1, 2) of NextSample. Further inputs are not read: they
    depend on the old weights, so they must be computed before the weights change.
    """

    kind: ClassVar[str] = "Conv2dWeightUpdate"
    named: ClassVar[str] = "weight_update"
    overwritten: ClassVar[tuple[int, ...]] = (_STATE,)

    conv: Conv2d
    weight_decay: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A weight reads itself and all pixels at its tap. Raises ValueError for other shapes."""
        return _weight_loops(self.conv, inputs, Index())

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_f32_update or dwconv2d_f32_update."""
        require_floats(*inputs[:4], output)
        fields = _update_fields(self.conv, inputs) | {"factor": self.weight_decay, "in_place": 0}
        scratch = 2 * inputs[0].shape[0] * OFFSET_BYTES
        return KernelCall(f"{kernel_family(self.conv)}_update", fields, scratch, counts=update_counts(fields))

    def by_rows(self, inputs: tuple[Shape, ...]) -> Conv2dWeightUpdateByRows | None:
        """The operator with the same results that reads its inputs in blocks of rows.

        None if there are no rows to cut, or if its sums need more memory than both whole inputs.
        """
        gradient, x, *_ = inputs
        sums = self.conv.out_channels * prod(self.conv.kernel_shape) * x[2] // self.conv.groups
        if gradient[0] == 1 or sums > prod(gradient) + prod(x):
            return None
        return Conv2dWeightUpdateByRows(self.conv, self.weight_decay)


@dataclass(frozen=True, slots=True)
class Conv2dWeightUpdateByRows(PlainOperator):
    """A Conv2dWeightUpdate in steps: each adds the products of a block of rows of the gradient to sums."""

    kind: ClassVar[str] = "Conv2dWeightUpdateByRows"
    accumulates: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (_STATE,)

    conv: Conv2d
    weight_decay: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Only the last step reads the weights. Raises ValueError for other shapes."""
        return _weight_loops(self.conv, inputs, _at_last(inputs[0][0]))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_f32_update or dwconv2d_f32_update."""
        require_floats(*inputs[:4], output)
        fields = _update_fields(self.conv, inputs) | {"factor": self.weight_decay, "in_place": 0}
        state = 2 * inputs[0].shape[0] * OFFSET_BYTES + output.size_bytes
        counts = update_counts(fields, by_rows=True)
        return KernelCall(f"{kernel_family(self.conv)}_update", fields, state_bytes=state, counts=counts)


@dataclass(frozen=True, slots=True)
class Conv2dGradientSum(PlainOperator):
    """A sum of weight gradients of `conv`, in place: sum + gradient, float32; at the first sample of a batch
    momentum * sum + gradient.

    Inputs as in Conv2dWeightUpdate, with the sum in place of the weights. Each step adds the products of a
    block of rows of the gradient to the sum itself, so no other operator may read the sum.
    """

    kind: ClassVar[str] = "Conv2dGradientSum"
    accumulates: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (_STATE,)

    conv: Conv2d
    momentum: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every step reads the sum. Raises ValueError for other shapes."""
        if len(inputs) != _STATE + 2:
            raise ValueError("another operator reads the sum")
        return _weight_loops(self.conv, inputs, Index())

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_f32_update or dwconv2d_f32_update."""
        require_floats(*inputs, output)
        fields = _update_fields(self.conv, inputs) | {"factor": self.momentum, "in_place": 1}
        scratch = 2 * inputs[0].shape[0] * OFFSET_BYTES
        counts = update_counts(fields, by_rows=True)
        return KernelCall(f"{kernel_family(self.conv)}_update", fields, scratch, counts=counts)


@dataclass(frozen=True, slots=True)
class BiasUpdate(PlainOperator):
    """A bias (1, 1, K), in place: bias - rate * (gradient + weight_decay * bias), float32.

    Its gradient is the sum over pixels of the output's gradient (H, W, K). Inputs: the output's gradient, the
    bias, the optimizer, and inputs that are not read, as in Conv2dWeightUpdate. Each step adds a block of
    rows to sums.
    """

    kind: ClassVar[str] = "BiasUpdate"
    named: ClassVar[str] = "bias_update"
    accumulates: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (1,)

    weight_decay: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """A channel reads itself and all pixels. Raises ValueError for other shapes."""
        return _bias_loops(inputs, _at_last(inputs[0][0]))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `bias_f32_update`."""
        require_floats(*inputs[:3], output)
        fields = _bias_fields(inputs[0]) | {"factor": self.weight_decay, "in_place": 0}
        state = output.size_bytes if inputs[0].shape[0] > 1 else 0
        counts = bias_update_counts(fields, inputs[0].shape[0])
        return KernelCall("bias_f32_update", fields, state_bytes=state, counts=counts)


@dataclass(frozen=True, slots=True)
class BiasGradientSum(PlainOperator):
    """A sum of bias gradients (1, 1, K), in place: sum + gradient; at the first sample of a batch
    momentum * sum + gradient.

    Inputs as in BiasUpdate, with the sum in place of the bias; no other operator may read the sum.
    """

    kind: ClassVar[str] = "BiasGradientSum"
    accumulates: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (1,)

    momentum: float

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every step reads the sum. Raises ValueError for other shapes."""
        if len(inputs) != 3:
            raise ValueError("another operator reads the sum")
        return _bias_loops(inputs, Index())

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `bias_f32_update`."""
        require_floats(*inputs, output)
        fields = _bias_fields(inputs[0]) | {"factor": self.momentum, "in_place": 1}
        return KernelCall("bias_f32_update", fields, counts=bias_update_counts(fields, inputs[0].shape[0]))


def _weight_loops(conv: Conv2d, inputs: tuple[Shape, ...], state_row: AnyIndex) -> LoopNest:
    """The loops of an update of weights or of their sum; `state_row`: the index of the row of that state."""
    gradient, x, weights, optimizer, *others = inputs
    plain = conv.loops((x,))
    require_parameters(conv, x, weights)
    require_optimizer(optimizer)
    if plain.output_shape() != gradient:
        raise ValueError(f"a gradient {gradient} is not of the output for {x}")
    dense = conv.groups == 1
    multiplier = conv.out_channels // conv.groups
    axes = (
        *((Axis("k", multiplier),) if dense else (Axis("g", conv.groups), Axis("k", multiplier))),
        Axis("r", conv.kernel_shape[0]),
        Axis("s", conv.kernel_shape[1]),
        *((Axis("c", x[2]),) if dense else ()),
        reduced_axis("oh", gradient[0]),
        reduced_axis("ow", gradient[1]),
        reduced_axis(ONCE, 1),
    )
    weight = weight_index(conv, x[2])
    (row, col, _), *_ = plain.reads
    of_input = Index.of(c=1) if dense else Index.of(g=1)
    of_output = Index.of(k=1) if dense else Index.of(g=multiplier, k=1)
    reads: tuple[Access, ...] = (
        (Index.of(oh=1), Index.of(ow=1), of_output),
        (row, col, of_input),
        (state_row, Index(), weight),
        OPTIMIZER,
        *(AWAITED for _ in others),
    )
    return LoopNest(axes, reads, (Index(), Index(), weight), multiplies=True)


def _bias_loops(inputs: tuple[Shape, ...], state_row: AnyIndex) -> LoopNest:
    """The loops of an update of a bias or of its sum; `state_row`: the index of the row of that state."""
    gradient, bias, optimizer, *others = inputs
    require_optimizer(optimizer)
    if bias != (1, 1, gradient[2]):
        raise ValueError(f"a bias {bias} does not fit a gradient {gradient}")
    axes = (
        Axis("k", gradient[2]),
        reduced_axis("oh", gradient[0]),
        reduced_axis("ow", gradient[1]),
        reduced_axis(ONCE, 1),
    )
    read: Access = (Index.of(oh=1), Index.of(ow=1), Index.of(k=1))
    reads = (read, (state_row, Index(), Index.of(k=1)), OPTIMIZER, *(AWAITED for _ in others))
    return LoopNest(axes, reads, _VECTOR)


def _at_last(rows: int) -> TableIndex:
    """The index of row 0, which only the last of the `rows` values of axis "oh" reads."""
    return TableIndex("oh", (0,) * rows, (0,) * (rows - 1) + (1,))


def _update_fields(conv: Conv2d, inputs: tuple[Tensor, ...]) -> Params:
    """The parameters of the kernels of weight updates, without `factor` and `in_place`."""
    gradient, x, *_ = inputs
    fields = window_fields(conv.windowing, x, gradient) | {"output_rows": gradient.shape[0]}
    return fields | multiplier_field(conv, x.shape)


def _bias_fields(gradient: Tensor) -> Params:
    """The parameters of the kernel of bias updates, without `factor` and `in_place`."""
    _, cols, channels = gradient.shape
    return {"cols": cols, "channels": channels}
