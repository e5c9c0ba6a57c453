"""Cycles of the Cortex-M33, by assumption: Arm publishes none per instruction.

The Arm Cortex-M33 Processor Technical Reference Manual, 100230, says (section 1.1) that the core is in-order,
with three stages, and issues some pairs of 16-bit instructions together. Assumed beyond that:

- the second of a pair does not read or overwrite what the first writes; at most one of the two accesses
memory, at most one multiplies, and a branch is the second;
- the value of a load is ready one cycle later than an arithmetic result, and the next instruction waits for
it; floating-point arithmetic waits one cycle for floating-point results; a multiply-add takes one cycle;
- a taken branch refills the pipeline in 2 cycles, a load of the program counter in 3; a load or store of
  several registers takes one cycle for each, and one more for three or more that are no floating-point ones;
  divisions take 6 cycles, in floating point 14.
"""

from __future__ import annotations

from mcudeploy.execution.cycles.classes import Kind
from mcudeploy.execution.cycles.core import FLOAT_RESULT, Core, Cycles, Executed
from mcudeploy.execution.cycles.paired import InOrder, depends

_MEMORY = frozenset({Kind.LOAD, Kind.STORE, Kind.FLOAT_LOAD, Kind.FLOAT_STORE})
_LOADS = frozenset({Kind.LOAD, Kind.LOAD_MANY, Kind.FLOAT_LOAD})
_MULTIPLY = frozenset({Kind.MULTIPLY, Kind.MULTIPLY_DSP})
_PAIRED = frozenset({Kind.ALU, Kind.EXTEND, Kind.SATURATE, Kind.BRANCH, *_MEMORY, *_MULTIPLY})


def own_cycles(it: Executed) -> float:
    """Return the cycles of an instruction alone, of cores with this rule for registers and divisions."""
    match it.kind:
        case Kind.DIVIDE:
            return 6
        case Kind.FLOAT_DIVIDE:
            return 14
        case Kind.LOAD_MANY | Kind.STORE_MANY:
            return it.registers + (1 if it.registers > 2 else 0)
        case Kind.FLOAT_LOAD | Kind.FLOAT_STORE:
            return max(it.registers, 1)
        case _:
            return 1


def wait_cycles(before: Executed, here: Executed) -> float:
    """Return the wait for a load or floating-point result that the next instruction needs."""
    if before.kind in FLOAT_RESULT:
        needed = here.instruction.reads - here.instruction.addend
        return 1 if before.instruction.results & needed else 0
    return 1 if before.kind in _LOADS and before.instruction.results & here.instruction.reads else 0


def narrow_pair(before: Executed, here: Executed) -> bool:
    """Whether two 16-bit instructions issue together."""
    if not (_may_pair(before) and _may_pair(here)) or before.kind is Kind.BRANCH:
        return False
    if any(before.kind in unit and here.kind in unit for unit in (_MEMORY, _MULTIPLY)):
        return False
    return not depends(before, here)


def _may_pair(it: Executed) -> bool:
    return it.instruction.size == 2 and it.kind in _PAIRED and not it.loads_pc


def narrow_saves(it: Executed) -> float:
    """Return the average cycles that pairing saves for an instruction that may pair."""
    return 0.5 if _may_pair(it) else 0.0


REFILL: Cycles = Cycles(1, 2, 3)

CORTEX_M33: Core = Core(
    "cortex-m33",
    "assumptions, since Arm's manual 100230 has no cycles per instruction",
    (
        "wait states of instruction fetches, and of memories whose board file states none",
        "contention of loads with instruction fetches",
        "unaligned loads and stores, and 32-bit instructions at odd halfwords",
        "interrupts",
    ),
    InOrder(own_cycles, wait_cycles, narrow_pair, REFILL, narrow_saves).cost,
)
