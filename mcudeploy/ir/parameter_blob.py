"""Blobs of parameters, as storage and messages contain them; mcud_parameters.h has the fields."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from mcudeploy.ir.operator_facts import HASH_BYTES

_HEADER = struct.Struct(f"<4sI{HASH_BYTES}sIII")
_CRC = struct.Struct("<I")
_MAGIC, _VERSION = b"MCUP", 1
HEADER_BYTES = _HEADER.size + _CRC.size


@dataclass(frozen=True, slots=True)
class ParameterBlob:
    """The values of a parameter table, for models with the hash of facts `hash`.

    `sequence`: a number that rises with each blob, so that the newer of two blobs is known.
    """

    hash: bytes
    values: bytes
    sequence: int = 0

    def to_bytes(self) -> bytes:
        """Return the bytes of header and values."""
        head = _HEADER.pack(_MAGIC, _VERSION, self.hash, len(self.values), self.sequence, 0)
        return head + _CRC.pack(zlib.crc32(self.values, zlib.crc32(head))) + self.values

    @classmethod
    def of(cls, data: bytes) -> ParameterBlob:
        """Return the blob that bytes of a file or a device contain. Raises ValueError for damaged bytes."""
        if len(data) < HEADER_BYTES or data[: len(_MAGIC)] != _MAGIC:
            raise ValueError("it does not begin with the header of parameters")
        _, version, model_hash, size, sequence, _ = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise ValueError(f"its layout version is {version}, not {_VERSION}")
        values = data[HEADER_BYTES:]
        if len(values) != size:
            raise ValueError(f"it has {len(values):,} bytes of values, its header states {size:,}")
        (crc,) = _CRC.unpack_from(data, _HEADER.size)
        if crc != zlib.crc32(values, zlib.crc32(data[: _HEADER.size])):
            raise ValueError("its CRC is wrong: it was changed or damaged")
        return cls(model_hash, values, sequence)
