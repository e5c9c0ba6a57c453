"""Updates of parameters along their gradients, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.training import parameter_axes
from mcudeploy.training.forward import Forward, parameter_name, window
from mcudeploy.training.recipe import Recipe

SCHEDULE = "schedule"
"""The name of the state of the learning rate, and of the number of earlier samples in the batch."""


@dataclass(frozen=True, slots=True)
class _Gradient:
    """The gradient of a parameter: the operators that update the parameter by it, and that add it to a sum;
    their inputs and attributes; and the stored order of the parameter's axes.
    """

    update: str
    total: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    perm: tuple[int, ...]


@dataclass(slots=True)
class Updates:
    """The updates under construction. `next`: by parameter, its value after the step; `sums`: likewise of the
    sums of gradients that stay between steps; `schedule`: the value that the updates read.
    """

    forward: Forward
    recipe: Recipe
    schedule: str
    next: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, forward: Forward, recipe: Recipe) -> Updates:
        """Begin the updates, with the state that has the learning rate and counts samples."""
        initial = forward.nodes.reals(np.array([recipe.rate, 0.0]), f"{SCHEDULE}_initial")
        return cls(forward, recipe, forward.state(SCHEDULE, initial, (0,)))

    def next_sample(self) -> str:
        """Add the next content of the schedule."""
        batch = float(self.recipe.batch)
        return self.forward.nodes.add(
            functions.NEXT_SAMPLE, [self.schedule], (2,), f"{SCHEDULE}_next", batch=batch
        )

    def weights(self, operator: Operator, x: str, gradient: str) -> None:
        """Update the weights of a convolution, if they are trained, by the gradient of its output."""
        op = operator.op
        assert isinstance(op, Conv2d)
        dense = op.groups == 1
        update = functions.WEIGHT_UPDATE if dense else functions.DEPTHWISE_UPDATE
        total = functions.GRADIENT_SUM if dense else functions.DEPTHWISE_SUM
        attributes = {**window(op), "kernel_shape": list(op.kernel_shape)}
        of = _Gradient(update, total, (x, gradient), attributes, parameter_axes(op))
        self._update(parameter_name(operator, "weights"), of)

    def bias(self, operator: Operator, gradient: str) -> None:
        """Update the bias of a convolution, if it is trained, by the gradient of its output."""
        of = _Gradient(functions.BIAS_UPDATE, functions.BIAS_SUM, (gradient,), {}, (0,))
        self._update(parameter_name(operator, "bias"), of)

    def _update(self, name: str, gradient: _Gradient) -> None:
        parameter = self.forward.parameters.get(name)
        if parameter is None:
            return
        nodes, recipe = self.forward.nodes, self.recipe
        shape = nodes.shapes[parameter]
        if not recipe.keeps_sums:
            inputs = [parameter, *gradient.inputs, self.schedule]
            attributes = {**gradient.attributes, "weight_decay": recipe.weight_decay}
            self.next[name] = nodes.add(gradient.update, inputs, shape, f"{name}_next", **attributes)
            return
        before = sum_name(name, recipe)
        held = self.forward.state(before, nodes.zeros(shape, f"{before}_initial"), gradient.perm)
        inputs = [held, *gradient.inputs, self.schedule]
        attributes = {**gradient.attributes, "momentum": recipe.momentum}
        total = nodes.add(gradient.total, inputs, shape, f"{before}_next", **attributes)
        self.sums[before] = total
        self.next[name] = nodes.add(
            functions.PARAMETER_STEP,
            [parameter, total, self.schedule],
            shape,
            f"{name}_next",
            weight_decay=recipe.weight_decay,
            batch=float(recipe.batch),
        )


def sum_name(parameter: str, recipe: Recipe) -> str:
    """The name of the sum of a parameter's gradients, or its momentum, as an input of the training step."""
    return f"{parameter}_momentum" if recipe.momentum else f"{parameter}_gradient_sum"
