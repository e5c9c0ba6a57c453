"""Cycles of the Cortex-M7, by assumption: Arm publishes none per instruction.

The Arm Cortex-M7 Processor Technical Reference Manual, ARM DDI 0489F, says (section 1.1) that the core is
in-order, issues many pairs of instructions together, also two loads or a load and a store, and predicts
branches. Measurements on silicon (an STM32H7: quinapalus.com/cm7cycles.html, and a thread on dual issue under
mastodawn.com/explore/tag/CortexM7) add:

- DSP and SIMD instructions, and those that reverse bytes, are the first of a pair only;
- one of a pair at most has a shifted operand; extensions, bit fields and constants of more than 8 bits count
  as such, and the register that is shifted must be ready one cycle earlier.

Assumed beyond that:

- the second of a pair does not read what the first writes; at most one of the two multiplies, at most one
  stores, at most one is floating-point arithmetic, a branch is the second; divisions, loads and stores of
  several registers and system instructions go alone;
- results are ready after 1 cycle, of loads and integer multiplications after 2, of floating-point arithmetic
  after 3, and a multiply-add takes its addend late; only the next instruction waits;
- branches are predicted and cost 1 cycle; a division takes 7 cycles, in floating point 14; several registers
  are loaded and stored 64 bits a cycle.
"""

from __future__ import annotations

import re

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
    return (1 if before.kind in slow else 0) + (1 if _shifts_register(here) else 0)


_UNITS = (
    frozenset({Kind.MULTIPLY, Kind.MULTIPLY_DSP}),
    frozenset({Kind.STORE, Kind.STORE_MANY, Kind.FLOAT_STORE}),
    FLOAT_RESULT,
)
_FIRST_ONLY = frozenset({Kind.MULTIPLY_DSP, Kind.SATURATE})
_SIMD = re.compile(r"rev|[su]xta?b16|pkh")
_SHIFTER = re.compile(r"[su]xta?[bh]|[su]?bf[cix]|(?:lsl|lsr|asr|ror)s?")
_SHIFTED = re.compile(r"\b(?:lsl|lsr|asr|ror|rrx)\b")
_CONSTANT = re.compile(r"#(-?\d+)")
_ALONE = frozenset({Kind.DIVIDE, Kind.SYSTEM, Kind.LOAD_MANY, Kind.STORE_MANY, Kind.BRANCH_TABLE})


def _shifts_register(it: Executed) -> bool:
    if it.kind not in (Kind.ALU, Kind.EXTEND):
        return False
    mnemonic, operands = it.instruction.mnemonic, it.instruction.operands
    return _SHIFTER.match(mnemonic) is not None or _SHIFTED.search(operands) is not None


def _shifts(it: Executed) -> bool:
    """Whether an instruction uses the shifter before its operation, for a register or a constant."""
    constant = _CONSTANT.search(it.instruction.operands) if it.kind is Kind.ALU else None
    return _shifts_register(it) or (constant is not None and not 0 <= int(constant[1]) < 256)


def _is_first_only(it: Executed) -> bool:
    return it.kind in _FIRST_ONLY or _SIMD.match(it.instruction.mnemonic) is not None


def _pair(before: Executed, here: Executed) -> bool:
    if before.kind in _ALONE or here.kind in _ALONE or before.kind is Kind.BRANCH:
        return False
    if any(before.kind in unit and here.kind in unit for unit in _UNITS):
        return False
    if _is_first_only(here) or (_shifts(before) and _shifts(here)):
        return False
    return not depends(before, here)


CORTEX_M7: Core = Core(
    "cortex-m7",
    "assumptions and measurements by others, since ARM DDI 0489F has no cycles per instruction",
    (
        "caches, wait states of instruction fetches, and of memories whose board file states none",
        "mispredicted branches",
        "waits for results over a distance of more than one instruction",
        "unaligned loads and stores",
        "interrupts",
    ),
    InOrder(_own, _wait, _pair).cost,
)
