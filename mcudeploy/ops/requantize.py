"""Conversion between real and stored values; multipliers and bounds of requantisation, see mcud_quant.h."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Quantization, Tensor
from mcudeploy.ir.opdef import Params

Integers = NDArray[np.signedinteger[Any]]
"""Weights of int8, or of int16 that take nine bits."""
Rounding = Literal["once", "tflite"]
"""How a sum is rounded to an int8 result: once, halves up, or twice, as by TFLite's reference kernels."""

INT32_MAX = 2**31 - 1
STORED = np.arange(-128, 128, dtype=np.int32)
"""Every stored value; entry i of a table belongs to STORED[i]."""
_FAST_SHIFT = 32
"""The shift that takes the upper word of a product, which costs no instruction."""
_LAST_SHIFT = 62
_LEAST_EXPONENT = 31
"""TFLite's multipliers with an exponent below -31 are 0."""
_LEAST_MULTIPLIER = 2**16
_BEYOND_INT8 = 512.0
"""Distance from the zero point beyond which a result saturates."""
_NEGLIGIBLE = 2.0**-8
"""Largest error of a result before rounding, in steps of the output."""
_INT8_REACH = 128
"""The largest absolute value of an int8."""


def quantize_scale(scales: NDArray[np.float64]) -> tuple[NDArray[np.int32], int]:
    """Multipliers and one common shift with scale = multiplier / 2^shift (see mcud_quant.h).

    `scales` has any shape, every value finite and >= 0. The shift is 32 if all multipliers then fit an int32
    and keep at least 16 bits; else it is the largest of 1..62 whose multipliers fit. Raises ValueError for
    scales that are negative, not finite, or at least 2^30.
    """
    values = np.asarray(scales, np.float64)
    if values.size == 0 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("requantisation scales must be finite and not negative")
    largest = float(values.max())
    fast = np.rint(values * 2.0**_FAST_SHIFT)
    nonzero = fast[values > 0]
    if fast.max() <= INT32_MAX and (nonzero.size == 0 or nonzero.min() >= _LEAST_MULTIPLIER):
        return fast.astype(np.int32), _FAST_SHIFT
    for shift in range(_LAST_SHIFT, 0, -1):
        if np.rint(largest * 2.0**shift) <= INT32_MAX:
            return np.rint(values * 2.0**shift).astype(np.int32), shift
    raise ValueError(f"requantisation scale {largest:g} is too large: less than 2^30 is needed")


def quantize_sums(
    name: str, scales: NDArray[np.float64], largest: NDArray[np.int64]
) -> tuple[NDArray[np.int32], int]:
    """Multipliers and `left` with scale = multiplier * 2^left / 2^32, for sums up to `largest`, by channel.

    `left` is 0 except for scales of at least 0.5. A multiplier is within 0.5 of its real value; see
    exact_bias. Kernels saturate a sum that overflows when multiplied by 2^left. Raises ValueError if that
    could change a result that does not saturate itself.
    """
    left = _left(scales)
    unsaturated = np.minimum(largest, _BEYOND_INT8 / np.maximum(scales, 2.0**-_FAST_SHIFT))
    if unsaturated.max(initial=0) * 2.0**left > INT32_MAX:
        raise ValueError(
            f"{name}: scales from {scales.min():g} to {scales.max():g} are too different for one shift"
        )
    return np.rint(scales * 2.0 ** (_FAST_SHIFT - left)).astype(np.int32), left


def _left(scales: NDArray[np.float64]) -> int:
    """The least left shift with which the multipliers of all scales fit an int32."""
    left = 0
    while np.rint(scales.max(initial=0.0) * 2.0 ** (_FAST_SHIFT - left)) > INT32_MAX:
        left += 1
    return left


def tflite_multipliers(scales: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Multipliers of 31 bits and exponents with scale = multiplier * 2^exponent / 2^31, as in TFLite.

    Raises ValueError for scales that are negative, not finite, or at least 2^30.
    """
    if scales.size == 0 or not np.all(np.isfinite(scales)) or np.any(scales < 0) or scales.max() >= 2.0**30:
        raise ValueError("requantisation scales must be finite, not negative, and less than 2^30")
    mantissas, exponents = np.frexp(scales)
    multipliers = np.floor(mantissas * 2.0**31 + 0.5)
    overflows = multipliers == 2.0**31
    multipliers, exponents = np.where(overflows, 2.0**30, multipliers), exponents + overflows
    tiny = exponents < -_LEAST_EXPONENT
    return (
        np.where(tiny, 0, multipliers).astype(np.int32),
        np.where(tiny, 0, exponents).astype(np.int8),
    )


def mean_multiplier(scale: float, count: int) -> tuple[int, int]:
    """Multiplier and exponent of a mean of `count` values: TFLite divides the multiplier of `scale` by it."""
    multipliers, exponents = tflite_multipliers(np.array([scale]))
    multiplier, exponent = int(multipliers[0]), int(exponents[0])
    bits = min(count.bit_length() - 1, 32, _LEAST_EXPONENT + exponent)
    return (multiplier << bits) // count, exponent - bits


def requantized_twice(source: Quantization, target: Quantization) -> NDArray[np.int8]:
    """int8[256], indexed by q + 128: the same real value in another quantisation, as TFLite computes it."""
    (multiplier,), (exponent,) = tflite_multipliers(np.array([source.scale / target.scale]))
    steps = STORED.astype(np.int64) - source.zero_point
    scaled = rounded_twice(steps, int(multiplier), int(exponent)) + target.zero_point
    return np.clip(scaled, -128, 127).astype(np.int8)


def rounded_twice(sums: NDArray[np.int64], multiplier: int, exponent: int) -> NDArray[np.int64]:
    """The results of mcud_scale_twice."""
    once = (sums * 2 ** max(exponent, 0) * multiplier + 2**30) >> 31
    right = max(-exponent, 0)
    twice = once if right == 0 else (once + 2 ** (right - 1) + (once >> 31)) >> right
    return np.asarray(twice, np.int64)


def largest_products(weights: Integers) -> NDArray[np.int64]:
    """The largest absolute value of the sum of a channel's products, for weights [K, ...]."""
    sums = np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1)
    return np.asarray(_INT8_REACH * sums, np.int64)


def exact_bias(
    weights: Integers,
    bias: NDArray[np.int32],
    scales: NDArray[np.float64],
    multipliers: NDArray[np.int32],
    left: int,
) -> NDArray[np.int32]:
    """The bias [K] whose product with the rounded multiplier equals that of `bias` with the exact scale.

    It is clipped so that sums fit an int32. A tiny scale has a multiplier of few bits, and its bias may
    dominate a sum near 2^31. The multiplier's rounding error then affects the sum of products only.
    """
    most = INT32_MAX - largest_products(weights)
    wanted = scales * 2.0 ** (_FAST_SHIFT - left) * bias / np.maximum(multipliers, 1)
    return np.where(multipliers > 0, np.rint(np.clip(wanted, -most, most)), bias).astype(np.int32)


def settle_channels(
    weights: Integers, bias: NDArray[np.int32], scales: NDArray[np.float64]
) -> tuple[Integers, NDArray[np.int32], NDArray[np.float64]]:
    """Weights [K, ...], bias and scales, with a coarser scale for channels of constant result that need it.

    Training leaves dead channels: their weights are negligible beside their huge bias, and their scale is
    tiny. If no bias compensates the rounding of such a multiplier (see exact_bias), the channel becomes a
    bias in steps of 2^-16, with weights 0.
    """
    reach = largest_products(weights)
    exact = scales * 2.0 ** (_FAST_SHIFT - _left(scales))
    inexact = np.abs(bias.astype(np.int64)) * exact > np.rint(exact) * (INT32_MAX - reach)
    constant = (reach * scales < _NEGLIGIBLE) & inexact
    results = np.clip(bias * scales, -_BEYOND_INT8, _BEYOND_INT8)
    return (
        np.where(constant.reshape(-1, *[1] * (weights.ndim - 1)), 0, weights).astype(weights.dtype),
        np.where(constant, np.rint(results * 2.0**16), bias).astype(np.int32),
        np.where(constant, 2.0**-16, scales),
    )


def quantization_of(tensor: Tensor) -> Quantization:
    """The quantisation of an int8 tensor. Raises ValueError if there is none."""
    if tensor.quantization is None:
        raise ValueError(f"{tensor.name} is {tensor.dtype} without a quantisation")
    return tensor.quantization


def quantize(values: NDArray[np.float32], quantization: Quantization) -> NDArray[np.int8]:
    """Apply QuantizeLinear as ONNX Runtime does: float32 division, half to even, saturation.

    A NaN becomes the lowest value, as in the kernels.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(values.astype(np.float32) / np.float32(quantization.scale))
    whole = np.where(np.isnan(scaled), -np.inf, scaled) + np.float32(quantization.zero_point)
    return np.asarray(np.clip(whole, -128, 127), np.int8)


def dequantize(values: NDArray[np.generic], quantization: Quantization) -> NDArray[np.float32]:
    """Apply DequantizeLinear in float32; `values` are int8 (uint8 minus 128)."""
    offset = values.astype(np.int32) - np.int32(quantization.zero_point)
    return np.asarray(offset.astype(np.float32) * np.float32(quantization.scale), np.float32)


def dequantize_table(quantization: Quantization) -> NDArray[np.float32]:
    """float32[256], indexed by q + 128: the real value of each stored value."""
    return dequantize(STORED, quantization)


def requantization_table(source: Quantization, target: Quantization) -> NDArray[np.int8]:
    """int8[256], indexed by q + 128: the same real value in another quantisation."""
    return quantize(dequantize_table(source), target)


def quantize_value(value: float, quantization: Quantization) -> int:
    """Quantise one real value; infinities saturate."""
    with np.errstate(over="ignore"):
        return int(quantize(np.array(value, np.float32), quantization))


def clamp_bounds(quantization: Quantization, low: float, high: float) -> tuple[int, int]:
    """Clamp bounds in the quantised domain for a clip to [low, high] in real values."""
    return quantize_value(low, quantization), quantize_value(high, quantization)


def quant(multiplier: int, shift: int, output: Quantization) -> Params:
    """The group `quant` of a kernel's parameters, with one multiplier; see mcud_params.h."""
    return {"quant.zero_point": output.zero_point, "quant.multiplier": multiplier, "quant.shift": shift}


def check_accumulator(name: str, largest: NDArray[np.int64], scales: NDArray[np.float64]) -> None:
    """Refuse an operator whose int32 sums, or their rescaled values, could overflow.

    `largest` bounds the absolute accumulator of each channel, `scales` are the requantisation scales
    (broadcast against it). Raises ValueError naming the channel and the bound.
    """
    if largest.size and int(largest.max()) > INT32_MAX:
        channel = int(largest.argmax())
        raise ValueError(
            f"{name}: the accumulator of channel {channel} can reach {int(largest.max())}, int32 ends at "
            f"{INT32_MAX}; the weights or the bias are too large for int8 execution"
        )
    scaled = largest.astype(np.float64) * scales + 256
    if scaled.size and float(scaled.max()) >= INT32_MAX:
        raise ValueError(
            f"{name}: a requantised value can reach {float(scaled.max()):.3g}, int32 ends at {INT32_MAX}; "
            "the output scale is too small"
        )
