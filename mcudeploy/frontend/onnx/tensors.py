"""Tensors of a file: loading from external files, checks, and conversion to dense arrays."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.nodes import MAX_RANK, MAX_TENSOR_ELEMENTS
from mcudeploy.frontend.onnx.protos import graphs_of

MAX_FILE_BYTES = 512 * 2**20
"""Limit of the size of a model file, and of a tensor in an external file."""

_ITEM_BITS: dict[int, int] = {
    **dict.fromkeys((TensorProto.INT2, TensorProto.UINT2), 2),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1), 4),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL), 8),
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16, TensorProto.FLOAT16, TensorProto.BFLOAT16), 16),
    **dict.fromkeys((TensorProto.INT32, TensorProto.UINT32, TensorProto.FLOAT), 32),
    **dict.fromkeys((TensorProto.INT64, TensorProto.UINT64, TensorProto.DOUBLE), 64),
}


def tensors_of(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield all tensors of the graph, including those of node attributes and subgraphs."""
    for each in graphs_of(graph):
        yield from each.initializer
        for attribute in (attribute for node in each.node for attribute in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def external_files(graph: GraphProto, path: Path) -> list[Path]:
    """The external files that hold tensors of the model."""
    external = (tensor for tensor in tensors_of(graph) if tensor.data_location == TensorProto.EXTERNAL)
    names = {entry.value for tensor in external for entry in tensor.external_data if entry.key == "location"}
    return [path.resolve().parent / name for name in sorted(names)]


def load_external(tensor: TensorProto, path: Path) -> None:
    """Read the data of an external tensor. Raises ModelError, also for a file outside the model's folder."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return
    name = printable(tensor.name)
    facts = {entry.key: entry.value for entry in tensor.external_data}
    folder = path.resolve().parent
    try:
        file = (folder / facts.get("location", "")).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            raise ModelError(
                f"tensor {name!r} lies in {printable(facts.get('location', ''))!r}, "
                "which is not a file in the model's folder"
            )
        needed = _bytes_of(tensor) or 0
        offset = int(facts.get("offset", "0"))
        length = int(facts.get("length", str(needed)))
        if offset < 0 or length != needed or not 0 < needed <= MAX_FILE_BYTES:
            raise ModelError(f"tensor {name!r}: its external data does not fit its shape {list(tensor.dims)}")
        with file.open("rb") as stream:
            stream.seek(offset)
            content = stream.read(length)
    except (OSError, ValueError, OverflowError) as fault:
        raise ModelError(f"external data of tensor {name!r} cannot be read: {fault}") from fault
    if len(content) != length:
        raise ModelError(f"external data of tensor {name!r} ends early: {len(content)} of {length} bytes")
    tensor.raw_data = content
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def require_consistent(tensor: TensorProto) -> None:
    """Raise ModelError, before any allocation, if a tensor's data does not have the size of its shape."""
    if len(tensor.dims) > MAX_RANK:
        raise ModelError(
            f"tensor {printable(tensor.name)!r} has {len(tensor.dims)} dimensions; the limit is {MAX_RANK}"
        )
    if any(size < 0 for size in tensor.dims):
        raise ModelError(f"tensor {printable(tensor.name)!r} has a negative dimension: {list(tensor.dims)}")
    needed = _bytes_of(tensor)
    if needed is None or not tensor.HasField("raw_data"):
        return
    if needed != len(tensor.raw_data):
        raise ModelError(
            f"tensor {printable(tensor.name)!r} has {len(tensor.raw_data)} bytes of data; its shape "
            f"{list(tensor.dims)} needs {needed}"
        )


def _bytes_of(tensor: TensorProto) -> int | None:
    """The bytes of data that a tensor needs; None if its type has no fixed size."""
    bits = _ITEM_BITS.get(tensor.data_type)
    return None if bits is None else -(-prod(tensor.dims) * bits // 8)


def array_of(tensor: TensorProto) -> NDArray[np.generic]:
    """The array of a tensor. Raises ModelError if its data does not match its type and shape."""
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, RuntimeError) as fault:
        reason = f"tensor {printable(tensor.name)!r} does not hold what its type and shape say: {fault}"
        raise ModelError(reason) from fault


def make_sparse_dense(graph: GraphProto) -> None:
    """Convert sparse initializers and sparse constants to dense tensors.

    Raises ModelError for malformed tensors, and for tensors with too many elements.
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
