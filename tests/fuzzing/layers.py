"""Layers from which graphs are drawn: one function per kind. Each adds nodes, or none if none fit."""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from fuzzing.draft import Array, Draft, Shape, of

KERNELS = (1, 1, 2, 3, 3, 3, 4, 5, 7)
STRIDES = (1, 1, 1, 2, 2, 3, 4)
DILATIONS = (1, 1, 1, 1, 2, 3)


# -- windows ---------------------------------------------------------------------------------------


def _window(
    draft: Draft, size: Shape, *, dilated: bool, pools: bool
) -> tuple[dict[str, object], Shape] | None:
    """Attributes of a window over these axes, and the size of its result; None if nothing fits."""
    kernel = tuple(min(draft.pick(KERNELS), length + 2) for length in size)
    if draft.chance(0.1):
        kernel = size if max(size) <= 12 else kernel
    stride = tuple(draft.pick(STRIDES) for _ in size)
    if draft.chance(0.7):
        stride = stride[:1] * len(size)
    dilation = tuple(draft.pick(DILATIONS) if dilated else 1 for _ in size)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    attributes: dict[str, object] = {"kernel_shape": kernel, "strides": stride}
    if max(dilation) > 1:
        attributes["dilations"] = dilation
    if draft.chance(0.15) and max(dilation) == 1:
        way = draft.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
        attributes["auto_pad"] = way
        if way == "VALID":
            free = [length - r for length, r in zip(size, reach, strict=True)]
            return None if min(free) < 0 else (attributes, _steps(free, stride))
        counts = [-(-length // s) for length, s in zip(size, stride, strict=True)]
        spans = [(count - 1) * s + r for count, s, r in zip(counts, stride, reach, strict=True)]
        if pools and any(span < length for span, length in zip(spans, size, strict=True)):
            return None  # ONNX Runtime refuses to omit values after the last window
        return attributes, tuple(counts)
    most = [k - 1 if pools else r for k, r in zip(kernel, reach, strict=True)]
    pads = [0] * (2 * len(size))
    style = draft.pick(("none", "same", "same", "odd"))
    if style == "same":
        pads = [min((r - 1) // 2, m) for r, m in zip(reach, most, strict=True)] * 2
    elif style == "odd":
        pads = [draft.whole(0, m) for m in most * 2]
    attributes["pads"] = tuple(pads)
    rank = len(size)
    free = [size[i] + pads[i] + pads[i + rank] - reach[i] for i in range(rank)]
    if min(free) < 0:
        return None
    if pools and draft.chance(0.3):
        attributes["ceil_mode"] = 1
        counts = [-(-free[i] // stride[i]) + 1 for i in range(rank)]
        if any((count - 1) * stride[i] >= size[i] + pads[i] for i, count in enumerate(counts)):
            return None  # ONNX infers a window there that ONNX Runtime leaves out
        return attributes, tuple(counts)
    return attributes, _steps(free, stride)


def _steps(free: list[int], stride: Shape) -> Shape:
    return tuple(length // step + 1 for length, step in zip(free, stride, strict=True))


@of(3, 4)
def convolution(draft: Draft, name: str, shape: Shape) -> None:
    """Any convolution of one or two dimensions, often followed by a normalisation and an activation."""
    channels = shape[1]
    window = _window(draft, shape[2:], dilated=True, pools=False)
    if window is None:
        return
    attributes, size = window
    kind = draft.pick(("full", "full", "pointwise", "depthwise", "multiplied", "grouped"))
    groups, outputs = 1, draft.pick((1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24))
    if kind == "pointwise":
        rank = len(shape) - 2
        attributes, size = {"kernel_shape": (1,) * rank}, shape[2:]
    elif kind in ("depthwise", "multiplied"):
        groups, outputs = channels, channels * (1 if kind == "depthwise" else draft.whole(2, 3))
    elif kind == "grouped":
        groups = draft.pick([g for g in range(1, channels + 1) if channels % g == 0])
        outputs = groups * draft.whole(1, 4)
    depth = channels // groups * prod(attributes["kernel_shape"])  # type: ignore[arg-type]
    result = (shape[0], outputs, *size)
    if not draft.fits(result, prod(result) * depth):
        return
    weights = _weights(draft, (outputs, channels // groups, *attributes["kernel_shape"]), depth)  # type: ignore[misc]
    inputs = [name, draft.constant(weights)]
    if draft.chance(0.75):
        inputs.append(draft.constant(_bias(draft, outputs)))
    out = draft.add("Conv", inputs, result, group=groups, **attributes)
    if draft.chance(0.15):
        out = _normalised(draft, out)
    _activated(draft, out)


def _weights(draft: Draft, shape: Shape, depth: int) -> Array:
    weights = draft.normal(shape, 1 / sqrt(depth))
    if draft.chance(0.12):  # channels that training has silenced, or nearly
        weights[draft.random.random(shape[0]) < 0.4] *= draft.pick((0.0, 1e-7, 1e-3))
    if draft.chance(0.05):
        weights[:1] *= 30
    return weights


def _bias(draft: Draft, count: int) -> Array:
    return draft.normal((count,), draft.pick((0.1, 0.1, 0.5, 3.0)))


def _normalised(draft: Draft, name: str) -> str:
    shape = draft.shapes[name]
    count = shape[1]
    gamma = draft.random.uniform(0.3, 2.0, count) * draft.random.choice([1, 1, 1, -1], count)
    vectors = (
        gamma,
        draft.normal((count,), 0.3),
        draft.normal((count,), 0.2),
        draft.random.uniform(0.2, 2, count),
    )
    inputs = [name, *(draft.constant(vector.astype(np.float32)) for vector in vectors)]
    return draft.add("BatchNormalization", inputs, shape, epsilon=draft.pick((1e-5, 1e-3)))


def _activated(draft: Draft, name: str) -> str:
    way = draft.pick(("none", "Relu", "Relu", "Relu", "six", "HardSwish", "any"))
    if way == "none":
        return name
    if way == "six":
        return _clip(draft, name, 0.0, 6.0)
    return _function(draft, name, None if way == "any" else way)


def _clip(draft: Draft, name: str, low: float | None, high: float | None) -> str:
    bounds = ["" if it is None else draft.constant(np.float32(it)) for it in (low, high)]
    while bounds and not bounds[-1]:
        bounds.pop()
    return draft.add("Clip", [name, *bounds], draft.shapes[name])


def _function(draft: Draft, name: str, op: str | None) -> str:
    shape = draft.shapes[name]
    op = op or draft.pick(("Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"))
    if op == "HardSwish" and draft.opset < 14:
        gate = draft.add("HardSigmoid", [name], shape, alpha=1 / 6, beta=0.5)
        return draft.add("Mul", [name, gate], shape)
    if op == "Clip":
        return _clip(draft, name, *draft.pick(((None, 0.5), (-1.0, 1.0), (-0.3, None), (0.25, 0.25), (0, 1))))
    attributes = {}
    if op == "LeakyRelu":
        attributes = {"alpha": draft.pick((0.01, 0.1, 0.3, -0.2, 1.5))}
    if op == "HardSigmoid":
        attributes = {"alpha": draft.pick((0.2, 1 / 6)), "beta": 0.5}
    return draft.add(op, [name], shape, **attributes)


@of(2, 3, 4)
def function(draft: Draft, name: str, shape: Shape) -> None:
    """A function of one value."""
    _function(draft, name, None)


@of(2, 3, 4)
def normalisation(draft: Draft, name: str, shape: Shape) -> None:
    """A normalisation without a convolution in front."""
    _normalised(draft, name)


@of(3, 4)
def pool(draft: Draft, name: str, shape: Shape) -> None:
    """A pool over windows."""
    op = draft.pick(("MaxPool", "AveragePool"))
    window = _window(draft, shape[2:], dilated=op == "MaxPool" and draft.chance(0.3), pools=True)
    if window is None:
        return
    attributes, size = window
    if op == "AveragePool" and draft.chance(0.4):
        attributes["count_include_pad"] = 1
    if draft.fits((*shape[:2], *size)):
        draft.add(op, [name], (*shape[:2], *size), **attributes)


@of(2, 3, 4)
def global_pool(draft: Draft, name: str, shape: Shape) -> None:
    """A mean or maximum over a whole image, or a mean over some axes."""
    rank = len(shape)
    if rank > 2 and draft.chance(0.5):
        op = draft.pick(("GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"))
        draft.add(op, [name], (*shape[:2], *(1,) * (rank - 2)))
        return
    axes = sorted({draft.whole(1, rank - 1) for _ in range(draft.whole(1, 2))})
    if rank == 4 and draft.chance(0.5):
        axes = [2, 3]
    keep = draft.whole(0, 1)
    result = tuple(1 if at in axes else size for at, size in enumerate(shape) if keep or at not in axes)
    if len(result) < 2:
        return
    if draft.chance(0.3):
        axes = [axis - rank for axis in axes]
    if draft.opset >= 18:
        draft.add("ReduceMean", [name, draft.constant(np.array(axes, np.int64))], result, keepdims=keep)
    else:
        draft.add("ReduceMean", [name], result, axes=axes, keepdims=keep)


# -- several values --------------------------------------------------------------------------------


@of(2, 3, 4)
def binary(draft: Draft, name: str, shape: Shape) -> None:
    """Add, Sub, Mul or Div of a value with another, with itself, or with a constant."""
    op = draft.pick(("Add", "Add", "Add", "Sub", "Mul", "Mul", "Div"))
    if draft.chance(0.3):
        other, result = _constant_operand(draft, shape, away=op == "Div")
        operands = [name, other]
        if op in ("Add", "Mul", "Sub") and draft.chance(0.3):
            operands.reverse()
        if draft.fits(result):
            draft.add(op, operands, result)
        return
    others = draft.alike(lambda it: _broadcasts(it, shape))
    same = [it for it in others if draft.shapes[it] == shape]
    other = draft.pick(same if same and draft.chance(0.7) else others)
    if op == "Div":
        other = _away_from_zero(draft, other)
    operands = [name, other]
    if draft.chance(0.4) and op != "Div":
        operands.reverse()
    result = tuple(np.broadcast_shapes(draft.shapes[operands[0]], draft.shapes[operands[1]]))
    if draft.fits(result):
        out = draft.add(op, operands, result)
        if draft.chance(0.3):
            _activated(draft, out)


def _broadcasts(one: Shape, other: Shape) -> bool:
    sizes = zip(reversed(one), reversed(other), strict=False)
    return len(one) == len(other) and all(a == b or 1 in (a, b) for a, b in sizes)


def _away_from_zero(draft: Draft, name: str) -> str:
    shape = draft.shapes[name]
    gate = draft.add("Sigmoid", [name], shape)
    return draft.add("Add", [gate, draft.constant(np.float32(draft.pick((0.1, 0.5, 2))))], shape)


def _constant_operand(draft: Draft, shape: Shape, *, away: bool) -> tuple[str, Shape]:
    """A constant that broadcasts against a shape, and the result's shape."""
    way = draft.pick(("scalar", "channels", "channels", "full", "last"))
    size: Shape = ()
    if way == "channels":
        size = (*(1,) * draft.whole(0, 1), shape[1], *(1,) * (len(shape) - 2))
    elif way == "full":
        size = shape
    elif way == "last":
        size = shape[-1:]
    value = draft.normal(size)
    if away:
        value = np.where(value < 0, value - np.float32(0.2), value + np.float32(0.2))
    return draft.constant(value), tuple(np.broadcast_shapes(size, shape))


@of(4)
def squeeze_excite(draft: Draft, name: str, shape: Shape) -> None:
    """An image scaled by functions of its means."""
    batch, channels = shape[:2]
    few = max(1, channels // 2)
    mean = draft.add("GlobalAveragePool", [name], (batch, channels, 1, 1))
    for outputs, inputs in ((few, channels), (channels, few)):
        weights = draft.constant(_weights(draft, (outputs, inputs, 1, 1), inputs))
        mean = draft.add(
            "Conv", [mean, weights, draft.constant(_bias(draft, outputs))], (batch, outputs, 1, 1)
        )
        gate = draft.pick(("Sigmoid", "HardSigmoid")) if outputs == channels and inputs == few else "Relu"
        mean = draft.add(gate, [mean], (batch, outputs, 1, 1))
    draft.add("Mul", [name, mean] if draft.chance(0.5) else [mean, name], draft.shapes[name])


@of(4)
def inverted_residual(draft: Draft, name: str, shape: Shape) -> None:
    """Expansion, depthwise, projection, and the sum with the input."""
    batch, channels, rows, cols = shape
    wide = channels * draft.whole(2, 4)
    if not draft.fits((batch, wide, rows, cols), batch * wide * rows * cols * max(9, channels)):
        return
    out = name
    for outputs, sources, side, groups in (
        (wide, channels, 1, 1),
        (wide, 1, 3, wide),
        (channels, wide, 1, 1),
    ):
        weights = draft.constant(_weights(draft, (outputs, sources, side, side), sources * side * side))
        inputs = [out, weights, draft.constant(_bias(draft, outputs))]
        pads = (side // 2,) * 4
        out = draft.add("Conv", inputs, (batch, outputs, rows, cols), group=groups, pads=pads)
        if outputs == wide:
            out = _clip(draft, out, 0.0, 6.0)
    draft.add("Add", [name, out], draft.shapes[name])


@of(4)
def bottleneck(draft: Draft, name: str, shape: Shape) -> None:
    """Expansion, any filter of each channel, projection; sometimes a residual, sometimes a step missing."""
    batch, channels, rows, cols = shape
    wide, few = draft.pick((2, 12, 16, 24, 32, 32, 33, 48, 64)), draft.pick((1, 2, 3, 4, 5, 6, 8, 13))
    side, stride = draft.pick((3, 3, 5)), draft.pick((1, 1, 2))
    usual = {"kernel_shape": (side, side), "strides": (stride, stride), "pads": (side // 2,) * 4}
    window: tuple[dict[str, object], Shape] | None = usual, (-(-rows // stride), -(-cols // stride))
    if draft.chance(0.4):
        window = _window(draft, (rows, cols), dilated=True, pools=False)
    if window is None or not draft.fits((batch, wide, rows, cols), batch * wide * rows * cols * 9):
        return
    attributes, size = window
    residual = draft.chance(0.4)
    steps = ["expand", "filter", "project"]
    if draft.chance(0.15):
        steps.remove(draft.pick(("expand", "project")))
    out = name
    for step in steps:
        here, sources = draft.shapes[out], draft.shapes[out][1]
        if step == "filter":
            outputs, groups, kinds, after = (
                sources * draft.pick((1, 1, 1, 1, 1, 2)),
                sources,
                attributes,
                size,
            )
        else:
            outputs = wide if step == "expand" else channels if residual else few
            groups, kinds, after = 1, {"kernel_shape": (1, 1)}, here[2:]
        if not draft.fits((batch, outputs, *after)):
            return
        taps: Shape = kinds["kernel_shape"]  # type: ignore[assignment]
        depth = sources // groups * prod(taps)
        inputs = [out, draft.constant(_weights(draft, (outputs, sources // groups, *taps), depth))]
        if draft.chance(0.9):
            inputs.append(draft.constant(_bias(draft, outputs)))
        out = draft.add("Conv", inputs, (batch, outputs, *after), group=groups, **kinds)
        if step != "project":
            out = (
                _clip(draft, out, 0.0, draft.pick((6.0, None)))
                if draft.chance(0.7)
                else _activated(draft, out)
            )
    if residual and draft.shapes[out] == draft.shapes[name]:
        draft.add("Add", [name, out], draft.shapes[name])


@of(2, 3, 4)
def concat(draft: Draft, name: str, shape: Shape) -> None:
    """Two to four values side by side, on any axis but the batch."""
    axis = 1 if draft.chance(0.6) else draft.whole(1, len(shape) - 1)
    rest = [size for at, size in enumerate(shape) if at != axis]
    others = draft.alike(
        lambda it: len(it) == len(shape) and [size for at, size in enumerate(it) if at != axis] == rest
    )
    chosen = [name, *(draft.pick(others) for _ in range(draft.whole(1, 3)))]
    if draft.chance(0.85):
        chosen = list(dict.fromkeys(chosen))
    if len(chosen) < 2:
        return
    result = list(shape)
    result[axis] = sum(draft.shapes[it][axis] for it in chosen)
    if draft.fits(tuple(result)):
        draft.add("Concat", chosen, tuple(result), axis=axis - len(shape) if draft.chance(0.2) else axis)
