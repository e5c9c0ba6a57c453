"""The constants of a kernel call as one block of bytes, which a transfer loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcudeploy.ir.opdef import ArrayPointer, CallTable, ConstantArray, KernelCall

WORD_BYTES = 4
"""The alignment of every array, in bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstantBlock:
    """The arrays of a kernel call in sequence. `offsets`: for each parameter, that of its array, in bytes."""

    arrays: tuple[ConstantArray, ...]
    offsets: dict[str, int]
    size_bytes: int

    @classmethod
    def of(cls, call: KernelCall) -> ConstantBlock:
        """Return the block of a call's arrays, with one copy of an array that two parameters share."""
        begins: dict[int, int] = {}
        arrays, offsets, end = list[ConstantArray](), dict[str, int](), 0
        for name, value in call.params.items():
            array = value.array if isinstance(value, ArrayPointer) else value
            if not isinstance(array, np.ndarray):
                continue
            if id(array) not in begins:
                begins[id(array)] = end
                arrays.append(array)
                end += -(-array.nbytes // WORD_BYTES) * WORD_BYTES
            offsets[name] = begins[id(array)]
        return cls(tuple(arrays), offsets, end)

    def content(self, size_bytes: int) -> bytes:
        """Return the bytes of the block, with zeros up to `size_bytes`."""
        padded = (array.tobytes() + bytes(-array.nbytes % WORD_BYTES) for array in self.arrays)
        return b"".join(padded).ljust(size_bytes, b"\0")


def is_loadable(call: KernelCall) -> bool:
    """Return whether a transfer can load a call's constants.

    The call must have constants that no other operator shares, and make no other calls that read constants.
    """
    values = call.params.values()
    shared = any(isinstance(it, CallTable) or (isinstance(it, ArrayPointer) and it.owner) for it in values)
    return bool(call.constant_bytes) and not (shared or call.stages or call.isa.unit)
