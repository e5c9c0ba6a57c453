"""Operators at the end of a training step: steps of parameters, the norm of gradients, the optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mcudeploy.extensions.training.training_operators import ONCE, require_floats
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Access, Index, KernelCall, LoopNest, Params, PlainOperator, TableIndex
from mcudeploy.ops.common import ELEMENTWISE, reduced_axis, spatial_axes

AWAITED: Access = (TableIndex(ONCE, (0,), (0,)),) * 3
"""The access of an operand that is not read; it only has to be computed before the last step."""
_OPTIMIZER_SHAPE = (1, 1, 2)
OPTIMIZER: Access = (Index(), Index(), TableIndex(ONCE, (0,), (2,)))
"""The access of the optimizer: the learning rate, and the number of earlier samples in the batch."""


@dataclass(frozen=True, slots=True)
class ParameterStep(PlainOperator):
    """A parameter (1, 1, N), in place, which changes after the last sample of a batch, float32:
    parameter - rate * (sum / batch + weight_decay * parameter).

    Inputs: the parameter, the sum of its gradients (1, 1, N), the optimizer, if `clipped` a factor of the sum
    (1, 1, 1), and further inputs that are not read, as in Conv2dWeightUpdate.
    """

    kind: ClassVar[str] = "ParameterStep"
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    weight_decay: float
    batch: int = 1
    clipped: bool = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place. Raises ValueError for unequal shapes."""
        parameter, total, optimizer, *others = inputs
        if parameter != total:
            raise ValueError(f"a sum {total} is not of a parameter {parameter}")
        require_optimizer(optimizer)
        axes = (*spatial_axes(parameter), reduced_axis(ONCE, 1))
        if self.clipped and others[:1] != [(1, 1, 1)]:
            raise ValueError("the factor of a sum is one value")
        reads = [ELEMENTWISE, ELEMENTWISE, OPTIMIZER, *(AWAITED for _ in others)]
        if self.clipped:
            reads[3] = (Index(), Index(), Index())
        return LoopNest(axes, tuple(reads), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `parameter_f32_step`."""
        require_floats(*inputs[: 3 + self.clipped], output)
        size: Params = {"row_elements": output.shape[1] * output.shape[2]}
        factors: Params = {"weight_decay": self.weight_decay, "batch": float(self.batch)}
        return KernelCall("parameter_f32_step", size | factors | {"is_clipped": int(self.clipped)})


@dataclass(frozen=True, slots=True)
class SquareSum(PlainOperator):
    """The sum of the squares (1, 1, 1) of a vector (1, 1, N), float32."""

    kind: ClassVar[str] = "SquareSum"

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """All elements are read. Raises ValueError for a shape that is not a vector."""
        ((rows, cols, elements),) = inputs
        if (rows, cols) != (1, 1):
            raise ValueError(f"{inputs[0]} is not a vector")
        axes = (*spatial_axes((1, 1, 1)), reduced_axis("n", elements))
        return LoopNest(axes, ((Index(), Index(), Index.of(n=1)),), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `square_sum_f32`."""
        require_floats(*inputs, output)
        return KernelCall("square_sum_f32", {"row_elements": inputs[0].shape[2]})


@dataclass(frozen=True, slots=True)
class NextSample(PlainOperator):
    """The optimizer (1, 1, 2), in place, for the next sample: the learning rate, and the number of earlier
    samples in the batch, which starts again after `batch` samples.

    Further inputs are not read, as in Conv2dWeightUpdate.
    """

    kind: ClassVar[str] = "NextSample"
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    batch: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Both elements are read. Raises ValueError for another shape."""
        optimizer, *others = inputs
        require_optimizer(optimizer)
        axes = (*spatial_axes(optimizer), reduced_axis(ONCE, 1))
        return LoopNest(axes, (ELEMENTWISE, *(AWAITED for _ in others)), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `next_sample_f32`."""
        require_floats(inputs[0], output)
        return KernelCall("next_sample_f32", {"batch": float(self.batch)})


def require_optimizer(optimizer: Shape) -> None:
    """Raise ValueError for an optimizer of another shape."""
    if optimizer != _OPTIMIZER_SHAPE:
        raise ValueError(f"an optimizer has the shape {_OPTIMIZER_SHAPE}, not {optimizer}")
