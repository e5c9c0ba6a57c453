"""Estimated cycles of a unit's operation: Arm publishes none; after the formulas of its compiler Vela."""

from __future__ import annotations

from dataclasses import dataclass

from mcudeploy.extensions.ethos_u.unit_blocks import SUBKERNEL, U55, Block, UnitWindow
from mcudeploy.ir.graph import Shape

_SRAM_RATE = 8.0
"""Bytes a cycle of feature maps: the width of the unit's port. Assumed."""
_FLASH_RATE = 8.0
"""Bytes a cycle of weights, by its other port: waits of a slow flash are not in the estimate. Assumed."""
_START_CYCLES = 400
"""From the start of a stream to its first block, and from its last one to the interrupt. Assumed."""
_LEAST_CYCLES = 32
"""Cycles that the decoder of weights takes for the channels of a granule of 8."""


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The work of the unit for any rows of an output, from an input of shape `source`."""

    unit: U55
    window: UnitWindow
    block: Block
    source: Shape
    weight_bytes: int


def operation_cycles(work: UnitWork, output: Shape) -> float:
    """Return the cycles of an operation: of its sums, its results, its weights or its feature maps,
    whichever take longest.

    Weights are fetched again for each block of rows and columns, unless channels are filtered one by one. A
    pool has none.
    """
    unit, window, block, source = work.unit, work.window, work.block, work.source
    used = tuple(min(size, most) for size, most in zip(output, block.shape, strict=True))
    granules = [-(-size // step) for size, step in zip(used, unit.granule, strict=True)]
    blocks = [-(-size // most) for size, most in zip(output, used, strict=True)]
    at_once = max(_LEAST_CYCLES, 4 * granules[0] * granules[1])
    steps = sum(_steps(window, source[2], taps) for taps in _parts(window.kernel))
    if not work.weight_bytes:
        at_once, steps = granules[0] * granules[1], max(4, window.kernel[0] * window.kernel[1])
    sums = at_once * steps * granules[2] * blocks[0] * blocks[1] * blocks[2]
    values = output[0] * output[1] * output[2]
    fetched = work.weight_bytes * (1 if window.by_channel else blocks[0] * blocks[1])
    read = blocks[0] * blocks[1] * (1 if window.by_channel else blocks[2]) * source[2]
    for size, stride, area in zip(used, window.stride, window.area, strict=False):
        read *= (size - 1) * stride + area
    return _START_CYCLES + max(
        sums, values * unit.output_cycles, fetched / _FLASH_RATE, (read + values) / _SRAM_RATE
    )


def elementwise_cycles(unit: U55, values: int, share: float) -> float:
    """Return the cycles of an operation of two operands: of its results, or of its feature maps.

    `share`: how much longer a result takes than one of a convolution.
    """
    return _START_CYCLES + max(values * share * unit.output_cycles, 3 * values / _SRAM_RATE)


def _parts(kernel: tuple[int, int]) -> list[int]:
    """Return the taps of each part of a window that is taken at a time."""
    rows, cols = ([min(SUBKERNEL, size - at) for at in range(0, size, SUBKERNEL)] for size in kernel)
    return [row * col for row in rows for col in cols]


def _steps(window: UnitWindow, depth: int, taps: int) -> int:
    """Return the steps of a part of a window for all channels of the input."""
    if window.by_channel:
        return -(-taps // 4)
    if window.parts_first(depth):
        return -(-taps // 4) * -(-depth // 8)
    return taps * -(-depth // 32)
