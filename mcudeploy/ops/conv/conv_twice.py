"""The C kernels of int8 convolutions whose results are rounded twice, as by TFLite's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Counts, CountsOf, KernelCall, ParamValue
from mcudeploy.ops import requantize
from mcudeploy.ops.common import OFFSET_BYTES
from mcudeploy.ops.conv.conv_constants import FOUR, ConvConstants
from mcudeploy.ops.conv.packing import GROUP
from mcudeploy.ops.conv.windows import Windowing, group_fields, window_fields, with_one_depth

_POINTER_BYTES = 8


def twice_kernel(
    conv: Windowing, constants: ConvConstants, numbers: dict[str, ParamValue], source: Tensor, output: Tensor
) -> KernelCall:
    """conv2d_s8_twice or dwconv2d_s8_twice."""
    channels, zero_point = source.shape[2], requantize.quantization_of(source).zero_point
    fields = window_fields(conv, source, output)
    kernel_rows, kernel_cols = conv.kernel_shape
    if conv.is_depthwise(channels) and conv.out_channels == channels:
        fields = with_one_depth(fields)
        arrays = constants.packed_taps() | {
            "exponents": constants.exponents,
            "padding": np.full(channels, zero_point, np.int8),
        }
        scratch = (kernel_rows + 1) * OFFSET_BYTES + kernel_rows * kernel_cols * _POINTER_BYTES
        params = arrays | fields | numbers
        return KernelCall("dwconv2d_s8_twice", params, scratch, counts=depthwise_counts(fields))
    group_inputs = channels // conv.groups
    one_run = conv.in_one_run and conv.pads[1] == conv.pads[3] == 0
    row_runs, run_values = (1, kernel_cols * group_inputs) if one_run else (kernel_cols, group_inputs)
    arrays = constants.packed_fours(runs=kernel_rows * row_runs, groups=conv.groups) | {
        "exponents": constants.exponents,
        "padding": np.full(run_values, zero_point, np.int8) if any(conv.pads) else None,
    }
    fields |= group_fields(conv, source) | {"row_runs": row_runs, "run_values": run_values}
    counts = _counts(conv, fields)
    return KernelCall("conv2d_s8_twice", arrays | fields | numbers, kernel_rows * OFFSET_BYTES, counts=counts)


def _counts(conv: Windowing, fields: Mapping[str, Any]) -> CountsOf:
    """A window in one piece is one run for each four channels."""
    runs, values = conv.kernel_shape[0] * fields["row_runs"], fields["run_values"]
    whole = fields["row_runs"] == 1 and conv.kernel_shape[1] == fields["dims.input_cols"] and conv.groups == 1
    if whole and values % GROUP == 0 and conv.dilation[0] == 1 and not any(conv.pads):
        runs, values = 1, runs * values
    fours, ones = (conv.groups * count for count in divmod(fields["group_outputs"], FOUR))

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * fields["dims.output_cols"]
        return {
            "calls": 1,
            "rows": len(rows),
            "row_taps": len(rows) * conv.kernel_shape[0],
            "pixels": pixels,
            "fours": pixels * fours,
            "runs": pixels * fours * runs,
            "groups": pixels * fours * runs * (values // GROUP),
            "tails": pixels * (fours + ones) * runs * (values % GROUP > 0),
            "ones": pixels * ones,
            "one_runs": pixels * ones * runs,
            "one_groups": pixels * ones * runs * (values // GROUP),
            "results": pixels * conv.out_channels,
        }

    return counts


def depthwise_counts(fields: Mapping[str, Any]) -> CountsOf:
    """Count the loops of a depthwise kernel that lists taps and sums four channels at a time."""
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
