"""The instructions that kernels are written for; without numpy, as boards state them."""

from __future__ import annotations

from enum import StrEnum


class Isa(StrEnum):
    """Instructions that kernels are written for: of a core, and of the unit that it has beside it.

    ANY: those of every core, as portable C. DSP and MVE: Arm's DSP extension and vectors (Helium). RVV:
    RISC-V's vectors of integers (Zve32x). U55_..., U65_...: the commands of an Ethos-U, beside a core with
    vectors.
    """

    ANY = "any"
    DSP = "dsp"
    MVE = "mve"
    RVV = "rvv"
    U55_64 = "mve+ethos-u55-64"
    U55_128 = "mve+ethos-u55-128"
    U55_256 = "mve+ethos-u55-256"
    U65_256 = "mve+ethos-u65-256"

    @property
    def core(self) -> Isa:
        """The instructions of the core alone."""
        return Isa(self.partition("+")[0])

    @property
    def unit(self) -> str:
        """The unit beside the core, "" for none."""
        return self.partition("+")[2]
