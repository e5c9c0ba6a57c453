"""The operators of a quantised file that are computed in float32, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.views import VIEWS
from mcudeploy.frontend.onnx.nodes import Node
from mcudeploy.ir.graph import DType, Operator, Tensor

_WEIGHTS_ALONE = "the file quantises its weights, not its input"
_INPUT = "the file does not quantise its input"
_RESULT = "the file does not quantise its result"
_NO_KERNEL = "the file quantises it; it has no integer kernel"
_CONVERSIONS = ("Cast", "Dequantize")
_BEFORE_QUANTIZER = frozenset({*VIEWS, "Clip", "Relu"})
"""Operators that may lie between a node and the QuantizeLinear of its result."""
_MAX_NAMES = 3
"""Number of operators that a note names."""


def float_causes(
    builder: Builder, operators: Iterable[Operator], tensors: Mapping[str, Tensor]
) -> dict[str, str]:
    """Return, by operator, why it is computed in float32 though the file is quantised."""
    quantized_tensors = any(it.quantization is not None for it in tensors.values())
    if not quantized_tensors and all(it.quantized is None for it in builder.constants.values()):
        return {}
    nodes = {node.label: node for node in builder.model.nodes}
    return {
        operator.name: _cause(builder, [nodes[it] for it in operator.onnx_nodes if it in nodes])
        for operator in operators
        if tensors[operator.output].dtype is DType.FLOAT32
        and operator.inputs
        and not operator.op.is_view
        and operator.op.kind not in _CONVERSIONS
    }


def cause_notes(causes: Mapping[str, str]) -> list[str]:
    """Return a note for each cause, with the first nodes; `causes` has the cause by node label."""
    labels: dict[str, list[str]] = {}
    for label, cause in causes.items():
        labels.setdefault(cause, []).append(printable(label))
    return [
        f"{count_text(len(names), 'operator')} {agree(len(names), 'is', 'are')} computed in float32 "
        f"({', '.join(names[:_MAX_NAMES])}{', ...' if len(names) > _MAX_NAMES else ''}): {cause}"
        for cause, names in labels.items()
    ]


def _cause(builder: Builder, nodes: list[Node]) -> str:
    for node in nodes:
        if node.label in builder.float_causes:
            return builder.float_causes[node.label]
    if not nodes:
        return _INPUT
    activations = [name for name in nodes[0].inputs if name in builder.values]
    if not all(_is_dequantised(builder, name) for name in activations):
        constants = (builder.constants.get(name) for name in nodes[0].inputs)
        weights = any(it is not None and it.quantized is not None for it in constants)
        return _WEIGHTS_ALONE if weights else _INPUT
    return _NO_KERNEL if _is_quantised(builder, nodes[-1].output) else _RESULT


def _is_dequantised(builder: Builder, name: str) -> bool:
    """Whether a DequantizeLinear computes a value, perhaps with views after it."""
    node = builder.producers.get(name)
    while node is not None and node.op in VIEWS:
        node = builder.producers.get(node.inputs[0])
    return node is not None and node.op == "DequantizeLinear"


def _is_quantised(builder: Builder, name: str) -> bool:
    """Whether a QuantizeLinear reads a value, perhaps after views and clips."""
    readers = builder.consumers.get(name, [])
    return any(
        reader.op == "QuantizeLinear"
        or (reader.op in _BEFORE_QUANTIZER and _is_quantised(builder, reader.output))
        for reader in readers
    )
