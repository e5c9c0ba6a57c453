"""Operators that move, repeat or reorder elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.writer import Writer


def moved(
    writer: Writer,
    sources: Sequence[TfliteTensor],
    results: Sequence[TfliteTensor],
    move: Callable[[list[str]], list[str]],
) -> None:
    """Assign the results of `move`, a function of names of values, to the tensors `results`.

    Floats are moved if all tensors are float, or have the same scales: lowering avoids the conversions.
    Otherwise the integers are moved, whatever their scales, as in TFLite.
    """
    first = sources[0]
    same_scales = all(it.kind == first.kind and it.scales == first.scales for it in (*sources, *results))
    quantized = first.kind in ("INT8", "UINT8") and first.scales is not None
    if same_scales and (first.kind == "FLOAT32" or quantized):
        for tensor, name in zip(results, move([writer.real(it) for it in sources]), strict=True):
            writer.finish(tensor, name)
        return
    for tensor, name in zip(results, move([writer.raw(it) for it in sources]), strict=True):
        writer.keep(tensor, name)


def moved_one(writer: Writer, source: TfliteTensor, result: TfliteTensor, move: Callable[[str], str]) -> None:
    """Assign the result of `move` on one tensor, as `moved` does."""
    moved(writer, [source], [result], lambda names: [move(names[0])])


def padding_of(writer: Writer, operator: TfliteOperator) -> list[int]:
    """The padding before and after each axis of the first input: before, after, before, after, ..."""
    source, amounts = writer.input(operator, 0), writer.integers(operator, 1, "the padding")
    if len(amounts) != 2 * len(source.shape) or min(amounts, default=0) < 0:
        raise Unsupported(f"padding {amounts} does not fit {list(source.shape)}")
    return amounts


def axes_of(writer: Writer, operator: TfliteOperator) -> list[int]:
    """The axes of the first input that the second one names, sorted, in [0, rank)."""
    rank, axes = len(writer.input(operator, 0).shape), writer.integers(operator, 1, "the axes")
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsupported(f"axes {axes} are outside {rank} dimensions")
    return sorted({axis % rank for axis in axes})


def reshape(writer: Writer, operator: TfliteOperator) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS: the file states the resulting shape."""
    source, result = writer.input(operator, 0), writer.output(operator)
    if source.elements != result.elements:
        raise Unsupported(f"{list(source.shape)} cannot become {list(result.shape)}")
    moved_one(writer, source, result, lambda name: writer.node("Reshape", [name, writer.int64(result.shape)]))


def transpose(writer: Writer, operator: TfliteOperator) -> None:
    """TRANSPOSE by a constant permutation."""
    source, perm = writer.input(operator, 0), writer.integers(operator, 1, "the permutation")
    if sorted(perm) != list(range(len(source.shape))):
        raise Unsupported(f"{perm} is not a permutation of {len(source.shape)} dimensions")
    result = writer.output(operator)
    moved_one(writer, source, result, lambda name: writer.node("Transpose", [name], perm=perm))


def concatenation(writer: Writer, operator: TfliteOperator) -> None:
    """CONCATENATION: inputs are requantised if their scale differs from the result's."""
    sources = writer.inputs(operator)
    result, axis, bounds = writer.output(operator), operator.integer("Axis"), fused(operator)
    if result.kind in ("INT8", "INT16", "INT32") and result.scales is None and bounds is None:
        writer.keep(result, _concatenated_integers(writer, sources, result, axis))
        return
    names = [writer.real(source) for source in sources]
    writer.finish(result, writer.node("Concat", names, axis=axis), bounds, late=True)


def _concatenated_integers(
    writer: Writer, sources: Sequence[TfliteTensor], result: TfliteTensor, axis: int
) -> str:
    """Concatenate integers that are not quantised. Constants of zeros at the ends become padding."""
    if any(source.kind != result.kind for source in sources):
        raise Unsupported(f"its operands are not all {result.kind}")
    rest, rank = list(sources), len(result.shape)
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} does not fit {list(result.shape)}")
    pads = [0] * (2 * rank)
    for end, place in ((0, axis % rank), (-1, axis % rank + rank)):
        while len(rest) > 1 and rest[end].data is not None and not rest[end].array().any():
            pads[place] += rest.pop(end).shape[axis]
    names = [writer.raw(source) for source in rest]
    joined = names[0] if len(names) == 1 else writer.node("Concat", names, axis=axis)
    if not any(pads):
        return joined
    return writer.node("Pad", [joined, writer.int64(pads)])


def pack(writer: Writer, operator: TfliteOperator) -> None:
    """PACK: a concatenation of tensors along a new axis."""
    sources = writer.inputs(operator)
    axis = operator.integer("Axis")
    axes = writer.int64([axis])

    def move(names: list[str]) -> list[str]:
        rows = [writer.part("Unsqueeze", [name, axes]) for name in names]
        return [writer.node("Concat", rows, axis=axis)]

    moved(writer, sources, [writer.output(operator)], move)


def unpack(writer: Writer, operator: TfliteOperator) -> None:
    """UNPACK: one tensor for each position along an axis, which is removed."""
    source, axis = writer.input(operator, 0), operator.integer("Axis")
    results = [writer.output(operator, position) for position in range(len(operator.outputs))]
    axes = writer.int64([axis])
    _require_axis(axis, source)
    if source.shape[axis] != len(results):
        raise Unsupported(f"{len(results)} results of an axis of {source.shape[axis]}")

    def move(names: list[str]) -> list[str]:
        parts = _split(writer, names[0], axis, [1] * len(results))
        return [writer.part("Squeeze", [part, axes]) for part in parts]

    moved(writer, [source], results, move)


def split(writer: Writer, operator: TfliteOperator) -> None:
    """SPLIT of a tensor into equal parts; the inputs are the axis and the tensor."""
    axes, source = writer.integers(operator, 0, "the axis"), writer.input(operator, 1)
    _split_at(writer, operator, source, axes, None)


def split_v(writer: Writer, operator: TfliteOperator) -> None:
    """SPLIT_V of a tensor into parts of given sizes; the inputs are the tensor, the sizes and the axis."""
    sizes, axes = writer.integers(operator, 1, "the sizes"), writer.integers(operator, 2, "the axis")
    _split_at(writer, operator, writer.input(operator, 0), axes, sizes)


def _split_at(
    writer: Writer, operator: TfliteOperator, source: TfliteTensor, axes: list[int], sizes: list[int] | None
) -> None:
    results = [writer.output(operator, position) for position in range(len(operator.outputs))]
    if len(axes) != 1:
        raise Unsupported("it needs one axis")
    _require_axis(axes[0], source)
    length = source.shape[axes[0]]
    if sizes is None:
        sizes = [length // len(results)] * len(results)
    if sizes.count(-1) == 1:
        rest = length - sum(size for size in sizes if size != -1)
        sizes = [rest if size == -1 else size for size in sizes]
    if sum(sizes) != length or min(sizes) < 1 or len(sizes) != len(results):
        raise Unsupported(f"parts of {sizes} do not fit an axis of {length}")
    parts = sizes
    moved(writer, [source], results, lambda names: _split(writer, names[0], axes[0], parts))


def _require_axis(axis: int, tensor: TfliteTensor) -> None:
    if not -len(tensor.shape) <= axis < len(tensor.shape):
        raise Unsupported(f"axis {axis} is outside {len(tensor.shape)} dimensions")


def _split(writer: Writer, name: str, axis: int, sizes: list[int]) -> list[str]:
    lengths = writer.int64(sizes)
    return writer.nodes("Split", [name, lengths], len(sizes), axis=axis)


def strided_slice(writer: Writer, operator: TfliteOperator) -> None:
    """STRIDED_SLICE: [begin:end:stride] along every axis; axes of ShrinkAxisMask are removed."""
    source, result = writer.input(operator, 0), writer.output(operator)
    if operator.integer("EllipsisMask") or operator.integer("NewAxisMask"):
        raise Unsupported("an ellipsis, or a new axis, is not supported")
    if operator.flag("Offset"):
        raise Unsupported("ends that are offsets are not supported")
    bounds = (writer.integers(operator, position, "the range") for position in (1, 2, 3))
    ranges = [
        _range(operator, source.shape, axis, limits) for axis, limits in enumerate(zip(*bounds, strict=True))
    ]
    starts, ends, steps = ([limits[at] for limits in ranges] for at in range(3))
    _slice(writer, source, result, (starts, ends, list(range(len(ranges))), steps))


def _range(
    operator: TfliteOperator, shape: tuple[int, ...], axis: int, limits: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Start, end and step along an axis, as ONNX takes them."""
    begin, end, step = limits
    if axis >= len(shape) or step == 0:
        raise Unsupported(f"step {step} along axis {axis} does not fit {list(shape)}")
    size, bit = shape[axis], 1 << axis
    if operator.integer("ShrinkAxisMask") & bit:
        first = begin + size if begin < 0 else begin
        return first, first + 1, 1
    full_range = (0, size) if step > 0 else (size - 1, -size - 1)
    start = full_range[0] if operator.integer("BeginMask") & bit else begin
    return start, full_range[1] if operator.integer("EndMask") & bit else end, step


def slice_(writer: Writer, operator: TfliteOperator) -> None:
    """SLICE: begin and size along every axis; -1 means the rest."""
    source = writer.input(operator, 0)
    begins, sizes = (writer.integers(operator, position, "the range") for position in (1, 2))
    ends = [
        source.shape[axis] if size == -1 else begin + size
        for axis, (begin, size) in enumerate(zip(begins, sizes, strict=True))
    ]
    axes = list(range(len(begins)))
    _slice(writer, source, writer.output(operator), (begins, ends, axes, [1] * len(begins)))


def _slice(writer: Writer, source: TfliteTensor, result: TfliteTensor, ranges: tuple[list[int], ...]) -> None:
    """Translate a slice; `ranges`: starts, ends, axes and steps. The result may lack axes of size 1."""

    def move(name: str) -> str:
        limits = [writer.int64(each) for each in ranges]
        name = writer.node("Slice", [name, *limits])
        return name if len(result.shape) == len(source.shape) else writer.reshaped(name, result.shape)

    moved_one(writer, source, result, move)


_SYMMETRIC = 1
"""Mode of MIRROR_PAD that repeats the element at the edge; the other mode does not."""


def mirror_pad(writer: Writer, operator: TfliteOperator) -> None:
    """MIRROR_PAD, as a Gather of mirrored positions along each padded axis."""
    source = writer.input(operator, 0)
    amounts, symmetric = padding_of(writer, operator), operator.integer("Mode") == _SYMMETRIC
    mode = "symmetric" if symmetric else "reflect"
    places = []
    for axis, size in enumerate(source.shape):
        ends = amounts[2 * axis], amounts[2 * axis + 1]
        if max(ends) > size - (not symmetric):
            raise Unsupported(f"padding {list(ends)} mirrors more than the {size} rows of axis {axis}")
        places.append(np.pad(np.arange(size), ends, mode))  # type: ignore[call-overload]

    def move(name: str) -> str:
        for axis, each in enumerate(places):
            if len(each) > source.shape[axis]:
                name = writer.node("Gather", [name, writer.int64(each.tolist())], axis=axis)
        return name

    moved_one(writer, source, writer.output(operator), move)


def reverse(writer: Writer, operator: TfliteOperator) -> None:
    """REVERSE_V2 along constant axes."""
    source, axes = writer.input(operator, 0), writer.integers(operator, 1, "the axes")

    def move(name: str) -> str:
        ends = ([-1] * len(axes), [np.iinfo(np.int64).min] * len(axes), axes, [-1] * len(axes))
        return writer.node("Slice", [name, *(writer.int64(it) for it in ends)])

    moved_one(writer, source, writer.output(operator), move)


def tile(writer: Writer, operator: TfliteOperator) -> None:
    """TILE by constant repeats."""
    source, result = writer.input(operator, 0), writer.output(operator)
    times = writer.int64(writer.integers(operator, 1, "the repeats"))
    moved_one(writer, source, result, lambda name: writer.node("Tile", [name, times]))


def broadcast(writer: Writer, operator: TfliteOperator) -> None:
    """BROADCAST_TO a constant shape."""
    source, result = writer.input(operator, 0), writer.output(operator)
    shape = writer.int64(writer.integers(operator, 1, "the shape"))
    moved_one(writer, source, result, lambda name: writer.node("Expand", [name, shape]))


def space_to_batch(writer: Writer, operator: TfliteOperator) -> None:
    """SPACE_TO_BATCH_ND: a padded image becomes a batch of images, each with every n-th pixel."""
    source, result = writer.input(operator, 0), writer.output(operator)
    block, pads = _blocks(writer, operator, source)
    batch, *sizes = source.shape
    spatial, rest = sizes[: len(block)], sizes[len(block) :]
    padded = [size + sum(ends) for size, ends in zip(spatial, pads, strict=True)]
    if any(size % each for size, each in zip(padded, block, strict=True)):
        raise Unsupported(f"blocks of {block} do not divide {padded}")
    begins, ends = ([each[side] for each in pads] for side in (0, 1))
    amounts = [0, *begins, *([0] * len(rest)), 0, *ends, *([0] * len(rest))]
    inner = [part for size, each in zip(padded, block, strict=True) for part in (size // each, each)]
    count = len(block)
    order = [*(2 * at + 2 for at in range(count)), 0, *(2 * at + 1 for at in range(count))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    name = writer.real(source)
    if any(amounts):
        name = writer.node("Pad", [name, writer.int64(amounts), writer.float32(0)])
    name = writer.node("Reshape", [name, writer.int64([batch, *inner, *rest])])
    name = writer.node("Transpose", [name], perm=order)
    shape = [
        batch * int(np.prod(block)),
        *(size // each for size, each in zip(padded, block, strict=True)),
        *rest,
    ]
    if list(result.shape) != shape:
        raise Unsupported(f"{list(source.shape)} becomes {shape}, and not {list(result.shape)}")
    writer.finish(result, writer.node("Reshape", [name, writer.int64(shape)]))


def batch_to_space(writer: Writer, operator: TfliteOperator) -> None:
    """BATCH_TO_SPACE_ND: a batch of images, each with every n-th pixel, becomes a cropped image."""
    source, result = writer.input(operator, 0), writer.output(operator)
    block, crops = _blocks(writer, operator, source)
    count = len(block)
    batch, *sizes = source.shape
    spatial, rest = sizes[:count], sizes[count:]
    product = int(np.prod(block))
    if batch % product:
        raise Unsupported(f"a batch of {batch} is not a multiple of {product} pixels")
    order = [count, *(part for at in range(count) for part in (count + 1 + at, at))]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    uncropped = [size * each for size, each in zip(spatial, block, strict=True)]
    limits = (
        [begin for begin, _ in crops],
        [size - end for size, (_, end) in zip(uncropped, crops, strict=True)],
        list(range(1, count + 1)),
    )

    def move(name: str) -> str:
        name = writer.node("Reshape", [name, writer.int64([*block, batch // product, *sizes])])
        name = writer.node("Transpose", [name], perm=order)
        name = writer.node("Reshape", [name, writer.int64([batch // product, *uncropped, *rest])])
        if any(map(any, crops)):
            name = writer.node("Slice", [name, *(writer.int64(each) for each in limits)])
        return name

    moved_one(writer, source, result, move)


def _blocks(
    writer: Writer, operator: TfliteOperator, source: TfliteTensor
) -> tuple[list[int], list[tuple[int, int]]]:
    """The sizes of a block of pixels, and the padding or cropping before and after each of its axes."""
    block = writer.integers(operator, 1, "the block")
    ends = writer.integers(operator, 2, "the padding")
    in_range = min(block, default=0) >= 1 and min(ends, default=0) >= 0
    if not in_range or len(ends) != 2 * len(block) or len(block) >= len(source.shape):
        raise Unsupported(f"blocks of {block} with {ends} at the ends do not fit {list(source.shape)}")
    return block, list(zip(ends[::2], ends[1::2], strict=True))
