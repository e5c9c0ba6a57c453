"""Cases of operators with packed weights in blocks for the costs of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.one_operator import mixed_operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.matrix.block_weights import BITS, BlockDense, GatherBlocks

_SIZES = (
    (1, 64, 64, 32),
    (1, 172, 30, 32),
    (1, 48, 128, 16),
    (3, 96, 17, 64),
    (1, 256, 9, 128),
    (4, 64, 40, 32),
    (6, 33, 24, 8),
    (9, 20, 12, 4),
    (16, 128, 16, 32),
)
"""Rows, depth, output channels and values in a block."""

_IN_PLACE = 4
"""Bits by which single pixels are multiplied where the weights lie."""


def block_cases() -> Iterator[Graph]:
    """Yield products by packed weights, and rows of packed tables."""
    for number, (rows, depth, channels, block) in enumerate(_SIZES):
        for bits in BITS:
            if bits != _IN_PLACE and number % 2:
                continue
            for zeros in (False, True) if bits == _IN_PLACE else (number % 4 == 0,):
                constants = _constants(channels, depth, block, bits, zeros=zeros)
                dense = BlockDense(channels, block, bits)
                bias = {"bias": np.linspace(-1, 1, channels).astype(np.float32)}
                yield mixed_operator(
                    dense, [((rows, 1, depth), DType.FLOAT32)], DType.FLOAT32, constants | bias
                )
            indices = [((1, 1, 2 * rows), DType.INT32)]
            gather = GatherBlocks(depth, block, bits)
            yield mixed_operator(gather, indices, DType.FLOAT32, constants)


def _constants(channels: int, depth: int, block: int, bits: int, *, zeros: bool) -> dict[str, ConstantArray]:
    rng, half = np.random.default_rng(depth), 1 << bits - 1
    parts = channels, -(-depth // block)
    zero = {"zero": rng.integers(-half, half, parts).astype(np.int8)} if zeros else {}
    return {
        "weights": rng.integers(-half, half, (channels, depth)).astype(np.int8),
        "scale": rng.uniform(0.01, 0.1, parts).astype(np.float32),
    } | zero
