"""Layers that move elements, and products of matrices; as in `layers`."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from fuzzing.draft import Draft, Shape, of


@of(2, 3, 4)
def split(draft: Draft, name: str, shape: Shape) -> None:
    """A value in two or three parts."""
    axis, count = draft.whole(1, len(shape) - 1), draft.whole(2, 3)
    size = shape[axis]
    if size < count:
        return
    if draft.chance(0.5) and size % count == 0:
        sizes, inputs = [size // count] * count, [name]
    else:
        ends = sorted(draft.random.permutation(np.arange(1, size))[: count - 1].tolist())
        sizes = [high - low for low, high in zip([0, *ends], [*ends, size], strict=True)]
        inputs = [name, draft.constant(np.array(sizes, np.int64))]
    attributes: dict[str, int] = {"axis": axis}
    if len(inputs) == 1 and draft.opset >= 18:
        attributes["num_outputs"] = count
    parts = [(*shape[:axis], each, *shape[axis + 1 :]) for each in sizes]
    draft.add_many("Split", inputs, parts, **attributes)


@of(2, 3, 4)
def slice_(draft: Draft, name: str, shape: Shape) -> None:
    """A range of some axes, also backwards, with steps, and with ends far outside."""
    axes = sorted({draft.whole(1, len(shape) - 1) for _ in range(draft.whole(1, 2))})
    starts, ends, steps, result = [], [], [], list(shape)
    for axis in axes:
        size = shape[axis]
        step = draft.pick((1, 1, 1, 2, 3, -1, -2))
        low = draft.whole(0, size - 1)
        high = draft.whole(low + 1, size)
        start, end = (low, high) if step > 0 else (high - 1, low - 1)
        result[axis] = len(range(start, end, step))
        if step > 0 and high == size and draft.chance(0.4):
            end = draft.pick((2**31 - 1, 2**63 - 1, size + 5))
        elif step > 0 and high < size and draft.chance(0.3):
            end -= size
        if step < 0 and end == -1:
            end = -(2**31)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    arrays = (starts, ends, [axis - len(shape) if draft.chance(0.2) else axis for axis in axes], steps)
    inputs = [name, *(draft.constant(np.array(array, np.int64)) for array in arrays)]
    draft.add("Slice", inputs, tuple(result))


@of(2, 3, 4)
def gather(draft: Draft, name: str, shape: Shape) -> None:
    """One row of an axis, or several: evenly apart, or anywhere."""
    axis = draft.whole(1, len(shape) - 1)
    if draft.chance(0.5) and len(shape) > 2:
        index = np.array(draft.whole(-shape[axis], shape[axis] - 1), np.int64)
        result: Shape = (*shape[:axis], *shape[axis + 1 :])
    else:
        first = draft.whole(0, shape[axis] - 1)
        index = np.arange(first, shape[axis], draft.whole(1, 3), dtype=np.int64)
        if draft.chance(0.4):
            index = np.array([draft.whole(0, shape[axis] - 1) for _ in range(len(index) + 1)], np.int64)
        result = (*shape[:axis], index.size, *shape[axis + 1 :])
    draft.add("Gather", [name, draft.constant(index)], result, axis=axis)


@of(2, 3, 4)
def pad(draft: Draft, name: str, shape: Shape) -> None:
    """Zeros, or another value, around a value."""
    rank = len(shape)
    pads = [0] * (2 * rank)
    axes = range(2, rank) if rank > 2 and draft.chance(0.8) else range(1, rank)
    for axis in axes:
        pads[axis], pads[axis + rank] = draft.whole(0, 2), draft.whole(0, 2)
    mode = draft.pick(("constant", "constant", "edge", "reflect"))
    if mode == "reflect" and any(amount >= size for amount, size in zip(pads, shape + shape, strict=True)):
        mode = "edge"
    result = tuple(size + pads[at] + pads[at + rank] for at, size in enumerate(shape))
    if not draft.fits(result):
        return
    inputs = [name, draft.constant(np.array(pads, np.int64))]
    if mode == "constant" and draft.chance(0.4):
        inputs.append(draft.constant(np.float32(draft.pick((0.0, 0.0, 1.0, -0.37, 6.0)))))
    draft.add("Pad", inputs, result, mode=mode)


@of(3, 4)
def resize(draft: Draft, name: str, shape: Shape) -> None:
    """An image or a signal resampled."""
    mode = draft.pick(("nearest", "nearest", "linear"))
    factors = [draft.pick((1, 2, 2, 2, 3, 0.5, 1.5)) for _ in shape[2:]]
    if draft.chance(0.6):
        factors = factors[:1] * len(factors)
    result = (
        *shape[:2],
        *(int(np.floor(np.float32(s) * np.float32(f))) for s, f in zip(shape[2:], factors, strict=True)),
    )
    if not draft.fits(result):
        return
    coordinates = draft.pick(
        ("asymmetric", "half_pixel", "half_pixel", "align_corners", "pytorch_half_pixel")
    )
    whole = all(s * f == t for s, f, t in zip(shape[2:], factors, result[2:], strict=True))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = draft.pick(("floor", "round_prefer_floor", "ceil", "round_prefer_ceil"))
    if draft.chance(0.5) and (whole or coordinates != "align_corners"):
        inputs = [name, "", draft.constant(np.array([1, 1, *factors], np.float32))]
    else:
        inputs = [name, "", "", draft.constant(np.array(result, np.int64))]
    draft.add("Resize", inputs, result, **attributes)


@of(2, 3, 4)
def softmax(draft: Draft, name: str, shape: Shape) -> None:
    """Along the last axis or the channels."""
    draft.add("Softmax", [name], shape, axis=draft.pick((-1, 1, len(shape) - 1)))


@of(2, 3, 4)
def view(draft: Draft, name: str, shape: Shape) -> None:
    """The same elements under another shape, or in another order."""
    rank = len(shape)
    way = draft.pick(("flatten", "reshape", "transpose", "squeeze", "unsqueeze", "nothing"))
    if way == "flatten":
        draft.add("Flatten", [name], (shape[0], prod(shape[1:])), axis=1)
    elif way == "reshape":
        _reshape(draft, name)
    elif way == "transpose" and rank > 2:
        perm = [0, *(draft.random.permutation(np.arange(1, rank))).tolist()]
        draft.add("Transpose", [name], tuple(shape[axis] for axis in perm), perm=perm)
    elif way == "squeeze":
        axes = [axis for axis in range(1, rank) if shape[axis] == 1][: rank - 2]
        if axes:
            result = tuple(size for at, size in enumerate(shape) if at not in axes)
            draft.add("Squeeze", [name, draft.constant(np.array(axes, np.int64))], result)
    elif way == "unsqueeze" and rank < 4:
        axis = draft.whole(1, rank)
        draft.add(
            "Unsqueeze", [name, draft.constant(np.array([axis], np.int64))], (*shape[:axis], 1, *shape[axis:])
        )
    elif way == "nothing":
        draft.add(draft.pick(("Identity", "Dropout")), [name], shape)


def _reshape(draft: Draft, name: str) -> None:
    """A reshape to rank 2 to 4, in one of the forms that exporters write."""
    batch, *rest = draft.shapes[name]
    total = prod(rest)
    divisors = [d for d in range(1, total + 1) if total % d == 0]
    first = draft.pick(divisors)
    second = draft.pick([d for d in divisors if (total // first) % d == 0])
    one, two = total // first, total // first // second
    result = draft.pick(((batch, total), (batch, first, one), (batch, first, second, two)))
    written = list(result)
    if draft.chance(0.4):
        written[draft.whole(1, len(result) - 1)] = -1
    draft.add("Reshape", [name, draft.constant(np.array(written, np.int64))], result)


@of(4)
def shuffle(draft: Draft, name: str, shape: Shape) -> None:
    """Channels in another order, by groups."""
    batch, channels, rows, cols = shape
    groups = draft.pick([g for g in range(1, channels + 1) if channels % g == 0])
    split = (batch, groups, channels // groups, rows, cols)
    apart = draft.add("Reshape", [name, draft.constant(np.array(split, np.int64))], split)
    turned = (batch, channels // groups, groups, rows, cols)
    mixed = draft.add("Transpose", [apart], turned, perm=(0, 2, 1, 3, 4))
    whole = np.array((batch, channels, rows, cols), np.int64)
    draft.add("Reshape", [mixed, draft.constant(whole)], draft.shapes[name])


def dense(draft: Draft) -> None:
    """A fully connected layer after a vector, or after a value that is flattened to one."""
    name = draft.source(2)
    if name is None or draft.chance(0.3):
        name = draft.source(3, 4) or name
    if name is None:
        return
    batch, *rest = draft.shapes[name]
    count = prod(rest)
    outputs = draft.pick((1, 2, 3, 5, 8, 10, 16, 33, 64))
    if not draft.fits((batch, outputs), batch * count * outputs):
        return
    if len(draft.shapes[name]) > 2:
        name = draft.add("Flatten", [name], (batch, count))
    if draft.chance(0.25):
        weights = draft.constant(draft.normal((count, outputs), 1 / sqrt(count)))
        out = draft.add("MatMul", [name, weights], (batch, outputs))
        if draft.chance(0.7):
            out = draft.add("Add", [out, draft.constant(draft.normal((outputs,), 0.2))], (batch, outputs))
    else:
        turned = draft.chance(0.7)
        size = (outputs, count) if turned else (count, outputs)
        inputs = [name, draft.constant(draft.normal(size, 1 / sqrt(count)))]
        if draft.chance(0.8):
            inputs.append(draft.constant(draft.normal((outputs,), 0.2)))
        attributes: dict[str, float] = {"transB": int(turned)}
        if draft.chance(0.1):
            attributes |= {"alpha": 0.5, "beta": 2.0}
        out = draft.add("Gemm", inputs, (batch, outputs), **attributes)
    if draft.chance(0.4):
        draft.add("Relu", [out], (batch, outputs))


@of(3, 4)
def matmul(draft: Draft, name: str, shape: Shape) -> None:
    """Tokens times a constant matrix, or a product of two activations."""
    if draft.chance(0.6):
        outputs = draft.pick((1, 3, 4, 8, 11))
        if draft.fits((*shape[:-1], outputs), prod(shape) * outputs):
            weights = draft.constant(draft.normal((shape[-1], outputs), 1 / sqrt(shape[-1])))
            draft.add("MatMul", [name, weights], (*shape[:-1], outputs))
        return
    others = draft.alike(lambda it: len(it) == len(shape) and it[:-2] == shape[:-2] and it[-2] == shape[-1])
    if others:
        other = draft.pick(others)
        result = (*shape[:-1], draft.shapes[other][-1])
        if draft.fits(result, prod(shape) * result[-1]):
            draft.add("MatMul", [name, other], result)


@of(3)
def attention(draft: Draft, name: str, shape: Shape) -> None:
    """Queries, keys and values of one head."""
    batch, tokens, depth = shape
    if not draft.fits((batch, tokens, tokens), batch * tokens * tokens * depth):
        return
    queries, keys, values = (
        draft.add(
            "MatMul",
            [name, draft.constant(draft.normal((depth, depth), 1 / sqrt(depth)))],
            (batch, tokens, depth),
        )
        for _ in range(3)
    )
    turned = draft.add("Transpose", [keys], (batch, depth, tokens), perm=(0, 2, 1))
    scores = draft.add("MatMul", [queries, turned], (batch, tokens, tokens))
    scaled = draft.add("Mul", [scores, draft.constant(np.float32(1 / sqrt(depth)))], (batch, tokens, tokens))
    weights = draft.add("Softmax", [scaled], (batch, tokens, tokens), axis=-1)
    draft.add("MatMul", [weights, values], (batch, tokens, depth))
