"""Resize of rows and columns: nearest or linear, by tables computed from the ONNX attributes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import (
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    PlainOperator,
    TableIndex,
)
from mcudeploy.ops.common import ELEMENTWISE, copied, is_int8, require_same_dtype, spatial_axes
from mcudeploy.ops.requantize import quantization_of, quantize_scale, requantization_table

ResizeMode = Literal["nearest", "linear"]

COORDINATE_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)
CROPPING = "tf_crop_and_resize"
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

COL_BITS = 22
"""Fraction bits of a column's weight in the int8 kernel: an int32_t holds at most 255 * 2^22."""

_VECTOR_SHIFTS = range(44, 55)
"""Shifts, for scale ratios from 2^-16 to 2^9, at which the upper 32 bits of a sum suffice: they distinguish
near-ties, and have room for zero points.
"""


@dataclass(frozen=True, slots=True)
class ResizeSamples:
    """The input positions of each output position of one axis.

    Output i is (1 - fraction[i]) * input[first[i]] + fraction[i] * input[first[i] + 1], 0 <= fraction < 1.
    Nearest has fractions of 0 alone.
    """

    first: tuple[int, ...]
    fraction: tuple[float, ...]

    def index(self, axis: str) -> TableIndex:
        """The loop nest's index of an input whose output runs through `axis`."""
        ends = (low + 1 + (part > 0) for low, part in zip(self.first, self.fraction, strict=True))
        return TableIndex(axis, self.first, tuple(ends))


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One axis of a resized image.

    `scale` is the node's scale of this axis, or out_size / in_size if it states sizes; `roi` is the part of
    the input, from 0 to 1, that tf_crop_and_resize takes. Raises ValueError for unknown `coordinates`.
    """

    in_size: int
    out_size: int
    scale: float
    coordinates: str = "half_pixel"
    roi: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.coordinates not in (*COORDINATE_MODES, CROPPING):
            raise ValueError(f"coordinate_transformation_mode {self.coordinates!r} is not supported")

    @property
    def crops(self) -> bool:
        """Whether positions outside the input get a constant value."""
        return self.coordinates == CROPPING


def resize_samples(
    in_size: int,
    out_size: int,
    scale: float,
    *,
    mode: str,
    coordinates: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
) -> ResizeSamples:
    """The samples of one axis as ONNX Resize defines them, in float32 as ONNX Runtime computes them.

    `scale` as in ResizedAxis. Raises ValueError for attributes that are not supported.
    """
    if mode not in ("nearest", "linear"):
        raise ValueError(f"mode {mode!r} is not supported; nearest and linear are")
    axis = ResizedAxis(in_size, out_size, scale, coordinates)
    if axis.crops:
        raise ValueError(f"{CROPPING} is not a mode of {mode} samples")
    if nearest_mode not in NEAREST_MODES:
        raise ValueError(f"nearest_mode {nearest_mode!r} is not supported")
    if in_size == out_size and scale == 1:
        return ResizeSamples(tuple(range(in_size)), (0.0,) * in_size)
    places = [coordinate(position, axis) for position in range(out_size)]
    if mode == "nearest":
        nearest = tuple(min(max(_round(place, nearest_mode), 0), in_size - 1) for place in places)
        return ResizeSamples(nearest, (0.0,) * out_size)
    inside = [min(max(place, np.float32(0)), np.float32(in_size - 1)) for place in places]
    first = [int(place) for place in inside]
    fraction = [float(place - np.float32(low)) for place, low in zip(inside, first, strict=True)]
    return ResizeSamples(tuple(first), tuple(fraction))


def coordinate(position: int, axis: ResizedAxis) -> np.float32:
    """The input coordinate of an output position."""
    one, half = np.float32(1), np.float32(0.5)
    x, ratio = np.float32(position), np.float32(axis.scale)
    in_size, out_size = axis.in_size, axis.out_size
    match axis.coordinates:
        case "asymmetric":
            return x / ratio
        case "align_corners":
            return x * np.float32(in_size - 1) / np.float32(out_size - 1) if out_size > 1 else np.float32(0)
        case "pytorch_half_pixel":
            return (x + half) / ratio - half if out_size > 1 else np.float32(0)
        case "half_pixel_symmetric":
            adjustment = np.float32(out_size) / (ratio * np.float32(in_size))
            offset = np.float32(in_size) / np.float32(2) * (one - adjustment)
            # ONNX Runtime continues in double precision, in this mode alone.
            return np.float32(float(offset) + (position + 0.5) / float(ratio) - 0.5)
        case "tf_crop_and_resize":
            start, end = (np.float32(bound) for bound in axis.roi)
            last = np.float32(in_size - 1)
            if out_size == 1:
                return half * (start + end) * last
            return start * last + x * (end - start) * last / np.float32(out_size - 1)
        case _:
            return (x + half) / ratio - half


def _fixed_point(fractions: tuple[float, ...]) -> NDArray[np.uint32]:
    """Fractions below 1 in units of 2^-32, of which the fraction of a float32 coordinate is a multiple."""
    return np.array([int(fraction * 2**32) for fraction in fractions], np.uint32)


def _round(place: np.float32, nearest_mode: str) -> int:
    value = float(place)
    match nearest_mode:
        case "floor":
            return floor(value)
        case "ceil":
            return ceil(value)
        case "round_prefer_ceil":
            return floor(value + 0.5)
        case _:
            return ceil(value - 0.5)


@dataclass(frozen=True, slots=True)
class Resize(PlainOperator):
    """Rows and columns resampled; channels stay. int8: nearest and linear may change the quantisation."""

    kind: ClassVar[str] = "Resize"

    mode: ResizeMode
    rows: ResizeSamples
    cols: ResizeSamples

    @property
    def out_size(self) -> tuple[int, int]:
        """(rows, cols) of the output."""
        return len(self.rows.first), len(self.cols.first)

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Rows and columns are read through tables."""
        (shape,) = inputs
        read = self.rows.index("row"), self.cols.index("col"), Index.of(ch=1)
        if max(read[0].hi) > shape[0] or max(read[1].hi) > shape[1]:
            raise ValueError(f"the tables reach beyond the input {shape}")
        return LoopNest(spatial_axes((*self.out_size, shape[2])), (read,), ELEMENTWISE)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """resize_nearest, resize_linear_s8, also by vectors, or resize_linear_f32."""
        (source,) = inputs
        require_same_dtype(source, output)
        if max(source.shape[:2]) > 2**16:
            raise ValueError(f"the tables hold positions below 65536, the input is {source.shape}")
        places: Params = {
            "rows": np.array(self.rows.first, np.uint16),
            "cols": np.array(self.cols.first, np.uint16),
        }
        out_cols, channels = output.shape[1:]
        if self.mode == "nearest":
            table = None
            if is_int8(output) and quantization_of(source) != quantization_of(output):
                table = requantization_table(quantization_of(source), quantization_of(output))
            size = {"out_cols": out_cols, "run_bytes": channels * output.dtype.size_bytes}
            counts = nearest_counts(out_cols, size["run_bytes"], by_table=table is not None)
            return KernelCall("resize_nearest", {**places, "table": table, **size}, counts=counts)
        places["row_fractions"] = _fixed_point(self.rows.fraction)
        places["col_fractions"] = _fixed_point(self.cols.fraction)
        size = {"out_cols": out_cols, "channels": channels}
        if not is_int8(output):
            return KernelCall("resize_linear_f32", {**places, **size})
        weights, scalars = self._int8_arithmetic(quantization_of(source), quantization_of(output))
        last = {"last_row": source.shape[0] - 1, "last_col": source.shape[1] - 1}
        params = {**places, **weights, **size, **last, **scalars}
        vectors = KernelCall("resize_linear_s8_mve", params, isa=Isa.MVE)
        others = (vectors,) if scalars["shift"] in _VECTOR_SHIFTS else ()
        return KernelCall("resize_linear_s8", params, others=others)

    def _int8_arithmetic(self, source: Quantization, target: Quantization) -> tuple[Params, Params]:
        """Integer weights of rows, multiplied by the ratio of the scales; columns have COL_BITS bits."""
        ratio = np.array([source.scale / target.scale], np.float64)
        _, row_shift = quantize_scale(ratio)
        row_shift = min(row_shift, 62 - COL_BITS)
        fractions = np.array(self.rows.fraction, np.float64)
        weights: Params = {
            "row_weights": np.rint((1 - fractions) * ratio * 2.0**row_shift).astype(np.int32),
            "next_row_weights": np.rint(fractions * ratio * 2.0**row_shift).astype(np.int32),
        }
        if ratio[0] >= 2**20:
            raise ValueError(
                f"the output scale {target.scale} is too small for the input scale {source.scale}"
            )
        scalars: Params = {
            "input_zero_point": source.zero_point,
            "output_zero_point": target.zero_point,
            "shift": row_shift + COL_BITS,
            "input_scale": float(source.scale),
            "output_scale": float(target.scale),
        }
        return weights, scalars


def nearest_counts(out_cols: int, run_bytes: int, *, by_table: bool) -> CountsOf:
    """Counts of copying runs of bytes, or of looking up each byte in a table."""

    def counts(rows: Interval) -> Counts:
        pixels = len(rows) * out_cols
        return {"calls": 1, "rows": len(rows)} | copied(run_bytes, pixels, by_table=by_table)

    return counts
