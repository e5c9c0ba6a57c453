"""Operators that select, write or order elements by indices."""

from __future__ import annotations

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.moves import moved_one
from mcudeploy.frontend.tflite.writer import Writer

_INTEGERS = ("INT32", "INT64")


def gather(writer: Writer, operator: TfliteOperator) -> None:
    """GATHER along an axis, without batch dimensions or with all axes before it."""
    source, axis = writer.input(operator, 0), operator.integer("Axis")
    batch = operator.integer("BatchDims")
    indices = _indices(writer, operator, 1)
    rank = len(source.shape)
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} is outside {rank} dimensions")
    if batch < 0:
        batch += len(writer.input(operator, 1).shape)

    def move(name: str) -> str:
        if batch == 0:
            return writer.node("Gather", [name, indices], axis=axis)
        tuples = writer.part("Unsqueeze", [indices, writer.int64([-1])])
        if writer.input(operator, 1).kind != "INT64":
            tuples = writer.part("Cast", [tuples], to=element_type("int64"))
        return writer.node("GatherND", [name, tuples], batch_dims=batch)

    if batch and batch != axis % rank:
        raise Unsupported(f"{batch} batch dimensions before axis {axis} are not supported")
    moved_one(writer, source, writer.output(operator), move)


def gather_nd(writer: Writer, operator: TfliteOperator) -> None:
    """GATHER_ND: parts at tuples of indices."""
    indices, source, result = _int64(writer, operator, 1), writer.input(operator, 0), writer.output(operator)
    moved_one(writer, source, result, lambda name: writer.node("GatherND", [name, indices]))


def embedding_lookup(writer: Writer, operator: TfliteOperator) -> None:
    """EMBEDDING_LOOKUP: rows of a table, which may be quantised while the result is float."""
    indices, table = _indices(writer, operator, 0), writer.input(operator, 1)
    writer.finish(writer.output(operator), writer.node("Gather", [writer.real(table), indices], axis=0))


def one_hot(writer: Writer, operator: TfliteOperator) -> None:
    """ONE_HOT of a constant depth; for an index outside [0, depth), all elements are `off`."""
    (depth,), result = writer.integers(operator, 1, "the depth"), writer.output(operator)
    indices, axis = writer.input(operator, 0), operator.integer("Axis")
    rank = len(indices.shape) + 1
    along = np.arange(depth).reshape([depth, *([1] * (rank - 1 - axis % rank))])
    name = writer.part("Unsqueeze", [_indices(writer, operator, 0), writer.int64([axis % rank])])
    places = writer.constant(along.astype(indices.dtype))
    hot = writer.node("Equal", [name, places])
    on, off = (writer.input(operator, position) for position in (2, 3))
    if result.kind in _INTEGERS:
        writer.keep(result, writer.part("Where", [hot, writer.raw(on), writer.raw(off)]))
        return
    writer.finish(result, writer.part("Where", [hot, writer.real(on), writer.real(off)]))


def top_k(writer: Writer, operator: TfliteOperator) -> None:
    """TOPK_V2 along the last axis: values and positions; equal values keep their order."""
    source, counts = writer.input(operator, 0), writer.integers(operator, 1, "k")
    result, places = writer.output(operator), writer.output(operator, 1)
    if len(counts) != 1 or not source.shape:
        raise Unsupported("k must be one number")
    name = writer.raw(source) if source.kind in _INTEGERS else writer.real(source)
    values, indices = writer.nodes("TopK", [name, writer.int64(counts)], 2, axis=-1)
    if source.kind in _INTEGERS:
        writer.keep(result, values)
    else:
        writer.finish(result, values)
    _keep_positions(writer, places, indices)


def reverse_sequence(writer: Writer, operator: TfliteOperator) -> None:
    """REVERSE_SEQUENCE: the first elements of each sequence, of constant lengths, in reverse."""
    lengths = writer.int64(writer.integers(operator, 1, "the lengths"))
    time, batch = operator.integer("SeqDim"), operator.integer("BatchDim")
    source = writer.input(operator, 0)
    if {time, batch} != {0, 1}:
        perm = [batch, time, *(at for at in range(len(source.shape)) if at not in (batch, time))]
        back = [int(at) for at in np.argsort(perm)]

        def move(name: str) -> str:
            name = writer.part("Transpose", [name], perm=perm)
            name = writer.node("ReverseSequence", [name, lengths], batch_axis=0, time_axis=1)
            return writer.part("Transpose", [name], perm=back)

    else:

        def move(name: str) -> str:
            return writer.node("ReverseSequence", [name, lengths], batch_axis=batch, time_axis=time)

    moved_one(writer, source, writer.output(operator), move)


def scatter_nd(writer: Writer, operator: TfliteOperator) -> None:
    """SCATTER_ND onto zeros: values of equal indices add up."""
    updates, result = writer.input(operator, 1), writer.output(operator)
    indices = _int64(writer, operator, 0)
    if updates.kind != "FLOAT32":
        raise Unsupported(f"of {updates.kind}; FLOAT32 is supported")
    zeros = writer.constant(np.zeros(result.shape, np.float32))
    onnx_name = writer.node("ScatterND", [zeros, indices, writer.real(updates)], reduction="add")
    writer.finish(result, onnx_name)


def _indices(writer: Writer, operator: TfliteOperator, position: int) -> str:
    tensor = writer.input(operator, position)
    if tensor.kind not in _INTEGERS:
        raise Unsupported(f"indices of {tensor.kind} are not supported; INT32 and INT64 are")
    return writer.raw(tensor)


def _int64(writer: Writer, operator: TfliteOperator, position: int) -> str:
    name = _indices(writer, operator, position)
    if writer.input(operator, position).kind == "INT64":
        return name
    return writer.part("Cast", [name], to=element_type("int64"))


def _keep_positions(writer: Writer, tensor: TfliteTensor, name: str) -> None:
    """Assign int64 positions to a tensor of integers."""
    if tensor.dtype not in ("int32", "int64", "int16"):
        raise Unsupported(f"positions of {tensor.kind} are not supported")
    if tensor.dtype != "int64":
        name = writer.part("Cast", [name], to=element_type(tensor.dtype))
    writer.keep(tensor, name)
