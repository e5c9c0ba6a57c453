"""Constants of convolutions: checked, quantised and packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir import graph
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.opdef import ConstantArray, Params, RoundingErrors
from mcudeploy.ops import requantize
from mcudeploy.ops.conv.packing import (
    pack_blocks,
    pack_four_rows,
    pack_fours,
    pack_fours_and_ones,
    pack_pair_windows,
    pack_records,
    pack_row_pairs,
    pack_taps,
    scaled_weights,
)
from mcudeploy.ops.requantize import Integers

FOUR = 4
"""Output channels that kernels multiply with one pixel at a time; channels of a depthwise block."""


@dataclass(frozen=True, slots=True)
class Results:
    """How the sums of a convolution become results: rounded if int8, then clipped to [low, high], in real
    values.
    """

    low: float
    high: float
    rounding: requantize.Rounding = "once"


@dataclass(frozen=True, slots=True, eq=False)
class ConvConstants:
    """The unpacked constants of a convolution.

    Results that are rounded twice also need `exponents`, or two multipliers a channel, [K][2]; see
    conv_twice. Convolutions of floats have no multipliers; their int8 weights have a `scale` by channel.
    """

    weights: NDArray[Any]
    bias: NDArray[Any]
    multipliers: NDArray[np.int32] | None = None
    exponents: NDArray[np.int8] | None = None
    scale: NDArray[np.float32] | None = None

    def same_as(self, other: ConvConstants) -> bool:
        """Whether all arrays are equal."""
        ours, others = self.arrays(), other.arrays()
        return ours.keys() == others.keys() and all(np.array_equal(ours[it], others[it]) for it in ours)  # type: ignore[arg-type]

    def arrays(self) -> Params:
        """Return the integer constants that exist, by the name of their parameter."""
        arrays = {
            "weights": self.weights,
            "bias": self.bias,
            "multipliers": self.multipliers,
            "exponents": self.exponents,
        }
        return {name: array for name, array in arrays.items() if array is not None}

    @property
    def mve_multipliers(self) -> NDArray[np.int32]:
        """The multipliers as kernels for MVE take them: the first of two, a uint32, is halved."""
        assert self.multipliers is not None
        if self.multipliers.ndim == 1:
            return self.multipliers
        first, second = self.multipliers.T
        return np.stack([(first.view(np.uint32) >> 1).astype(np.int32), second], axis=1)

    def packed(self, *, runs: int, block: int, groups: int = 1) -> Params:
        """int8 constants in records of `block` output channels; see pack_blocks."""
        return self._records(pack_blocks(self.weights, groups, runs, block), groups, block)

    def packed_fours(self, *, runs: int, groups: int = 1) -> Params:
        """int8 constants in records of four output channels and of one; see pack_fours_and_ones."""
        assert self.multipliers is not None
        records = pack_fours_and_ones(self.bias, self.weights, self.multipliers, groups, runs)
        return {"packed_weights": records}

    def reals(self) -> NDArray[np.float32]:
        """The weights of a convolution of floats, as float32."""
        return self.weights if self.scale is None else scaled_weights(self.weights, self.scale)

    def packed_floats(self, groups: int = 1) -> Params:
        """float32 constants in blocks of four channels; see pack_fours."""
        return {"weights": pack_fours(self.reals(), groups), "bias": pack_fours(self.bias, groups)}

    def packed_scaled(self, groups: int = 1) -> Params:
        """int8 weights with their scale and a float32 bias, in blocks of four channels; see pack_fours."""
        assert self.scale is not None
        return {
            "weights": pack_fours(self.weights, groups),
            "scale": pack_fours(self.scale, groups),
            "bias": pack_fours(self.bias, groups),
        }

    def packed_taps(self) -> Params:
        """int8 depthwise constants in records of four channels; see pack_taps."""
        return self._records(pack_taps(self.weights.reshape(len(self.weights), -1)), 1, FOUR)

    def packed_row_pairs(self) -> Params:
        """int8 depthwise constants of 3x3 windows, in a record for each channel; see pack_row_pairs."""
        assert self.multipliers is not None
        return {"packed_weights": pack_row_pairs(self.bias, self.weights.reshape(-1, 3, 3), self.multipliers)}

    def packed_pair_windows(self, stride: int) -> Params:
        """int8 depthwise constants in a record for each channel; see pack_pair_windows."""
        assert self.multipliers is not None
        weights = self.weights.reshape(self.weights.shape[:3])
        return {"packed_weights": pack_pair_windows(self.bias, weights, self.multipliers, stride)}

    def packed_four_rows(self) -> Params:
        """int8 depthwise constants of 3x3 windows, in a record for each channel; see pack_four_rows."""
        weights = self.weights.reshape(-1, 3, 3)
        return {"packed_weights": pack_four_rows(self.bias, weights, self.mve_multipliers)}

    def _records(self, weights: NDArray[np.int32], groups: int, block: int) -> Params:
        assert self.multipliers is not None
        return {"packed_weights": pack_records(self.bias, weights, self.multipliers, groups, block)}


def check_constants(operator: Operator, needed: tuple[int, ...]) -> None:
    """Raise ValueError if the weights have another shape than `needed`, or the bias does not fit it."""
    weights, bias = operator.constants["weights"], operator.constants["bias"]
    if weights.shape != needed:
        raise ValueError(f"{operator.name}: weights {list(weights.shape)} instead of {list(needed)}")
    if bias.shape != needed[:1]:
        raise ValueError(f"{operator.name}: bias needs {needed[0]} values")
    if weights.dtype.kind == "i" and operator.constants["weight_scale"].shape != needed[:1]:
        raise ValueError(f"{operator.name}: weights of integers need {needed[0]} scales")


def numbers_of(
    results: Results, operator: Operator, source: Tensor, output: Tensor
) -> tuple[ConvConstants, Params]:
    """The constant arrays, and the `numbers`: the scalar parameters by which results are rounded and clipped.

    Raises ValueError for int8 sums, or results of their rescaling, that could overflow.
    """
    if source.dtype is not output.dtype:
        raise ValueError(f"{operator.name}: {source.dtype} to {output.dtype} is not supported")
    if source.dtype is graph.DType.FLOAT32:
        low, high = results.low, results.high
        stored = operator.constants["weights"]
        has_scale = stored.dtype == np.int8
        floats = ConvConstants(
            np.ascontiguousarray(stored, np.int8 if has_scale else np.float32),
            np.ascontiguousarray(operator.constants["bias"], np.float32),
            scale=np.ascontiguousarray(operator.constants["weight_scale"]) if has_scale else None,
        )
        return floats, {"act.min": low, "act.max": high}
    read, out = requantize.quantization_of(source), requantize.quantization_of(output)
    weights: Integers = np.ascontiguousarray(operator.constants["weights"])
    bias = fold_zero_point(operator.name, weights, operator.constants["bias"], read.zero_point)
    scales = operator.constants["weight_scale"].astype(np.float64) * read.scale / out.scale
    requantize.check_accumulator(operator.name, _largest_sums(weights, bias), scales)
    low_q, high_q = requantize.clamp_bounds(out, results.low, results.high)
    clip: Params = {"quant.zero_point": out.zero_point, "act.min": low_q, "act.max": high_q}
    if results.rounding == "tflite":
        return ConvConstants(weights, bias, *requantize.tflite_multipliers(scales)), clip
    weights, bias, scales = requantize.settle_channels(weights, bias, scales)
    multipliers, left = requantize.quantize_sums(operator.name, scales, _largest_sums(weights, bias))
    bias = requantize.exact_bias(weights, bias, scales, multipliers, left)
    return ConvConstants(weights, bias, multipliers), {"quant.left_shift": left, **clip}


def bias_error(operator: Operator, source: Tensor, output: Tensor, sums: float = 0.0) -> RoundingErrors:
    """The largest effect of rounding on results, in LSB by channel: of a rounded bias, and of an error of
    `sums` units of the int32 sum.

    Raises ValueError for a rounded bias of floats.
    """
    rounding: float | ConstantArray | None = operator.constants.get("bias_rounding")
    if rounding is None and not sums:
        return 0.0
    if source.quantization is None or output.quantization is None:
        raise ValueError(f"{operator.name} rounds its bias without being quantised")
    scales = operator.constants["weight_scale"].astype(np.float64)
    units = scales * source.quantization.scale / output.quantization.scale
    return np.asarray((sums if rounding is None else sums + rounding) * units, np.float64)


def without(params: Params, *names: str) -> Params:
    """The parameters except these."""
    return {name: value for name, value in params.items() if name not in names}


def fold_zero_point(name: str, weights: Integers, bias: ConstantArray, zero_point: int) -> NDArray[np.int32]:
    """bias[k] - zero_point * sum of weights[k], so that kernels multiply raw input values.

    Raises ValueError if the result does not fit an int32.
    """
    sums = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    folded = bias.astype(np.int64) - zero_point * sums
    if np.abs(folded).max(initial=0) > np.iinfo(np.int32).max:
        raise ValueError(f"{name}: the bias with the folded zero point does not fit an int32")
    return np.asarray(folded, np.int32)


def _largest_sums(weights: Integers, bias: NDArray[np.int32]) -> NDArray[np.int64]:
    """The largest absolute value of any partial sum of a channel."""
    return requantize.largest_products(weights) + np.abs(bias.astype(np.int64))
