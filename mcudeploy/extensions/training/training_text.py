"""Texts of the library of a training step: its target, its loss, and the layer of each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.header import IoText, StateText
from mcudeploy.codegen.texts import TrainingText
from mcudeploy.common.progress import Progress
from mcudeploy.execution.parts import BuildRequest, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.ir.graph import Graph, GraphIO


@dataclass(frozen=True, slots=True)
class StepNames(LibraryPart):
    """Names in a training step, which its library explains: its input `target`, its output `loss`, its state
    `optimizer`, and the nodes of the user's model.

    `nodes`: by parameter, or sum of its gradients, the nodes of its layer. `has_classes`: the target has a
    probability for each class.
    """

    target: str
    loss: str
    optimizer: str
    has_classes: bool
    nodes: Mapping[str, tuple[str, ...]]

    samples: ClassVar[int | None] = 2
    """The second one begins with changed parameters; more could diverge."""

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return the model of a training step with these texts. Raises what `training_text` raises."""
        program = built.program
        ios = StepIo(program.inputs, program.outputs, program.states)
        text = training_text(built.deployment.plan.graph, ios, self)
        return replace(built, program=replace(program, training=text))


@dataclass(frozen=True, slots=True)
class StepIo:
    """The inputs, outputs and states of a step in the C interface."""

    inputs: Sequence[IoText]
    outputs: Sequence[IoText]
    states: Sequence[StateText]


def training_text(graph: Graph, ios: StepIo, names: StepNames) -> TrainingText:
    """Return the texts of a step's graph. Raises KeyError if it lacks the target, the loss or a parameter."""
    inputs = _c_names(graph.own_inputs(), ios.inputs)
    outputs = _c_names(graph.own_outputs(), ios.outputs)
    loss = outputs.pop(names.loss)
    (prediction,) = outputs.values()
    states = {state.before.name: text.io.name for state, text in zip(graph.states, ios.states, strict=True)}
    optimizer = states.pop(names.optimizer)
    layers = {text: ", ".join(map(comment_text, names.nodes[name])) for name, text in states.items()}
    return TrainingText(inputs[names.target], loss, prediction, optimizer, names.has_classes, layers)


def _c_names(ends: Sequence[GraphIO], texts: Sequence[IoText]) -> dict[str, str]:
    """The C names of inputs or outputs, by their names in ONNX."""
    return {end.name: text.name for end, text in zip(ends, texts, strict=True)}
