"""Libraries of many models under GCC and Clang at every optimisation level: warnings, and equal bits.

    python benchmarks/compilers.py MODELS... [--limit 30] [--cores cortex-m4,rv32] [--levels=-O0,-O2]

Each model becomes a library, without a board and for each core. All its sources must compile without a
warning (those of STRICT). Its self-test runs, on this computer or in QEMU, and must find no difference; the
bytes of its outputs must be the same for each compiler and level. Prints a row for each model and core.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import build as building
from mcudeploy.common.errors import DeployError
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.planner.plan_options import Options

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
STRICT = (
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wredundant-decls"),
    *("-Woverlength-strings", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections"),
)
_LINKED = "-nostartfiles -Wl,--gc-sections -Wl,--no-relax -lm"
_RUN_S = 900


@dataclass(frozen=True, slots=True)
class Core:
    """Flags for both compilers, the GCC that links, and the board in QEMU that runs it."""

    triple: str
    flags: str
    board: str
    headers: str = "/usr/lib/arm-none-eabi/include"
    gcc: str = "arm-none-eabi-gcc"
    specs: str = "--specs=nano.specs"

    def compiler(self, name: str) -> list[str]:
        if name == "gcc":
            return [self.gcc, self.specs, *self.flags.split()]
        headers = ["-isystem", self.headers]
        return ["clang", f"--target={self.triple}", *self.flags.split(), *headers]


_SOFT = "-mthumb -mfloat-abi=soft"
_HARD = "-mthumb -mfloat-abi=hard"
CORES = {
    "cortex-m0": Core("thumbv6m-none-eabi", f"-mcpu=cortex-m0 {_SOFT}", "mps2-an385"),
    "cortex-m3": Core("thumbv7m-none-eabi", f"-mcpu=cortex-m3 {_SOFT}", "mps2-an385"),
    "cortex-m4": Core("thumbv7em-none-eabi", f"-mcpu=cortex-m4 {_HARD} -mfpu=fpv4-sp-d16", "mps2-an386"),
    "cortex-m33": Core(
        "thumbv8m.main-none-eabi", f"-mcpu=cortex-m33 {_HARD} -mfpu=fpv5-sp-d16", "mps2-an505"
    ),
    "cortex-m55": Core("thumbv8.1m.main-none-eabi", f"-mcpu=cortex-m55 {_HARD}", "mps3-an547"),
    "rv32": Core(
        "riscv32-unknown-elf",
        "-march=rv32imfc -mabi=ilp32f",
        "riscv32-virt",
        headers="/usr/lib/picolibc/riscv64-unknown-elf/include",
        gcc="riscv64-unknown-elf-gcc",
        specs="--specs=picolibc.specs",
    ),
    "rv32v": Core(
        "riscv32-unknown-elf",
        "-march=rv32imfc_zve32x -mabi=ilp32f",
        "riscv32-virt-v",
        headers="/usr/lib/picolibc/riscv64-unknown-elf/include",
        gcc="riscv64-unknown-elf-gcc",
        specs="--specs=picolibc.specs",
    ),
}

_CORTEX_START = """
extern uint8_t stack_top[];
static void start(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the FPU */
    __asm__ volatile("dsb\\n\\tisb" ::: "memory");
    finish(checked());
}
static void fault(void)
{
    finish(2);
}
__attribute__((section(".start"), used)) static const void *const vectors[] = {
    stack_top, (const void *)start, (const void *)fault, (const void *)fault,
};
static uint32_t semihosting(uint32_t number, const void *argument)
{
    register uint32_t result __asm__("r0") = number;
    register const void *with __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(result) : "r"(with) : "memory");
    return result;
}
"""
_RISCV_START = """
void start(void);
__asm__(".section .start, \\"ax\\"\\n.globl _start\\n_start: csrr t0, mhartid\\n"
        "0: bnez t0, 0b\\nla sp, stack_top\\n"
        "li t0, 0x6600\\ncsrs mstatus, t0\\ncall start\\n.text\\n");
void start(void)
{
    finish(checked());
}
static uint32_t semihosting(uint32_t number, const void *argument)
{
    register uint32_t result __asm__("a0") = number;
    register const void *with __asm__("a1") = argument;
    __asm__ volatile(".option push\\n.option norvc\\nslli x0, x0, 0x1f\\nebreak\\n"
                     "srai x0, x0, 7\\n.option pop"
                     : "+r"(result) : "r"(with) : "memory");
    return result;
}
"""
_BARE_MAIN = """
#include <stdint.h>
static uint32_t checked(void);
static uint32_t semihosting(uint32_t number, const void *argument);
static void say(uint32_t value)
{
    char text[10];
    for (int i = 0; i < 8; i++, value <<= 4) {
        text[i] = "0123456789abcdef"[value >> 28];
    }
    text[8] = '\\n';
    text[9] = 0;
    semihosting(4, text);
}
static void finish(uint32_t status)
{
    const uint32_t block[2] = {0x20026u, status};
    semihosting(0x20, block);
    for (;;) {
    }
}
"""
_HOST_MAIN = """
#include <stdint.h>
#include <stdio.h>
static void say(uint32_t value)
{
    printf("%08lx\\n", (unsigned long)value);
}
"""
_LINK = """
ENTRY({entry})
MEMORY {{ code : ORIGIN = {code}, LENGTH = {code_bytes} ram : ORIGIN = {ram}, LENGTH = {ram_bytes} }}
SECTIONS {{
  .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) *(.srodata*) }} > code
  .data : {{ *(.data*) *(.sdata*) }} > ram
  .bss (NOLOAD) : {{
    *(.bss*) *(.sbss*) *(COMMON) *(.arena*) . = ALIGN(16); . += 0x4000; stack_top = .;
  }} > ram
}}
"""


def checked_function(header: Path) -> str:
    """Return C that runs the self-test of the library with this header, and prints a hash of its outputs."""
    text, name = header.read_text("utf-8"), header.stem
    outputs = re.findall(rf"^const (\w+) \*({name}_\w+)\(void\);", text, re.M)
    hashed = "".join(
        f"""
    const uint8_t *{output}_bytes = (const uint8_t *){output}();
    for (uint32_t i = 0; i < {output.upper()}_COUNT * sizeof({of}); i++) {{
        hash = (hash ^ {output}_bytes[i]) * 16777619u;
    }}"""
        for of, output in outputs
    )
    return f"""
#include "{name}.h"
#include "{name}_selftest.h"
static uint32_t checked(void)
{{
    uint32_t hash = 2166136261u;
    const uint32_t wrong = {name}_selftest();{hashed}
    say(hash);
    return wrong != 0;
}}
"""


def compiled(command: list[str], library: Path, objects: Path) -> str:
    """Compile the library's sources; return all complaints of the compiler."""
    sources = sorted((library / "src").glob("*.c"))
    return complaints_of(command, sources, [library / "include", library / "src"], objects)


def complaints_of(command: list[str], sources: list[Path], includes: list[Path], objects: Path) -> str:
    """Return the compiler's messages about these sources; the objects go into a folder."""
    objects.mkdir(parents=True, exist_ok=True)
    paths = [word for folder in includes for word in ("-I", str(folder.resolve()))]
    files = [str(it.resolve()) for it in sources]
    done = subprocess.run(
        [*command, *STRICT, *paths, "-c", *files], cwd=objects, capture_output=True, text=True, check=False
    )
    return done.stderr + ("" if done.returncode == 0 else f"exit code {done.returncode}")


def header_of(library: Path) -> Path:
    return next(
        it for it in (library / "include").glob("*.h") if (it.parent / f"{it.stem}_selftest.h").exists()
    )


def run_on_host(library: Path, objects: Path) -> tuple[int, str]:
    """Return the status of the self-test and the hash of the outputs."""
    main, program = objects / "main.c", objects / "program"
    main.write_text(
        _HOST_MAIN + checked_function(header_of(library)) + "int main(void) { return (int)checked(); }\n"
    )
    link = [
        "gcc",
        "-I",
        library / "include",
        main,
        *sorted(objects.glob("*.o")),
        "-lm",
        "-lpthread",
        "-o",
        program,
    ]
    subprocess.run(link, check=True, capture_output=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=_RUN_S, check=False)
    return done.returncode, done.stdout.strip()


def run_on_core(core: Core, library: Path, objects: Path) -> tuple[int, str]:
    """Return the same from QEMU; GCC links."""
    board = load_board(core.board)
    if board.emulator is None:
        raise SystemExit(f"{core.board} has no emulator")
    riscv = core.triple.startswith("riscv")
    main, script, program = (objects / name for name in ("main.c", "link.ld", "program.elf"))
    main.write_text(
        _BARE_MAIN + (_RISCV_START if riscv else _CORTEX_START) + checked_function(header_of(library))
    )
    ram = board.memories[0]
    regions = {"code": board.flash.origin, "code_bytes": board.flash.bytes}
    regions |= {"ram": ram.origin, "ram_bytes": ram.bytes, "entry": "_start" if riscv else "vectors"}
    script.write_text(_LINK.format(**regions))
    linker = [it.replace("_zve32x", "") for it in core.compiler("gcc")]  # no C library is for vectors
    link = [*linker, "-O1", "-I", library / "include", main, *sorted(objects.glob("*.o"))]
    link += [*_LINKED.split(), "-T", script, "-o", program]
    if riscv:
        link += ["-nostdlib", "-lm", "-lc", "-lgcc"]
    linked = subprocess.run(list(map(str, link)), capture_output=True, text=True, check=False)
    if linked.returncode != 0:
        return linked.returncode, linked.stderr
    machine = ["-M", board.emulator.machine, *board.emulator.args]
    machine += ["-display", "none", "-serial", "none", "-monitor", "none"]
    command = [
        board.emulator.qemu,
        *machine,
        "-semihosting-config",
        "enable=on,target=native",
        "-kernel",
        program,
    ]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=_RUN_S, check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def models_in(paths: list[Path], limit: int) -> list[Path]:
    files = sorted(file for path in paths for file in path.rglob("*") if file.suffix in {".onnx", ".tflite"})
    return files[:: max(1, len(files) // limit)][:limit]


def build(model: Path, board: str, folder: Path) -> Path | None:
    try:
        options = Options(name="model", split=False)
        request = BuildRequest([model], load_board(board), options, folder, library_only=True)
        building.build_models(request)
    except DeployError as error:
        print(f"{model.stem} for {board}: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=30, help="models, evenly spread over those there are")
    parser.add_argument("--cores", default="", help=f"beside this computer: of {', '.join(CORES)}")
    parser.add_argument("--compilers", default="gcc,clang")
    parser.add_argument("--levels", default=",".join(LEVELS))
    wanted = parser.parse_args()
    places = ["host", *filter(None, wanted.cores.split(","))]
    results: Counter[tuple[str, str, str, str]] = Counter()
    for model in models_in(wanted.models, wanted.limit):
        for place in places:
            check_model(model, place, wanted, results)
    print("| core | compiler | level | libraries | with warnings | self-test differs | other bits |")
    print("|---|---|---|---|---|---|---|")
    for place in places:
        for compiler in wanted.compilers.split(","):
            for level in wanted.levels.split(","):
                row = [results[place, compiler, level, what] for what in ("all", "warned", "wrong", "apart")]
                print("|", " | ".join([place, compiler, level, *map(str, row)]), "|")
    return int(any(count for (*_, what), count in results.items() if what != "all"))


def check_model(
    model: Path, place: str, wanted: argparse.Namespace, results: Counter[tuple[str, str, str, str]]
) -> None:
    """Count warnings and differences of the compilers on one model and core."""
    core = CORES.get(place)
    with tempfile.TemporaryDirectory() as folder:
        library = build(model, core.board if core else "host", Path(folder) / "library")
        if library is None:
            return
        bits = ""
        for compiler in wanted.compilers.split(","):
            for level in wanted.levels.split(","):
                objects = Path(folder) / "objects"
                command = core.compiler(compiler) if core else [compiler]
                complaints = compiled([*command, level], library, objects)
                status, printed = (
                    run_on_core(core, library, objects) if core else run_on_host(library, objects)
                )
                bits = bits or printed
                for what, is_so in (
                    ("all", True),
                    ("warned", bool(complaints)),
                    ("wrong", status != 0),
                    ("apart", printed != bits),
                ):
                    results[place, compiler, level, what] += is_so
                if complaints or status or printed != bits:
                    print(
                        f"{model}: {place} {compiler} {level}: {status} {printed} {complaints}",
                        file=sys.stderr,
                    )
                shutil.rmtree(objects)


if __name__ == "__main__":
    sys.exit(main())
