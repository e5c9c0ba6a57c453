"""The arithmetic of the signal operators as ONNX functions, for ONNX Runtime, which has no such operators.

Docstrings list the inputs of a function. Inputs and results have the element types of the file; values
between are int64, or float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from mcudeploy.extensions.audio.filter_bank import (
    FilterBankLog,
    NoiseEstimate,
    NoiseSubtract,
    Pcan,
    log_corrections,
)
from mcudeploy.extensions.audio.signal import OverlapAdd, RunCount, SignalEnergy
from mcudeploy.frontend.tflite.formula import Expression, Formula

SHORT = (-(2**15), 2**15 - 1)


def window(f: Formula, shift: int) -> Expression:
    """Inputs x and weights."""
    return f.cast(((f.given("x") * f.given("weights")) >> shift).clipped(*SHORT), "int16")


def headroom(f: Formula) -> Expression:
    """Input x. The largest magnitude is found sample by sample, since that of -32768 wraps around."""
    (largest,) = f.results(
        "Scan", [f.constant(0).name, f.given("x").reshaped(-1).name], 1, body=_larger(), num_scan_inputs=1
    )
    bits = f.bit_length((largest > 0).choose(largest, 0)).reshaped()
    return f.cast((largest > 0).choose(f.constant(15) - bits, 0), "int32")


def _larger() -> object:
    """The body of the scan: from the largest magnitude so far and the next sample to the larger magnitude."""
    body = Formula(prefix="inner")
    largest, value = Expression(body, "largest"), Expression(body, "value")
    magnitude = (-value).wrapped(16)
    larger = (value > largest).choose(value, (-value > largest).choose(magnitude, largest))
    body.result("larger", larger)
    infos = [
        helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in ("largest", "value", "larger")
    ]
    return helper.make_graph(body.nodes, "larger", infos[:2], infos[2:])


def shift(f: Formula) -> Expression:
    """Inputs x and bits."""
    return f.cast((f.given("x") * f.power_of_two(f.given("bits") % 16)).wrapped(16), "int16")


def energy(f: Formula, op: SignalEnergy, points: int) -> Expression:
    """Input x."""
    squares = f.given("x") * f.given("x")
    sums = f.node("ReduceSum", squares.reshaped(points, 2), f.constant([1]), keepdims=0)
    inside = [int(op.first <= at < op.end) for at in range(points)]
    return f.cast(sums * f.constant(inside), "uint32")


def filter_bank_root(f: Formula, places: Sequence[Sequence[int]], widths: Sequence[int]) -> Expression:
    """Inputs x, weights, rest and bits. `places`: the first points, and the first weights, of all ranges."""
    x, weights, rest = (f.given(name).reshaped(-1) for name in ("x", "weights", "rest"))
    next_channel, channels = f.constant([0]), []
    for point, weight, width in zip(*places, widths, strict=True):
        energies = x.slice(point, point + width, 0)
        by_weights, by_rest = (
            f.node("ReduceSum", energies * it.slice(weight, weight + width, 0), f.constant([0]), keepdims=1)
            for it in (weights, rest)
        )
        channels.append(next_channel + by_weights)
        next_channel = by_rest
    roots = _root(f.joined(channels[1:], 0))
    return f.cast(roots // f.power_of_two(f.given("bits") % 32), "uint32")


def _root(value: Expression) -> Expression:
    """The root of numbers below 2^62, rounded to nearest; for numbers below 2^32 at most 65,535."""
    root = value - value
    for bit in reversed(range(31)):
        trial = root + (1 << bit)
        root = (trial * trial <= value).choose(trial, root)
    most = (value < 2**32).choose(2**16 - 1, 2**32 - 1)
    return (value - root * root > root).both(root < most).choose(root + 1, root)


def noise_estimate(f: Formula, op: NoiseEstimate, channels: int) -> Expression:
    """Inputs x and state."""
    factors = ([op.even, op.odd] * channels)[:channels]
    newest, earlier = f.constant([it.newest for it in factors]), f.constant([it.earlier for it in factors])
    signal = (f.given("x") * (1 << op.scale_bits)).wrapped(32, signed=False)
    estimate = ((signal * newest + f.given("state") * earlier) >> op.bits).wrapped(32, signed=False)
    return f.cast((estimate > signal).choose(signal, estimate) if op.clamped else estimate, "uint32")


def noise_subtract(f: Formula, op: NoiseSubtract) -> Expression:
    """Inputs x and noise."""
    x, noise = f.given("x"), f.given("noise")
    signal = (x * (1 << op.scale_bits)).wrapped(32, signed=False)
    rest = (noise > signal).choose(0, (signal - noise) >> op.scale_bits)
    least = ((x * op.least) >> op.bits).wrapped(32, signed=False)
    return f.cast((rest > least).choose(rest, least), "uint32")


def pcan(f: Formula, op: Pcan) -> Expression:
    """Inputs x, noise and gains."""
    x, noise, gains = f.given("x"), f.given("noise"), f.given("gains")
    bits = f.bit_length(noise)
    curve = (bits * 4 - 6).clipped(0, 122)
    below = f.power_of_two((-bits + 11).clipped(0, 11))
    above = f.power_of_two((bits - 11).clipped(0, 21))
    place = (noise * below // above) % 1024
    slope = (((gains.at(curve + 2) * place) >> 5) + gains.at(curve + 1) * 32).wrapped(32)
    rise = (slope * place + (1 << 14)).wrapped(32) >> 15
    gain = (noise <= 2).choose(gains.at(noise.clipped(0, 2)), (rise + gains.at(curve)).wrapped(16))
    product = f.cast(x * gain.wrapped(32, signed=False), "uint64")
    bits_right = f.node("Constant", value=helper.make_tensor("bits", TensorProto.UINT64, [], [op.shift]))
    snr = f.cast(f.node("BitShift", product, bits_right, direction="RIGHT"), "uint32")
    snr = f.cast(snr, "int64")
    compressed = (snr < 2 << 12).choose((snr * snr) >> 20, (snr >> 6) - 64)
    return f.cast(compressed.wrapped(32, signed=False), "uint32")


def filter_bank_log(f: Formula, op: FilterBankLog) -> Expression:
    """Input x."""
    value = (f.given("x") * (1 << op.shift)).wrapped(32, signed=False)
    whole = (f.bit_length(value) - 1).clipped(0, 31)
    above = (value > 1).choose(value, 1) - f.power_of_two(whole)
    fraction = (
        above * f.power_of_two((-whole + 16).clipped(0, 16)) // f.power_of_two((whole - 16).clipped(0, 15))
    )
    corrections = f.constant(log_corrections().astype(np.int64))
    line = (fraction >> 9).clipped(0, 127)
    first = corrections.at(line)
    rise = ((corrections.at(line + 1) - first) * (fraction - line * 512)) >> 16
    binary = whole * 65536 + fraction + first + rise
    natural = (binary * 45426 + 32768) >> 16
    scaled = (natural * op.scale + 32768).wrapped(32, signed=False) >> 16
    return f.cast((value > 1).choose(scaled.clipped(0, SHORT[1]), 0), "int16")


def run_count(f: Formula, op: RunCount) -> tuple[Expression, Expression]:
    """Input state. Returns the flags and the next state."""
    runs = f.given("state")
    due = f.cast((runs + 1 > op.first).both((runs - op.first) % op.period < 1), "int64")
    flags = f.cast(f.joined([due, f.cast(runs < 1, "int64")], 0), "bool")
    after = runs + 1
    after = (after > op.first + op.period).choose(after - op.period, after)
    return flags, f.cast(after, "int32")


def stack(f: Formula, frames: int, channels: int) -> Expression:
    """Inputs x [channels], state [1, frames, channels] and flags [2]."""
    x = f.given("x").reshaped(1, 1, channels)
    moved = f.joined([f.given("state").slice(1, frames, 1), x], 1)
    first = Expression(f, "flags").slice(1, 2, 0).reshaped(1, 1, 1)
    return f.cast(first.choose(f.node("Expand", x, f.constant([1, frames, channels])), moved), "int16")


def overlap_add(f: Formula, op: OverlapAdd, frames: int, size: int) -> tuple[Expression, Expression]:
    """Inputs x [frames, size] and state [1, 1, size], int16 or float32. Returns sums and the next state."""
    integers = f.number is np.int64
    x, state = f.given("x").reshaped(frames, size), f.given("state").reshaped(1, size)
    zeros = f.constant(np.zeros((1, op.step)), f.number)
    sums = []
    for frame in range(frames):
        state = state + x.slice(frame, frame + 1, 0)
        state = state.clipped(*SHORT) if integers else state
        sums.append(state.slice(0, op.step, 1))
        state = f.joined([state.slice(op.step, size, 1), zeros], 1)
    values, state = f.joined(sums, 0), state.reshaped(1, 1, size)
    return (f.cast(values, "int16"), f.cast(state, "int16")) if integers else (values, state)
