"""Generated sources of a bench firmware: kernels, no program, one arena for the host to fill."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.codegen.kernelfiles import OF_THE_TAPE, UNIT_SUFFIX, kernel_sources
from mcudeploy.codegen.render import Types, render
from mcudeploy.common.extension_code import kernels_in
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import TWICE

_ALIGNMENT = 4
_SUFFIXES = {
    "_mve": Isa.MVE,
    "_rvv": Isa.RVV,
    **dict.fromkeys(("_wide", "_pairs", "_dual", "_3x2"), Isa.DSP),
    UNIT_SUFFIX: None,
}
"""Ends of the names of kernels, with the instructions that they need; None: they run on another unit."""


def all_kernels() -> tuple[str, ...]:
    """Return names of all kernels that compute, sorted."""
    names = {name for source in kernel_sources() for name in kernels_in(source.text)}
    return tuple(sorted(names - OF_THE_TAPE))


def kernels_for(isa: Isa) -> tuple[str, ...]:
    """Return names of the kernels that compute on a core with these instructions, sorted."""
    others = tuple(suffix for suffix, needed in _SUFFIXES.items() if needed is not isa.core)
    return tuple(name for name in all_kernels() if not name.removesuffix(TWICE).endswith(others))


def bench_sources(
    kernels: Sequence[str], arena_bytes: int, *, fuses_products: bool = True, pairs_loads: bool = False
) -> dict[str, str]:
    """Return file names and texts of a bench firmware with these kernels (without `mcud_`) and this arena.

    The kernel table is ordered by name, as `tile.KernelTable` expects. Its types have 32 bits, enough for
    tables of any size.
    Raises ValueError for no kernels.
    """
    names = sorted(set(kernels))
    if not names or arena_bytes < 8:
        raise ValueError("a bench firmware needs a kernel and an arena")
    config = Types(_ALIGNMENT, 32, 32, fuses_products, pairs_loads)
    return {
        "mcud_config.h": render("config.h.j2", config=config),
        "deployed.c": render("bench.c.j2", kernels=names, arena_bytes=arena_bytes),
    }
