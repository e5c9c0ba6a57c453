"""The instruction sets for which kernels are written. Without numpy: boards import this module alone."""

from __future__ import annotations

from enum import StrEnum


class Isa(StrEnum):
    """The instructions for which a kernel is written, of a core and of a unit beside it.

    ANY: portable C, for every core. DSP and MVE: Arm's DSP extension and vectors (Helium). RVV: RISC-V's
    vectors of integers (Zve32x). U55_..., U65_...: the commands of an Ethos-U beside a core with vectors.
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
