"""Random .tflite files: graphs of int8, uint8 or float32 operators whose inputs are any earlier tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "frontend" / "tflite"))

from flat_cases import window
from flat_files import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, FlatFile, FlatTensor

_KINDS = ("INT8", "INT8", "UINT8", "INT16", "FLOAT32")
_MOST_ELEMENTS = 1200
_SPREAD = 40.0
"""The standard deviation of stored values that scales are drawn for, in steps of 8 bits."""
_WIDER = 200
"""Steps of 16 bits in one of 8."""


@dataclass(frozen=True, slots=True)
class DrawnFile:
    """The content of a file, its element type, and the operator that makes each tensor, by name."""

    seed: int
    kind: str
    content: bytes
    producers: dict[str, str]


@dataclass
class Sketch:
    """A file under construction; `values`: tensors that later operators may read."""

    random: np.random.Generator
    kind: str
    file: FlatFile
    values: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    @property
    def floats(self) -> bool:
        return self.kind == "FLOAT32"

    @property
    def wide(self) -> bool:
        return self.kind == "INT16"

    @property
    def spread(self) -> float:
        return _SPREAD * _WIDER if self.wide else _SPREAD

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From low up to high."""
        return int(self.random.integers(low, high + 1))

    def tensor(self, number: int) -> FlatTensor:
        return self.file.tensors[number]

    def shape(self, number: int) -> tuple[int, ...]:
        return tuple(self.tensor(number).shape)

    def scale(self, number: int) -> float:
        return 1.0 if self.floats else float(self.tensor(number).scale[0])

    def result(self, *shape: int, scale: float = 1.0, zero: int | None = None) -> int:
        """An activation of the file's type; its zero point is drawn if none is given."""
        if self.floats:
            return self.file.add(*shape)
        zero = self.integer(-50, 50) if zero is None else zero
        zero = 0 if self.wide else zero
        zero += 128 if self.kind == "UINT8" else 0
        return self.file.add(*shape, kind=self.kind, scale=(scale,), zero_point=(zero,))

    def like(self, number: int, *shape: int) -> int:
        """An activation of the same quantisation."""
        given = self.tensor(number)
        return self.file.add(*shape, kind=given.kind, scale=given.scale, zero_point=given.zero_point)

    def near(self, scale: float) -> float:
        return float(scale * self.random.uniform(0.6, 1.7))

    def weights(self, *shape: int, axis: int) -> int:
        if self.floats:
            return self.file.constant(
                self.random.normal(0, 1 / sqrt(prod(shape) / shape[axis]), shape), np.float32
            )
        if self.kind == "UINT8":
            values = self.random.integers(0, 256, shape)
            return self.file.constant(values, np.uint8, scale=[0.01], zero_point=[self.integer(110, 140)])
        return self.file.weights(*shape, axis=self.pick((axis, axis, None)), scale=0.01)

    def bias(self, source: int, weights: int, count: int) -> int:
        if self.floats:
            return self.file.constant(self.random.normal(0, 1, count), np.float32)
        return self.file.bias(source, weights, count)

    def summed(self, source: int, terms: int) -> float:
        """A scale for sums of `terms` products with weights."""
        return 1.0 if self.floats else self.near(self.scale(source) * 0.01 * 73 * sqrt(terms))

    def any(self, rank: int | None = None, least: int = 1) -> int:
        """A tensor of a rank whose sides are at least `least`. Raises LookupError if there is none."""
        candidates = [
            it for it in self.values
            if (rank is None or len(self.shape(it)) == rank) and min(self.shape(it)[1:3]) >= least
        ]  # fmt: skip
        if not candidates:
            raise LookupError("no such tensor")
        return int(self.pick(candidates[-4:] if self.random.random() < 0.7 else candidates))

    def add(self, op: str, inputs: Sequence[int], outputs: Sequence[int] | int, **options: Any) -> None:
        self.file.operator(op, inputs, outputs, **options)
        self.values += [outputs] if isinstance(outputs, int) else outputs

    def activation(self) -> int:
        return int(self.pick((NONE, NONE, NONE, RELU, RELU6, RELU_N1_TO_1)))


def _size(length: int, taps: int, stride: int, padding: int) -> int:
    return -(-length // stride) if padding == SAME else (length - taps) // stride + 1


def _window(s: Sketch, shape: Sequence[int]) -> tuple[tuple[int, int], int, int, tuple[int, int]]:
    """Taps, padding, stride, and the size of the result."""
    padding, stride = s.pick((SAME, VALID)), s.integer(1, 2)
    taps = tuple(s.integer(1, 3 if padding == SAME else min(3, size)) for size in shape[1:3])
    result = tuple(_size(size, tap, stride, padding) for size, tap in zip(shape[1:3], taps, strict=True))
    return (taps[0], taps[1]), padding, stride, (result[0], result[1])


def _conv(s: Sketch) -> None:
    x = s.any(4)
    shape, channels = s.shape(x), s.integer(1, 9)
    taps, padding, stride, result = _window(s, shape)
    w = s.weights(channels, *taps, shape[3], axis=0)
    y = s.result(1, *result, channels, scale=s.summed(x, prod(taps) * shape[3]))
    s.add("CONV_2D", [x, w, s.bias(x, w, channels)], y, **window(padding, stride, s.activation()))


def _depthwise(s: Sketch) -> None:
    x = s.any(4)
    shape, times = s.shape(x), s.integer(1, 2)
    taps, padding, stride, result = _window(s, shape)
    channels = shape[3] * times
    w = s.weights(1, *taps, channels, axis=3)
    y = s.result(1, *result, channels, scale=s.summed(x, prod(taps)))
    options = {**window(padding, stride, s.activation()), "DepthMultiplier": times}
    s.add("DEPTHWISE_CONV_2D", [x, w, s.bias(x, w, channels)], y, **options)


def _transposed(s: Sketch) -> None:
    x = s.any(4)
    shape, channels, stride, taps = s.shape(x), s.integer(1, 4), s.integer(1, 2), s.integer(2, 3)
    padding = s.pick((SAME, VALID))
    result = [size * stride if padding == SAME else (size - 1) * stride + taps for size in shape[1:3]]
    w = s.weights(channels, taps, taps, shape[3], axis=0)
    y = s.result(1, *result, channels, scale=s.summed(x, taps * taps * shape[3]))
    inputs = [s.file.constant([1, *result, channels]), w, x]
    s.add("TRANSPOSE_CONV", inputs, y, **window(padding, stride, dilation=None))


def _dense(s: Sketch) -> None:
    x = s.any()
    depth, channels = prod(s.shape(x)), s.integer(1, 12)
    w = s.weights(channels, depth, axis=0)
    if s.kind in ("INT8", "INT16"):  # a scale for each channel is of later versions of the operator
        w = s.file.weights(channels, depth, axis=None, scale=0.01)
    y = s.result(1, channels, scale=s.summed(x, depth))
    options = {"FusedActivationFunction": s.activation()}
    bias = -1 if s.random.random() < 0.3 else s.bias(x, w, channels)
    s.add("FULLY_CONNECTED", [x, w, bias], y, **options)


def _pool(s: Sketch) -> None:
    x = s.any(4)
    taps, padding, stride, result = _window(s, s.shape(x))
    if s.random.random() < 0.2:
        taps, padding, result = s.shape(x)[1:3], VALID, (1, 1)
    options = window(padding, stride, s.activation(), dilation=None)
    y = s.like(x, 1, *result, s.shape(x)[3])
    op = s.pick(("AVERAGE_POOL_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"))
    s.add(op, [x], y, **options, FilterHeight=taps[0], FilterWidth=taps[1])


def _partner(s: Sketch, x: int, scale: float, zero: Sequence[int] = ()) -> int:
    """Another operand: an earlier tensor of that shape, or a constant that broadcasts."""
    shape = s.shape(x)
    others = [it for it in s.values if s.shape(it) == shape and (not zero or s.tensor(it).scale == (scale,))]
    if others and s.random.random() < 0.7:
        return int(s.pick(others))
    own = s.pick((shape, shape[-1:], (1,)))
    if s.floats:
        return s.file.constant(s.random.normal(0, 1, own), np.float32)
    limits = np.iinfo(s.kind.lower())
    values = s.random.integers(limits.min, limits.max + 1, own)
    point = zero or [0 if s.wide else s.integer(-20, 20) + (128 if s.kind == "UINT8" else 0)]
    return s.file.constant(values, limits.dtype, scale=[scale], zero_point=point)


def _binary(s: Sketch) -> None:
    x, op = s.any(), s.pick(("ADD", "ADD", "SUB", "MUL"))
    b = _partner(s, x, s.near(s.scale(x)))
    scales = s.scale(x), s.scale(b)
    scale = scales[0] * scales[1] * s.spread if op == "MUL" else sqrt(scales[0] ** 2 + scales[1] ** 2)
    y = s.result(*s.shape(x), scale=s.near(scale))
    inputs = [x, b] if s.random.random() < 0.7 or s.shape(x) != s.shape(b) else [b, x]
    s.add(op, inputs, y, FusedActivationFunction=s.activation())


def _extremum(s: Sketch) -> None:
    x = s.any()
    b = _partner(s, x, s.scale(x), [] if s.floats else s.tensor(x).zero_point)
    s.add(s.pick(("MAXIMUM", "MINIMUM")), [x, b], s.like(x, *s.shape(x)))


_OF_FLOATS = ("ABS", "COS", "FLOOR", "NEG", "SIGN", "SIN", "SQUARE", "TANH")


def _unary(s: Sketch) -> None:
    x = s.any()
    op = s.pick(("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", *(() if s.wide else ("HARD_SWISH",))))
    options = {"Alpha": s.pick((0.1, 0.25, 0.01))} if op == "LEAKY_RELU" else {}
    if s.floats and s.random.random() < 0.6:
        op, options = s.pick(_OF_FLOATS), {}
    elif s.kind == "INT8" and s.random.random() < 0.4:
        op, options = s.pick(("ABS", "NEG", "RELU_N1_TO_1")), {}
    scale, zero = s.near(s.scale(x)), None
    if op in ("LOGISTIC", "TANH") and not s.floats:
        scale, zero = (1 / 256, -128) if op == "LOGISTIC" else (1 / 128, 0)
        scale = 1 / 32768 if s.wide else scale
    s.add(op, [x], s.result(*s.shape(x), scale=scale, zero=zero), **options)


def _prelu(s: Sketch) -> None:
    if s.wide:
        raise LookupError("not of int16")
    x = s.any(4)
    channels = s.shape(x)[3]
    if s.floats:
        slopes = s.file.constant(s.random.normal(0, 0.3, (1, 1, channels)), np.float32)
    else:
        limits = np.iinfo(s.kind.lower())
        values = s.random.integers(limits.min, limits.max + 1, (1, 1, channels))
        slopes = s.file.constant(values, limits.dtype, scale=[0.004], zero_point=[limits.max - 127])
    s.add("PRELU", [x, slopes], s.result(*s.shape(x), scale=s.near(s.scale(x))))


def _softmax(s: Sketch) -> None:
    x = s.any()
    s.add(
        "SOFTMAX",
        [x],
        s.result(*s.shape(x), scale=1 / (32768 if s.wide else 256), zero=-128),
        Beta=s.pick((1.0, 1.0, 0.5)),
    )


def _requantise(s: Sketch) -> None:
    if s.kind != "INT8":
        raise LookupError("of int8 only")
    x = s.any()
    s.add("QUANTIZE", [x], s.result(*s.shape(x), scale=s.near(s.scale(x))))


def _concat(s: Sketch) -> None:
    x = s.any()
    shape, axis = s.shape(x), s.integer(1, len(s.shape(x)) - 1)
    others = [it for it in s.values if _but(s.shape(it), axis) == _but(shape, axis)]
    if s.kind in ("INT8", "INT16"):
        others = [
            it for it in others if s.tensor(it).scale == s.tensor(x).scale and _zero(s, it) == _zero(s, x)
        ]
    parts = [x, *(s.pick(others) for _ in range(s.integer(1, 2)))]
    result = list(shape)
    result[axis] = sum(s.shape(part)[axis] for part in parts)
    s.add("CONCATENATION", parts, s.like(x, *result), Axis=axis)


def _zero(s: Sketch, number: int) -> list[int]:
    return list(s.tensor(number).zero_point)


def _but(shape: Sequence[int], axis: int) -> tuple[int, ...] | None:
    return (*shape[:axis], *shape[axis + 1 :], len(shape)) if axis < len(shape) else None


def _pad(s: Sketch) -> None:
    x = s.any(4)
    amounts = [[0, 0], *([s.integer(0, 2), s.integer(0, 2)] for _ in range(2)), [0, s.pick((0, 0, 2))]]
    result = [size + sum(each) for size, each in zip(s.shape(x), amounts, strict=True)]
    s.add("PAD", [x, s.file.constant(amounts)], s.like(x, *result))


def _reduce(s: Sketch) -> None:
    x = s.any()
    rank = len(s.shape(x))
    op = s.pick(("MEAN", "REDUCE_MAX", "REDUCE_MIN", *(["SUM"] if s.floats else [])))
    op = "MEAN" if s.wide else op
    axes = s.pick(([1, 2], [1, 2], [rank - 1], [1], [1, 2, 3])) if rank == 4 else [rank - 1]
    keep = bool(s.pick((True, False)))
    result = [1 if axis in axes else size for axis, size in enumerate(s.shape(x))]
    result = result if keep else [size for axis, size in enumerate(result) if axis not in axes]
    if len(result) < 2:
        raise LookupError("nothing is left")
    y = s.like(x, *result)
    if op == "MEAN" and s.random.random() < 0.5:
        y = s.result(*result, scale=s.near(s.scale(x)))
    s.add(op, [x, s.file.constant(axes)], y, KeepDims=keep)


def _reshape(s: Sketch) -> None:
    x = s.any()
    rows = s.pick([it for it in range(1, 9) if prod(s.shape(x)) % it == 0])
    result = s.pick(
        ((1, prod(s.shape(x))), (1, rows, prod(s.shape(x)) // rows), (1, rows, prod(s.shape(x)) // rows, 1))
    )
    if s.random.random() < 0.3:
        s.file.operator("SHAPE", [x], s.file.add(len(s.shape(x)), kind="INT32"), OutType=2)
    s.add("RESHAPE", [x, s.file.constant(result)], s.like(x, *result))


def _transpose(s: Sketch) -> None:
    x = s.any()
    perm = [0, *(1 + s.random.permutation(len(s.shape(x)) - 1)).tolist()]
    s.add("TRANSPOSE", [x, s.file.constant(perm)], s.like(x, *(s.shape(x)[axis] for axis in perm)))


def _slice(s: Sketch) -> None:
    x = s.any(4)
    begins = [0, *(s.integer(0, size - 1) for size in s.shape(x)[1:])]
    sizes = [1, *(s.integer(1, size - at) for size, at in zip(s.shape(x)[1:], begins[1:], strict=True))]
    s.add("SLICE", [x, s.file.constant(begins), s.file.constant(sizes)], s.like(x, *sizes))


def _strided(s: Sketch) -> None:
    x = s.any(4, least=2)
    step = s.integer(1, 2)
    ends = list(s.shape(x))
    result = [1, *(-(-size // step) for size in ends[1:3]), ends[3]]
    ranges = [s.file.constant(each) for each in ([0] * 4, ends, [1, step, step, 1])]
    s.add("STRIDED_SLICE", [x, *ranges], s.like(x, *result), BeginMask=0)


def _split(s: Sketch) -> None:
    x = s.any()
    shape = s.shape(x)
    axes = [axis for axis in range(1, len(shape)) if shape[axis] % 2 == 0]
    if not axes:
        raise LookupError("nothing can be halved")
    axis = s.pick(axes)
    result = [size // 2 if at == axis else size for at, size in enumerate(shape)]
    parts = [s.like(x, *result) for _ in range(2)]
    s.add("SPLIT", [s.file.constant(axis), x], parts, NumSplits=2)


def _resize(s: Sketch) -> None:
    x, op = s.any(4), s.pick(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    size = [s.integer(1, 7), s.integer(1, 7)]
    options = s.pick(({}, {"AlignCorners": True}, {"HalfPixelCenters": True}))
    s.add(op, [x, s.file.constant(size)], s.like(x, 1, *size, s.shape(x)[3]), **options)


def _blocks(s: Sketch) -> None:
    if s.wide:
        raise LookupError("LiteRT has no blocks of int16")
    x = s.any(4)
    _, rows, cols, channels = s.shape(x)
    if channels % 4 == 0:
        result = s.like(x, 1, 2 * rows, 2 * cols, channels // 4)
        s.add("DEPTH_TO_SPACE", [x], result, BlockSize=2)
    elif rows % 2 == cols % 2 == 0:
        s.add("SPACE_TO_DEPTH", [x], s.like(x, 1, rows // 2, cols // 2, 4 * channels), BlockSize=2)
    else:
        raise LookupError("no blocks")


def _gather(s: Sketch) -> None:
    x = s.any()
    axis = s.integer(1, len(s.shape(x)) - 1)
    places = s.random.integers(0, s.shape(x)[axis], s.integer(1, 4)).tolist()
    result = [len(places) if at == axis else size for at, size in enumerate(s.shape(x))]
    s.add("GATHER", [x, s.file.constant(places)], s.like(x, *result), Axis=axis)


_LAYERS: tuple[tuple[Callable[[Sketch], None], float], ...] = (
    (_conv, 5), (_depthwise, 3), (_transposed, 1), (_dense, 2), (_pool, 4), (_binary, 5), (_extremum, 3),
    (_unary, 3), (_prelu, 1), (_softmax, 1), (_requantise, 1), (_concat, 3), (_pad, 2), (_reduce, 3),
    (_reshape, 2), (_transpose, 1.5), (_slice, 1), (_strided, 1), (_split, 1), (_resize, 2), (_blocks, 1),
    (_gather, 1),
)  # fmt: skip


def draw_flat(seed: int) -> DrawnFile:
    """The file of a seed."""
    random = np.random.default_rng(seed)
    kind = _KINDS[int(random.integers(len(_KINDS)))]
    s = Sketch(random, kind, FlatFile(random=random))
    for _ in range(s.pick((1, 1, 2))):
        shape = (1, s.integer(2, 9), s.integer(2, 9), s.integer(1, 6))
        s.inputs.append(s.result(*shape, scale=s.near(0.03 / _WIDER if s.wide else 0.03)))
    s.values += s.inputs
    weights = np.array([weight for _, weight in _LAYERS])
    for _ in range(s.integer(1, 9)):
        layer = _LAYERS[int(random.choice(len(_LAYERS), p=weights / weights.sum()))][0]
        before = len(s.file.operators), len(s.values)
        try:
            layer(s)
        except LookupError:
            continue
        if any(prod(s.shape(it)) > _MOST_ELEMENTS for it in s.values[before[1] :]):
            del s.file.operators[before[0] :], s.values[before[1] :]
    if not s.file.operators:
        _pool(s)
    read = {number for _, inputs, _, _ in s.file.operators for number in inputs}
    computed = [number for number in s.values if number not in s.inputs]
    outputs = [number for number in computed if number not in read or random.random() < 0.1]
    producers = {s.tensor(it).name: op for op, _, results, _ in s.file.operators for it in results}
    return DrawnFile(seed, kind.lower(), s.file.content(s.inputs, outputs), producers)
