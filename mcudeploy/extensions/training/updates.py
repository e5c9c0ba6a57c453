"""Updates of parameters along their gradients, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.forward import Forward, parameter_name, window
from mcudeploy.extensions.training.recipe import Recipe
from mcudeploy.extensions.training.training_operators import parameter_axes
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.conv.conv import Conv2d

OPTIMIZER = "optimizer"
"""The name of the state with the learning rate and the number of earlier samples in the batch."""

_LEAST_NORM = 1e-6
"""Added to a norm before a division by it, as in PyTorch."""


@dataclass(frozen=True, slots=True)
class _Gradient:
    """The gradient of a parameter. `update`: the operator that changes the parameter by it; `summing`: the
    operator that adds it to a sum; `inputs`, `attributes`: of both. `perm`: the parameter's stored axes.
    """

    update: str
    summing: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    perm: tuple[int, ...]


@dataclass(slots=True)
class Updates:
    """The updates under construction. `optimizer`: the value that the updates read.

    `next`: the value of each parameter after the step; `sums`: of each sum of gradients that stays.
    """

    forward: Forward
    recipe: Recipe
    optimizer: str
    next: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    _totals: dict[str, str] = field(default_factory=dict)
    """The sum of the gradients after this sample, by parameter."""

    @classmethod
    def of(cls, forward: Forward, recipe: Recipe) -> Updates:
        """Begin the updates, with the state that has the learning rate and counts samples."""
        initial = forward.nodes.reals(np.array([recipe.rate, 0.0]), f"{OPTIMIZER}_initial")
        return cls(forward, recipe, forward.state(OPTIMIZER, initial, (0,)))

    def finish(self) -> str:
        """Add the updates by sums of gradients. Returns the optimizer's next content."""
        nodes, batch = self.forward.nodes, float(self.recipe.batch)
        kind, scale = functions.PARAMETER_STEP, list[str]()
        if self.recipe.clip_norm is not None:
            kind, scale = functions.CLIPPED_STEP, [self._scale(self.recipe.clip_norm)]
        for name, total in self._totals.items():
            parameter = self.forward.parameters[name]
            inputs, shape = [parameter, total, self.optimizer, *scale], nodes.shapes[parameter]
            factors = {"weight_decay": self.recipe.weight_decay, "batch": batch}
            self.next[name] = nodes.add(kind, inputs, shape, f"{name}_next", **factors)
        return nodes.add(functions.NEXT_SAMPLE, [self.optimizer], (2,), f"{OPTIMIZER}_next", batch=batch)

    def _scale(self, most: float) -> str:
        """Return the factor that limits the norm of all mean gradients to `most`, as torch's clip_grad_norm_.
        """
        nodes, shape = self.forward.nodes, (1,)
        squares = [nodes.add(functions.SQUARE_SUM, [total], shape) for total in self._totals.values()]
        whole = squares[0]
        for square in squares[1:]:
            whole = nodes.add("Add", [whole, square], shape)
        norm = nodes.add("Sqrt", [whole], shape)
        if self.recipe.batch > 1:
            norm = nodes.add("Div", [norm, nodes.reals(self.recipe.batch)], shape)
        norm = nodes.add("Add", [norm, nodes.reals(_LEAST_NORM)], shape, "gradient_norm")
        scale = nodes.add("Div", [nodes.reals(most), norm], shape)
        return nodes.add("Min", [scale, nodes.reals(1.0)], shape, "gradient_scale")

    def weights(self, operator: Operator, x: str, gradient: str) -> None:
        """Update the weights of a convolution, if they are trained, by the gradient of its output."""
        op = operator.op
        assert isinstance(op, Conv2d)
        dense = op.groups == 1
        update = functions.WEIGHT_UPDATE if dense else functions.DEPTHWISE_UPDATE
        total = functions.GRADIENT_SUM if dense else functions.DEPTHWISE_SUM
        attributes = {**window(op), "kernel_shape": list(op.kernel_shape)}
        by = _Gradient(update, total, (x, gradient), attributes, parameter_axes(op))
        self._update(parameter_name(operator, "weights"), by)

    def bias(self, operator: Operator, gradient: str) -> None:
        """Update the bias of a convolution, if it is trained, by the gradient of its output."""
        by = _Gradient(functions.BIAS_UPDATE, functions.BIAS_SUM, (gradient,), {}, (0,))
        self._update(parameter_name(operator, "bias"), by)

    def _update(self, name: str, gradient: _Gradient) -> None:
        parameter = self.forward.parameters.get(name)
        if parameter is None:
            return
        nodes, recipe = self.forward.nodes, self.recipe
        shape = nodes.shapes[parameter]
        if not recipe.keeps_sums:
            inputs = [parameter, *gradient.inputs, self.optimizer]
            attributes = {**gradient.attributes, "weight_decay": recipe.weight_decay}
            self.next[name] = nodes.add(gradient.update, inputs, shape, f"{name}_next", **attributes)
            return
        before = sum_name(name, recipe)
        state = self.forward.state(before, nodes.zeros(shape, f"{before}_initial"), gradient.perm)
        inputs = [state, *gradient.inputs, self.optimizer]
        attributes = {**gradient.attributes, "momentum": recipe.momentum}
        total = nodes.add(gradient.summing, inputs, shape, f"{before}_next", **attributes)
        self.sums[before] = self._totals[name] = total


def sum_name(parameter: str, recipe: Recipe) -> str:
    """The name of the sum of a parameter's gradients, or its momentum, as an input of the training step."""
    return f"{parameter}_momentum" if recipe.momentum else f"{parameter}_gradient_sum"
