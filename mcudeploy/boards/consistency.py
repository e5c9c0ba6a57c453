"""Consistency of the parts of a board file. Each function raises ValueError, which names the fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mcudeploy.boards.facts import BoardRegion, Link, Memory, Npu, Unit
from mcudeploy.common.text import first_repeated
from mcudeploy.ir.engine import CPU

_HELIUM = "cortex-m52", "cortex-m55", "cortex-m85"


def check_units(units: Sequence[Unit], memories: Collection[str]) -> None:
    """Check that compute units have distinct names and reach existing memories."""
    names = [unit.name for unit in units]
    if len(set(names)) != len(names):
        raise ValueError(f"unit names must differ: {', '.join(names)}")
    for unit in units:
        unknown = {*unit.memories, *unit.cached}.difference(memories)
        if unknown:
            raise ValueError(f"unit {unit.name} names memories that the board lacks: {sorted(unknown)}")


def check_chips(memories: Sequence[Memory]) -> None:
    """Check that no two memories have chips of the same kind: its driver has one set of facts."""
    twice = first_repeated([it.chip[0] for it in memories if it.chip is not None])
    if twice is not None:
        raise ValueError(f"two memories have a chip of the kind {twice}")


def check_controllers(common: Collection[str], memories: Sequence[Memory]) -> None:
    """Check that each of the common DMA controllers is known to reach a memory."""
    known = {name for memory in memories for name in memory.dma or ()}
    unknown = [name for name in common if name not in known]
    if unknown:
        raise ValueError(f"io_dma names {', '.join(unknown)}, which the dma of no memory names")


def check_links(links: Sequence[Link], units: Sequence[str], memories: Collection[str]) -> None:
    """Check that engines have distinct names and one driver, and join existing memories."""
    names = [CPU, *units, *(link.engine for link in links)]
    if len(set(names)) != len(names):
        raise ValueError(f"engines must differ from each other and from units: {', '.join(names)}")
    if len({link.source for link in links}) > 1:
        raise ValueError("one driver serves all links: they name the same source, or none")
    for link in links:
        unknown = set(link.memories).difference(memories, ["flash"])
        if unknown:
            raise ValueError(f"link {link.engine} names memories that the board lacks: {sorted(unknown)}")


def check_own_sources(sources: Collection[str]) -> None:
    """Check that the names of sources beside the board file differ: they are compiled in one folder."""
    names = [Path(it).name for it in sorted(sources) if Path(it).is_absolute()]
    twice = first_repeated(names)
    if twice is not None:
        raise ValueError(f"two sources beside the board file are called {twice}")


def check_registers(npu: Npu | None, regions: Mapping[str, BoardRegion]) -> None:
    """Check that the registers of a unit do not lie in a memory; `regions`: flash and memories, by name."""
    base = None if npu is None else npu.base
    for name, region in regions.items():
        if base is not None and base in region.addresses:
            raise ValueError(f"npu.base = {base:#010x} lies in {name}: it is the address of registers")


def check_core(core: str, cpu_flags: Collection[str], *, vectors: bool) -> None:
    """Check that the compiler's flags are for the core, and for its vectors if kernels use them."""
    if vectors:
        _check_vectors(core, cpu_flags)
    for flag in cpu_flags:
        core_of_flag = flag.removeprefix("-mcpu=").partition("+")[0]
        if core_of_flag != core and flag.startswith("-mcpu=cortex-"):
            raise ValueError(f"core is {core}, cpu_flags have {flag}: both name one core")


def _check_vectors(core: str, cpu_flags: Collection[str]) -> None:
    """Raise ValueError for a Cortex-M without vectors, and if flags of a RISC-V core exclude its vectors.

    Without the flags kernels would be portable C.
    """
    if core.startswith("cortex-m") and core not in _HELIUM:
        raise ValueError(f"vectors is true, but {core} has none: {', '.join(_HELIUM)} have them (Helium)")
    for flag in cpu_flags:
        base, *extensions = flag.split("_")
        has_vectors = base.endswith("v") or any(it.startswith("zve") for it in extensions)
        if base.startswith("-march=rv") and not has_vectors:
            raise ValueError(f"vectors is true, but {flag} has neither v nor zve32x")
