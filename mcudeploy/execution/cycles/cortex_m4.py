"""Cycles of the Cortex-M4, from its manual.

Arm Cortex-M4 Processor Technical Reference Manual r0p1, ARM DDI 0439D: Table 3-1 has the instructions, Table
3-2 those of the DSP extension, section 3.3.2 says what loads and stores in a row do to each other, Table 7-1
and the notes below it have floating point. Where the manual gives a range, both ends are kept. A taken branch
refills the pipeline in 1 to 3 cycles: 2 are taken as typical, and 3 after a load of the program counter, as
section 3.3.2 says; of a division's 2 to 12 cycles, 7.
"""

from __future__ import annotations

from mcudeploy.execution.cycles.classes import Kind
from mcudeploy.execution.cycles.core import FLOAT_RESULT, Core, Cycles, Executed
from mcudeploy.toolchain.disassembly import Instruction

_MEMORY = frozenset(
    {Kind.LOAD, Kind.LOAD_MANY, Kind.STORE, Kind.STORE_MANY, Kind.FLOAT_LOAD, Kind.FLOAT_STORE}
)


def cost(here: Executed, before: Executed | None, _: bool) -> tuple[Cycles, bool]:
    """See `Core`. The core issues one instruction a cycle: none shares its cycle."""
    total = _own(here) * here.count + _refill(here) * here.jumps
    if before is not None:
        total += _neighbours(before, here) * min(before.followed, here.count)
    return total, False


def _exact(cycles: float) -> Cycles:
    return Cycles(cycles, cycles, cycles)


def _own(it: Executed) -> Cycles:
    match it.kind:
        case Kind.DIVIDE:
            return Cycles(2, 7, 12)
        case Kind.LOAD:
            from_pool = "r15" in it.instruction.address_registers
            return Cycles(2, 2, 3) if from_pool else _exact(2)
        case Kind.STORE:
            return _exact(2 if _register_offset(it.instruction) else 1)
        case Kind.LOAD_MANY | Kind.STORE_MANY | Kind.FLOAT_LOAD | Kind.FLOAT_STORE:
            return _exact(1 + it.registers)
        case Kind.BRANCH_TABLE:
            return Cycles(2, 3, 3)
        case Kind.FLOAT_MAC:
            return _exact(3)
        case Kind.FLOAT_DIVIDE:
            return Cycles(1, 14, 14)
        case Kind.FLOAT_MOVE if it.instruction.mnemonic.startswith("vmov"):
            return _exact(2 if _moves_two(it.instruction) else 1)
        case Kind.SYSTEM if it.instruction.mnemonic != "nop":
            return Cycles(1, 1, 2)
        case _:
            return _exact(1)


def _refill(it: Executed) -> Cycles:
    return _exact(3) if it.loads_pc or it.kind is Kind.BRANCH_TABLE else Cycles(1, 2, 3)


def _neighbours(before: Executed, here: Executed) -> Cycles:
    """Return the cycles that the previous instruction adds to this one, or saves."""
    first, second = before.instruction, here.instruction
    if here.kind is Kind.IT:  # may be folded into a 16-bit instruction
        return Cycles(-1, -1, 0) if first.size == 2 else Cycles()
    if before.kind in FLOAT_RESULT:
        needed = second.reads - second.addend
        return _exact(1) if first.results & needed else Cycles()
    if here.kind in _MEMORY:
        depends = bool(first.results & second.address_registers)
        if before.kind is Kind.LOAD:
            pipelined = here.kind is Kind.LOAD or (here.kind is Kind.STORE and _register_offset(second))
            # 32-bit instructions at odd halfwords "might not pipeline optimally"
            return Cycles(-1, -1, 0 if second.size == 4 else -1) if pipelined and not depends else Cycles()
        return _exact(1) if depends and before.kind not in _MEMORY else Cycles()
    return Cycles()


def _register_offset(instruction: Instruction) -> bool:
    return len(instruction.address_registers) > 1


def _moves_two(instruction: Instruction) -> bool:
    moved = [it for it in instruction.results | instruction.reads if it.startswith("r")]
    return len(moved) == 2


CORTEX_M4: Core = Core(
    "cortex-m4",
    "ARM DDI 0439D, Tables 3-1, 3-2, 7-1 and section 3.3.2",
    (
        "wait states of instruction fetches, and of memories whose board file states none",
        "contention of loads with instruction fetches on the same bus",
        "unaligned loads and stores",
        "a store while the write buffer is full",
        "instructions skipped by an if-then cost as much as executed ones",
        "interrupts",
    ),
    cost,
)
