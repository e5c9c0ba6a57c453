"""Operators on the channels of a filter bank over a spectrum: energies, noise, gain, logarithm.

All values are unsigned 32-bit integers, stored as int32, unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcudeploy.extensions.audio.signal import (
    ROW,
    VECTOR,
    WHOLE_ROW,
    by_element,
    require_bits,
    require_types,
    vector_axes,
)
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.opdef import Index, KernelCall, LoopNest, Params, PlainOperator
from mcudeploy.ops.common import WIDE_INTEGERS, ElementwiseOperator, reduced_axis

GAINS = 125
"""Values of a table of gains: one each for the noises 0, 1 and 2, and four for each further power of two."""


@dataclass(frozen=True, slots=True)
class FilterBankRoot(PlainOperator):
    """x (1, 1, points) and bits (1, 1, 1) -> (1, 1, channels): roots of the channels' energies / 2^bits.

    A point of range r adds its energy times a weight to channel r - 1, and times the rest to channel r, in
    64 bits. Constants: "weights" and "rest" [weights] int16, of all ranges in turn; "points", "places" and
    "widths" [channels + 1] uint16: the first point, the first weight and the size of each range.
    """

    kind: ClassVar[str] = "FilterBankRoot"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    channels: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Every channel may read all points."""
        x, bits = inputs
        if x[:2] != (1, 1) or bits != (1, 1, 1):
            raise ValueError(f"expected a spectrum and a scalar, found {x} and {bits}")
        axes = (*vector_axes(self.channels), reduced_axis("at", x[2]))
        return LoopNest(axes, (WHOLE_ROW, (ROW, Index(), Index())), VECTOR)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `filter_bank_root`. Raises ValueError for ranges beyond points or weights."""
        require_types(self.kind, (*inputs, output), DType.INT32, DType.INT32, DType.INT32)
        names = ("weights", "rest", "points", "places", "widths")
        constants = {name: operator.constants[name] for name in names}
        points, places, widths = (constants[name].astype(np.int64) for name in names[2:])
        if any(len(table) != self.channels + 1 for table in (points, places, widths)):
            raise ValueError(f"{self.channels} channels need {self.channels + 1} ranges")
        if constants["weights"].shape != constants["rest"].shape:
            raise ValueError("its weights and its rest differ in number")
        beyond = (points + widths > inputs[0].elements) | (places + widths > constants["weights"].size)
        if np.any(beyond & (widths > 0)):
            raise ValueError("its ranges end beyond the spectrum or the weights")
        counts = {"calls": 1, "channels": self.channels, "products": int(widths.sum())}
        params: Params = {**constants, "channels": self.channels}
        return KernelCall("filter_bank_root", params, counts=lambda _: dict(counts))


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The factors of a running mean: of the newest value, and of the mean of earlier values."""

    newest: int
    earlier: int


@dataclass(frozen=True, slots=True)
class NoiseEstimate(PlainOperator):
    """The signal (1, 1, channels) and a state of that shape -> the next state, a running mean.

    It is (signal * 2^scale_bits * newest + state * earlier) / 2^bits, with the factors `even` or `odd` of the
    channel. If `clamped`, it is at most the signal. Further inputs are not read: they depend on the old
    state, so they must be computed before it changes.
    """

    kind: ClassVar[str] = "NoiseEstimate"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (1,)
    """The state, whose next content is the output."""

    scale_bits: int
    bits: int
    even: Smoothing
    odd: Smoothing
    clamped: bool

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place."""
        nest, unused = _of_channels(inputs[:2]), (Index(), Index(), Index())
        return replace(nest, reads=(*nest.reads, *(unused for _ in inputs[2:])))

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `noise_estimate`."""
        require_types(self.kind, (*inputs[:2], output), DType.INT32, DType.INT32, DType.INT32)
        require_bits(31, scale_bits=self.scale_bits)
        require_bits(63, bits=self.bits)
        params = {
            "channels": output.elements,
            "scale_bits": self.scale_bits,
            "bits": self.bits,
            "even_newest": self.even.newest,
            "even_oldest": self.even.earlier,
            "odd_newest": self.odd.newest,
            "odd_oldest": self.odd.earlier,
            "clamped": int(self.clamped),
        }
        return KernelCall("noise_estimate", params, counts=by_element(output.elements))


@dataclass(frozen=True, slots=True)
class NoiseSubtract(PlainOperator):
    """The signal (1, 1, channels) minus noise / 2^scale_bits, with the noise in a second input of that shape.

    The result is at least signal * least / 2^bits.
    """

    kind: ClassVar[str] = "NoiseSubtract"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    scale_bits: int
    least: int
    bits: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place."""
        return _of_channels(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `noise_subtract`."""
        require_types(self.kind, (*inputs, output), DType.INT32, DType.INT32, DType.INT32)
        require_bits(31, scale_bits=self.scale_bits)
        require_bits(63, bits=self.bits)
        params = {
            "channels": output.elements,
            "scale_bits": self.scale_bits,
            "least": self.least,
            "bits": self.bits,
        }
        return KernelCall("noise_subtract", params, counts=by_element(output.elements))


@dataclass(frozen=True, slots=True)
class Pcan(PlainOperator):
    """The signal (1, 1, channels) and the noise of that shape -> the signal times its gain, compressed.

    constants["gains"] [125] int16: the table of gains by noise.

    Source: Wang et al., "Trainable frontend for robust and far-field keyword spotting", 2017.
    """

    kind: ClassVar[str] = "Pcan"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS
    overwritten: ClassVar[tuple[int, ...]] = (0,)

    shift: int

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Each element reads the elements at its place."""
        return _of_channels(inputs)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `pcan`."""
        require_types(self.kind, (*inputs, output), DType.INT32, DType.INT32, DType.INT32)
        require_bits(63, shift=self.shift)
        gains = operator.constants["gains"]
        if gains.size < GAINS:
            raise ValueError(f"its table has {gains.size} gains; {GAINS} are needed")
        params: Params = {
            "gains": gains.ravel()[:GAINS],
            "channels": output.elements,
            "shift": self.shift,
        }
        return KernelCall("pcan", params, counts=by_element(output.elements))


@dataclass(frozen=True, slots=True)
class FilterBankLog(ElementwiseOperator):
    """x (1, 1, channels) -> int16: the natural logarithm of x * 2^shift, times scale, saturated.

    It is 0 for 0 and 1.
    """

    kind: ClassVar[str] = "FilterBankLog"
    accepts: ClassVar[frozenset[DType]] = WIDE_INTEGERS

    shift: int
    scale: int

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the kernel `filter_bank_log`."""
        require_types(self.kind, (*inputs, output), DType.INT32, DType.INT16)
        require_bits(31, shift=self.shift)
        params: Params = {
            "corrections": log_corrections(),
            "channels": output.elements,
            "shift": self.shift,
            "scale": self.scale,
        }
        return KernelCall("filter_bank_log", params, counts=by_element(output.elements))


def log_corrections() -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    """2^16 * (log2(1 + x) - x) at x = i / 128 for i from 0 to 128, and a 0 after these."""
    x = np.arange(129) / 128
    return np.append(np.round(65536 * (np.log2(1 + x) - x)), 0).astype(np.uint16)


def _of_channels(inputs: tuple[Shape, ...]) -> LoopNest:
    x, other = inputs
    if x != other or x[:2] != (1, 1):
        raise ValueError(f"{x} and {other} are not channels of one run")
    return LoopNest(vector_axes(x[2]), (VECTOR, VECTOR), VECTOR)
