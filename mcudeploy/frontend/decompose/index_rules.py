"""Rules for elements that indices select or mark: the indices become numbers of the rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type


def _strides(shape: Sequence[int]) -> list[int]:
    """Distance of consecutive elements along each axis, in storage order."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _along_axis(make: Maker, indices: str, shape: Sequence[int]) -> str:
    """Convert indices along the node's axis of a value of `shape` to positions in the flat value."""
    index_shape, axis = make.sizes(indices), make.integer("axis")
    if len(index_shape) != len(shape) or not -len(shape) <= axis < len(shape):
        raise Unsupported(f"indices {list(index_shape)} along axis {axis} do not fit {list(shape)}")
    axis %= len(shape)
    steps = _strides(shape)
    base = np.zeros([1] * len(shape), np.int64)
    for place, (size, step) in enumerate(zip(index_shape, steps, strict=True)):
        along = [size if other == place else 1 for other in range(len(shape))]
        base = base + (np.arange(size).reshape(along) * step if place != axis else 0)
    places = make.add("Mod", as_int64(make, indices), make.int64(shape[axis]))
    if steps[axis] != 1:
        places = make.add("Mul", places, make.int64(steps[axis]))
    return make.add("Add", places, make.int64(base)) if base.any() else places


def as_int64(make: Maker, indices: str) -> str:
    """Convert numbers to int64."""
    return indices if make.dtype(indices) == "int64" else make.add("Cast", indices, to=TensorProto.INT64)


def _from_tuples(make: Maker, indices: str, sizes: Sequence[int], offsets: NDArray[np.int64]) -> str:
    """Convert index tuples [..., k] for k axes of these sizes to element numbers [count], plus `offsets`."""
    index_shape = make.sizes(indices)
    if index_shape[-1] != len(sizes):
        raise Unsupported(f"indices {list(index_shape)} do not fit {len(sizes)} axes")
    count = prod(index_shape[:-1])
    table = make.reshaped(as_int64(make, indices), (count, len(sizes)))
    total = ""
    for place, (size, step) in enumerate(zip(sizes, _strides(sizes), strict=True)):
        column = make.add("Gather", table, make.int64(place), axis=1)
        column = make.add("Mod", column, make.int64(size))
        if step != 1:
            column = make.add("Mul", column, make.int64(step))
        total = make.add("Add", total, column) if total else column
    return make.add("Add", total, make.int64(offsets)) if offsets.any() else total


def gather_elements(make: Maker) -> None:
    """Select elements by computed indices along an axis, as elements of the flat value."""
    x, indices = make.inputs
    if make.is_constant(indices):
        return
    shape = make.sizes(x)
    places = _along_axis(make, indices, shape)
    make.add("Gather", make.reshaped(x, [prod(shape)]), places, out=make.outputs[0])


def gather_nd(make: Maker) -> None:
    """Select parts of a value by computed tuples of indices, as rows of a matrix."""
    x, indices = make.inputs
    if make.is_constant(indices):
        return
    shape, index_shape, batch = make.sizes(x), make.sizes(indices), make.integer("batch_dims")
    if index_shape[:batch] != shape[:batch]:
        raise Unsupported(f"{batch} batch dimensions of {list(index_shape)} and {list(shape)} differ")
    sizes, rest = shape[batch : batch + index_shape[-1]], shape[batch + index_shape[-1] :]
    outer, tuples_each = prod(index_shape[:batch]), prod(index_shape[batch:-1])
    offsets = np.repeat(np.arange(outer) * prod(sizes), tuples_each)
    places = _from_tuples(make, indices, sizes, offsets)
    table = make.reshaped(x, (outer * prod(sizes), prod(rest)))
    rows = make.add("Gather", table, places)
    make.reshaped(rows, (*index_shape[:-1], *rest), out=make.outputs[0])


def scatter_elements(make: Maker) -> None:
    """Write elements at indices along an axis, as rows of one element."""
    data, indices, updates = make.inputs
    shape = make.sizes(data)
    _scattered(make, (data, _along_axis(make, indices, shape), updates), shape, 1)


def scatter_nd(make: Maker) -> None:
    """Write parts of a value at tuples of indices, as rows of a matrix."""
    data, indices, updates = make.inputs
    shape, depth = make.sizes(data), make.sizes(indices)[-1]
    if depth == 1:
        places = as_int64(make, indices)
    else:
        places = _from_tuples(make, indices, shape[:depth], np.zeros(1, np.int64))
    _scattered(make, (data, places, updates), shape, prod(shape[depth:]))


def _scattered(make: Maker, operands: tuple[str, str, str], shape: Sequence[int], width: int) -> None:
    """Emit a ScatterND of rows of a matrix, the form that is lowered; `operands`: data, row numbers, updates.

    The lowering takes constant row numbers and constant zero data. Other constants become activations.
    """
    data, places, updates = operands
    count, rows, kind = prod(make.sizes(updates)) // width, prod(shape) // width, make.dtype(data)
    known_data, known_updates = make.known(data), make.known(updates)
    is_zero = known_data is not None and not known_data.any()
    row_numbers = make.reshaped(places, (count, 1))
    computed = make.reshaped(updates if known_updates is None else data, [-1])
    if known_updates is not None and known_data is not None:
        computed = make.add("Cast", make.reshaped(places, [-1]), to=element_type(kind))
    if known_updates is not None:
        updates = as_activation(make, updates, computed)
    if known_data is not None and not is_zero:
        data = as_activation(make, data, computed)
    matrix = make.constant(np.zeros((rows, width)), kind) if is_zero else make.reshaped(data, (rows, width))
    reduction = make.attributes.get("reduction", b"none")
    attributes = {} if reduction == b"none" else {"reduction": reduction}
    new_rows = make.reshaped(updates, (count, width))
    scattered = make.add("ScatterND", matrix, row_numbers, new_rows, **attributes)
    make.reshaped(scattered, shape, out=make.outputs[0])


def as_activation(make: Maker, constant: str, source: str) -> str:
    """Turn a constant into an activation: the constant choice of a Where whose other operand is `source`."""
    return make.add("Where", make.constant(False, np.bool_), make.slice(source, [0], [1]), constant)


def max_unpool(make: Maker) -> None:
    """Write elements into a zero image at the positions of MaxPool's maxima."""
    x, indices = make.inputs[:2]
    shape, out_shape, kernel = make.sizes(x), make.sizes(make.outputs[0]), make.attributes["kernel_shape"]
    rank = len(kernel)
    strides, pads = make.attributes.get("strides", (1,) * rank), make.attributes.get("pads", (0,) * 2 * rank)
    sizes = (
        (size - 1) * stride - pads[axis] - pads[axis + rank] + taps
        for axis, (size, stride, taps) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    )
    image_shape = (*shape[:2], *sizes)
    if out_shape != image_shape:
        raise Unsupported(
            f"output_shape {list(out_shape)} is not the {list(image_shape)} that its kernel gives: "
            "then ONNX and ONNX Runtime differ in the meaning of the indices"
        )
    image = make.constant(np.zeros(out_shape), np.float32)
    _scattered(make, (image, indices, x), out_shape, 1)


def one_hot(make: Maker) -> None:
    """Replace OneHot by a comparison of each position with the index."""
    indices, depths, values = make.inputs
    shape, depth = make.sizes(indices), make.known(depths)
    levels, kind = make.known(values), make.dtype(values)
    axis = make.integer("axis", -1) % (len(shape) + 1)
    count = make.sizes(make.outputs[0])[axis] if depth is None else int(depth.reshape(-1)[0])
    column = make.reshaped(as_int64(make, indices), (*shape[:axis], 1, *shape[axis:]))
    from_end = make.add("Add", column, make.int64(count))
    negative = make.add("Less", column, make.int64(0))
    places = make.add("Where", negative, from_end, column)
    along = np.arange(count).reshape([count, *(1 for _ in shape[axis:])])
    hot = make.add("Equal", places, make.int64(along))
    to = element_type(kind)
    if levels is not None and levels.tolist() == [0, 1]:
        make.add("Cast", hot, out=make.outputs[0], to=to)
        return
    off, on = (
        make.add("Gather", values, make.int64([place])) if levels is None
        else make.constant(levels[place], kind)
        for place in (0, 1)
    )  # fmt: skip
    make.add("Where", hot, on, off, out=make.outputs[0])


def compress(make: Maker) -> None:
    """Select the elements or parts that a constant condition marks."""
    x, condition = make.inputs
    chosen = make.constant_of(condition, "the condition")
    axis = make.attributes.get("axis")
    if axis is None:
        x, axis = make.reshaped(x, [-1]), 0
    wanted = make.int64(np.flatnonzero(chosen))
    make.add("Gather", x, wanted, out=make.outputs[0], axis=int(axis))
