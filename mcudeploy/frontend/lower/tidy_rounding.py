"""The rounding of int8 results, for the whole graph."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.ir.graph import DType, Graph, Operator
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.requantize import Rounding

_EXACT = frozenset(
    (
        "AveragePool",
        "Dequantize",
        "Gather",
        "GatherRows",
        "Lut",
        "MaxPool",
        "Pad",
        "Quantize",
        "Queue",
        "Reshape",
        "Slice",
        "StreamedInput",
        "Take",
        "Transpose",
    )
)
"""Kinds of operators on int8 whose results are those of TFLite: moves, tables, pools."""


def rounded(graph: Graph, rounding: Rounding | None, by_default: Rounding) -> Graph:
    """Return the graph with convolutions that round so; the default applies if all operators can do so.

    Raises ModelError naming the operators that cannot.
    """
    if (rounding or by_default) == "once":
        return graph
    lacking = [operator for operator in graph.operators if not _has(graph, operator)]
    if lacking and rounding is not None:
        why = "it does not round as TFLite does: leave out --rounding tflite"
        raise ModelError.unsupported(
            tuple(Problem(it.onnx_nodes[0] if it.onnx_nodes else it.name, it.op.kind, why) for it in lacking)
        )
    if lacking:
        kinds = ", ".join(dict.fromkeys(operator.op.kind for operator in lacking))
        note = f"int8 results are rounded once, not twice as in TFLite, because of {kinds}"
        return replace(graph, notes=(*graph.notes, note))
    return replace(graph, operators=tuple(_twice(graph, operator) for operator in graph.operators))


def _twice(graph: Graph, operator: Operator) -> Operator:
    if not isinstance(operator.op, Conv2d) or graph.tensors[operator.output].dtype is not DType.INT8:
        return operator
    return replace(operator, op=replace(operator.op, rounding="tflite"))


def _has(graph: Graph, operator: Operator) -> bool:
    """Whether an operator can round as TFLite does, or has nothing to round."""
    op, made = operator.op, graph.tensors[operator.output]
    if made.dtype is not DType.INT8 or op.kind in _EXACT:
        return True
    if op.kind in ("Concat", "ConcatChannels"):
        return all(it.quantization == made.quantization for it in graph.input_tensors(operator))
    return isinstance(op, Conv2d)
