"""Windows of convolutions and pools: their parameters, and counts of their taps inside the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import Params, ParamValue
from mcudeploy.ops.common import within


@dataclass(frozen=True, slots=True)
class Windowing:
    """The channels and windows of a convolution. Pairs are (rows, cols); pads (top, left, bottom, right)."""

    out_channels: int
    kernel_shape: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]
    groups: int

    @property
    def is_plain(self) -> bool:
        """Whether there is no padding, no dilation, and one group."""
        return self.pads == (0, 0, 0, 0) and self.dilation == (1, 1) and self.groups == 1

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel reads one input pixel, and every channel of it."""
        return self.kernel_shape == (1, 1) and self.pads == (0, 0, 0, 0) and self.groups == 1

    @property
    def in_one_run(self) -> bool:
        """Whether the taps of a window's row are contiguous, for each group of channels."""
        return self.kernel_shape[1] == 1 or (self.groups == 1 and self.dilation[1] == 1)

    def is_depthwise(self, channels: int) -> bool:
        """Whether groups have one input channel; for a single input channel the general kernel is better."""
        return self.groups == channels and channels > 1


def sliding(
    kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int], pads: tuple[int, ...]
) -> Params:
    """The `window` of a kernel's parameters; `pads` begin with top and left."""
    pairs = {"kernel": kernel, "stride": stride, "dilation": dilation}
    fields = {
        f"{name}_{along}": pair[at]
        for name, pair in pairs.items()
        for at, along in enumerate(("rows", "cols"))
    }
    return within("window", {**fields, "pad_top": pads[0], "pad_left": pads[1]})


def window_text(kernel: tuple[int, int], stride: tuple[int, int]) -> str:
    """Windows as text: "3x3", "3x3 stride 2", "3x3 stride 2x1"."""
    rows, cols = stride
    by = "" if rows == cols == 1 else f" stride {rows}" if rows == cols else f" stride {rows}x{cols}"
    return f"{kernel[0]}x{kernel[1]}{by}"


def window_fields(conv: Windowing, source: Tensor, output: Tensor) -> Params:
    """The `dims` and the `window` of a convolution's parameters."""
    dims = {
        "input_rows": source.shape[0],
        "input_cols": source.shape[1],
        "input_channels": source.shape[2],
        "output_cols": output.shape[1],
        "output_channels": conv.out_channels,
    }
    return within("dims", dims) | sliding(conv.kernel_shape, conv.stride, conv.dilation, conv.pads)


def group_fields(conv: Windowing, source: Tensor) -> Params:
    """The parameters of a convolution for its groups of channels."""
    return {
        "groups": conv.groups,
        "group_inputs": source.shape[2] // conv.groups,
        "group_outputs": conv.out_channels // conv.groups,
    }


def with_one_depth(fields: Mapping[str, ParamValue]) -> Params:
    """The parameters of a depthwise kernel, whose input and output have the same `dims.channels`."""
    renamed = {"dims.input_channels": "dims.channels"}
    return {renamed.get(name, name): it for name, it in fields.items() if name != "dims.output_channels"}


class Windows:
    """The windows of a kernel with these parameters, as counts of their taps inside the input."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.outputs: int = fields["dims.output_cols"]

    def rows(self, rows: Interval) -> NDArray[np.int64]:
        """Number of rows of its windows inside the input, for each row of the output."""
        return self._inside("rows", "top", np.arange(rows.lo, rows.hi))

    @cached_property
    def cols(self) -> NDArray[np.int64]:
        """Number of columns of its windows inside the input, for each column of the output."""
        return self._inside("cols", "left", np.arange(self.outputs))

    @cached_property
    def col_kinds(self) -> list[tuple[int, int]]:
        """Pairs (taps, columns): the number of columns whose windows have `taps` columns inside, above 0."""
        taps, columns = np.unique(self.cols[self.cols > 0], return_counts=True)
        return list(zip(taps.tolist(), columns.tolist(), strict=True))

    def _inside(self, along: str, before: str, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        size, count, step, stride = (
            self._fields[f"{name}_{along}"]
            for name in ("dims.input", "window.kernel", "window.dilation", "window.stride")
        )
        starts = positions * stride - self._fields[f"window.pad_{before}"]
        return taps_inside(starts, size, count, step)


def taps_inside(starts: NDArray[np.int64], size: int, kernel: int, dilation: int) -> NDArray[np.int64]:
    """Number of the `kernel` taps, `dilation` apart, that lie in [0, size), for each start of a window."""
    first = np.clip(-(starts // dilation), 0, kernel)
    end = np.clip(-((starts - size) // dilation), 0, kernel)
    return np.asarray(np.maximum(end - first, 0), np.int64)
