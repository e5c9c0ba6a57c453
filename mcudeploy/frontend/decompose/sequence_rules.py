"""Rules for networks over sequences: recurrent operators, parts of transformers, state-space models."""

from __future__ import annotations

from math import prod, sqrt

from onnx import helper

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.ops.scalar.functions import GELU_CUBIC, GELU_SLOPE

_SEQUENCE, _LENGTHS = 0, 4
_STATES = range(5, 7)
"""Positions of a recurrent node's inputs: the sequence, the lengths, the initial states."""
_BATCH_AXES = (2, 1, 1)
"""The batch axis of each result with layout 0, steps first."""
_TO_BATCH_FIRST = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
"""For each result, the order of its axes that turns layout 0 into layout 1, batch first."""


def batched(make: Maker) -> None:
    """Replace LSTM, GRU and RNN with layout 1, a batch, or sequences that end early.

    Each sequence gets a node with layout 0, steps first.
    """
    by_batch = make.integer("layout")
    sizes = make.shape(make.inputs[0])
    steps, batch = (0, 1) if sizes is None else (sizes[by_batch], sizes[1 - by_batch])
    lengths = _lengths(make, steps, batch)
    if batch == 1 and not by_batch and lengths is None:
        return
    inputs = list(make.inputs)
    if by_batch:
        for position in (_SEQUENCE, *_STATES):
            if make.input(position):
                inputs[position] = make.add("Transpose", inputs[position], perm=[1, 0, 2])
    if batch > 1:
        _require_states(make, batch, by_batch)
    results = [_one(make, inputs, at if batch > 1 else None, lengths) for at in range(batch)]
    for number, name in enumerate(make.outputs):
        if not name:
            continue
        values = [result[number] for result in results]
        if number == 0 and lengths is not None:
            values = [_filled(make, it, steps - length) for it, length in zip(values, lengths, strict=True)]
        joined = values[0] if batch == 1 else make.add("Concat", *values, axis=_BATCH_AXES[number])
        if by_batch:
            make.add("Transpose", joined, out=name, perm=list(_TO_BATCH_FIRST[number]))
        else:
            make.add("Identity", joined, out=name)


def _lengths(make: Maker, steps: int, batch: int) -> list[int] | None:
    """The number of steps of each sequence; None if all have as many as the input.

    Raises Unsupported for wrong lengths.
    """
    name = make.input(_LENGTHS)
    if not name or not steps:
        return None
    lengths = [int(length) for length in make.constant_of(name, "sequence_lens").reshape(-1)]
    if len(lengths) != batch or not all(0 < length <= steps for length in lengths):
        raise Unsupported(f"sequence_lens {lengths[:8]} for {batch} sequences of 1 to {steps} steps")
    return None if set(lengths) == {steps} else lengths


def _filled(make: Maker, steps: str, missing: int) -> str:
    """The results of all steps; they are 0 after the end of the sequence."""
    return make.add("Pad", steps, make.int64([0] * 4 + [missing, 0, 0, 0])) if missing else steps


def _require_states(make: Maker, batch: int, by_batch: int) -> None:
    """Raise Unsupported unless the initial states have the same batch as the sequences."""
    for position in _STATES:
        name = make.input(position)
        if name and make.sizes(name)[0 if by_batch else 1] != batch:
            raise Unsupported(
                f"its states are not those of {batch} sequences: a kept state has a batch of 1. Export the "
                "model for one sequence, or leave out --stateful"
            )


def _one(make: Maker, inputs: list[str], sequence: int | None, lengths: list[int] | None) -> list[str]:
    """Results for one sequence of a batch (None: for the whole batch), up to its end."""
    one_inputs = list(inputs)
    if sequence is not None:
        bounds = [make.int64(bound) for bound in ([sequence], [sequence + 1], [1])]
        for position in (_SEQUENCE, *_STATES):
            if make.input(position):
                one_inputs[position] = make.add("Slice", inputs[position], *bounds)
    if lengths is not None:
        one_inputs[_SEQUENCE] = make.slice(one_inputs[_SEQUENCE], [0], [lengths[sequence or 0]], [0])
    if len(one_inputs) > _LENGTHS:
        one_inputs[_LENGTHS] = ""
    outputs = [
        f"{make.stem}/{len(make.nodes)}/{number}" if name else "" for number, name in enumerate(make.outputs)
    ]
    attributes = {name: value for name, value in make.attributes.items() if name != "layout"}
    make.nodes.append(helper.make_node(make.op, one_inputs, outputs, name=make.label, **attributes))
    return outputs


_QUICK_SLOPE = 1.702
"""Slope of QuickGelu's sigmoid if the node states none."""


def gelu(make: Maker) -> None:
    """Replace Gelu and BiasGelu: the product of x and the normal distribution function of x."""
    x = _biased(make)
    share = make.add("Erf", make.add("Mul", x, make.constant(sqrt(0.5))))
    _share_of(make, x, share, make.outputs[0])


def fast_gelu(make: Maker) -> None:
    """Replace FastGelu, which approximates the distribution function by tanh."""
    x = _biased(make)
    cube = make.add("Mul", make.add("Mul", x, x), x)
    inner = make.add("Add", x, make.add("Mul", cube, make.constant(GELU_CUBIC)))
    share = make.add("Tanh", make.add("Mul", inner, make.constant(GELU_SLOPE)))
    _share_of(make, x, share, make.outputs[0])


def quick_gelu(make: Maker) -> None:
    """Replace QuickGelu: the product of x and a sigmoid of x."""
    x = make.inputs[0]
    gate = make.add("Sigmoid", make.add("Mul", x, make.constant(make.number("alpha", _QUICK_SLOPE))))
    make.add("Mul", x, gate, out=make.outputs[0])


def _biased(make: Maker) -> str:
    """The sum of the first input and the bias, if there is one."""
    x, bias = make.all_inputs(2)
    return make.add("Add", x, bias) if bias else x


def _share_of(make: Maker, x: str, share: str, out: str) -> None:
    """Write x * (1 + share) / 2."""
    half = make.add("Mul", x, make.constant(0.5))
    make.add("Mul", half, make.add("Add", share, make.constant(1.0)), out=out)


_TO_END = 2**31 - 1
"""End of a Slice that takes all further elements."""


def swiglu(make: Maker) -> None:
    """Replace SwiGLU: the product of swish(a) and b."""
    a, b = make.inputs
    slope = make.number("alpha", 1.0)
    scaled = a if slope == 1 else make.add("Mul", a, make.constant(slope))
    gate = make.add("Mul", a, make.add("Sigmoid", scaled))
    make.add("Mul", gate, b, out=make.outputs[0])


def rotary_embedding(make: Maker) -> None:
    """Rotate pairs of features by the angle of their position."""
    shape, heads = make.sizes(make.inputs[0]), make.integer("num_heads")
    x, head_shape = make.inputs[0], shape
    if len(shape) == 3:
        if heads < 1:
            raise Unsupported("inputs of 3 dimensions need num_heads")
        head_shape = (shape[0], shape[1], heads, shape[2] // heads)
        x = make.reshaped(x, head_shape)
    width = make.integer("rotary_embedding_dim") or head_shape[-1]
    length = head_shape[1] if len(shape) == 3 else head_shape[2]
    cos, sin = (_angles(make, name, length, width // 2, flat=len(shape) == 3) for name in make.inputs[1:3])
    turned = _turned(make, x, (cos, sin), (*head_shape[:-1], width))
    if width < head_shape[-1]:
        turned = make.add("Concat", turned, _part(make, x, width, _TO_END), axis=3)
    make.reshaped(turned, shape, out=make.outputs[0])


def _angles(make: Maker, name: str, length: int, half: int, *, flat: bool) -> str:
    """Sines or cosines for each position, shared by all heads."""
    if make.input(3):
        name = make.add("Gather", name, make.input(3), axis=0)
    return make.reshaped(name, (-1, length, 1, half) if flat else (-1, 1, length, half))


def _turned(make: Maker, x: str, angles: tuple[str, str], shape: tuple[int, ...]) -> str:
    """Rotate the part of x of the given `shape`."""
    (cos, sin), width = angles, shape[-1]
    if make.integer("interleaved"):
        first, second = _part(make, x, 0, width, 2), _part(make, x, 1, width, 2)
    else:
        first, second = _part(make, x, 0, width // 2), _part(make, x, width // 2, width)
    real = make.add("Sub", make.add("Mul", cos, first), make.add("Mul", sin, second))
    imaginary = make.add("Add", make.add("Mul", sin, first), make.add("Mul", cos, second))
    if not make.integer("interleaved"):
        return make.add("Concat", real, imaginary, axis=3)
    pairs = (prod(shape) // 2, 1)
    beside = make.add("Concat", make.reshaped(real, pairs), make.reshaped(imaginary, pairs), axis=1)
    return make.reshaped(beside, shape)


def _part(make: Maker, x: str, first: int, end: int, step: int = 1) -> str:
    """Select elements along the last of 4 axes."""
    return make.slice(x, [first], [end], [3], [step])


def causal_conv(make: Maker) -> None:
    """Replace CausalConvWithState by a depthwise convolution of the last inputs of earlier calls and the new.

    The second output has the last inputs for the next call.
    """
    x, weights, bias, past = make.all_inputs(4)
    (_, channels, length), kernel = make.sizes(x), make.sizes(weights)[2]
    history, activation = kernel - 1, make.attributes.get("activation", b"none")
    extended = x
    if past and history:
        extended = make.add("Concat", past, x, axis=2)
    elif history:
        extended = make.add("Pad", x, make.int64([0, 0, history, 0, 0, 0]))
    if make.output(1):
        make.slice(extended, [length], [length + history], [2], out=make.output(1))
    inputs = [extended, weights, bias] if bias else [extended, weights]
    convolved = make.add("Conv", *inputs, group=channels)
    if activation == b"none":
        make.add("Identity", convolved, out=make.outputs[0])
    else:
        make.add("Mul", convolved, make.add("Sigmoid", convolved), out=make.outputs[0])
