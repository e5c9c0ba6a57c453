"""Estimated cycles of a unit's operation: Arm publishes none; after the formulas of its compiler Vela."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mcudeploy.extensions.ethos_u.unit_blocks import SUBKERNEL, U55, Block, UnitWindow, blocks_of, even_rows
from mcudeploy.ir.graph import Shape
from mcudeploy.ir.opdef import CountsOf

_SRAM_RATE = 8.0
"""Bytes a cycle of feature maps, read and written at a time: the width of the unit's port. Assumed."""
_FLASH_RATE = 8.0
"""Bytes a cycle of weights, by its other port: waits of a slow flash are not in the estimate. Assumed."""
START_CYCLES = 650.0
"""Cycles of a start: 250 of the core, and 400 from the start to the first block, and from the last one to the
interrupt. Assumed.
"""
_OPERATION_CYCLES = 50
"""From the commands of an operation within a stream to its first block. Assumed."""
_LEAST_CYCLES = 32
"""Cycles that the decoder of weights takes for the channels of a granule of 8."""
_BURST, _WRITTEN_BURST = 32, 16
"""Bytes of a burst, and those that a result fills."""
_WIDE_SHARE = 1.5
"""How much longer the result of a sum of 40 bits takes."""
_UNITS = 4
"""Parts of the unit that work on a block at a time: none is shorter than their mean."""
_FEW = 4
"""Outputs of up to this number of rows have separate blocks."""
_PARTS = (1, 8)
"""The numbers of parts of an output for which a block is chosen."""


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The work of the unit for any rows of an output, from an input of shape `source`.

    `low`: the blocks of outputs of one row, of two, and so on; those of more rows have `block`.
    """

    unit: U55
    window: UnitWindow
    block: Block
    source: Shape
    weight_bytes: int
    low: tuple[Block, ...] = ()

    def block_of(self, rows: int) -> Block:
        """Return the block of an output of some rows."""
        return self.low[rows - 1] if rows <= len(self.low) else self.block

    def with_low(self, output: Shape) -> UnitWork:
        """Return the work with the blocks of the least time for few rows; all have the same channels."""
        low = list[Block]()
        for rows in range(1, min(_FEW, output[0] - 1) + 1):
            shape = rows, *output[1:]
            fitting = (
                it
                for it in blocks_of(self.unit, self.window, self.source[2], shape)
                if it.shape[2] == self.block.shape[2]
            )
            ways = {it: operation_cycles(replace(self, block=it), shape) for it in fitting}
            low.append(min(ways, key=lambda it: (ways[it], it.shape)))
        return replace(self, low=tuple(low))

    def counts(self, output: Shape) -> CountsOf:
        """Return the counts of one operation for any rows of an output."""
        return lambda rows: {"unit_cycles": operation_cycles(self, (len(rows), *output[1:]))}


def operation_cycles(work: UnitWork, output: Shape) -> float:
    """Return the cycles of an operation: of its sums and results, its weights or its feature maps, whichever
    take longest.

    The results of a block are made beside the sums of the next one. Weights are fetched again for each block
    of rows and columns, unless channels are filtered one by one. A pool has none.
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
    result = unit.output_cycles * (_WIDE_SHARE if window.sum_bytes > 4 else 1)
    parts = granule_cycles * steps * granules[2], prod(used) * result
    least = (sum(parts) + _moved(work, used) / _SRAM_RATE) / _UNITS
    computed = prod(blocks) * max(*parts, least) + max(min(parts), least)
    fetched = work.weight_bytes * (1 if window.by_channel else blocks[0] * blocks[1])
    read = blocks[0] * blocks[1] * (1 if window.by_channel else blocks[2]) * source[2]
    for size, stride, area in zip(used, window.stride, window.area, strict=False):
        read *= (size - 1) * stride + area
    moved = max(read, prod(output)) * window.value_bytes
    return _OPERATION_CYCLES + max(computed, fetched / _FLASH_RATE, moved / _SRAM_RATE)


def _moved(work: UnitWork, used: Shape) -> float:
    """Return the bytes of bursts of a block: of its output, and of the input channels taken at a time.

    Values that are contiguous fill bursts: those of a pixel, or of a row if the block has all channels.
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


def find_block(unit: U55, window: UnitWindow, source: Shape, output: Shape) -> Block:
    """Return the block with the least time for an output: whole, and in eighths of its rows.

    Of equal ones, it has the most values. Raises ValueError if none fits.
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
    """Return the cycles of an operation of up to two operands: of its results, or of its feature maps."""
    return _OPERATION_CYCLES + values * max(result_cycles, 3 * value_bytes / _SRAM_RATE)


def _parts(kernel: tuple[int, int]) -> list[int]:
    """Return the taps of each part of a window that is taken at a time."""
    rows, cols = ([min(SUBKERNEL, size - at) for at in range(0, size, SUBKERNEL)] for size in kernel)
    return [row * col for row in rows for col in cols]


def _steps(window: UnitWindow, depth: int, taps: int) -> int:
    """Return the steps of a part of a window for all channels of the input."""
    if window.by_channel:
        return -(-taps // 4)
    if window.parts_first(depth):
        return -(-taps // window.taps_taken) * -(-depth // 8)
    return taps * -(-depth // window.deepest)
