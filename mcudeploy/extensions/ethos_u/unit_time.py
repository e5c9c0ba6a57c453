"""Estimated cycles of the unit's operations, after the formulas of Vela, since Arm publishes no cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mcudeploy.extensions.ethos_u.unit_blocks import (
    SUBKERNEL,
    Block,
    UnitConfiguration,
    UnitWindow,
    blocks_of,
    even_rows,
)
from mcudeploy.ir.graph import Shape
from mcudeploy.ir.opdef import CountsOf

_SRAM_RATE = 8.0
"""Bytes of feature maps that the unit reads and writes in a cycle: the width of its port. Assumed."""
_FLASH_RATE = 8.0
"""Bytes of weights that the unit reads in a cycle by its other port, without waits for flash. Assumed."""
START_CYCLES = 650.0
"""Cycles of a start: 250 of the core, and 400 before the first block and between the last block and the
interrupt. Assumed.
"""
_OPERATION_CYCLES = 50
"""Cycles from the commands of an operation within a stream to its first block. Assumed."""
_LEAST_CYCLES = 32
"""Cycles that the decoder of weights takes for the 8 channels of a granule."""
_BURST, _WRITTEN_BURST = 32, 16
"""Bytes of a burst, and the bytes that results fill of it."""
_WIDE_SHARE = 1.5
"""Cycles of the result of a 40-bit sum, as a multiple of those of a 32-bit sum."""
_STAGES = 4
"""Stages of the unit that work on blocks at the same time: a block takes at least their mean."""
_FEW = 4
"""Outputs of at most this number of rows have their own blocks."""
_PARTS = (1, 8)
"""The numbers of parts of an output for which a block is chosen."""


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The work of the unit for any rows of an output, from an input of shape `source`.

    `low`: the blocks for outputs of one row, of two, and so on; `block`: for outputs of more rows.
    """

    unit: UnitConfiguration
    window: UnitWindow
    block: Block
    source: Shape
    weight_bytes: int
    low: tuple[Block, ...] = ()

    def block_of(self, rows: int) -> Block:
        """Return the block of an output of some rows."""
        return self.low[rows - 1] if rows <= len(self.low) else self.block

    def with_low(self, output: Shape) -> UnitWork:
        """Return the work with the fastest blocks for few rows; all blocks have the same channels."""
        low = list[Block]()
        for rows in range(1, min(_FEW, output[0] - 1) + 1):
            shape = rows, *output[1:]
            fitting = (
                it
                for it in blocks_of(self.unit, self.window, self.source[2], shape)
                if it.shape[2] == self.block.shape[2]
            )
            cycles = {it: operation_cycles(replace(self, block=it), shape) for it in fitting}
            low.append(min(cycles, key=lambda it: (cycles[it], it.shape)))
        return replace(self, low=tuple(low))

    def counts(self, output: Shape) -> CountsOf:
        """Return the counts of one operation for any rows of an output."""
        return lambda rows: {"unit_cycles": operation_cycles(self, (len(rows), *output[1:]))}


def operation_cycles(work: UnitWork, output: Shape) -> float:
    """Return the cycles of an operation: the longest of computing, reading weights, and moving feature maps.

    The unit makes the results of a block while it computes the sums of the next. It reads the weights again
    for each block of rows and columns, unless `by_channel`. A pool has no weights.
    """
    unit, window, block, source = work.unit, work.window, work.block_of(output[0]), work.source
    rows = even_rows(unit.granule[0], block.shape[0], output[0])
    used = min(rows, output[0]), min(block.shape[1], output[1]), min(block.shape[2], output[2])
    granules = [-(-size // step) for size, step in zip(used, unit.granule, strict=True)]
    blocks = [-(-size // most) for size, most in zip(output, used, strict=True)]

    granule_cycles = 4 * granules[0] * granules[1] * (window.value_bytes if window.by_channel else 1)
    granule_cycles = max(_LEAST_CYCLES, granule_cycles)
    steps = sum(_steps(window, source[2], taps) for taps in _parts(window.kernel))
    if not work.weight_bytes:
        granule_cycles = granules[0] * granules[1] * window.value_bytes
        steps = max(4, window.kernel[0] * window.kernel[1])
    result_cycles = unit.output_cycles * (_WIDE_SHARE if window.sum_bytes > 4 else 1)
    of_block = granule_cycles * steps * granules[2], prod(used) * result_cycles
    least = (sum(of_block) + _moved(work, used) / _SRAM_RATE) / _STAGES
    computing = prod(blocks) * max(*of_block, least) + max(min(of_block), least)

    weight_bytes = work.weight_bytes * (1 if window.by_channel else blocks[0] * blocks[1])
    values_read = blocks[0] * blocks[1] * (1 if window.by_channel else blocks[2]) * source[2]
    for size, stride, area in zip(used, window.stride, window.area, strict=False):
        values_read *= (size - 1) * stride + area
    map_bytes = max(values_read, prod(output)) * window.value_bytes
    return _OPERATION_CYCLES + max(computing, weight_bytes / _FLASH_RATE, map_bytes / _SRAM_RATE)


def _moved(work: UnitWork, used: Shape) -> float:
    """Return the bytes of the bursts that move a block: its output, and the input channels taken at a time.

    Contiguous values share bursts: those of a pixel, or of a row if the block has all channels.
    """
    window, channels, size_bytes = work.window, work.source[2], work.window.value_bytes
    depth = used[2] if window.by_channel else window.channels_taken(channels)
    rows, cols = (
        (size - 1) * stride + min(span, SUBKERNEL)
        for size, stride, span in zip(used, window.stride, window.area, strict=False)
    )
    read = min(_BURST, depth * size_bytes * (cols if depth >= channels else 1))
    written = min(used[2] * size_bytes, _WRITTEN_BURST)
    return _BURST * size_bytes * (rows * cols * depth / read + prod(used) / written)


def find_block(unit: UnitConfiguration, window: UnitWindow, source: Shape, output: Shape) -> Block:
    """Return the block with the least time for an output, computed whole, and in eighths of its rows.

    Of equally fast blocks it is the largest. Raises ValueError if none fits.
    """
    depth = 1 if window.by_channel else source[2]
    weight_bytes = window.kernel[0] * window.kernel[1] * depth * output[2]

    def cost(block: Block) -> tuple[float, int]:
        work = UnitWork(unit, window, block, source, weight_bytes)
        parts = ((part, (-(-output[0] // part), *output[1:])) for part in _PARTS)
        return sum(part * operation_cycles(work, shape) for part, shape in parts), -prod(block.shape)

    best = min(blocks_of(unit, window, source[2], output), key=cost, default=None)
    if best is None:
        raise ValueError(f"no block of {output} fits the {unit.banks} KB of the unit")
    return best


def elementwise_cycles(values: int, result_cycles: float, value_bytes: int = 1) -> float:
    """Return the cycles of an elementwise operation: the longer of computing and moving feature maps."""
    return _OPERATION_CYCLES + values * max(result_cycles, 3 * value_bytes / _SRAM_RATE)


def _parts(kernel: tuple[int, int]) -> list[int]:
    """Return the number of taps of each part of a window that the unit takes at a time."""
    rows, cols = ([min(SUBKERNEL, size - at) for at in range(0, size, SUBKERNEL)] for size in kernel)
    return [row * col for row in rows for col in cols]


def _steps(window: UnitWindow, depth: int, taps: int) -> int:
    """Return the number of steps that a part of a window with these taps takes for all input channels."""
    if window.by_channel:
        return -(-taps // 4)
    if window.parts_first(depth):
        return -(-taps // window.taps_taken) * -(-depth // 8)
    return taps * -(-depth // window.deepest)
