"""The C kernels of int8 3x3 convolutions by Winograd's minimal filtering, with their weights transformed.

A tile of 1x4, 2x4 or 4x4 results takes a half, a third or a quarter of the products of the direct kernel, and
4, 5.3 or 8 bytes of flash for a weight. See firmware/arith/int8/mcud_winograd_s8.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.graph import Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import Counts, KernelCall, Params
from mcudeploy.ops import requantize
from mcudeploy.ops.conv.conv_constants import ConvConstants
from mcudeploy.ops.conv.packing import padded
from mcudeploy.ops.conv.windows import Windowing, window_fields

_FOUR, _EIGHT, _WORD_BYTES = 4, 8, 4
_COLS, _INPUT_COLS = 4, 6
"""Columns of a tile, and of the input under it."""
_TILES = 2
"""Tiles that are multiplied together."""
_WORK_WORDS = 72
"""Words of scratch in which a tile is transformed."""
_COPIED = 16
"""Channels of the input that are copied at a time, for tiles that reach into the padding."""
_MOST_BYTES = 1 << 21
"""Limit of the weights of one layer."""
_TWO = ((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2))
"""The transform of three taps for two results, each line with a factor that makes it integer."""
_FOUR_RESULTS = ((6, 0, 0), (-4, -4, -4), (-4, 4, -4), (1, 2, 4), (1, -2, 4))
"""All lines but the last of the transform of three taps for four results."""


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Tiles of one height: the transforms of a kernel's rows and columns, and the scale of the sums.

    Sums are `scale` times those of the direct convolution; the last step makes them 2^shift times those.
    """

    rows: int
    along_rows: tuple[tuple[int, ...], ...]
    along_cols: tuple[tuple[int, ...], ...]
    scale: int
    shift: int

    @property
    def summed_rows(self) -> int:
        """Rows of the kernel that are not transformed but summed, as the depth is."""
        return 3 if self.rows == 1 else 1

    @property
    def positions(self) -> int:
        return len(self.along_rows) // self.summed_rows * len(self.along_cols)

    def scratch_words(self, depth: int) -> int:
        """Return the words of two transformed tiles, and of a transform or the sums, which share memory."""
        transform = _WORK_WORDS + (self.rows + 2) * _INPUT_COLS * _COPIED // _WORD_BYTES
        tiles = self.positions * self.summed_rows * depth // 2 * _TILES
        return tiles + max(transform, self.positions * _FOUR * _TILES)

    def transformed(self, weights: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return weights [K, 3, 3, C] transformed, K filled up to fours of channels."""
        rows, cols = np.array(self.along_rows), np.array(self.along_cols)
        transformed = np.einsum("ia,jb,oabk->oijk", rows, cols, weights.astype(np.int64), optimize=True)
        return np.pad(transformed, ((0, -len(weights) % _FOUR), (0, 0), (0, 0), (0, 0)))

    def packed_pairs(self, weights: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return weights [K, 3, 3, C] transformed, as int16 pairs in the order of the kernel."""
        full = self.transformed(weights)
        depth = full.shape[3]
        if self.summed_rows > 1:  # [K][row][col] to [K][col][row]
            full = full.transpose(0, 2, 1, 3)
        pairs = full.reshape(-1, _FOUR, self.positions, self.summed_rows, depth // 4, 2, 2)
        ordered = pairs.transpose(0, 2, 3, 4, 6, 1, 5)  # [fours][position][row][group][odd][channel][half]
        return _halves(ordered)

    def packed_vectors(self, weights: NDArray[np.int8]) -> NDArray[np.int32]:
        """Return weights [K, 3, 3, C] transformed, as int16 vectors in the order of the kernel for MVE."""
        full = self.transformed(weights)
        by_eights = full.reshape(-1, _FOUR, self.positions, full.shape[3] // _EIGHT, _EIGHT)
        return _halves(by_eights.transpose(0, 2, 3, 1, 4))  # [fours][position][depth / 8][channel][8]


def _halves(values: NDArray[np.int64]) -> NDArray[np.int32]:
    """Values of 16 bits, two in a word."""
    return np.ascontiguousarray(values.astype("<i2")).view("<i4").astype(np.int32).ravel()


_HEIGHTS = (
    _Tiles(1, ((1, 0, 0), (0, 1, 0), (0, 0, 1)), (*_FOUR_RESULTS, (0, 0, 24)), 24, 3),
    _Tiles(2, _TWO, (*_FOUR_RESULTS, (0, 0, 24)), 48, 4),
    _Tiles(4, (*_FOUR_RESULTS, (0, 0, 8)), (*_FOUR_RESULTS, (0, 0, 8)), 576, 6),
)


def winograd(
    conv: Windowing, constants: ConvConstants, numbers: Params, source: Tensor, output: Tensor
) -> tuple[KernelCall, ...]:
    """The kernels by tiles that support a convolution and are exact for its weights."""
    depth = source.shape[2]
    plain = (conv.kernel_shape, conv.stride, conv.dilation, conv.groups) == ((3, 3), (1, 1), (1, 1), 1)
    if not plain or depth % 4 or numbers["quant.left_shift"] != 0:
        return ()
    assert constants.multipliers is not None
    bias = constants.bias.astype(np.int64)
    largest = int((requantize.largest_products(constants.weights) + np.abs(bias)).max())
    all_fields = window_fields(conv, source, output)
    fields = {name: value for name, value in all_fields.items() if name.startswith("dims.")}
    fields |= {"pad_top": conv.pads[0], "pad_left": conv.pads[1]}
    padding = np.full(depth, requantize.quantization_of(source).zero_point, np.int8)
    calls: list[KernelCall] = []
    for tiles in _HEIGHTS:
        flash = tiles.positions * tiles.summed_rows * depth * padded(conv.out_channels, _FOUR) * 2
        if largest >= 1 << (31 - tiles.shift) or flash > _MOST_BYTES:
            continue
        factors = _factors(bias * tiles.scale, constants.multipliers.reshape(conv.out_channels, -1))
        scratch = tiles.scratch_words(depth) * _WORD_BYTES
        if tiles.rows == _COLS and depth % _EIGHT == 0:
            vectors: Params = {
                "packed_weights": tiles.packed_vectors(constants.weights),
                "factors": _vector_factors(factors, constants.mve_multipliers),
                "padding": np.tile(padding, _INPUT_COLS),
            }
            name, params = "conv2d_s8_w4x4_mve", vectors | fields | numbers
            of_vectors = _VectorCounts(source.shape, output.shape)
            calls.append(KernelCall(name, params, scratch, isa=Isa.MVE, counts=of_vectors))
        arrays: Params = {
            "packed_weights": tiles.packed_pairs(constants.weights),
            "factors": factors.ravel(),
            "padding": padding,
        }
        name, params = f"conv2d_s8_w{tiles.rows}x{_COLS}", arrays | fields | numbers
        counts = _Counts(tiles, conv.pads[:2], source.shape, output.shape)
        calls.append(KernelCall(name, params, scratch, counts=counts))
    return tuple(calls)


def _factors(bias: NDArray[np.int64], multipliers: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32 [K, 1 + factors]: the scaled bias and the multipliers of each channel, K filled up to fours."""
    channels = len(bias)
    factors = np.zeros((padded(channels, _FOUR), 1 + multipliers.shape[1]), np.int32)
    factors[:channels, 0] = bias.astype(np.int32)  # modulo 2^32
    factors[:channels, 1:] = multipliers
    return factors


def _vector_factors(factors: NDArray[np.int32], multipliers: NDArray[np.int32]) -> NDArray[np.int32]:
    """The factors of channels for MVE. If results are rounded twice, each kind of factor of four channels is
    contiguous.
    """
    if multipliers.ndim == 1:
        return factors.ravel()
    factors = factors.copy()
    factors[: len(multipliers), 1:] = multipliers
    return np.ascontiguousarray(factors.reshape(-1, _FOUR, factors.shape[1]).transpose(0, 2, 1)).ravel()


@dataclass(frozen=True, slots=True)
class _Counts:
    """Loop counts of a kernel: input is transformed for each tile, two tiles are multiplied at a time."""

    tiles: _Tiles
    pads: tuple[int, int]
    source: Shape
    output: Shape

    def __call__(self, rows: Interval) -> Counts:
        """Return the counts of a call that computes these rows."""
        (input_rows, cols, depth), (_, output_cols, channels) = self.source, self.output
        starts = range(-self.pads[1], output_cols - self.pads[1], _COLS)
        beyond_sides = sum(start < 0 or start + _INPUT_COLS > cols for start in starts)
        height = -(-len(rows) // self.tiles.rows)
        first, end = max(rows.lo, self.pads[0]), min(rows.hi, input_rows - 2 + self.pads[0])
        tops = range(rows.lo, rows.hi, self.tiles.rows)
        inside = sum(first <= top and top + self.tiles.rows <= end for top in tops)
        copied = inside * beyond_sides + (height - inside) * len(starts)
        count = height * len(starts)
        whole = len(rows) // self.tiles.rows * self.tiles.rows * (output_cols // _COLS * _COLS)
        multiplied = -(-count // _TILES) * -(-channels // _FOUR)
        return {
            "calls": 1,
            "tile_rows": height,
            "tiles": count,
            "groups": count * depth // 4,
            "copies": copied * -(-depth // _COPIED),
            "multiplied": multiplied,
            "pairs": multiplied * self.tiles.positions * self.tiles.summed_rows * depth // 2,
            "finished": count * channels,
            "result_rows": len(rows) * len(starts) * channels,
            "partial": (len(rows) * output_cols - whole) * -(-channels // _FOUR),
        }


@dataclass(frozen=True, slots=True)
class _VectorCounts:
    """Loop counts of the kernel for vectors: eights of channels are transformed, fours are finished."""

    source: Shape
    output: Shape

    def __call__(self, rows: Interval) -> Counts:
        """Return the counts of a call that computes these rows."""
        (_, output_cols, channels), eights = self.output, self.source[2] // _EIGHT
        height, fours = -(-len(rows) // _COLS), -(-channels // _FOUR)
        count = height * -(-output_cols // _COLS)
        whole = (len(rows) // _COLS) * (output_cols // _COLS) * (channels // _FOUR)
        multiplied = -(-count // _TILES) * fours
        return {
            "calls": 1,
            "tile_rows": height,
            "tiles": count,
            "eights": count * eights,
            "multiplied": multiplied,
            "products": multiplied * eights,
            "finished": count * fours,
            "partial": count * fours - whole,
            "copied": len(rows) * output_cols * fours - whole * _COLS * _COLS,
        }
