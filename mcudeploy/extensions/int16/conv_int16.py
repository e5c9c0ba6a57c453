"""Convolutions of int16 activations by int8 weights; dense layers are convolutions with one position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16.int16 import INT16, UNBOUNDED, Bounds, require_int16
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import ConstantArray, Counts, CountsOf, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import OFFSET_BYTES
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import FOUR
from mcudeploy.ops.conv.packing import GROUP, pack_blocks, pack_taps, padded
from mcudeploy.ops.conv.windows import group_fields, window_fields, with_one_depth
from mcudeploy.ops.requantize import tflite_multipliers

SumTies = Literal["up", "away", "twice"]
"""Rounding of a sum: once, with ties up or away from zero; or twice. In the order of mcud_params.h."""

_PAIR = 2
"""Output channels that conv2d_s16_3x2 computes at a time."""
_POINTER_BYTES = 8
_VALUE_BYTES = 2
_MOST_TAPS = 511
"""The largest number of products int16 * int8 whose sum always fits an int32."""
_LEAST_SHIFT = 33
_MULTIPLIER_BITS = 16
_REACH = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class SumScales:
    """Factors multiplier / 2^shift by channel, for sums shifted left by `left_shift`; see mcud_quant_s16.h.

    For sums that are rounded twice, `shifts` are the exponents of TwiceScale.
    """

    multipliers: NDArray[np.int32]
    shifts: NDArray[np.int32]
    left_shift: int = 0

    @classmethod
    def of(cls, factors: NDArray[np.float64], ties: SumTies) -> SumScales:
        """The scales nearest to these factors. Multipliers for ties "up" have 15 bits, as in TFLite.

        Raises ValueError for factors that are negative, not finite, or at least 2^30.
        """
        multipliers, exponents = tflite_multipliers(factors)
        if ties == "twice":
            return cls(multipliers, exponents.astype(np.int32))
        if ties == "up":
            short = (multipliers.astype(np.int64) + (1 << (_MULTIPLIER_BITS - 1))) >> _MULTIPLIER_BITS
            multipliers = (np.minimum(short, INT16.max) << _MULTIPLIER_BITS).astype(np.int32)
        shifts = np.where(multipliers > 0, 31 - exponents.astype(np.int32), _LEAST_SHIFT)
        left = max(_LEAST_SHIFT - int(shifts.min()), 0)
        return cls(multipliers, shifts + left, left)


@dataclass(frozen=True, slots=True)
class Conv2dInt16(PlainOperator):
    """The Conv2d of int16 values without zero points: y = clip((bias + sum) * scale).

    x (H, W, C) -> y (OH, OW, K). Constants: `weights` int8 [K, kh, kw, C/groups]; `bias` int32 [2, K], the
    lower and the upper words; `multipliers` and `shifts` int32 [K], see SumScales.
    """

    kind: ClassVar[str] = "Conv2dInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})
    named: ClassVar[str] = "conv"

    out_channels: int
    kernel_shape: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    ties: SumTies = "up"
    left_shift: int = 0
    bounds: Bounds = UNBOUNDED

    @property
    def as_conv2d(self) -> Conv2d:
        """The convolution of int8 values with the same windows."""
        return Conv2d(
            self.out_channels, self.kernel_shape, self.stride, self.dilation, self.pads, self.groups
        )

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of Conv2d."""
        return self.as_conv2d.loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_s16 or dwconv2d_s16. Raises ValueError for sums that could overflow."""
        (source,) = inputs
        require_int16(operator.name, source, output)
        channels = source.shape[2]
        check_weights(operator, (self.out_channels, *self.kernel_shape, channels // self.groups))
        narrow = self._are_narrow(operator)
        numbers: Params = {
            "quant.left_shift": self.left_shift,
            "quant.ties": get_args(SumTies).index(self.ties),
            **self.bounds.params(),
        }
        fields = window_fields(self.as_conv2d.windowing, source, output)
        if self.as_conv2d.windowing.is_depthwise(channels) and self.out_channels == channels and narrow:
            return _depthwise(operator, fields, numbers)
        return self._general(operator, fields, numbers, (source, output), wide=not narrow)

    def _general(
        self,
        operator: Operator,
        fields: Params,
        numbers: Params,
        tensors: tuple[Tensor, Tensor],
        *,
        wide: bool,
    ) -> KernelCall:
        """conv2d_s16, with the variant conv2d_s16_3x2 if sums fit 32 bits."""
        source, output = tensors
        kernel_rows, kernel_cols = self.kernel_shape
        group_inputs = source.shape[2] // self.groups
        weights = operator.constants["weights"].astype(np.int8)
        values = kernel_rows * kernel_cols * group_inputs
        patch_groups = -(-values // GROUP)
        one_row = kernel_rows == 1 or (self.dilation[0] == 1 and kernel_cols == source.shape[1])
        adjacent = kernel_cols == 1 or self.dilation[1] == 1
        is_contiguous = self.groups == 1 and values % GROUP == 0 and one_row and adjacent
        fields |= group_fields(self.as_conv2d.windowing, source) | {
            "patch_groups": patch_groups,
            "wide": int(wide),
            "most_groups": _MOST_TAPS // GROUP if wide else patch_groups,
            "piece": int(is_contiguous),
        }
        packed = pack_blocks(weights, self.groups, 1, FOUR)
        arrays: Params = {"packed_weights": _records(operator, packed, self.groups, wide=wide)}
        patch = patch_groups * GROUP * _VALUE_BYTES
        scratch = kernel_rows * OFFSET_BYTES + patch
        params, mode = arrays | fields | numbers, "wide" if wide else ""
        others: tuple[KernelCall, ...] = ()
        if not wide and self.groups == 1 and output.shape[1] > 1:
            others = (self._by_pixels(operator, fields, numbers, scratch + 3 * patch),)
        return KernelCall("conv2d_s16", params, scratch, mode=mode, counts=_counts(fields), others=others)

    def _by_pixels(
        self,
        operator: Operator,
        fields: Params,
        numbers: Params,
        scratch_bytes: int,
    ) -> KernelCall:
        """conv2d_s16_3x2, whose weights are packed by pairs of channels."""
        weights = pack_blocks(operator.constants["weights"].astype(np.int8), 1, 1, _PAIR)
        records = _records(operator, weights, block=_PAIR)
        arrays: Params = {"packed_weights": records}
        names = ("patch_groups", "piece")
        shared = {name: value for name, value in fields.items() if "." in name or name in names}
        params, counts = arrays | shared | numbers, _pixel_counts(fields)
        return KernelCall("conv2d_s16_3x2", params, scratch_bytes, isa=Isa.DSP, counts=counts)

    def _are_narrow(self, operator: Operator) -> bool:
        """Whether all sums fit 32 bits. Raises ValueError if a sum can exceed what the rounding takes."""
        largest = largest_sums(operator)
        most = 31 if self.ties == "twice" else 62 - self.left_shift
        if largest.max(initial=0) >= 2.0**most:
            channel = int(largest.argmax())
            raise ValueError(
                f"{operator.name}: the sum of channel {channel} can reach {largest[channel]:.3g}, beyond "
                f"{most} bits; the weights or the bias are too large"
            )
        return self.left_shift == 0 and bool(largest.max(initial=0) < 2.0**31)


def bias_of(operator: Operator) -> NDArray[np.int64]:
    """Return the biases of a Conv2dInt16, by output channel."""
    low, high = operator.constants["bias"]
    biases: NDArray[np.int64] = high.astype(np.int64) * 2**32 + low.astype(np.uint32)
    return biases


def largest_sums(operator: Operator) -> NDArray[np.float64]:
    """Return the largest magnitude that the sums of a Conv2dInt16 can reach, by output channel."""
    weights = operator.constants["weights"]
    products = _REACH * np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1)
    largest: NDArray[np.float64] = np.abs(bias_of(operator).astype(np.float64)) + products
    return largest


def check_weights(operator: Operator, needed: tuple[int, ...]) -> None:
    """Raise ValueError for constants whose shapes do not fit; `needed`: the shape of the weights."""
    channels = needed[0]
    for name in ("multipliers", "shifts"):
        if operator.constants[name].shape != (channels,):
            raise ValueError(f"{operator.name}: {name} need {channels} values")
    if operator.constants["bias"].shape != (2, channels):
        raise ValueError(f"{operator.name}: the bias needs two words for each of {channels} channels")
    if operator.constants["weights"].shape != needed:
        shape = list(operator.constants["weights"].shape)
        raise ValueError(f"{operator.name}: weights {shape} instead of {list(needed)}")


def _records(
    operator: Operator, weights: NDArray[np.int32], groups: int = 1, *, wide: bool = False, block: int = FOUR
) -> NDArray[np.int32]:
    """One record for each `block` of channels: bias, packed `weights`, scales; see mcud_dot_s16.h."""

    def blocks(values: ConstantArray) -> NDArray[np.int32]:
        by_group = values.reshape(groups, -1)
        missing = padded(by_group.shape[1], block) - by_group.shape[1]
        return np.pad(by_group, ((0, 0), (0, missing))).reshape(-1, block).astype(np.int32)

    shifts = operator.constants["shifts"]
    low, high = operator.constants["bias"]
    assert isinstance(operator.op, Conv2dInt16)
    if not wide and operator.op.ties != "twice":
        shifts = shifts - _LEAST_SHIFT
    scales = [blocks(operator.constants["multipliers"]), blocks(shifts)]
    if wide:
        scales[1] = np.maximum(scales[1], _LEAST_SHIFT)
    bias = [blocks(low), blocks(high)] if wide else [blocks(low)]
    return np.ascontiguousarray(np.concatenate([*bias, weights, *scales], axis=1).ravel())


def _depthwise(
    operator: Operator, fields: Params, numbers: Params
) -> KernelCall:
    weights = operator.constants["weights"].astype(np.int8)
    channels, kernel_rows, kernel_cols, _ = weights.shape
    fields = with_one_depth(fields)
    packed = pack_taps(weights.reshape(channels, -1))
    arrays: Params = {
        "packed_weights": _records(operator, packed),
        "padding": np.zeros(channels, np.int16),
    }
    scratch = (kernel_rows + 1) * OFFSET_BYTES + kernel_rows * kernel_cols * _POINTER_BYTES
    return KernelCall("dwconv2d_s16", arrays | fields | numbers, scratch, counts=_depthwise_counts(fields))


def _counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_s16. A copied window has a line for each of its rows and each group of channels."""
    fours = fields["groups"] * -(-fields["group_outputs"] // FOUR)
    pieces = -(-fields["patch_groups"] // fields["most_groups"])
    window_rows, cols = fields["window.kernel_rows"], fields["window.kernel_cols"]
    gathered = 0 if fields["piece"] else fields["groups"]

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        return {
            "calls": 1,
            "rows": len(rows),
            "row_taps": len(rows) * window_rows,
            "pixels": pixels,
            "lines": pixels * gathered * window_rows,
            "taps": pixels * gathered * window_rows * cols,
            "copied": pixels * gathered * fields["patch_groups"],
            "fours": pixels * fours,
            "pieces": pixels * fours * pieces,
            "groups": pixels * fours * fields["patch_groups"],
            "results": pixels * fields["dims.output_channels"],
        }

    return counts


def _pixel_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of conv2d_s16_3x2, which takes three pixels of a row at a time, and the last two or four by two.
    """
    usual, cols = _counts(fields), fields["dims.output_cols"]
    threes, rest = divmod(cols, 3)
    if rest == 1:  # two and two
        threes, twos = threes - 1, 2
    else:
        twos = int(rest == 2)
    pairs, groups = -(-fields["dims.output_channels"] // _PAIR), fields["patch_groups"]

    def counts(rows: Interval) -> Counts:
        by_pixel = usual(rows)
        for name in ("fours", "pieces", "groups"):
            del by_pixel[name]
        blocks = len(rows) * threes, len(rows) * twos
        return by_pixel | {
            "expanded": by_pixel["pixels"] * groups,
            "threes": blocks[0] * pairs,
            "twos": blocks[1] * pairs,
            "groups_of_threes": blocks[0] * pairs * groups,
            "groups_of_twos": blocks[1] * pairs * groups,
        }

    return counts


def _depthwise_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Counts of dwconv2d_s16, which lists the taps of a window and sums four channels at a time."""
    taps = fields["window.kernel_rows"] * fields["window.kernel_cols"]
    fours, rest = divmod(fields["dims.channels"], FOUR)

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        return {
            "calls": 1,
            "rows": len(rows),
            "row_taps": len(rows) * fields["window.kernel_rows"],
            "pixels": pixels,
            "listed": pixels * taps,
            "fours": pixels * fours,
            "pairs": pixels * fours * (taps // 2),
            "odd": pixels * fours * (taps % 2),
            "few": pixels * rest * taps,
            "results": pixels * fields["dims.channels"],
        }

    return counts
