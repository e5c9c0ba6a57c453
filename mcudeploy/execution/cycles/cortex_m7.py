"""Cycles of the Cortex-M7, by assumption: Arm publishes none per instruction.

The Arm Cortex-M7 Processor Technical Reference Manual, ARM DDI 0489F, says (section 1.1) that the core is
in-order, issues many pairs of instructions together, also two loads or a load and a store, and predicts
branches. Assumed beyond that:

- the second of a pair does not read what the first writes; at most one of the two multiplies, at most one
  stores, at most one is floating-point arithmetic, a branch is the second; divisions, loads and stores of
  several registers and system instructions go alone;
- results are ready after 1 cycle, of loads and integer multiplications after 2, of floating-point arithmetic
  after 3, and a multiply-add takes its addend late; only the next instruction waits;
- branches are predicted and cost 1 cycle; a division takes 7 cycles, in floating point 14; several registers
  are loaded and stored 64 bits a cycle.
"""

from __future__ import annotations

from mcudeploy.execution.cycles.classes import Kind
from mcudeploy.execution.cycles.core import FLOAT_RESULT, Core, Executed
from mcudeploy.execution.cycles.paired import InOrder, depends


def _own(it: Executed) -> float:
    match it.kind:
        case Kind.DIVIDE:
            return 7
        case Kind.FLOAT_DIVIDE:
            return 14
        case Kind.LOAD_MANY | Kind.STORE_MANY | Kind.FLOAT_LOAD | Kind.FLOAT_STORE:
            return (it.registers + 1) // 2  # 64 bits a cycle
        case _:
            return 1


def _wait(before: Executed, here: Executed) -> int:
    first, second = before.instruction, here.instruction
    needed = second.reads - second.addend
    if not first.results & needed:
        return 0
    if before.kind in FLOAT_RESULT:
        return 2
    slow = (Kind.LOAD, Kind.LOAD_MANY, Kind.FLOAT_LOAD, Kind.MULTIPLY, Kind.MULTIPLY_DSP)
    return 1 if before.kind in slow else 0


_UNITS = (
    frozenset({Kind.MULTIPLY, Kind.MULTIPLY_DSP}),
    frozenset({Kind.STORE, Kind.STORE_MANY, Kind.FLOAT_STORE}),
    FLOAT_RESULT,
)
_ALONE = frozenset({Kind.DIVIDE, Kind.SYSTEM, Kind.LOAD_MANY, Kind.STORE_MANY, Kind.BRANCH_TABLE})


def _pair(before: Executed, here: Executed) -> bool:
    if before.kind in _ALONE or here.kind in _ALONE or before.kind is Kind.BRANCH:
        return False
    if any(before.kind in unit and here.kind in unit for unit in _UNITS):
        return False
    return not depends(before, here)


CORTEX_M7: Core = Core(
    "cortex-m7",
    "assumptions, since ARM DDI 0489F has no cycles per instruction",
    (
        "caches, wait states of flash and RAM: code and data as in tightly coupled memory",
        "mispredicted branches",
        "waits for results over a distance of more than one instruction",
        "unaligned loads and stores",
        "interrupts",
    ),
    InOrder(_own, _wait, _pair).cost,
)
