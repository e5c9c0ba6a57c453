"""The operator that looks up functions of int16 values in TFLite's interpolated tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.int16.int16 import INT16, TABLE_SIZE, require_int16
from mcudeploy.ir.graph import DType, Operator, Tensor
from mcudeploy.ir.opdef import KernelCall, Params
from mcudeploy.ops.common import ElementwiseOperator

TableFunction = Literal["exp", "log", "rsqrt"]
_Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LutInt16(ElementwiseOperator):
    """A function of each value, by constants["table"], int16[513] as `interpolated_function` makes it."""

    kind: ClassVar[str] = "LutInt16"
    accepts: ClassVar[frozenset[DType]] = frozenset({DType.INT16})
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """lut_s16."""
        require_int16(operator.name, *inputs, output)
        table = operator.constants["table"]
        if table.dtype != np.int16 or table.shape != (TABLE_SIZE,):
            raise ValueError(
                f"{operator.name}: its table is {table.dtype} {table.shape}, it must be int16[513]"
            )
        params: Params = {"table": table, "row_elements": output.shape[1] * output.shape[2]}
        return KernelCall("lut_s16", params)


def interpolated_function(function: TableFunction, scale: float, result_scale: float) -> NDArray[np.int16]:
    """int16[513]: the function at 512 steps from the least to the largest input, and at the largest.

    An entry is less by half the error that interpolation has in the middle of its step. The arithmetic is
    TFLite's, in float32. `scale`: of the input. Raises ValueError for results beyond float32, for which
    TFLite writes entries of 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        entries = _entries(function, scale, result_scale)
    if not np.all(np.isfinite(entries[:-1])):
        raise ValueError(f"{function} of inputs up to {scale * INT16.max:g} is beyond float32")
    return np.asarray(np.clip(entries, INT16.min, INT16.max), np.int16)


def _entries(function: TableFunction, scale: float, result_scale: float) -> _Floats:
    """The entries of the table as whole numbers, before they are clipped."""
    source, target = np.float32(scale), np.float32(result_scale)
    least, most = source * np.float32(INT16.min), source * np.float32(INT16.max)
    step = (most - least) / np.float32(TABLE_SIZE - 1)
    reach = target * np.float32(INT16.max) - target * np.float32(INT16.min)
    steps_per_unit = np.float32(2**16) / reach
    places = np.arange(TABLE_SIZE, dtype=np.float32)
    compute = _FUNCTIONS[function]
    samples = compute(np.append(least + places[:-1] * step, most), target) * steps_per_unit
    nexts = compute(least + places[1:] * step, target) * steps_per_unit
    middles = compute(least + places[:-1] * step + step / np.float32(2), target) * steps_per_unit
    entries = _rounded(samples)
    between = _rounded((nexts + entries[:-1]) / np.float32(2))
    entries[:-1] -= _rounded((between - _rounded(middles)) / np.float32(2))
    return entries


def _rounded(values: _Floats) -> _Floats:
    """Whole numbers, ties rounded away from zero."""
    return np.asarray(np.copysign(np.floor(np.abs(values) + np.float32(0.5)), values), np.float32)


def _exp(x: _Floats, _: np.float32) -> _Floats:
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _log(x: _Floats, scale: np.float32) -> _Floats:
    """log(x), and the least result for x <= 0."""
    positive = np.where(x > 0, x, 1).astype(np.float64)
    return np.where(x > 0, np.log(positive), np.float32(INT16.min) * scale).astype(np.float32)


def _rsqrt(x: _Floats, scale: np.float32) -> _Floats:
    """1 / sqrt(x), and the largest result for x <= 0."""
    root = np.sqrt(np.where(x > 0, x, np.float32(1)))
    return np.where(x > 0, np.float32(1) / root, np.float32(INT16.max) * scale).astype(np.float32)


_FUNCTIONS: dict[TableFunction, Callable[[_Floats, np.float32], _Floats]] = {
    "exp": _exp,
    "log": _log,
    "rsqrt": _rsqrt,
}
"""Functions from real inputs and the scale of the result to real results."""
