"""Cycles of the Cortex-M55, by assumption: Arm's public manuals have none per instruction.

Arm's introduction to Helium (102102) and the Cortex-M55 Technical Reference Manual (101051) say that a vector
instruction is four beats, that this core executes two beats a cycle, and that the beats of two neighbours
overlap where they use different parts of the core: loads and stores, multiplications, the rest. Assumed
beyond that:

- a vector instruction takes 2 cycles, 1 if it overlaps with the previous vector instruction; beats are
passed on singly, so neither waits for the other; a gather or scatter takes 4 cycles;
- a vector instruction's result in a core register is ready one cycle later;
- the end of a low-overhead loop takes no cycle, its begin one; all else is that of a Cortex-M33.
"""

from __future__ import annotations

from mcudeploy.execution.cycles.classes import Kind
from mcudeploy.execution.cycles.core import Core, Cycles, Executed
from mcudeploy.execution.cycles.cortex_m33 import REFILL, narrow_pair, narrow_saves, own_cycles, wait_cycles
from mcudeploy.execution.cycles.paired import InOrder

_VECTOR = frozenset({Kind.VECTOR_LOAD, Kind.VECTOR_STORE, Kind.VECTOR_MULTIPLY, Kind.VECTOR})
_MEMORY = frozenset({Kind.VECTOR_LOAD, Kind.VECTOR_STORE})


def _own(it: Executed) -> float:
    if it.kind in _MEMORY:
        return 4 if any(name.startswith("s") for name in it.instruction.address_registers) else 2
    return 2 if it.kind in _VECTOR else own_cycles(it)


def _wait(before: Executed, here: Executed) -> float:
    if before.kind not in _VECTOR:
        return wait_cycles(before, here)
    scalar = {name for name in before.instruction.results if name.startswith("r")}
    return 1 if scalar & (here.instruction.reads - here.instruction.addend) else 0


def _unit(kind: Kind) -> Kind:
    return Kind.VECTOR_LOAD if kind in _MEMORY else kind


def _overlap(before: Executed, here: Executed) -> bool:
    return before.kind in _VECTOR and here.kind in _VECTOR and _unit(before.kind) != _unit(here.kind)


_RULES = InOrder(
    _own,
    _wait,
    lambda before, here: _overlap(before, here) or narrow_pair(before, here),
    REFILL,
    lambda it: 1.0 if it.kind in _VECTOR else narrow_saves(it),
)


def _cost(here: Executed, before: Executed | None, paired: bool) -> tuple[Cycles, bool]:
    """See `Core`. Of three vector instructions each may overlap with the previous one."""
    if here.kind is Kind.LOOP_END:
        return Cycles(0, 0, here.count), False
    cost, overlaps = _RULES.cost(here, before, paired)
    return cost, overlaps and here.kind not in _VECTOR


CORTEX_M55: Core = Core(
    "cortex-m55",
    "assumptions after Arm 102102 and 101051, which have no cycles per instruction",
    (
        "caches, wait states of instruction fetches, and of memories whose board file states none",
        "banks of the data memory that a load and a store want at once",
        "unaligned vectors",
        "the overlap of a loop's last instruction with its first one",
        "interrupts",
    ),
    _cost,
)
