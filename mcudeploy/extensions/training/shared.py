"""Constants of a file that several trained operators share: a training step would update them separately."""

from __future__ import annotations

from itertools import combinations
from math import prod

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import printable
from mcudeploy.extensions.training.recipe import Trained
from mcudeploy.frontend.onnx.nodes import OnnxModel
from mcudeploy.ir.graph import Graph, Operator


def require_separate_constants(model: OnnxModel, graph: Graph, trained: Trained) -> None:
    """Raise ModelError that names both operators if two trained ones share weights or a bias of the file.

    `graph` is that of `model`.
    """
    sources = _constants_of_nodes(model)
    constants = {
        operator: _trained_constants(operator, trained, model, sources)
        for operator in graph.operators
        if operator.name in trained.operators
    }
    problems = []
    for one, other in combinations(constants, 2):
        for name in sorted(constants[one] & constants[other]):
            label = ", ".join(other.onnx_nodes)
            reason = (
                f"it shares the constant {printable(name)!r} with {', '.join(one.onnx_nodes)}, and training "
                "would change each copy by itself: train fewer layers, or write a constant for each into the "
                "file"
            )
            problems.append(Problem(label, other.op.kind, reason))
    if problems:
        raise ModelError.unsupported(tuple(problems))


def _trained_constants(
    operator: Operator, trained: Trained, model: OnnxModel, sources: dict[str, set[str]]
) -> set[str]:
    """The names of an operator's constants that become trained parameters; without weights only vectors."""
    names: set[str] = set().union(*(sources.get(label, ()) for label in operator.onnx_nodes))
    if operator.name in trained.weights:
        return names
    shapes = {name: _shape(model, name) for name in names}
    return {name for name, shape in shapes.items() if max(shape) == prod(shape)}


def _constants_of_nodes(model: OnnxModel) -> dict[str, set[str]]:
    """The names of the float constants that each node reads, by label, directly or through nodes without
    other inputs. Scalars, as bounds of clips, and values of a BatchNormalization are not parameters.
    """
    reached = {name: _own_source(model, name) for name in model.constants}
    by_label: dict[str, set[str]] = {}
    for node in model.nodes:
        names: set[str] = set().union(*(reached.get(name, set()) for name in node.inputs))
        if not any(node.inputs):
            reached |= {name: _own_source(model, name) for name in node.outputs}
        elif all(name in reached for name in node.inputs if name):
            reached |= dict.fromkeys(node.outputs, names)
        elif node.op != "BatchNormalization":
            by_label.setdefault(node.label, set()).update(names)
    return by_label


def _own_source(model: OnnxModel, name: str) -> set[str]:
    """The constant itself, if it may be a parameter."""
    constant, info = model.constants.get(name), model.infos.get(name)
    dtype = constant.value.dtype.name if constant else info.dtype if info else ""
    return {name} if dtype.startswith("float") and prod(_shape(model, name)) > 1 else set()


def _shape(model: OnnxModel, name: str) -> tuple[int, ...]:
    constant = model.constants.get(name)
    return constant.shape if constant else model.infos[name].shape or ()
