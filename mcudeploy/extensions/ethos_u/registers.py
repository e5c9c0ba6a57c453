"""Register commands of Ethos-U55: their codes, and the conversions between commands and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_PAYLOAD = 0x4000
"""The bit of a code whose command has a second word."""
CODE_BITS = 0x3FF
"""The bits that name a command without a second word."""
_LAST = 0xFFFF
ADDRESSES = 1 << 40
"""Addresses, and distances between addresses, are numbers modulo 2^40."""

OPERATIONS = {
    0x000: "STOP",
    0x001: "IRQ",
    0x002: "CONV",
    0x003: "DEPTHWISE",
    0x005: "POOL",
    0x006: "ELEMENTWISE",
    0x010: "DMA_START",
    0x011: "DMA_WAIT",
    0x012: "KERNEL_WAIT",
    0x013: "PMU_MASK",
}
"""Commands that set no register, by their code."""


def _numbered(first: int, names: str) -> dict[int, str]:
    """Return names by code from `first` on; "-" stands for a code without a register."""
    return {code: name for code, name in enumerate(names.split(), first) if name != "-"}


SHORT = {
    **_numbered(0x100, "IFM_PAD_TOP IFM_PAD_LEFT IFM_PAD_RIGHT IFM_PAD_BOTTOM IFM_DEPTH_M1 IFM_PRECISION"),
    **_numbered(0x107, "IFM_UPSCALE - IFM_ZERO_POINT IFM_WIDTH0_M1 IFM_HEIGHT0_M1 IFM_HEIGHT1_M1 IFM_IB_END"),
    **_numbered(0x10F, "IFM_REGION - OFM_WIDTH_M1 OFM_HEIGHT_M1 OFM_DEPTH_M1 OFM_PRECISION"),
    **_numbered(0x115, "OFM_BLK_WIDTH_M1 OFM_BLK_HEIGHT_M1 OFM_BLK_DEPTH_M1 OFM_ZERO_POINT"),
    **_numbered(0x11A, "OFM_WIDTH0_M1 OFM_HEIGHT0_M1 OFM_HEIGHT1_M1"),
    **_numbered(0x11F, "OFM_REGION KERNEL_WIDTH_M1 KERNEL_HEIGHT_M1 KERNEL_STRIDE PARALLEL_MODE ACC_FORMAT"),
    **_numbered(0x125, "ACTIVATION ACTIVATION_MIN ACTIVATION_MAX WEIGHT_REGION SCALE_REGION"),
    **_numbered(0x12D, "AB_START - BLOCKDEP DMA0_SRC_REGION DMA0_DST_REGION DMA0_SIZE0 DMA0_SIZE1"),
    **_numbered(0x180, "IFM2_BROADCAST IFM2_SCALAR - - - IFM2_PRECISION - - - IFM2_ZERO_POINT"),
    **_numbered(0x18A, "IFM2_WIDTH0_M1 IFM2_HEIGHT0_M1 IFM2_HEIGHT1_M1 IFM2_IB_START - IFM2_REGION"),
}
"""Registers of 16 bits, by the code of the command that sets them."""

LONG = {
    **_numbered(0x000, "IFM_BASE0 IFM_BASE1 IFM_BASE2 IFM_BASE3 IFM_STRIDE_X IFM_STRIDE_Y IFM_STRIDE_C"),
    **_numbered(0x010, "OFM_BASE0 OFM_BASE1 OFM_BASE2 OFM_BASE3 OFM_STRIDE_X OFM_STRIDE_Y OFM_STRIDE_C"),
    **_numbered(0x020, "WEIGHT_BASE WEIGHT_LENGTH SCALE_BASE SCALE_LENGTH OFM_SCALE OPA_SCALE OPB_SCALE"),
    **_numbered(0x030, "DMA0_SRC DMA0_DST DMA0_LEN DMA0_SKIP0 DMA0_SKIP1"),
    **_numbered(
        0x080, "IFM2_BASE0 IFM2_BASE1 IFM2_BASE2 IFM2_BASE3 IFM2_STRIDE_X IFM2_STRIDE_Y IFM2_STRIDE_C"
    ),
    **_numbered(0x090, "WEIGHT1_BASE WEIGHT1_LENGTH SCALE1_BASE SCALE1_LENGTH"),
}
"""Registers of 48 bits: addresses, strides, lengths, and scales, whose upper 16 bits are the shift."""

_CODES = {
    **{name: code for code, name in {**OPERATIONS, **SHORT}.items()},
    **{name: code | _PAYLOAD for code, name in LONG.items()},
}


@dataclass(frozen=True, slots=True)
class RegisterCommand:
    """A command. `name`: of the register that it sets, or of its operation; `value`: the register's value, or
    the operation's parameter, not negative.
    """

    name: str
    value: int = 0

    @property
    def operates(self) -> bool:
        """Whether the command is an operation and sets no register."""
        return _CODES[self.name] in OPERATIONS


@dataclass(slots=True)
class Stream:
    """The words of a command stream under construction."""

    words: list[int] = field(default_factory=list)

    def set(self, **registers: int) -> None:
        """Append the commands that set registers, a negative value as its two's complement of 16 bits.

        Raises ValueError for a value that a register cannot hold.
        """
        for name, value in registers.items():
            code = _CODES[name]
            if code & _PAYLOAD:
                if not 0 <= value < 1 << 48:
                    raise ValueError(f"{name} cannot be {value}")
                self.words += [code | value >> 32 << 16, value & 0xFFFFFFFF]
            else:
                if not -(1 << 15) <= value < 1 << 16:
                    raise ValueError(f"{name} cannot be {value}")
                self.words.append(code | (value & 0xFFFF) << 16)

    def operate(self, name: str, parameter: int = 0) -> None:
        """Append an operation."""
        self.words.append(_CODES[name] | parameter << 16)

    def stop(self) -> None:
        """Append the operation that ends the stream."""
        self.operate("STOP", _LAST)

    @property
    def array(self) -> NDArray[np.uint32]:
        """The words."""
        return np.array(self.words, np.uint32)


def decode(words: Sequence[int]) -> Iterator[RegisterCommand]:
    """Yield the commands of a stream up to its STOP.

    Raises ValueError for a code that no command has, a command that is cut off, or a stream without STOP.
    """
    left = iter(words)
    for word in left:
        code, value = int(word) & CODE_BITS, int(word) >> 16
        if word & _PAYLOAD:
            low = next(left, None)
            if code not in LONG or low is None:
                raise ValueError(f"the command {int(word):#010x} is unknown or cut off")
            yield RegisterCommand(LONG[code], value << 32 | int(low))
            continue
        name = OPERATIONS.get(code) or SHORT.get(code)
        if name is None or int(word) & 0xFFFF != code:
            raise ValueError(f"the command {int(word):#010x} is unknown")
        yield RegisterCommand(name, value)
        if name == "STOP":
            return
    raise ValueError("the stream has no STOP")
