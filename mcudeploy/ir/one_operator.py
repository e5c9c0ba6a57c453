"""Graphs of one operator, such as those by which the costs of kernels are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import ConstantArray, OperatorDef


def one_operator(
    op: OperatorDef,
    shapes: tuple[Shape, ...],
    dtype: DType,
    constants: Mapping[str, ConstantArray] | None = None,
    *,
    out_type: DType | None = None,
    scale: float = 0.4,
) -> Graph:
    """Return a graph with this operator alone; `out_type`: the type of its output, by default `dtype`."""
    return mixed_operator(op, [(shape, dtype) for shape in shapes], out_type or dtype, constants, scale=scale)


def mixed_operator(
    op: OperatorDef,
    inputs: Sequence[tuple[Shape, DType]],
    out_type: DType,
    constants: Mapping[str, ConstantArray] | None = None,
    *,
    scale: float = 0.4,
) -> Graph:
    """Return a graph with this operator alone: inputs of these types, an output of the type `out_type`."""
    named = [(f"x{place}", shape, dtype, 0.05) for place, (shape, dtype) in enumerate(inputs)]
    output = ("y", op.loops(tuple(shape for shape, _ in inputs)).output_shape(), out_type, scale)
    tensors = {
        name: Tensor(name, shape, dtype, Quantization(own_scale, 3) if dtype is DType.INT8 else None)
        for name, shape, dtype, own_scale in (*named, output)
    }

    def io(name: str) -> GraphIO:
        tensor = tensors[name]
        return GraphIO(name, name, tensor.shape, tensor.dtype, np.arange(tensor.elements, dtype=np.int32))

    names = tuple(name for name, *_ in named)
    operator = Operator("operator", op, names, "y", constants or {})
    return Graph("g", tensors, (operator,), tuple(map(io, names)), (io("y"),))
