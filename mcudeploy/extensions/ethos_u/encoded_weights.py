"""The constants of an operation in flash: a record for each output channel, then the encoded weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ConfigError
from mcudeploy.extensions.ethos_u.unit_blocks import (
    INPUT_DEPTH,
    SUBKERNEL,
    Block,
    UnitConfiguration,
    UnitWindow,
)
from mcudeploy.ir.opdef import UNIT_ALIGNMENT

_RECORD_BYTES = 10
_MOST_BIAS = 2**39
_MOST_SHIFT = 63


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """The last step from a sum to a result, by output channel: (sum + `bias`) * `scale` / 2^`shift`."""

    bias: NDArray[np.int64]
    scale: NDArray[np.int64]
    shift: NDArray[np.int64]

    def records(self) -> bytes:
        """Return a record of ten bytes for each channel: 40 bits of bias, 32 of scale and 6 of shift; zeros
        after the last record fill up to `UNIT_ALIGNMENT`. Raises ValueError for a value that does not fit.
        """
        if (
            np.abs(self.bias).max() >= _MOST_BIAS
            or not 0 <= self.scale.min() <= self.scale.max() < 2**32
            or not 0 <= self.shift.min() <= self.shift.max() <= _MOST_SHIFT
        ):
            raise ValueError("a bias, scale or shift does not fit the records of the unit")
        records = np.zeros((len(self.bias), _RECORD_BYTES), np.uint8)
        for byte in range(5):
            records[:, byte] = self.bias >> 8 * byte & 255
        for byte in range(4):
            records[:, 5 + byte] = self.scale >> 8 * byte & 255
        records[:, 9] = self.shift
        return _filled(records.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class EncodedConstants:
    """An operation's constants as words: the records, whose bytes are `record_bytes`, then the weights."""

    words: NDArray[np.uint32]
    record_bytes: int

    @property
    def weight_bytes(self) -> int:
        """The bytes of the encoded weights."""
        return self.words.nbytes - self.record_bytes


def encoder() -> Any:
    """Return the module of Vela that compresses weights.

    Raises ConfigError if Vela is not installed, or cannot be imported.
    """
    try:
        from ethosu import mlw_codec
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "ethosu"
        cause = "is not installed" if missing else f"cannot be imported ({error})"
        raise ConfigError(
            f"the weights of an Ethos-U are encoded by Arm's Vela, which {cause}: pip install ethos-u-vela"
        ) from error
    return mlw_codec


def encoded(
    unit: UnitConfiguration, window: UnitWindow, block: Block, weights: NDArray[Any], scaling: Scaling
) -> EncodedConstants:
    """Return the constants for weights [K, kh, kw, C] of 9 bits, in the order in which blocks read them.

    Raises ConfigError without Vela, whose encoder compresses the weights.
    """
    compressed, _ = encoder().reorder_encode(
        INPUT_DEPTH,
        unit.granule[2],
        np.ascontiguousarray(weights, np.int16),
        block.shape[2],
        window.by_channel,
        window.parts_first(weights.shape[3]),
        8 * window.value_bytes,
        SUBKERNEL // window.dilation[0],
        SUBKERNEL // window.dilation[1],
    )
    records = scaling.records()
    return EncodedConstants(np.frombuffer(records + _filled(bytes(compressed)), "<u4"), len(records))


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % UNIT_ALIGNMENT)
