"""The operator of int8 models in a training step: a convolution by frozen int8 weights and a trained bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES, is_int8
from mcudeploy.ops.conv import conv_counts
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants, fold_zero_point
from mcudeploy.ops.conv.conv_counts_f32 import depthwise
from mcudeploy.ops.conv.packing import GROUP, by_tap, padded
from mcudeploy.ops.conv.windows import group_fields, window_fields


@dataclass(frozen=True, slots=True)
class BiasedConv2d(PlainOperator):
    """An int8 Conv2d of x (H, W, C) by a float32 bias (1, 1, K), a second input.

    Constants: "weights" int8 [K, kh, kw, C/groups], and "weight_scale" float32 [K]. Results are rounded once,
    half to even, from float32 values.
    """

    kind: ClassVar[str] = "BiasedConv2d"
    named: ClassVar[str] = "conv"

    conv: Conv2d

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loops of the convolution. Raises ValueError for a bias of another size."""
        x, bias = inputs
        plain = self.conv.loops((x,))
        if bias != (1, 1, self.conv.out_channels):
            raise ValueError(f"a bias {bias} does not fit {self.conv.out_channels} channels")
        group_outputs = self.conv.out_channels // self.conv.groups
        channel = (Index(), Index(), Index.of(g=group_outputs, k=1))
        return LoopNest(plain.axes, (*plain.reads, channel), plain.write, multiplies=True)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """conv2d_s8_biased or dwconv2d_s8_biased. Raises ValueError for sums that an int32 cannot hold."""
        source, bias = inputs
        if not is_int8(source) or not is_int8(output) or bias.dtype != "float32":
            raise ValueError("a convolution of int8 by a float32 bias makes int8")
        conv, channels = self.conv, source.shape[2]
        of_input, of_output = requantize.quantization_of(source), requantize.quantization_of(output)
        weights = np.ascontiguousarray(operator.constants["weights"], np.int8)
        scale = operator.constants["weight_scale"].astype(np.float64) * of_input.scale
        low, high = requantize.clamp_bounds(of_output, conv.low, conv.high)
        zeros = fold_zero_point(operator.name, weights, np.zeros(len(weights), np.int32), of_input.zero_point)
        requantize.check_accumulator(
            operator.name, requantize.largest_products(weights) + np.abs(zeros.astype(np.int64)), np.zeros(1)
        )
        fields = window_fields(conv.windowing, source, output)
        last: Params = {
            "input_zero_point": of_input.zero_point,
            "scale": float(of_output.scale),
            "zero_point": of_output.zero_point,
            "act.min": low,
            "act.max": high,
        }
        scratch = conv.kernel_shape[0] * OFFSET_BYTES
        if conv.groups == channels > 1:
            fields["multiplier"] = conv.out_channels // channels
            arrays: Params = {
                "weights": by_tap(weights),
                "weight_scale": scale.astype(np.float32),
            }
            counts = depthwise(fields, eights=False)
            return KernelCall("dwconv2d_s8_biased", arrays | fields | last, scratch, counts=counts)
        group_inputs = channels // conv.groups
        patch = padded(conv.kernel_shape[0] * conv.kernel_shape[1] * group_inputs, GROUP)
        fields |= group_fields(conv.windowing, inputs[0]) | {"patch_groups": patch // GROUP}
        scale_bits = scale.astype(np.float32).view(np.int32)  # packed where other kernels have multipliers
        arrays = ConvConstants(weights, zeros, scale_bits).packed_fours(runs=1, groups=conv.groups)
        counts = conv_counts.deep(fields)
        return KernelCall("conv2d_s8_biased", arrays | fields | last, scratch + patch, counts=counts)
