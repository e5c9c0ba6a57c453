"""Files with resource variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from flat_files import NONE, VALID, FlatFile

CHANNELS = 6


def queue(
    f: FlatFile,
    *,
    newest: int = 1,
    kept: int = 4,
    kind: str = "INT8",
    filled: bool = True,
    tail: str = "SLICE",
) -> Any:
    """A depthwise convolution over the last rows of a sequence, which a variable keeps.

    `tail`: the operator that leaves out the oldest rows before the variable is assigned; "" if the variable
    keeps them, and they are left out before the newest are joined.
    """
    x, rows = _activation(f, kind, 1, newest, 1, CHANNELS), kept + newest
    handle = f.variable("rows")
    stored = kept if tail else rows
    before = f.operator("READ_VARIABLE", [handle], _activation(f, kind, 1, stored, 1, CHANNELS))
    begin = f.constant([0, newest, 0, 0])
    if not tail:
        older = _activation(f, kind, 1, kept, 1, CHANNELS)
        before = f.operator("SLICE", [before, begin, f.constant([-1] * 4)], older)
    whole = _activation(f, kind, 1, rows, 1, CHANNELS)
    f.operator("CONCATENATION", [before, x], whole, Axis=1, FusedActivationFunction=NONE)
    after = _activation(f, kind, 1, kept, 1, CHANNELS) if tail else whole
    if tail == "SLICE":
        f.operator("SLICE", [whole, begin, f.constant([-1] * 4)], after)
    elif tail:
        masks = {"BeginMask": 13, "EndMask": 15, "EllipsisMask": 0, "NewAxisMask": 0, "ShrinkAxisMask": 0}
        f.operator("STRIDED_SLICE", [whole, begin, f.constant([0] * 4), f.constant([1] * 4)], after, **masks)
    f.operator("ASSIGN_VARIABLE", [handle, after], [])
    y = f.int8(1, 1, 1, CHANNELS, scale=0.4) if kind == "INT8" else f.add(1, 1, 1, CHANNELS)
    if kind == "INT8":
        weights = f.weights(1, rows, 1, CHANNELS, axis=3)
        bias = f.bias(x, weights, CHANNELS)
    else:
        weights = f.floats(1, rows, 1, CHANNELS, spread=0.5)
        bias = f.constant(np.zeros(CHANNELS), np.float32)
    options = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    f.operator(
        "DEPTHWISE_CONV_2D",
        [whole, weights, bias],
        y,
        DepthMultiplier=1,
        FusedActivationFunction=NONE,
        **options,
    )
    if filled:
        f.call_once(rows=_initial(f, kind, 1, stored, 1, CHANNELS))
    return [x], [y]


def mixed_kernels(f: FlatFile, *, apart: str = "") -> Any:
    """Halves of the channels of a queue, filtered over its last 3 and 5 rows. `apart`: why these are separate
    convolutions.
    """
    (x,), _ = queue(f, newest=1, kept=4)
    f.operators.pop(-1)  # the convolution
    (whole,) = next(outputs for op, _, outputs, _ in f.operators if op == "CONCATENATION")
    half, rows = CHANNELS // 2, (3, 5)
    parts = [f.int8(1, 5, 1, half) for _ in rows]
    f.operator("SPLIT_V", [whole, f.constant([half, half]), f.constant(3)], parts)
    last = f.int8(1, 3, 1, half)
    f.operator("SLICE", [parts[0], f.constant([0, 2, 0, 0]), f.constant([-1] * 4)], last)
    results = []
    for count, source in zip(rows, (last, parts[1]), strict=True):
        scale = 0.2 if apart == "scale" and results else 0.4
        y = f.int8(1, 1, 1, half, scale=scale)
        weights = f.weights(1, count, 1, half, axis=3)
        options = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DepthMultiplier": 1}
        options |= {"DilationHFactor": 1, "DilationWFactor": 1, "FusedActivationFunction": NONE}
        results.append(
            f.operator("DEPTHWISE_CONV_2D", [source, weights, f.bias(x, weights, half)], y, **options)
        )
    result = f.int8(1, 1, 1, CHANNELS, scale=0.4)
    in_order = results[::-1] if apart == "order" else results
    f.operator("CONCATENATION", in_order, result, Axis=3, FusedActivationFunction=NONE)
    return [x], [result, *results[:1]] if apart == "reader" else [result]


def running_sum(f: FlatFile) -> Any:
    """y = x + s, s = y / 2 (as y + y in a coarser scale): a variable that is read twice."""
    x, y = f.add(1, CHANNELS), f.add(1, CHANNELS)
    handle = f.variable("sum")
    first, second = (f.operator("READ_VARIABLE", [handle], f.add(1, CHANNELS)) for _ in range(2))
    half = f.constant(np.full((1, CHANNELS), 0.25), np.float32)
    added = f.operator("ADD", [x, first], f.add(1, CHANNELS), FusedActivationFunction=NONE)
    f.operator("ADD", [added, second], y, FusedActivationFunction=NONE)
    after = f.operator("MUL", [y, half], f.add(1, CHANNELS), FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [handle, after], [])
    f.call_once(sum=f.constant(np.arange(CHANNELS).reshape(1, CHANNELS), np.float32))
    return [x], [y]


def difference(f: FlatFile, *, kind: str = "INT8") -> Any:
    """y = x less the x of the last inference: what the variable is assigned does not depend on it."""
    x, before = _activation(f, kind, 1, CHANNELS), _activation(f, kind, 1, CHANNELS)
    y = f.int8(1, CHANNELS, scale=0.1, zero=5) if kind == "INT8" else f.add(1, CHANNELS)
    handle = f.variable("last")
    f.operator("READ_VARIABLE", [handle], before)
    f.operator("SUB", [x, before], y, FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [handle, x], [])
    return [x], [y]


def read_after_assignment(f: FlatFile) -> Any:
    """A variable that is read before and after it is assigned, and one that never is."""
    x, y = f.add(1, CHANNELS), f.add(1, CHANNELS)
    handle, fixed = f.variable("last"), f.variable("fixed")
    before = f.operator("READ_VARIABLE", [handle], f.add(1, CHANNELS))
    constant = f.operator("READ_VARIABLE", [fixed], f.add(1, CHANNELS))
    mixed = f.operator("MAXIMUM", [before, constant], f.add(1, CHANNELS))
    result = f.operator("ADD", [x, mixed], f.add(1, CHANNELS), FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [handle, result], [])
    again = f.operator("READ_VARIABLE", [handle], f.add(1, CHANNELS))
    f.operator("MINIMUM", [again, x], y)
    f.call_once(fixed=f.constant(np.full((1, CHANNELS), -0.5), np.float32))
    return [x], [y]


def crossed(f: FlatFile) -> Any:
    """Two variables, each of which is assigned a function of the other."""
    x, y = f.add(1, CHANNELS), f.add(1, CHANNELS)
    handles = [f.variable(name) for name in ("a", "b")]
    a, b = (f.operator("READ_VARIABLE", [handle], f.add(1, CHANNELS)) for handle in handles)
    results = [
        f.operator("ADD", [x, each], f.add(1, CHANNELS), FusedActivationFunction=NONE) for each in (b, a)
    ]
    for handle, each in zip(handles, results, strict=True):
        f.operator("ASSIGN_VARIABLE", [handle, each], [])
    f.operator("MUL", results, y, FusedActivationFunction=NONE)
    return [x], [y]


def _activation(f: FlatFile, kind: str, *shape: int) -> int:
    if kind == "FLOAT32":
        return f.add(*shape)
    zero = {"INT8": -3, "UINT8": 125}[kind]
    return f.add(*shape, kind=kind, scale=(0.05,), zero_point=(zero,))


def _initial(f: FlatFile, kind: str, *shape: int) -> int:
    if kind == "FLOAT32":
        return f.floats(*shape)
    limits = np.iinfo(kind.lower())
    return f.constant(f.random.integers(limits.min, limits.max + 1, shape), kind.lower())
