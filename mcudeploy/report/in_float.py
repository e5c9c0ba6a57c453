"""The operators of a quantised model that run in float32: why, and their bytes in flash and RAM."""

from __future__ import annotations

from typing import Any

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.planner.model.model import Model
from mcudeploy.planner.tape.footprint import weights_bytes

JsonObject = dict[str, Any]


def in_float(model: Model) -> list[JsonObject]:
    """Return, for each cause, the operators, their constants and their largest result.

    `least_weights_bytes`: the constants by the kernels that need least. No result of a model that is not
    quantised.
    """
    graph = model.graph
    by_cause: dict[str, list[Operator]] = {}
    for operator in graph.operators:
        if operator.name in graph.float_causes:
            by_cause.setdefault(graph.float_causes[operator.name], []).append(operator)
    return [
        {"cause": cause, "operators": [_named(it) for it in operators]}
        | _weights(model, operators)
        | {"largest_result_bytes": _largest(graph, operators)}
        for cause, operators in by_cause.items()
    ]


def _named(operator: Operator) -> str:
    """The operator by its first node in the file."""
    return operator.onnx_nodes[0] if operator.onnx_nodes else operator.name


def _weights(model: Model, operators: list[Operator]) -> JsonObject:
    names = [operator.name for operator in operators if operator.name in model.calls]
    least = {name: min(model.variants[name], key=lambda call: weights_bytes({"": call})) for name in names}
    return {
        "weights_bytes": weights_bytes({name: model.calls[name] for name in names}),
        "least_weights_bytes": weights_bytes(least),
    }


def _largest(graph: Graph, operators: list[Operator]) -> int:
    return max(graph.tensors[operator.output].size_bytes for operator in operators)
