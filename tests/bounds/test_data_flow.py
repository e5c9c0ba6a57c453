"""Taint analysis of small programs: which of them have a bound, and that no data exceed it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.extensions.bounds.control_flow import ControlFlow
from mcudeploy.extensions.bounds.data_flow import (
    DataFlow,
    Finding,
    Memories,
    Regions,
    data_flow_arguments,
    read_data_flow,
    write_table,
)
from mcudeploy.ir.interval import Interval
from mcudeploy.toolchain.disassembly import Functions, disassemble
from mcudeploy.toolchain.emulator import qemu_command

FLASH = Interval(0, 0x40_0000)
DATA = 0x2000_1000
BOARD = load_board("mps2-an386")
PROGRAM = """
.syntax unified
.thumb
.text
.word 0x20004000, reset + 1
.type reset, %function
.global reset
reset:
    movw r0, #0xed88 @ CPACR: the FPU is on
    movt r0, #0xe000
    mov r1, #0xf00000
    str r1, [r0]
    movw r0, #0x1000
    movt r0, #0x2000
    ldr r1, ={value}
    str r1, [r0]
    movw r1, #0x2000
    movt r1, #0x2000
    movs r2, #3
    str r2, [r1]
    ldr r3, =table
    bl f
.global end
.type end, %function
end:
    mov r0, #0x18
    movw r1, #0x0026
    movt r1, #0x2
    bkpt 0xab
.size end, .-end
.ltorg
.align 2
table: .word 1, 2, 3, 4
.type g, %function
g:
    adds r6, r6, #1
    adds r6, r6, #1
    bx lr
.size g, .-g
.type f, %function
.global f
f:
{code}
.size f, .-f
"""


@dataclass(frozen=True)
class Followed:
    """A run of a program, and the most instructions that other data may take; None: no bound."""

    flow: DataFlow
    bound: int | None


Follow = Callable[[str, int], Followed]
_NO_BOUND = (
    Finding.BRANCH_WITHOUT_REGION,
    Finding.UNKNOWN_INSTRUCTION,
    Finding.JUMP_BY_DATA,
    Finding.LEFT_REGION,
)


def assembled(folder: Path, code: str, value: int) -> Path:
    """The program of `f`, whose instructions are `code`."""
    source, elf = folder / "f.s", folder / "f.elf"
    source.write_text(PROGRAM.format(code=code.replace(";", "\n"), value=value))
    flags = ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-nostdlib", "-Wl,-Ttext=0"]
    subprocess.run(["arm-none-eabi-gcc", *flags, "-Wl,-ereset", "-o", elf, source], check=True)
    return elf


@pytest.fixture
def follow(tmp_path: Path) -> Follow:
    """Runs `f` with the address of a word of data in r0, of a plain word 3 in r1, and of a table in r3."""

    def followed(code: str, value: int) -> Followed:
        elf = assembled(tmp_path, code, value)
        functions = Functions(elf)
        flow = ControlFlow(disassemble(elf, "arm-none-eabi"), functions, lambda _: 1.0)
        regions = Regions.of(flow)
        table, out = tmp_path / "table", tmp_path / "out"
        write_table(flow, regions, table)
        window = functions.named("f").address, functions.named("end").address
        data = [Interval(DATA, DATA + 4)]
        plugin = data_flow_arguments("qemu-system-arm", window, (table, out), Memories(data, FLASH))
        command = qemu_command(BOARD, elf, ["-serial", "null", *plugin])
        command[command.index("enable=on,target=gdb")] = "enable=on,target=native"  # it may end QEMU
        subprocess.run(command, check=True, timeout=20)
        (window_flow,) = read_data_flow(out)
        stopped = any(map(window_flow.found, _NO_BOUND))
        bound = None if stopped else window_flow.instructions + regions.extra(window_flow)[0]
        return Followed(window_flow, bound)

    return followed


LOOP = "9: subs r2, #1; bne 9b; bx lr"
INDEPENDENT = {
    "a select": "ldr r4, [r0]; cmp r4, #5; ite gt; movgt r5, #1; movle r5, #2; bx lr",
    "a loop by a plain number": f"ldr r4, [r0]; ldr r2, [r1]; {LOOP}",
    "data that are overwritten": f"movs r4, #3; str r4, [r0]; ldr r2, [r0]; {LOOP}",
    "data saved beside a counter": f"ldr r4, [r0]; push {{r2, r4}}; movs r2, #9; pop {{r2, r4}}; {LOOP}",
    "a status that was set again": "ldr r4, [r0]; cmp r4, #1; cmp r2, #3; bne 1f; nop; 1: bx lr",
    "a return after calls": "push {r4, lr}; ldr r6, [r0]; bl g; pop {r4, pc}",
    "a sum of floats": "vldr s0, [r0]; vadd.f32 s0, s0, s0; vcmp.f32 s0, #0.0; vmrs APSR_nzcv, fpscr; "
    "it mi; vmovmi.f32 s0, s1; bx lr",
}
BRANCHES = {
    "a branch": "ldr r4, [r0]; cmp r4, #5; bgt 1f; adds r5, #1; adds r5, #1; 1: bx lr",
    "two ways": "ldr r4, [r0]; cbz r4, 1f; nop; b 2f; 1: nop; nop; nop; 2: bx lr",
    "a return": "ldr r4, [r0]; cmp r4, #0; it eq; bxeq lr; nop; nop; bx lr",
    "a branch in a branch": "ldr r4, [r0]; cmp r4, #5; bgt 1f; cmp r4, #0; bne 1f; nop; nop; 1: bx lr",
    "a call": "push {r4, lr}; ldr r4, [r0]; cmp r4, #5; bgt 1f; bl g; 1: pop {r4, pc}",
    "a branch in a loop": "ldr r4, [r0]; 2: cmp r4, #5; bgt 1f; nop; 1: subs r2, #1; bne 2b; bx lr",
    "copies of a loop's end": "ldr r4, [r0]; b 2f; 1: subs r2, #1; beq 3f; 2: cmp r4, #5; bgt 1b; nop; "
    "subs r2, #1; bne 2b; 3: bx lr",
    "a spilled counter": "push {r4, r5}; ldr r4, [r0]; 2: cmp r4, #5; bgt 1f; str r2, [sp, #4]; movs r2, #7; "
    "ldr r2, [sp, #4]; 1: mov r7, r2; subs r2, r7, #1; bne 2b; pop {r4, r5}; bx lr",
}
LOOPS = {
    "a loop by data": f"ldr r2, [r0]; {LOOP}",
    "a loop by a choice": f"ldr r4, [r0]; cmp r4, #5; ite gt; movgt r2, #1; movle r2, #9; {LOOP}",
    "a loop by a branch": f"ldr r4, [r0]; cmp r4, #5; bgt 1f; movs r2, #9; 1: {LOOP}",
    "a loop by a flag": "ldr r4, [r0]; 2: subs r2, #1; cmp r2, r4; bgt 2b; bx lr",
    "a loop by a table": f"ldr r4, [r0]; and r4, #3; ldr r2, [r3, r4, lsl #2]; {LOOP}",
    "a word of the frame, by a branch": "sub sp, #8; str r2, [sp]; ldr r4, [r0]; cmp r4, #5; bgt 1f; "
    "movs r5, #1; str r5, [sp]; 1: ldr r2, [sp]; add sp, #8; " + LOOP,
    "memory, by a branch": "ldr r4, [r0]; cmp r4, #5; bgt 1f; movs r5, #1; str r5, [r1]; 1: ldr r2, [r1]; "
    + LOOP,
    "memory at an address by data": "movs r5, #3; str r5, [r1, #4]; ldr r4, [r0]; and r4, #4; movs r5, #1; "
    f"str r5, [r1, r4]; ldr r2, [r1, #4]; {LOOP}",
    "different ends of a loop": "ldr r4, [r0]; b 2f; 1: subs r2, #3; beq 3f; 2: cmp r4, #5; bgt 1b; nop; "
    "subs r2, #1; bne 2b; 3: bx lr",
    "data that were saved": f"ldr r4, [r0]; push {{r2, r4}}; pop {{r5}}; pop {{r2}}; {LOOP}",
    "a jump by data": "push {r4, lr}; ldr r4, [r0]; and r4, #1; ldr r5, =g; orr r5, r4; orr r5, #1; blx r5; "
    "pop {r4, pc}; .ltorg",
    "an unknown instruction": "clrex; bx lr",
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    elf = assembled(tmp_path, "bx lr", 0)
    flow = ControlFlow(disassemble(elf, "arm-none-eabi"), Functions(elf), lambda _: 1.0)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_table(flow, Regions.of(flow), Path("/dev/full"))


@pytest.mark.parametrize("code", INDEPENDENT.values(), ids=INDEPENDENT)
def test_without_branches_by_data_all_data_have_one_count(follow: Follow, code: str) -> None:
    few, many = follow(code, 0), follow(code, 100)
    assert not few.flow.entered
    assert few.bound == few.flow.instructions == many.flow.instructions


@pytest.mark.parametrize("code", BRANCHES.values(), ids=BRANCHES)
def test_a_branch_adds_its_longest_path(follow: Follow, code: str) -> None:
    """The bound is exact: it is the same for all data, and some reach it."""
    runs = [follow(code, value) for value in (0, 3, 100)]
    bounds = {run.bound for run in runs}
    assert bounds == {max(run.flow.instructions for run in runs)}
    assert min(run.flow.instructions for run in runs) < max(run.flow.instructions for run in runs)


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_loops_by_data_have_no_bound(follow: Follow, code: str) -> None:
    assert [follow(code, value).bound for value in (1, 100)] == [None, None]


def test_addresses_and_divisions_by_data_are_findings(follow: Follow) -> None:
    code = "ldr r4, [r0]; and r4, #3; ldr r5, [r3, r4, lsl #2]; udiv r5, r5, r2; str r5, [r1, r4]; bx lr"
    flow = follow(code, 2).flow
    kinds = {kind for _, kind in flow.findings}
    assert kinds == {Finding.LOAD_ADDRESS, Finding.STORE_ADDRESS, Finding.DIVISION}
