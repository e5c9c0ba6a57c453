"""The instructions that kernels are written for; without numpy, as boards state them."""

from __future__ import annotations

from enum import StrEnum


class Isa(StrEnum):
    """Instructions of a core that kernels are written for.

    ANY: those of every core, as portable C. DSP and MVE: Arm's DSP extension and vectors (Helium). RVV:
    RISC-V's vectors of integers (Zve32x).
    """

    ANY = "any"
    DSP = "dsp"
    MVE = "mve"
    RVV = "rvv"
