"""Clang compiles every kernel for every core without a warning, and what it compiles computes the same bits.

`benchmarks/compilers.py` has many models, all optimisation levels and the host's compilers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.codegen.bench import bench_sources
from mcudeploy.codegen.kernelfiles import kernel_files, kernel_paths, source_folders
from mcudeploy.common.resources import resource_dir
from tests.weekly import examples, sample

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from compilers import CORES, build, compiled, complaints_of, header_of, run_on_core

FIRMWARE = resource_dir("firmware")
PRINTED = Path(tempfile.mkdtemp())
ALL = kernel_paths(PRINTED)
OF_ALL = {"mcud_compiler.h", "mcud_owner_slots.c", "mcud_scale_thumb.h", "mcud_scale_words.h"}
"""Files with assembler that belong to every program, or to nearly every kernel."""
ASSEMBLER = re.compile(r"__asm__|arm_mve\.h")
LEVELS = {
    **dict.fromkeys(("cortex-m0", "cortex-m55", "rv32", "rv32v"), ("-O2", "-Os")),
    "cortex-m3": ("-O2",),
    "cortex-m4": ("-O2",),
    "cortex-m33": ("-Os",),
}
"""Levels at which the kernels are compiled for a core: both for every text with blocks of assembler.
cortex-m4 and cortex-m33 share that text; cortex-m3 has single instructions.
"""
DAILY = [("cortex-m4", "-O2"), ("cortex-m55", "-O2")]
PIC = ("-O2", "-fpic", "-msingle-pic-base", "-mpic-register=r9")

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="Clang is not installed")


def assembler_of(kernel: Path) -> frozenset[str]:
    """The files with assembler that it includes: cores compile different texts of it."""
    closure = kernel_files([kernel.stem])
    return frozenset(it.name for it in closure if it.name not in OF_ALL and ASSEMBLER.search(it.text))


SPECIAL = [kernel for kernel in ALL if assembler_of(kernel)]
ONE_OF_EACH = list(
    {assembler_of(it): it for it in sorted(SPECIAL, key=lambda it: it.stat().st_size)}.values()
)
"""The longest kernel of each set of files with assembler."""


@pytest.fixture
def includes(tmp_path: Path) -> list[Path]:
    (tmp_path / "mcud_config.h").write_text(bench_sources(["add_s8"], 64)["mcud_config.h"], "utf-8")
    return [*source_folders(), PRINTED, tmp_path]


@needs_clang
@pytest.mark.parametrize("case", sample([(name, level) for name in CORES for level in LEVELS[name]], DAILY))
def test_kernels_with_assembler_compile(case: tuple[str, str], includes: list[Path], tmp_path: Path) -> None:
    name, level = case
    assert len(SPECIAL) > 40
    kernels = examples(ONE_OF_EACH, SPECIAL)
    assert len(kernels) > 20
    assert not complaints_of([*CORES[name].compiler("clang"), level], kernels, includes, tmp_path / "objects")


@needs_clang
@pytest.mark.parametrize("name", sample(["cortex-m0", "rv32"], 1))
def test_kernels_that_are_the_same_c_everywhere_have_no_warning(
    name: str, includes: list[Path], tmp_path: Path
) -> None:
    """Without objects: Clang warns before it generates code, and these kernels have no assembler."""
    portable = sorted({*ALL} - {*SPECIAL})
    assert len(portable) > 40
    command = [*CORES[name].compiler("clang"), "-fsyntax-only"]
    assert not complaints_of(command, portable, includes, tmp_path / "objects")


@pytest.mark.parametrize("level", sample(["-O3", "-O1", "-Os"], 1))
@pytest.mark.parametrize("name", ["cortex-m55", "rv32v"])
def test_vectors_compile_at_every_level(name: str, level: str, includes: list[Path], tmp_path: Path) -> None:
    core = CORES[name]
    if shutil.which(core.gcc) is None:
        pytest.skip(f"{core.gcc} is not installed")
    ends = ("_mve", "_bt", "_rvv", "add_s8", "lut_s8", "mul_s8", "pool_s8", "softmax_s8")
    kernels = [it for it in SPECIAL if it.stem.endswith(ends)]
    assert not complaints_of([*core.compiler("gcc"), level], kernels, includes, tmp_path / "objects")


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["cortex-m55", "cortex-m0", "cortex-m4"])
def test_no_assembler_needs_the_register_of_position_independent_code(
    name: str, includes: list[Path], tmp_path: Path
) -> None:
    core = CORES[name]
    if shutil.which(core.gcc) is None:
        pytest.skip(f"{core.gcc} is not installed")
    kernels = [kernel for kernel in SPECIAL if "conv" in kernel.stem]
    assert not complaints_of([*core.compiler("gcc"), *PIC], kernels, includes, tmp_path / "objects")


@needs_clang
@pytest.mark.weekly
@pytest.mark.parametrize("name", ["cortex-m55", "cortex-m4"])
def test_a_reserved_register_is_left_alone(name: str, includes: list[Path], tmp_path: Path) -> None:
    kernels = [kernel for kernel in SPECIAL if "conv" in kernel.stem]
    command = [*CORES[name].compiler("clang"), "-O2", "-frwpi"]
    assert not complaints_of(command, kernels, includes, tmp_path / "objects")


@needs_clang
@pytest.mark.parametrize("name", sample(CORES, {"cortex-m55", "rv32v"}))
def test_what_clang_compiles_computes_the_same_bits(name: str, tmp_path: Path) -> None:
    core = CORES[name]
    if shutil.which(core.gcc) is None:
        pytest.skip(f"{core.gcc}, which links, is not installed")
    dense = fully_connected(tmp_path / "dense.onnx", (37, 24, 9), quantised=True)
    tiled = quantised_convolutions(tmp_path / "tiled.onnx", depth=8)  # by Winograd's filtering
    for model in (quantised_convolutions(tmp_path / "conv.onnx"), tiled, dense):
        library = build(model, core.board, tmp_path / model.stem)
        assert library is not None
        said = []
        for compiler, *flags in (
            ("gcc", "-O2"),
            ("clang", "-O2"),
            ("clang", "-Os"),
            ("clang", "-O2", "-DMCUD_BLOCKS=0"),
        ):
            objects = tmp_path / "".join((model.stem, compiler, *flags))
            assert not compiled([*core.compiler(compiler), *flags], library, objects)
            status, printed = run_on_core(core, library, objects)
            assert status == 0, printed
            said.append(printed)
        assert len(set(said)) == 1 and re.fullmatch(r"[0-9a-f]{8}", said[0])


@needs_clang
@pytest.mark.parametrize("triple", ["armeb-none-eabi", "powerpc-none-elf"])
def test_big_endian_cores_are_refused(triple: str, tmp_path: Path) -> None:
    library = build(quantised_convolutions(tmp_path / "conv.onnx"), "host", tmp_path / "library")
    assert library is not None
    for file in (header_of(library), library / "src" / "mcud_tape.c"):
        command = [
            "clang",
            f"--target={triple}",
            "-ffreestanding",
            "-fsyntax-only",
            "-I",
            library / "include",
        ]
        done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "little-endian cores" in done.stderr
