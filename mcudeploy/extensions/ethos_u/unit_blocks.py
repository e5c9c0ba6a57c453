"""Facts of the configurations of Ethos-U55 and U65, and the blocks of an output that fit their shared RAM.

Sources: Arm's technical reference manual 102420, and the architecture file of Arm's compiler Vela 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from mcudeploy.ir.graph import Shape

_BANK_BYTES = 1024
_OUTPUT_BANKS = 2
"""Banks of the shared RAM for the output."""
MOST_BLOCK = (32, 64, 128)
"""Rows, columns and channels of the largest block."""
_DEPTH_STEP = 16
"""A block with some of the channels has a multiple of this number."""
SUBKERNEL = 8
"""Limit of the rows and of the columns of a window that the unit takes at a time."""
INPUT_DEPTH = 8
"""Channels of an input that the unit takes at a time."""


@dataclass(frozen=True, slots=True)
class UnitConfiguration:
    """A configuration of the unit.

    `granule`: rows, columns and channels of an output that the unit computes at a time. `banks`: all banks of
    the shared RAM; `table_banks`: those for tables, at its end. The banks for inputs, for 32-bit sums and for
    40-bit sums are multiples of `input_banks`, `sum_banks` and `wide_sum_banks`. `output_cycles`: for each
    value of an output.
    """

    granule: Shape
    banks: int
    table_banks: int
    input_banks: int
    sum_banks: int
    wide_sum_banks: int
    output_cycles: float


_OF_256 = UnitConfiguration((2, 2, 8), 48, 2, 8, 16, 20, 0.25)
UNITS = {
    "ethos-u55-64": UnitConfiguration((1, 1, 8), 16, 0, 2, 4, 8, 1.0),
    "ethos-u55-128": UnitConfiguration((1, 2, 8), 24, 2, 4, 8, 12, 0.5),
    "ethos-u55-256": _OF_256,
    "ethos-u65-256": _OF_256,
}
"""The configurations, by their names in board files and in Vela."""


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """The window of a convolution or pool, by rows and columns.

    `by_channel`: each output channel reads its input channel only, as in a depthwise convolution.
    `value_bytes`: of an input's values; `sum_bytes`: of their sums.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    by_channel: bool
    value_bytes: int = 1
    sum_bytes: int = 4

    @property
    def area(self) -> tuple[int, int]:
        """The rows and columns that the window spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))  # type: ignore[return-value]

    def parts_first(self, depth: int) -> bool:
        """Whether the unit takes several taps of 8 input channels at a time, which Vela calls
        part-kernel-first, instead of `deepest` channels of one tap.
        """
        if self.by_channel:
            return False
        taps = self.kernel[0] * self.kernel[1]
        of_parts = depth * taps / (_up(depth, 8) * _up(taps, self.taps_taken))
        return depth <= 8 or of_parts > depth / _up(depth, self.deepest)

    @property
    def taps_taken(self) -> int:
        """Taps of 8 input channels that the unit takes at a time."""
        return 4 // self.value_bytes

    @property
    def deepest(self) -> int:
        """The most input channels of one tap that the unit takes at a time."""
        return 32 // self.value_bytes

    def channels_taken(self, depth: int) -> int:
        """Return how many of `depth` input channels the unit takes at a time, if not by channel."""
        return min(depth, 16 if self.parts_first(depth) else self.deepest)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of an output: rows, columns, channels; the banks where its inputs end and its sums begin."""

    shape: Shape
    input_end: int
    sums_begin: int


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def even_rows(granule: int, most: int, rows: int) -> int:
    """Return the rows of each block of an output of `rows` rows: at most `most`, evenly divided."""
    return _up(-(-rows // -(-rows // most)), granule)


def blocks_of(unit: UnitConfiguration, window: UnitWindow, depth: int, output: Shape) -> Iterator[Block]:
    """Yield every block of an output that fits the shared RAM; `depth`: the channels of the input."""
    return filter(None, (_block(unit, window, depth, shape) for shape in _shapes(unit, output)))


def _shapes(unit: UnitConfiguration, output: Shape) -> Iterator[Shape]:
    """Yield the rows, columns and channels that a block may have."""
    rows, cols, channels = (
        range(step, min(_up(size, step), most) + 1, step)
        for size, step, most in zip(output, unit.granule, MOST_BLOCK, strict=True)
    )
    deep = [it for it in channels if it >= output[2] or it % _DEPTH_STEP == 0]
    return ((high, wide, depth) for depth, high, wide in product(deep, rows, cols))


def _block(unit: UnitConfiguration, window: UnitWindow, depth: int, shape: Shape) -> Block | None:
    """Return the block of this shape and its place in the shared RAM, which holds inputs and sums of two
    blocks; None if it does not fit.
    """
    high, wide = (
        _up((size - 1) * stride + min(area, SUBKERNEL), step)
        for size, stride, area, step in zip(shape, window.stride, window.area, unit.granule, strict=False)
    )
    taken = shape[2] if window.by_channel else window.channels_taken(depth)
    pixel_bytes = _up(taken * window.value_bytes, INPUT_DEPTH)
    inputs = _up(2 * -(-high * wide * pixel_bytes // _BANK_BYTES), unit.input_banks)
    sum_banks = unit.wide_sum_banks if window.sum_bytes > 4 else unit.sum_banks
    sums = _up(2 * -(-shape[0] * shape[1] * _up(shape[2], 8) * window.sum_bytes // _BANK_BYTES), sum_banks)
    end, begin = _OUTPUT_BANKS + inputs, unit.banks - unit.table_banks - sums
    return Block(shape, end, begin) if end <= begin else None


@dataclass(frozen=True, slots=True)
class PairBlock:
    """A block of an operation of two inputs, and the banks where the inputs end and the second one begins."""

    shape: Shape
    input_end: int
    second_begin: int


def find_pair_block(unit: UnitConfiguration, output: Shape, value_bytes: int = 1) -> PairBlock:
    """Return the largest block of an operation of two inputs of the output's shape."""
    end, best = unit.banks - unit.table_banks, None
    for shape in _shapes(unit, output):
        size = shape[0] * shape[1] * _up(shape[2], 8)
        second = _OUTPUT_BANKS + _up(2 * -(-size * value_bytes // _BANK_BYTES), unit.input_banks)
        fits = 2 * second - _OUTPUT_BANKS <= end
        if fits and (best is None or size > prod(best.shape)):
            best = PairBlock(shape, end, second)
    if best is None:
        raise ValueError(f"no block of {output} fits the {unit.banks} KB of the unit")
    return best
