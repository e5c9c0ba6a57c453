"""Elementwise operators: Binary with broadcasting, and int8 lookup tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any, ClassVar

import numpy as np

from mcudeploy.ir.graph import Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import (
    ConstantArray,
    Counts,
    CountsOf,
    Index,
    KernelCall,
    LoopNest,
    Params,
    ParamValue,
    PlainOperator,
)
from mcudeploy.ops.common import (
    AXIS_NAMES,
    ELEMENTWISE,
    ElementwiseOperator,
    is_int8,
    require_same_dtype,
    scaled,
    spatial_axes,
    within,
)
from mcudeploy.ops.requantize import (
    Rounding,
    clamp_bounds,
    quant,
    quantization_of,
    quantize_scale,
    tflite_multipliers,
)
from mcudeploy.ops.scalar.functions import BINARY


def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """The shape of an operation on `a` and `b`. Raises ValueError if sizes are neither equal nor 1."""
    for left, right in zip(a, b, strict=True):
        if left != right and 1 not in (left, right):
            raise ValueError(f"shapes {a} and {b} do not broadcast")
    rows, cols, channels = (left if right == 1 else right for left, right in zip(a, b, strict=True))
    return rows, cols, channels


_FRACTION = 20
"""Bits by which TFLite's sums shift their operands left."""
_MOST_SHIFT, _MOST_SUM_SHIFT = 4, 22
"""The most that an operand and a sum are shifted in the fast arithmetic, so that they fit 32 bits."""
_LANES = 4
"""Values of a vector that are computed in 32 bits."""


def pixel_counts(strides: Mapping[str, Any]) -> CountsOf:
    """Counts by runs of channels: a run for each column if an operand broadcasts, else one for a row."""
    cols, channels = strides["cols"], strides["channels"]

    def counts(rows: Interval) -> Counts:
        runs = len(rows) * cols
        return {
            "calls": 1,
            "rows": len(rows),
            "runs": runs,
            "elements": runs * channels,
            "vectors": runs * -(-channels // _LANES),
        }

    return counts


def _add_counts(strides: Mapping[str, Any]) -> CountsOf:
    """Return the counts of `pixel_counts`, and the elements that are not computed four at a time."""
    usual, fours = pixel_counts(strides), strides["a_channel_step"] == strides["b_channel_step"] == 1
    single = strides["cols"] * (strides["channels"] % 4 if fours else strides["channels"])
    return lambda rows: usual(rows) | {"single": len(rows) * single}


def _float_counts(strides: Mapping[str, Any], *, clips: bool) -> CountsOf:
    """Return the counts of float values: eight at a time, the clipped ones among them, and the rest."""
    cols, channels = strides["cols"], strides["channels"]
    eights = channels // 8 if strides["a_channel_step"] + strides["b_channel_step"] else 0
    run = {"runs": 1, "eights": eights, "clipped": 8 * eights * clips, "elements": channels - 8 * eights}
    return lambda rows: {"calls": 1, "rows": len(rows)} | scaled(run, len(rows) * cols)


class BroadcastOperator(PlainOperator):
    """The base of families with two operands that broadcast.

    They have two inputs, or one input and constants["constant"] (3-D) as operand `constant_operand`. Each
    dimension of an operand is the output's or 1.
    """

    __slots__ = ()
    constant_operand: int | None
    constant_shape: Shape | None

    def operands(self, inputs: tuple[Shape, ...]) -> tuple[Shape, Shape]:
        """The shapes of both operands."""
        if self.constant_operand is None or self.constant_shape is None:
            a, b = inputs
            return a, b
        (activation,) = inputs
        if self.constant_operand == 0:
            return self.constant_shape, activation
        return activation, self.constant_shape

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Rows cannot be computed separately if an operand has one row for all."""
        return "it repeats a row" if any(shape[0] != rows for shape in inputs) else None

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Element (row, col, ch) reads that element of each operand, or element 0 if it broadcasts."""
        output = broadcast_shape(*self.operands(inputs))
        reads = []
        for shape in inputs:
            row, col, ch = (
                Index() if size == 1 and out > 1 else Index.of(**{name: 1})
                for name, size, out in zip(AXIS_NAMES, shape, output, strict=True)
            )
            reads.append((row, col, ch))
        return LoopNest(spatial_axes(output), tuple(reads), ELEMENTWISE)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """Any operand that does not broadcast: each element is read before it is written."""
        return tuple(
            position
            for position, tensor in enumerate(inputs)
            if tensor.shape == output.shape and tensor.dtype == output.dtype
        )

    def pointers(self, constant: ConstantArray | None) -> Params:
        """The constant operand of a kernel's parameters."""
        flat = None if constant is None else constant.ravel()
        return {
            "a": flat if self.constant_operand == 0 else None,
            "b": flat if self.constant_operand == 1 else None,
        }

    def checked_constant(self, operator: Operator, dtype: type[np.integer]) -> ConstantArray | None:
        """The constant, of integers. Raises ValueError for another type or shape."""
        constant = operator.constants.get("constant")
        if constant is not None and (constant.dtype != dtype or constant.shape != self.constant_shape):
            raise ValueError(
                f"the constant is {constant.dtype} {constant.shape}, needed is {np.dtype(dtype)}"
            )
        return constant


@dataclass(frozen=True, slots=True)
class Binary(BroadcastOperator):
    """A function of two operands, a row of BINARY, then a clip to [low, high].

    int8 operands support Add, Sub, Mul and Div. `rounding` is that of int8 results of Add, Sub and Mul. A
    constant is int8 if the input is.
    """

    kind: ClassVar[str] = "Binary"
    takes_rows: ClassVar[bool] = True
    links_vectors: ClassVar[bool] = True

    function: str
    constant_operand: int | None = None
    constant_shape: Shape | None = None
    constant_quantization: Quantization | None = None
    low: float = -inf
    high: float = inf
    rounding: Rounding = "once"

    @property
    def stem(self) -> str:
        """The function."""
        return self.function

    def __post_init__(self) -> None:
        if self.function not in BINARY:
            raise ValueError(f"{self.function} is not a function of two values")
        if (self.constant_operand is None) != (self.constant_shape is None):
            raise ValueError("a constant operand needs its position and its shape")
        if self.constant_operand not in (None, 0, 1):
            raise ValueError(f"the constant is operand 0 or 1, not {self.constant_operand}")

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """The function."""
        return self.function

    def in_rows(self, operator: Operator, written: Shape | None, read: Shape | None) -> Operator:
        """Return the operator with its constant vector in rows."""
        if written is None or self.constant_shape is None or self.constant_shape[2] == 1:
            return operator
        constants = {"constant": operator.constants["constant"].reshape(written)}
        return replace(operator, op=replace(self, constant_shape=written), constants=constants)

    def rounding_error(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> float:
        """The rounding error of an int8 sum, or of a product that is rounded twice."""
        if self.function == "mul" and self.rounding == "tflite":
            return self.product_unit(inputs, output)
        return self.sum_rounding(inputs, output)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """add_f32 and so on, or for int8 add_s8 (also sub), mul_s8 or div_s8.

        Raises ValueError for other functions of int8.
        """
        require_same_dtype(*inputs, output)
        strides = broadcast_strides(self.operands(tuple(tensor.shape for tensor in inputs)))
        operands = self.pointers(self._constant(operator, output)) | within("broadcast", strides)
        if is_int8(output):
            return self._int8_kernel(inputs, output, operands, strides)
        counts = pixel_counts(strides)
        if BINARY[self.function].operation:
            counts = _float_counts(strides, clips=self.low > -inf or self.high < inf)
        params = operands | {"act.min": self.low, "act.max": self.high}
        return KernelCall(f"{self.function}_f32", params, counts=counts)

    def _int8_kernel(
        self, inputs: tuple[Tensor, ...], output: Tensor, operands: Params, strides: Params
    ) -> KernelCall:
        (a, b), target = self.operand_quantizations(inputs), quantization_of(output)
        low, high = clamp_bounds(target, self.low, self.high)
        clip: Params = {"act.min": low, "act.max": high}
        counts = pixel_counts(strides)
        sign = 1 if self.function == "add" else -1
        by_one = strides["a_channel_step"] == strides["b_channel_step"] == 1
        match self.function:
            case "add" | "sub" if self.rounding == "tflite":
                params = operands | _add_twice(a, b, sign, target) | clip
                exact = _exact_operand(params) if by_one else 0
                mode = "exact" if exact else ""
                return KernelCall("add_s8_tflite", params | {"exact": exact}, mode=mode, counts=counts)
            case "add" | "sub":
                numbers = _add_arithmetic(a, b, sign, target)
                sums = operands | within("quant", numbers)
                others = (_sum_by_vectors(sums, numbers, clip, counts),) if by_one else ()
                return KernelCall("add_s8", sums | clip, counts=_add_counts(strides), others=others)
            case "mul":
                twice = self.rounding == "tflite"
                params = operands | _mul_arithmetic(a, b, target, twice=twice) | clip
                return KernelCall("mul_s8", params, mode="twice" if twice else "", counts=counts)
            case "div":
                scales: Params = {
                    "a_zero_point": a.zero_point,
                    "b_zero_point": b.zero_point,
                    "output_zero_point": target.zero_point,
                    **clip,
                    "a_scale": float(a.scale),
                    "b_scale": float(b.scale),
                    "output_scale": float(target.scale),
                }
                return KernelCall("div_s8", operands | scales, counts=counts)
            case _:
                raise ValueError(f"{self.function} is for float32 only")

    def sum_rounding(self, inputs: tuple[Tensor, ...], output: Tensor) -> float:
        """Largest error of an int8 sum before rounding, in LSB; see sum_error. 0 for other functions."""
        if self.function not in ("add", "sub") or not is_int8(output):
            return 0.0
        return sum_error(*self.operand_quantizations(inputs), quantization_of(output))

    def product_unit(self, inputs: tuple[Tensor, ...], output: Tensor) -> float:
        """The unit of the integer product of two int8 operands, in LSB of the output."""
        a, b = self.operand_quantizations(inputs)
        return float(a.scale * b.scale / quantization_of(output).scale)

    def _constant(self, operator: Operator, output: Tensor) -> ConstantArray | None:
        """The constant operand. Raises ValueError for another type or shape."""
        if self.constant_operand is None:
            return None
        constant = operator.constants["constant"]
        wanted = np.int8 if is_int8(output) else np.float32
        if constant.shape != self.constant_shape or constant.dtype != wanted:
            raise ValueError(
                f"the constant is {constant.dtype} {constant.shape}, "
                f"needed is {np.dtype(wanted)} {self.constant_shape}"
            )
        return constant

    def operand_quantizations(self, inputs: tuple[Tensor, ...]) -> tuple[Quantization, Quantization]:
        """The quantisations of both operands. Raises ValueError if one is missing."""
        if self.constant_operand is None:
            a, b = (quantization_of(tensor) for tensor in inputs)
            return a, b
        if self.constant_quantization is None:
            raise ValueError("an int8 constant needs a quantisation")
        activation = quantization_of(inputs[0])
        if self.constant_operand == 0:
            return self.constant_quantization, activation
        return activation, self.constant_quantization


def broadcast_strides(operands: tuple[Shape, Shape]) -> Params:
    """The steps in elements of each operand per row, col and channel of the output; 0 if it broadcasts.

    Columns and channels become one loop if both operands pass through them in one stride.
    """
    _, cols, channels = broadcast_shape(*operands)
    steps = []
    for _, own_cols, own_channels in operands:
        channel_step = int(own_channels == channels)
        col_step = 0 if own_cols < cols else own_channels
        steps.append((col_step, channel_step))
    if all(col_step == channels * channel_step for col_step, channel_step in steps):
        cols, channels = 1, cols * channels
    rows = max(shape[0] for shape in operands)
    strides: Params = {"cols": cols, "channels": channels}
    for name, shape, (col_step, channel_step) in zip("ab", operands, steps, strict=True):
        strides[f"{name}_row_step"] = shape[1] * shape[2] if shape[0] == rows else 0
        strides[f"{name}_col_step"] = col_step
        strides[f"{name}_channel_step"] = channel_step
    return strides


def _add_arithmetic(a: Quantization, b: Quantization, sign: int, out: Quantization) -> dict[str, int]:
    """Multipliers ma and mb, a constant c, and the largest shift with |a * ma| + |b * mb| + |c| + 2^shift <
    2^31 for all int8 a and b.
    """
    ratios = a.scale / out.scale, sign * b.scale / out.scale
    for shift in range(30, 0, -1):
        ma, mb = (round(ratio * 2**shift) for ratio in ratios)
        c = -a.zero_point * ma - b.zero_point * mb
        if 128 * abs(ma) + 128 * abs(mb) + abs(c) + (1 << shift) < 2**31:
            return {
                "a_multiplier": ma,
                "b_multiplier": mb,
                "constant": c,
                "shift": shift,
                "zero_point": out.zero_point,
            }
    raise ValueError(f"input scales {a.scale}, {b.scale} are too large for the output scale {out.scale}")


def _sum_by_vectors(sums: Params, numbers: Mapping[str, int], clip: Params, counts: CountsOf) -> KernelCall:
    """add_s8_mve: sums without ties take fewer instructions."""
    tied = _has_ties(*(numbers[it] for it in ("a_multiplier", "b_multiplier", "constant", "shift")))
    params = sums | {"has_ties": int(tied)} | clip
    return KernelCall("add_s8_mve", params, mode="ties" if tied else "", isa=Isa.MVE, counts=counts)


@cache
def _has_ties(a_multiplier: int, b_multiplier: int, constant: int, shift: int) -> bool:
    """Whether a sum of two int8 values may lie halfway between two results; see _add_arithmetic."""
    values, half = np.arange(-128, 128, dtype=np.int64), 1 << (shift - 1)
    sums = (values * a_multiplier)[:, None] + values * b_multiplier + constant
    return bool(np.any(sums & (2 * half - 1) == half))


def sum_error(a: Quantization, b: Quantization, out: Quantization) -> float:
    """The largest error of add_s8 before rounding, in LSB, of sums that do not saturate.

    If the scale of an operand is many times the output's, few bits remain for both multipliers. The error
    is infinite if they do not fit.
    """
    try:
        params = _add_arithmetic(a, b, 1, out)
    except ValueError:
        return inf
    ratio_a, ratio_b = a.scale / out.scale, b.scale / out.scale
    error = 0.0
    for multiplier, own, other in (("a_multiplier", ratio_a, ratio_b), ("b_multiplier", ratio_b, ratio_a)):
        reach = min(255.0, 255.0 * (1 + other) / own)
        error += reach * abs(own - params[multiplier] / 2 ** params["shift"])
    return error


def _add_twice(a: Quantization, b: Quantization, sign: int, out: Quantization) -> Params:
    """The parameters of TFLite's sums; both operands are scaled to twice the larger of their scales."""
    common = 2 * max(a.scale, b.scale)
    scales = np.array([a.scale / common, b.scale / common, common / (2.0**_FRACTION * out.scale)])
    multipliers, exponents = (each.tolist() for each in tflite_multipliers(scales))
    return {
        "a_zero_point": a.zero_point,
        "a_multiplier": multipliers[0],
        "a_exponent": exponents[0],
        "b_zero_point": b.zero_point,
        "b_multiplier": multipliers[1],
        "b_exponent": exponents[1],
        "b_sign": sign,
        **quant(multipliers[2], exponents[2], out),
    }


def _exact_operand(sums: Mapping[str, ParamValue]) -> int:
    """The operand (1 or 2) with the larger scale, whose share of a sum needs no multiplication.

    0 if the shifts do not fit the fast arithmetic of mcud_sum_tflite.h.
    """
    integers = {name: it for name, it in sums.items() if isinstance(it, int)}
    exact, other = (1, "b") if integers["a_exponent"] == 0 else (2, "a")
    fits = 0 in (integers["a_exponent"], integers["b_exponent"])
    fits &= min(integers["b_sign"], integers[f"{other}_multiplier"], integers["quant.multiplier"]) > 0
    fits &= -_MOST_SHIFT <= integers[f"{other}_exponent"] <= 0
    fits &= -_MOST_SUM_SHIFT <= integers["quant.shift"] < 0
    return exact if fits else 0


def _mul_arithmetic(a: Quantization, b: Quantization, out: Quantization, *, twice: bool) -> Params:
    zero_points: Params = {"a_zero_point": a.zero_point, "b_zero_point": b.zero_point}
    if twice:
        factors, exponents = tflite_multipliers(np.array([a.scale * b.scale / out.scale]))
        return {**zero_points, "twice": 1, **quant(int(factors[0]), int(exponents[0]), out)}
    multipliers, shift = quantize_scale(np.array([a.scale * b.scale / out.scale], np.float64))
    multiplier = int(multipliers[0])
    if (255 * 255 * multiplier) >> shift >= 2**30:
        raise ValueError(f"the output scale {out.scale} is too small for scales {a.scale} * {b.scale}")
    return {**zero_points, "twice": 0, **quant(multiplier, shift, out)}


@dataclass(frozen=True, slots=True)
class Lut(ElementwiseOperator):
    """int8 -> int8 through constants["table"], int8[256] indexed by q + 128: any chain of unary functions."""

    kind: ClassVar[str] = "Lut"
    takes_rows: ClassVar[bool] = True
    links_vectors: ClassVar[bool] = True
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """lut_s8."""
        require_same_dtype(*inputs, output)
        table = operator.constants["table"]
        if not is_int8(output) or table.shape != (256,) or table.dtype != np.int8:
            raise ValueError("a lookup table is int8[256] from int8 to int8")
        return KernelCall("lut_s8", {"table": table, "row_elements": output.shape[1] * output.shape[2]})
