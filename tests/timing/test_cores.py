"""Instructions as the toolchain disassembles them, and what they cost: examples of the M4's manual."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from mcudeploy.execution.cycles.classes import Kind, classify, may_pass
from mcudeploy.execution.cycles.core import Core, Cycles
from mcudeploy.execution.cycles.cortex_m4 import CORTEX_M4
from mcudeploy.execution.cycles.cortex_m7 import CORTEX_M7
from mcudeploy.execution.cycles.cortex_m33 import CORTEX_M33
from mcudeploy.execution.cycles.cortex_m55 import CORTEX_M55
from mcudeploy.execution.cycles.plugin import Counts
from mcudeploy.execution.cycles.profile import Profile
from mcudeploy.toolchain.disassembly import Functions, Instruction, disassemble, parse

Assemble = Callable[[str], list[Instruction]]
Spend = Callable[[str, Core], Cycles]


class Assembler(Protocol):
    """Makes an ELF file of a function's text."""

    def __call__(self, text: str, core: str = ..., /) -> Path: ...


@pytest.fixture
def elf(tmp_path: Path) -> Assembler:
    """Assembles one function `f` of instructions that are separated by semicolons, linked at address 0."""

    def assembled(text: str, core: str = "cortex-m7") -> Path:
        source = tmp_path / "f.s"
        code = "\n".join(text.split(";"))
        source.write_text(
            ".syntax unified\n.thumb\n.text\n.global f\n.type f, %function\nf:\n" + code + "\n.size f, .-f\n"
        )
        fpu = ["-mfpu=fpv5-sp-d16"] if core == "cortex-m7" else []
        flags = [f"-mcpu={core}", *fpu, "-mfloat-abi=hard", "-nostdlib", "-Wl,-Ttext=0,-ef"]
        path = tmp_path / "f.elf"
        subprocess.run(["arm-none-eabi-gcc", *flags, "-o", path, source], check=True)
        return path

    return assembled


@pytest.fixture
def assemble(elf: Assembler) -> Assemble:
    """The instructions of such a function, in order."""
    return lambda text: list(disassemble(elf(text), "arm-none-eabi").values())


@pytest.fixture
def spend(elf: Assembler) -> Spend:
    """Cycles of instructions that are executed once, in turn, none of them jumping."""

    def spent(text: str, core: Core) -> Cycles:
        vectors = core is CORTEX_M55
        path = elf(text, "cortex-m55" if vectors else "cortex-m7")
        instructions = disassemble(path, "arm-none-eabi", vectors=vectors)
        profile = Profile({}, instructions, Functions(path))
        counts = Counts(Counter(dict.fromkeys(instructions, 1)))
        return sum(profile.cycles(counts, core).values(), Cycles())

    return spent


KINDS = {
    Kind.ALU: (
        "movs r0, #1; add.w r8, r1, r2, lsl #2; subs r0, r0, r1; bic r0, r1, #4; cmp r0, #3; "
        "bfi r0, r1, #3, #4; clz r0, r1; movt r0, #12; rsb r0, r1, #0; adc r0, r1, r2; it ls; "
        "addls r0, r1"
    ),
    Kind.EXTEND: (
        "sxtb16 r0, r1; sxtb16 r0, r1, ror #8; uxtb r0, r1; sxtab16 r0, r1, r2; pkhbt r0, r1, r2, lsl #16"
    ),
    Kind.SATURATE: (
        "ssat r0, #8, r1; usat r0, #8, r1; qadd r0, r1, r2; sadd16 r0, r1, r2; "
        "uhsub8 r0, r1, r2; sel r0, r1, r2; qsax r0, r1, r2; ssat16 r0, #8, r1"
    ),
    Kind.MULTIPLY: (
        "mul r0, r1, r2; muls r0, r1, r0; mla r0, r1, r2, r3; mls r0, r1, r2, r3; "
        "smull r0, r1, r2, r3; umlal r0, r1, r2, r3"
    ),
    Kind.MULTIPLY_DSP: (
        "smlad r0, r1, r2, r3; smlabb r0, r1, r2, r3; smmulr r0, r1, r2; "
        "smmlar r0, r1, r2, r3; smulbt r0, r1, r2; smuad r0, r1, r2; smlald r0, r1, r2, r3; "
        "smlatt r0, r1, r2, r3"
    ),
    Kind.DIVIDE: "sdiv r0, r1, r2; udiv r0, r1, r2",
    Kind.LOAD: (
        "ldr r0, [r1]; ldrb r0, [r1, r2]; ldrsb.w r0, [r1], #1; ldrh r0, [r1, #2]; ldrsh.w r0, [r1, #2]!"
    ),
    Kind.LOAD_MANY: "ldrd r0, r1, [r2]; ldmia r2!, {r0, r1}; pop {r4, r5}; ldmdb r2, {r0, r1}",
    Kind.STORE: "str r0, [r1]; strb r0, [r1, r2]; strh.w r0, [r1], #2",
    Kind.STORE_MANY: "strd r0, r1, [r2]; stmia r2!, {r0, r1}; push {r4, lr}; stmdb sp!, {r4-r11}",
    Kind.BRANCH: (
        "b f; beq f; bls f; blt f; ble f; bl f; bx lr; blx r3; cbz r0, 1f; cbnz r0, 1f; 1: mov pc, lr"
    ),
    Kind.BRANCH_TABLE: "tbb [pc, r0]; tbh [pc, r0, lsl #1]",
    Kind.FLOAT_LOAD: "vldr s0, [r0]; vldmia r0!, {s0-s7}; vpop {s16-s31}",
    Kind.FLOAT_STORE: "vstr s0, [r0, #4]; vstmia r0!, {s0-s7}; vpush {s16}",
    Kind.FLOAT_MAC: ("vfma.f32 s0, s1, s2; vfms.f32 s0, s1, s2; vmla.f32 s0, s1, s2; vfnms.f32 s0, s1, s2"),
    Kind.FLOAT_DIVIDE: "vdiv.f32 s0, s1, s2; vsqrt.f32 s0, s1",
    Kind.FLOAT_ARITHMETIC: (
        "vadd.f32 s0, s1, s2; vmul.f32 s0, s1, s2; vcvt.f32.s32 s0, s1; vnmul.f32 s0, s1, s2"
    ),
    Kind.FLOAT_MOVE: (
        "vmov s0, r0; vmov.f32 s0, s1; vcmpe.f32 s0, s1; vmrs APSR_nzcv, fpscr; vneg.f32 s0, s1"
    ),
    Kind.SYSTEM: "nop; dsb; cpsid i; mrs r0, primask; wfi",
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind: Kind, assemble: Assemble) -> None:
    beside = {Kind.IT} if kind is Kind.SYSTEM else {Kind.IT, Kind.SYSTEM}  # nop fills up to a whole word
    kinds = {it.mnemonic: classify(it) for it in assemble(KINDS[kind]) if classify(it) not in beside}
    assert kinds == dict.fromkeys(kinds, kind) and len(kinds) > 1 - (kind is Kind.BRANCH_TABLE)


VECTOR_KINDS = {
    Kind.VECTOR_LOAD: "vldrb.s32 q0, [r0], #4; vldrw.u32 q0, [r0, q1, uxtw #2]; vpst; vldrbt.u8 q0, [r1]",
    Kind.VECTOR_STORE: "vstrb.32 q0, [r0], #4; vstrw.32 q0, [r0]; vpst; vstrwt.32 q0, [r0]",
    Kind.VECTOR_MULTIPLY: (
        "vmladava.s8 r0, q0, q1; vmla.s32 q0, q1, r0; vqrdmulh.s32 q0, q1, r0; vmul.i32 q0, q1, q2; "
        "vfma.f32 q0, q1, r0; vmullb.s8 q0, q1, q2"
    ),
    Kind.VECTOR: (
        "vadd.i32 q0, q1, r0; vdup.32 q0, r0; vpst; vaddt.i32 q0, q1, q2; vctp.32 r0; vcmp.s32 lt, q0, r1"
    ),
    Kind.LOOP_END: "dls lr, r0; 1: nop; le lr, 1b",
}


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_kinds_of_vectors(kind: Kind, elf: Assembler) -> None:
    instructions = disassemble(elf(VECTOR_KINDS[kind], "cortex-m55"), "arm-none-eabi", vectors=True).values()
    beside = {"vpst", "dls", "nop"} - ({"vpst"} if kind is Kind.VECTOR else set())
    assert {classify(it) for it in instructions if it.mnemonic not in beside} == {kind}


def test_registers_and_sizes() -> None:
    lines = {
        "   0:\tf857 3b04 \tldr.w\tr3, [r7], #4": (4, {"r3"}, {"r7"}),
        "   4:\t4b01      \tldr\tr3, [pc, #4]\t@ (230 <hal_ticks+0x8>)": (2, {"r3"}, {"r15"}),
        "   6:\te9d1 2300 \tldrd\tr2, r3, [r1]": (4, {"r2", "r3"}, {"r1"}),
        "   a:\tecb0 0a04 \tvldmia\tr0!, {s0-s3}": (4, {"s0", "s1", "s2", "s3"}, {"r0"}),
        "   e:\te8bd 8ff0 \tldmia.w\tsp!, {r4, fp, pc}": (4, {"r4", "r11", "r15"}, {"r13"}),
        "  12:\tfb20 3405 \tsmlald\tr3, r4, r0, r5": (4, {"r3", "r4"}, {"r0", "r3", "r4", "r5"}),
        "  16:\t40aa      \tlsls\tr2, r5": (2, {"r2"}, {"r2", "r5"}),
        "  18:\teea0 0a81 \tvfma.f32\ts0, s1, s2": (4, {"s0"}, {"s0", "s1", "s2"}),
        "  1c:\t6011      \tstr\tr1, [r2, #0]": (2, set(), {"r1", "r2"}),
        "  1e:\ted90 1b00 \tvldr\td1, [r0]": (4, {"s2", "s3"}, {"r0"}),
    }
    for line, (size, results, reads) in lines.items():
        instruction = parse(line)
        assert instruction is not None
        assert (instruction.size, instruction.results) == (size, results), line
        assert instruction.reads == reads, line
    assert parse("00000228 <hal_ticks>:") is None and parse("") is None


def test_which_jumps_may_be_passed() -> None:
    def passed(mnemonic: str) -> bool:
        return may_pass(Instruction(0, 2, mnemonic, ""))

    assert all(map(passed, ("beq", "bls", "ble", "blt", "cbz", "bxne", "popeq", "blne")))
    assert not any(map(passed, ("b", "bl", "bx", "blx", "pop", "ldmia")))


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        # section 3.3.2 of the manual
        ("ldr r0, [r1]; ldr r1, [r2]", 3),
        ("ldr r0, [r1, r2]; str r0, [r3, #20]", 3),
        ("ldr r0, [r1, r2]; str r1, [r3, r2]", 3),
        ("ldr r0, [r1, r5]; ldr r1, [r2]; ldr r2, [r3, #4]", 4),
        ("ldr r0, [r1]; ldr r2, [r0]", 4),
        ("str r0, [r1]; ldr r2, [r1, #4]", 3),
        ("ldrd r0, r1, [r2]", 3),
        ("stmia r2!, {r0, r1, r3, r4, r5, r6, r7, r8}", 9),
        ("adds r1, r1, #4; ldr r0, [r1]", 4),
        ("adds r3, r1, #4; ldr r0, [r1]", 3),
        # Tables 3-1, 3-2
        ("smlad r0, r1, r2, r0; smlad r0, r3, r4, r0", 2),
        ("push {r4, r5, lr}", 4),
        ("cmp r0, r1; it ge; movge r0, r1", 2),
        ("cmp.w r0, r1; it ge; movge r0, r1", 3),
        # Table 7-1 and its notes
        ("vadd.f32 s0, s1, s2; vadd.f32 s3, s4, s5", 2),
        ("vadd.f32 s0, s1, s2; vadd.f32 s3, s0, s5", 3),
        ("vmul.f32 s0, s1, s2; vstr s0, [r0]", 4),
        ("vfma.f32 s0, s1, s2; vfma.f32 s0, s3, s4", 6),
        ("vmul.f32 s1, s3, s2; vfma.f32 s0, s1, s4", 5),
        ("vdiv.f32 s0, s1, s2", 14),
        ("vldr d0, [r0]", 3),
        ("vmov r0, r1, d0; vmov s0, r0", 3),
    ],
)
def test_cortex_m4_costs_what_its_manual_says(text: str, cycles: int, spend: Spend) -> None:
    assert spend(text, CORTEX_M4).typical == cycles


def test_cortex_m4_keeps_the_ranges_of_its_manual(spend: Spend) -> None:
    assert spend("sdiv r0, r1, r2", CORTEX_M4) == Cycles(2, 7, 12)
    assert spend("b f", CORTEX_M4) == Cycles(2, 3, 4)
    assert spend("bne f", CORTEX_M4) == Cycles(1, 1, 1)  # passed
    assert spend("pop {r4, pc}", CORTEX_M4) == Cycles(6, 6, 6)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("adds r0, r1, #1; adds r2, r3, #1", 1),
        ("adds r0, r1, #1; adds r2, r0, #1", 2),
        ("adds r0, r1, #1; adds r2, r3, #1; adds r4, r5, #1", 2),
        ("ldr r0, [r1]; ldr r2, [r3]", 1),
        ("ldr r0, [r1]; adds r2, r0, #1", 3),
        ("str r0, [r1]; str r2, [r3]", 2),
        ("smlad r0, r1, r2, r0; smlad r3, r1, r2, r3", 2),
        ("smlad r0, r1, r2, r0; ldr r3, [r4]", 1),
        ("ldr r3, [r4]; smlad r0, r1, r2, r0", 2),  # DSP instructions are the first of a pair only
        ("ldr r3, [r4]; rev r0, r1", 2),
        ("add.w r0, r1, r2, lsl #2; ldr r3, [r4]", 1),
        ("add.w r0, r1, r2, lsl #2; sxtb r3, r4", 2),  # one shifted operand a cycle
        ("mov.w r0, #1024; lsls r1, r2, #3", 2),
        ("adds r0, r1, #1; sxtb r2, r0", 3),  # which is needed a cycle earlier
        ("subs r0, r1, #1; bne f", 1),
    ],
)
def test_cortex_m7_follows_its_assumptions(text: str, cycles: int, spend: Spend) -> None:
    spent = spend(text, CORTEX_M7)
    assert spent.typical == cycles
    assert spent.least <= spent.typical <= spent.most


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("adds r0, r1, #1; adds r2, r3, #1", 1),
        ("add.w r8, r1, #1; add.w r9, r3, #1", 2),
        ("adds r0, r1, #1; adds r2, r0, #1", 2),
        ("ldr r0, [r1]; ldr r2, [r3]", 2),
        ("ldr r0, [r1]; adds r2, r3, #1", 1),
        ("ldr r0, [r1]; adds r2, r0, #1", 3),
        ("smlad r0, r1, r2, r0; smlad r0, r3, r4, r0", 2),
        ("vadd.f32 s0, s1, s2; vmul.f32 s3, s0, s5", 3),
        ("vfma.f32 s0, s1, s2; vfma.f32 s0, s3, s4", 2),
        ("push {r4, r5, lr}", 4),
    ],
)
def test_cortex_m33_follows_its_assumptions(text: str, cycles: int, spend: Spend) -> None:
    spent = spend(text, CORTEX_M33)
    assert spent.typical == cycles
    assert spent.least <= spent.typical <= spent.most


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("vldrb.s8 q0, [r0]", 2),
        ("vldrb.s8 q0, [r0]; vmladava.s8 r2, q1, q2", 3),
        ("vldrb.s8 q0, [r0]; vmladava.s8 r2, q1, q2; vldrb.s8 q1, [r0]; vmladava.s8 r4, q1, q2", 5),
        ("vldrb.s8 q0, [r0]; vldrb.s8 q1, [r1]", 4),
        ("vldrb.s32 q0, [r0, q1]", 4),
        ("vmladav.s8 r2, q1, q2; add.w r8, r2, #1", 4),
        ("vmladava.s8 r2, q1, q2; vmladava.s8 r2, q3, q2", 4),
        ("dls lr, r0; 1: vldrb.s8 q0, [r0]; le lr, 1b", 3),
        ("adds r0, r1, #1; adds r2, r3, #1", 1),
    ],
)
def test_cortex_m55_follows_its_assumptions(text: str, cycles: int, spend: Spend) -> None:
    spent = spend(text, CORTEX_M55)
    assert spent.typical == cycles
    assert spent.least <= spent.typical <= spent.most
