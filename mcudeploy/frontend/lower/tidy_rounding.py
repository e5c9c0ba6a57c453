"""The choice of the rounding of int8 results, for the whole graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.ir.graph import DType, Graph, Operator, Shape
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import AveragePool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.requantize import Rounding, quantization_of, requantized_twice
from mcudeploy.ops.scalar.elementwise import Binary

_MOVES = frozenset((
    "DepthToSpace", "MaxPool", "OverlapAdd", "Pad", "Queue", "RealFft", "Reshape", "Slice",
    "StreamedInput", "Take", "Transpose",
))  # fmt: skip
"""Kinds of operators that copy int8 values, or read none."""
_TABLES = ("ELU", "EXP", "GELU", "LOG", "LOGISTIC", "QUANTIZE", "RSQRT", "TANH")
"""Operators of .tflite files whose tables are those of TFLite."""


def rounded(graph: Graph, rounding: Rounding | None, by_default: Rounding) -> Graph:
    """Return the graph with operators that have the given rounding, or the default if all support it.

    Raises ModelError naming the operators that lack the given rounding.
    """
    operators = [operator for operator in graph.operators if _rounds(graph, operator)]
    if (rounding or by_default) == "once" or not operators:
        return graph
    replacements = {operator.name: _twice(graph, operator) for operator in operators}
    lacking = [operator for operator in operators if replacements[operator.name] is None]
    if lacking and rounding is not None:
        why = "it does not round as TFLite does: leave out --rounding tflite"
        raise ModelError.unsupported(
            tuple(Problem(it.onnx_nodes[0] if it.onnx_nodes else it.name, it.op.kind, why) for it in lacking)
        )
    if lacking:
        kinds = ", ".join(dict.fromkeys(operator.op.kind for operator in lacking))
        note = f"int8 results are rounded once, not twice as in TFLite, because of {kinds}"
        return replace(graph, notes=(*graph.notes, note))
    return replace(graph, operators=tuple(replacements.get(it.name) or it for it in graph.operators))


def _rounds(graph: Graph, operator: Operator) -> bool:
    """Whether an operator of a quantised network rounds a result in its own way.

    All roundings convert graph inputs and outputs alike.
    """
    if operator.op.kind in _MOVES or all(tensor.dtype is not DType.INT8 for tensor in graph.tensors.values()):
        return False
    inputs, outputs = ({io.tensor for io in ios} for ios in (graph.inputs, graph.outputs))
    if operator.op.kind in ("Quantize", "Dequantize"):
        return operator.inputs[0] not in inputs and operator.output not in outputs
    integers = (DType.INT16, DType.INT32)
    return not any(graph.tensors[name].dtype in integers for name in (*operator.inputs, operator.output))


def _twice(graph: Graph, operator: Operator) -> Operator | None:
    """The operator with TFLite's rounding; None if it has none."""
    output = graph.tensors[operator.output]
    if output.dtype is not DType.INT8:
        return None
    match operator.op:
        case Conv2d() | Reduce(function="mean") | Binary(function="add" | "sub" | "mul"):
            return replace(operator, op=replace(operator.op, rounding="tflite"))
        case AveragePool(ties="even") as pool:
            axes = _whole_axes(pool, graph.input_tensors(operator)[0].shape)
            return replace(operator, op=Reduce(axes, rounding="tflite")) if axes else None
        case AveragePool():
            return operator
        case Softmax() as softmax:
            op = softmax.like_tflite(output)
            return replace(operator, op=op) if op else None
    if operator.op.kind in ("Concat", "ConcatChannels"):
        alike = all(it.quantization == output.quantization for it in graph.input_tensors(operator))
        return operator if alike else None
    return _table(graph, operator) if operator.op.kind == "Lut" else None


def _whole_axes(pool: AveragePool, source: Shape) -> tuple[int, ...]:
    """The axes over which a pool takes the mean, if its windows are whole axes; else an empty tuple."""
    axes = tuple(axis for axis in (0, 1) if pool.kernel_shape[axis] == source[axis] > 1)
    unpooled = all(pool.kernel_shape[axis] == 1 == pool.stride[axis] for axis in (0, 1) if axis not in axes)
    return axes if unpooled and not any(pool.pads) else ()


def _table(graph: Graph, operator: Operator) -> Operator | None:
    """The Lut with TFLite's table for a change of scale, or with its own if that is another function.

    None if the file's operator is not one whose tables equal TFLite's.
    """
    kinds = {name.split(" ")[1] for name in operator.onnx_nodes if " " in name}
    if not kinds or not kinds.issubset(_TABLES):
        return None
    (source,), output = graph.input_tensors(operator), graph.tensors[operator.output]
    table = requantized_twice(quantization_of(source), quantization_of(output)).astype(np.int32)
    if np.abs(operator.constants["table"] - table).max() > 1:  # more than a change of scale
        return operator
    return replace(operator, constants={"table": table.astype(np.int8)})
