"""Constants that a step loads in pieces of output channels: each while it computes with the piece before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.ir.constant_block import is_loadable
from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ArrayPointer, CallTable, ConstantArray, KernelCall, Params, Symbol
from mcudeploy.ir.plan import LoadedConstants, Pieces
from mcudeploy.ops.move.columns import column_alignment, part_of

STREAM = "stream_constants"
"""The kernel that loads the pieces, and calls the operator's kernel for each."""
_LINE = 64
"""Bytes that the arrays of a piece are aligned to: no cache has longer lines."""


@dataclass(frozen=True, slots=True, eq=False)
class PieceArray:
    """The array of a parameter, the bytes of it in each piece, and their offset in a half of the place."""

    name: str
    array: ConstantArray
    piece_bytes: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class PieceLoads:
    """The arrays of a call in pieces of `channels` output channels; the last piece has the rest.

    The place in the arena has two halves, of `half_bytes`: successive pieces take turns in them.
    """

    call: KernelCall
    output: Tensor
    channels: int
    arrays: tuple[PieceArray, ...]
    half_bytes: int

    @classmethod
    def of(cls, call: KernelCall, output: Tensor, channels: int) -> PieceLoads:
        """Return the pieces of a call with pieces; `channels` is a multiple of its `channels_unit`."""
        arrays, end = list[PieceArray](), 0
        # The second piece of an array begins where the first one ends.
        for name, value in part_of(call, output, Interval(channels, 2 * channels))[0].params.items():
            if isinstance(value, ArrayPointer):
                size = value.first * value.array.itemsize
                arrays.append(PieceArray(name, value.array, size, end))
                end += -(-size // _LINE) * _LINE
        return cls(call, output, channels, tuple(arrays), end)

    @property
    def count(self) -> int:
        """The number of pieces."""
        return -(-self.output.shape[2] // self.channels)

    def pieces(self, engine: str) -> Pieces:
        """Return the entry of a plan for these pieces."""
        total = sum(it.array.nbytes for it in self.arrays)
        return Pieces(engine, self.channels, self.count, len(self.arrays), total)

    def places(self, operator: str, loaded: LoadedConstants) -> dict[tuple[str, str], str]:
        """Return the C expression of each array's address, by call of `streaming` and parameter."""
        halves = 0, 1, (self.count - 1) % 2  # of an even piece, an odd one, and the last
        return {
            (f"{operator}_{number}", it.name): _address(loaded, half * self.half_bytes + it.offset)
            for number, half in enumerate(halves)
            for it in self.arrays
        }

    def streaming(self, operator: str, loaded: LoadedConstants, engine: int) -> KernelCall:
        """Return the call that loads all pieces and computes with them. `engine`: its number."""
        last = (self.count - 1) * self.channels
        parts = [Interval(0, self.channels)] * 2 + [Interval(last, self.output.shape[2])]
        sizes = [
            (it.piece_bytes, it.array.nbytes - (self.count - 1) * it.piece_bytes, it.offset)
            for it in self.arrays
        ]
        params: Params = {
            "calls": CallTable(tuple(self._part(channels) for channels in parts)),
            "to": Symbol(_address(loaded, 0)),
            "sizes": np.array(sizes, np.uint32).ravel(),
        }
        for number, it in enumerate(self.arrays):
            params[f"from[{number}]"] = ArrayPointer(it.array, 0, f"{operator}_{it.name}")
        return KernelCall(
            STREAM,
            params
            | {
                "arrays": len(self.arrays),
                "half_bytes": self.half_bytes,
                "out_bytes": self.channels * self.output.dtype.size_bytes,
                "pieces": self.count,
                "engine": engine,
            },
        )

    def _part(self, channels: Interval) -> KernelCall:
        call = part_of(self.call, self.output, channels)[0]
        arrays = {it.name: it.array for it in self.arrays}
        return replace(call, params={**call.params, **arrays}, others=())


def channels_unit(call: KernelCall, output: Tensor) -> int:
    """Return the number that divides the channels of a piece; 0 if a call cannot have pieces."""
    is_vector = output.shape[:2] == (1, 1) and is_loadable(call)
    unit = column_alignment(call, output, 1) if is_vector else 0
    return unit if unit < output.shape[2] else 0


def _address(loaded: LoadedConstants, offset: int) -> str:
    return f"arena_{loaded.place.memory}.bytes + {loaded.place.offset + offset}"
