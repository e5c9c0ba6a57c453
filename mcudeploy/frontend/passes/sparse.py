"""Conversion of sparse tensors of a file to dense ones."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.onnx.names import printable
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS
from mcudeploy.frontend.onnx.tensors import array_of, require_consistent


def write_out(graph: GraphProto) -> None:
    """Convert sparse initializers and sparse constants to dense tensors.

    Raises ModelError for malformed tensors, and for tensors too large for any microcontroller.
    """
    graph.initializer.extend(_dense(sparse) for sparse in graph.sparse_initializer)
    del graph.sparse_initializer[:]
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "sparse_value":
                tensor = _dense(attribute.sparse_tensor)
                attribute.CopyFrom(AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor))


def _dense(sparse: SparseTensorProto) -> TensorProto:
    name, shape = sparse.values.name, tuple(sparse.dims)
    if any(size < 0 for size in shape) or prod(shape) > MAX_TENSOR_ELEMENTS:
        raise ModelError(
            f"sparse tensor {printable(name)!r} has the shape {list(shape)}; the limit is "
            f"{MAX_TENSOR_ELEMENTS} elements"
        )
    for part in (sparse.values, sparse.indices):
        if part.data_location == TensorProto.EXTERNAL:
            raise ModelError(f"sparse tensor {printable(name)!r} lies beside the model: save it inside")
        require_consistent(part)
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    try:
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
        if places.size and (places.min() < 0 or places.max() >= prod(shape)):
            raise ValueError("an index is outside the shape")
        dense = np.zeros(prod(shape), values.dtype)
        dense[places] = values
    except (ValueError, TypeError, IndexError) as fault:
        raise ModelError(f"sparse tensor {printable(name)!r} is malformed: {fault}") from fault
    return numpy_helper.from_array(dense.reshape(shape), name)
