"""Effects of instructions: examples, and that no instruction of a kernel lacks an entry."""

from __future__ import annotations

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.image import build_bench
from mcudeploy.device.target import Target
from mcudeploy.extensions.bounds.effects import (
    Location,
    MemoryAccess,
    StackMove,
    effects_of,
    locations,
)
from mcudeploy.toolchain.disassembly import Instruction, disassemble
from tests.weekly import sample

ZERO, CARRY = Location.ZERO_SIGN, Location.CARRY_OVERFLOW
STATUS = (ZERO, CARRY)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "reads", "writes", "partial"),
    [
        ("add", "r0, r1, r2", ("r1", "r2"), ("r0",), ()),
        ("add", "r0, r1", ("r0", "r1"), ("r0",), ()),
        ("movs", "r0, #1", (), ("r0", ZERO), (CARRY,)),
        ("adcs", "r0, r1", ("r0", "r1", CARRY), ("r0", *STATUS), ()),
        ("movt", "r0, #1", ("r0",), ("r0",), ()),
        ("movge", "r0, r1", ("r1", *STATUS), (), ("r0",)),
        ("moveq", "r0, r1", ("r1", ZERO), (), ("r0",)),
        ("cmp", "r0, r1", ("r0", "r1"), STATUS, ()),
        ("smlal", "r0, r1, r2, r3", ("r0", "r1", "r2", "r3"), ("r0", "r1"), ()),
        ("smull", "r0, r1, r2, r3", ("r2", "r3"), ("r0", "r1"), ()),
        ("uadd8", "r0, r1, r2", ("r1", "r2"), ("r0", Location.GREATER_EQUAL), ()),
        ("sel", "r0, r1, r2", ("r1", "r2", Location.GREATER_EQUAL), ("r0",), ()),
        ("vmla", "s0, s1, s2", ("s1", "s2"), (), ("s0",)),
        ("vmov", "r0, r1, d1", ("s2", "s3"), ("r0", "r1"), ()),
        ("vmov", "s0, s1, r2, r3", ("r2", "r3"), ("s0", "s1"), ()),
        ("vmrs", "APSR_nzcv, fpscr", (Location.FLOAT_STATUS, Location.PREDICATE), STATUS, ()),
        ("vselgt", "s0, s1, s2", ("s1", "s2", *STATUS), ("s0",), ()),
    ],
)
def test_arithmetic(mnemonic: str, operands: str, reads: tuple, writes: tuple, partial: tuple) -> None:
    effects = effects_of(Instruction(0, 4, mnemonic, operands))
    assert effects is not None
    wanted = (locations(reads), locations(writes), locations(partial))
    assert (effects.reads, effects.writes, effects.partial) == wanted


def test_accesses() -> None:
    load = effects_of(Instruction(0, 4, "ldr", "r0, [r1, r2, lsl #2]"))
    assert load is not None and load.access is MemoryAccess.LOAD
    assert (load.address, load.writes, load.moved) == (locations(["r1", "r2"]), locations(["r0"]), (0,))
    store = effects_of(Instruction(0, 4, "strd", "r4, r5, [sp, #8]"))
    assert store is not None and store.access is MemoryAccess.STORE
    assert (store.reads, store.moved) == (locations(["r4", "r5"]), (4, 5))
    assert (store.stack.slots, store.stack.difference) == (0b1100, -8)
    pop = effects_of(Instruction(0, 2, "pop", "{r4, pc}"))
    assert pop is not None and pop.control == locations([Location.PC])
    assert (pop.stack.kind, pop.stack.difference, pop.stack.moves) == (StackMove.BY_ACCESS, 8, True)
    skipped = effects_of(Instruction(0, 2, "popne", "{r4, pc}"))
    assert skipped is not None and not skipped.writes and skipped.control & locations([ZERO])


@pytest.mark.parametrize(
    ("mnemonic", "operands", "kind", "difference"),
    [
        ("sub", "sp, #16", StackMove.BY_NUMBER, -16),
        ("add", "sp, sp, #1024", StackMove.BY_NUMBER, 1024),
        ("subw", "sp, sp, #4092", StackMove.BY_NUMBER, -4092),
        ("add", "sp, r3", StackMove.UNKNOWN, 0),
        ("mov", "sp, r7", StackMove.UNKNOWN, 0),
        ("add", "r7, sp, #16", StackMove.NOTHING, 0),
    ],
)
def test_arithmetic_moves_the_stack(mnemonic: str, operands: str, kind: StackMove, difference: int) -> None:
    effects = effects_of(Instruction(0, 4, mnemonic, operands))
    assert effects is not None
    stack = effects.stack
    assert (stack.kind, stack.difference, stack.moves) == (kind, difference, kind is not StackMove.NOTHING)


@pytest.mark.parametrize("mnemonic", ["bkpt", "clrex", "svc"])
def test_others_have_none(mnemonic: str) -> None:
    assert effects_of(Instruction(0, 2, mnemonic, "")) is None


@pytest.mark.parametrize("board", sample(["mps2-an386", "mps3-an547"], 1))
def test_all_instructions_of_all_kernels_have_effects(board: str) -> None:
    """The program has the measurer, the C library and every kernel; only its fault handler stops."""
    target = Target(load_board(board), emulate=True)
    program = disassemble(build_bench(target).elf, target.board.toolchain, vectors=target.board.vectors)
    assert len(program) > 10_000
    assert {it.mnemonic for it in program.values() if it.mnemonic and effects_of(it) is None} <= {"bkpt"}
