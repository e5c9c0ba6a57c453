"""Updates of parameters along their gradients, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcudeploy.frontend.onnx import training_functions as functions
from mcudeploy.ir.graph import Operator
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.training import parameter_axes
from mcudeploy.training.forward import Forward, parameter_name, window
from mcudeploy.training.recipe import Recipe


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
    """The updates under construction. `next`: by parameter, its value after the step; `momenta`: by momentum,
    likewise.
    """

    forward: Forward
    recipe: Recipe
    next: dict[str, str] = field(default_factory=dict)
    momenta: dict[str, str] = field(default_factory=dict)

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
        move = {"decay": recipe.decay, "step": -recipe.rate}
        if not recipe.momentum:
            inputs = [parameter, *gradient.inputs]
            self.next[name] = nodes.add(
                gradient.update, inputs, shape, f"{name}_next", **gradient.attributes, **move
            )
            return
        before = momentum_name(name)
        momentum = self.forward.state(before, nodes.zeros(shape, f"{before}_initial"), gradient.perm)
        inputs = [momentum, *gradient.inputs]
        total = nodes.add(
            gradient.total, inputs, shape, f"{before}_next", **gradient.attributes, decay=recipe.momentum
        )
        self.momenta[before] = total
        self.next[name] = nodes.add(
            functions.PARAMETER_STEP, [parameter, total], shape, f"{name}_next", **move
        )


def momentum_name(parameter: str) -> str:
    """The name of a parameter's momentum as an input of the training step."""
    return f"{parameter}_momentum"
