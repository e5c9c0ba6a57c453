"""Operators of int16 activations, with the arithmetic of TFLite's reference kernels.

The zero point of int16 is 0. Bounds of fused activations are stored integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, floor
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import DType, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import ElementwiseOperator, within
from mcudeploy.ops.reduce.reduce import Reduce, reduce_counts
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.requantize import tflite_multipliers
from mcudeploy.ops.scalar.elementwise import BroadcastOperator, broadcast_strides, pixel_counts

INT16 = np.iinfo(np.int16)
TABLE_SIZE = 513
"""Entries of an interpolated table: one for every 2^7 values, and one for the end of the last interval."""
SUM_BITS = 15
"""Bits by which a sum shifts its operands left."""


@dataclass(frozen=True, slots=True)
class TwiceScale:
    """A factor multiplier * 2^exponent / 2^31; products with it are rounded twice, see mcud_quant.h."""

    multiplier: int
    exponent: int

    @classmethod
    def of(cls, factor: float) -> TwiceScale:
        """The nearest scale. Raises ValueError for factors that are negative, not finite, or too large."""
        multipliers, exponents = tflite_multipliers(np.array([factor], np.float64))
        return cls(int(multipliers[0]), int(exponents[0]))

    def params(self, prefix: str = "") -> Params:
        """The parameters of a kernel."""
        return {f"{prefix}multiplier": self.multiplier, f"{prefix}exponent": self.exponent}


_MOST_EXPONENT = 15
"""Largest exponent of a scale whose product with a 16-bit value certainly fits an int32."""
IDENTITY = TwiceScale(1 << 30, 1)
"""The factor 1."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest stored integer of a result."""

    low: int = INT16.min
    high: int = INT16.max

    def params(self) -> Params:
        """The parameters of a kernel."""
        return {"act.min": self.low, "act.max": self.high}


UNBOUNDED = Bounds()


def require_int16(name: str, *tensors: Tensor) -> None:
    """Raise ValueError unless all tensors are int16."""
    for tensor in tensors:
        if tensor.dtype is not DType.INT16:
            raise ValueError(f"{name}: {tensor.name} is {tensor.dtype}, it must be int16")


Int16Function = Literal["add", "sub", "mul"]


@dataclass(frozen=True, slots=True)
class BinaryInt16(BroadcastOperator):
    """A sum, difference or product of two int16 operands, with broadcasting.

    Operands of sums are shifted left by SUM_BITS, then scaled by `a` and `b`; the sum or product is scaled by
    `result`.
    """

    kind: ClassVar[str] = "BinaryInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    function: Int16Function
    a: TwiceScale
    b: TwiceScale
    result: TwiceScale
    bounds: Bounds = UNBOUNDED
    constant_operand: int | None = None
    constant_shape: Shape | None = None

    @property
    def stem(self) -> str:
        """The function."""
        return self.function

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """add_s16 (also of differences) or mul_s16."""
        require_int16(operator.name, *inputs, output)
        pointers = self.pointers(self.checked_constant(operator, np.int16))
        strides = broadcast_strides(self.operands(tuple(tensor.shape for tensor in inputs)))
        params = pointers | within("broadcast", strides)
        if self.function == "mul":
            params |= {**self.result.params(), **self.bounds.params()}
            return KernelCall("mul_s16", params, counts=pixel_counts(strides))
        sign = {"b_sign": 1 if self.function == "add" else -1}
        scales = self.a.params("a_") | self.b.params("b_") | sign | self.result.params()
        return KernelCall("add_s16", params | scales | self.bounds.params(), counts=pixel_counts(strides))


@dataclass(frozen=True, slots=True)
class RescaleInt16(ElementwiseOperator):
    """y = clip(out_zero_point + d * above) for differences d = x - in_zero_point that are 0 or positive.

    For negative d the factor is `below`, and if `negated` it multiplies -d. Input and output are int16 or
    int8; at least one is int16.
    """

    kind: ClassVar[str] = "RescaleInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    above: TwiceScale
    below: TwiceScale
    negated: bool = False
    in_zero_point: int = 0
    out_zero_point: int = 0
    bounds: Bounds = UNBOUNDED

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """rescale_s16. Raises ValueError for factors so large that a product could overflow."""
        (source,) = inputs
        types = {source.dtype, output.dtype}
        if not types <= {DType.INT8, DType.INT16}:
            raise ValueError(f"{operator.name} rescales int8 and int16, not {source.dtype} to {output.dtype}")
        if max(self.above.exponent, self.below.exponent) > _MOST_EXPONENT:
            raise ValueError(
                f"{operator.name}: the scale of its result is too small: a factor of 2^{_MOST_EXPONENT} and "
                "more overflows"
            )
        params: Params = {
            "row_elements": output.shape[1] * output.shape[2],
            "in_bytes": source.dtype.size_bytes,
            "out_bytes": output.dtype.size_bytes,
            "in_zero_point": self.in_zero_point,
            "out_zero_point": self.out_zero_point,
            **self.above.params(),
            **self.below.params("below_"),
            "below_sign": -1 if self.negated else 1,
            **self.bounds.params(),
        }
        return KernelCall("rescale_s16", params)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """The input, if its elements have the size of the output's."""
        return (0,) if inputs[0].dtype is output.dtype else ()


@dataclass(frozen=True, slots=True)
class SigmoidInt16(ElementwiseOperator):
    """The logistic function of x, or if `tangent` the hyperbolic tangent, with the scale 2^-15.

    x * multiplier / 2^shift is the real argument times 24 * 2^9; the table has an entry for each 1/24.
    """

    kind: ClassVar[str] = "SigmoidInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    tangent: bool
    multiplier: int
    shift: int

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """sigmoid_s16."""
        require_int16(operator.name, *inputs, output)
        if not (0 <= self.shift <= 31 and 0 <= self.multiplier <= INT16.max):
            raise ValueError(f"{operator.name}: {self.multiplier} / 2^{self.shift} does not fit the table")
        params: Params = {
            "table": logistic_table(),
            "row_elements": output.shape[1] * output.shape[2],
            "multiplier": self.multiplier,
            "shift": self.shift,
            "tangent": int(self.tangent),
        }
        return KernelCall("sigmoid_s16", params, mode="tangent" if self.tangent else "")


@dataclass(frozen=True, slots=True)
class SoftmaxInt16(PlainOperator):
    """exp(x - max) / sum over the channels, with the scale 2^-15.

    `scale` multiplies the differences x - max; the product -65535 stands for -10.
    """

    kind: ClassVar[str] = "SoftmaxInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})
    overwritten: ClassVar[tuple[int, ...]] = (0,)
    """The input: the kernel reads each element for the last time before it writes it."""

    scale: TwiceScale

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of Softmax."""
        return Softmax(2).loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """softmax_s16. Raises ValueError for scales or numbers of values that could overflow."""
        require_int16(operator.name, *inputs, output)
        _, groups, count = output.shape
        if self.scale.exponent > 31 - 17 or count * INT16.max > np.iinfo(np.int32).max:
            raise ValueError(f"{operator.name}: {count} values times 2^{self.scale.exponent} overflow")
        params: Params = {
            "exponentials": exponential_table(),
            "reciprocals": reciprocal_table(),
            "groups": groups,
            "count": count,
            **self.scale.params(),
        }
        return KernelCall("softmax_s16", params)


@dataclass(frozen=True, slots=True)
class MeanInt16(PlainOperator):
    """The mean over `axes`, which stay as dimensions of 1: sums times `scale`."""

    kind: ClassVar[str] = "MeanInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    axes: tuple[int, ...]
    scale: TwiceScale

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """The loop nest of Reduce."""
        return Reduce(self.axes).loops(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """reduce_mean_s16. Raises ValueError for sums that could overflow."""
        (source,) = inputs
        require_int16(operator.name, source, output)
        count = source.elements // output.elements
        if count * 2**15 >= 2**31:
            raise ValueError(f"{operator.name}: the sum of {count} values does not fit an int32")
        size = Reduce(self.axes).sizes(source.shape)
        return KernelCall("reduce_mean_s16", size | self.scale.params(), counts=reduce_counts(size))


@dataclass(frozen=True, slots=True)
class QuantizeInt16(ElementwiseOperator):
    """float32 -> int16: x / scale, ties rounded away from zero, saturated."""

    kind: ClassVar[str] = "QuantizeInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})

    scale: float

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """quantize_s16."""
        require_int16(operator.name, output)
        if inputs[0].dtype is not DType.FLOAT32:
            raise ValueError(f"{operator.name} makes int16 of float32")
        elements = output.shape[1] * output.shape[2]
        return KernelCall("quantize_s16", {"row_elements": elements, "scale": float(np.float32(self.scale))})

    def quantization(self, output: Tensor) -> Quantization:
        """The quantisation of the result."""
        return Quantization(self.scale, 0)


def logistic_table() -> NDArray[np.uint16]:
    """uint16[256]: the logistic function of i / 24, times 2^16; the last entry is the limit.

    An entry is less by half the error that interpolation has in the middle of the step after it.
    """
    curve = [2**16 / (1 + exp(-half / 48)) for half in range(2 * 256 + 1)]
    steps = zip(curve[:-2:2], curve[1::2], curve[2::2], strict=True)
    table = [floor(first - ((first + last) / 2 - middle) / 2 + 0.5) for first, middle, last in steps]
    return np.array([*table[:-1], 2**16 - 1], np.uint16)


def exponential_table() -> NDArray[np.int16]:
    """int16[513]: exp(x) for x from -10 to 0, times 2^15."""
    return interpolated_table(np.exp, (-10.0, 0.0))


def reciprocal_table() -> NDArray[np.int16]:
    """int16[513]: 1 / (1 + x) for x from 0 to 1, times 2^15."""
    return interpolated_table(lambda x: 1 / (1 + x), (0.0, 1.0))


def interpolated_table(
    function: Callable[[NDArray[np.floating]], NDArray[np.floating]], ends: tuple[float, float]
) -> NDArray[np.int16]:
    """int16[513]: a function at 512 steps between two arguments, times 2^15.

    An entry is less by half the error that interpolation has in the middle of the step after it.
    """
    steps = TABLE_SIZE - 1
    step = (ends[1] - ends[0]) / steps
    places = ends[0] + step * np.arange(TABLE_SIZE)
    values = function(places) * 2.0**15
    middles = _rounded(function(places[:-1] + step / 2) * 2.0**15)
    samples = _rounded(values)
    between = _rounded((values[1:] + samples[:-1]) / 2)
    samples[:-1] -= _rounded((between - middles) / 2)
    return np.asarray(np.clip(samples, INT16.min, INT16.max), np.int16)


def _rounded(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Whole numbers, ties rounded away from zero."""
    return np.asarray(np.copysign(np.floor(np.abs(values) + 0.5), values))
