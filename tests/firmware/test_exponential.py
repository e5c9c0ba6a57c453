"""mcud_exponential_f32.h on floats of all magnitudes, against float64."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.resources import resource_dir

SOURCE = """
#include "mcud_exponential_f32.h"
#include <stdio.h>

int main(void)
{
    float x;
    while (fread(&x, sizeof x, 1, stdin) == 1) {
        const float results[] = {mcud_expf(x), mcud_tanhf(x), mcud_sigmoidf(x)};
        fwrite(results, sizeof results, 1, stdout);
    }
    return 0;
}
"""

SANITIZED = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]


def results_of(folder: Path, compiler: str, flags: list[str], values: np.ndarray) -> np.ndarray:
    """Return a row of three results for each value."""
    headers = resource_dir("firmware") / "arith" / "f32"
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-ffp-contract=off", *flags]
    program = folder / compiler
    subprocess.run(
        [*command, f"-I{headers}", "-xc", "-", "-lm", "-o", program], input=SOURCE, text=True, check=True
    )
    run = subprocess.run([program], input=values.astype("<f4").tobytes(), capture_output=True, check=True)
    return np.frombuffer(run.stdout, "<f4").reshape(len(values), 3)


def units_in_the_last_place(results: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return errors in units of normal numbers."""
    magnitudes = np.maximum(np.abs(exact), 1e-30).astype(np.float32)
    return np.abs(results - exact) / np.spacing(magnitudes)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Return floats of all magnitudes for which exp(x) is neither 0 nor far above the largest one."""
    every = np.arange(0, 1 << 32, 10007, np.uint32).view(np.float32)
    return every[np.abs(every) < 110]


def test_errors_are_those_of_the_header(values: np.ndarray, tmp_path: Path) -> None:
    results = results_of(tmp_path, "gcc", SANITIZED, values).astype(np.float64)
    wide = values.astype(np.float64)
    exact = np.exp(wide)
    inside = exact <= np.finfo(np.float32).max
    assert units_in_the_last_place(results[inside, 0], exact[inside]).max() <= 1
    assert np.all(np.isinf(results[exact > 3.41e38, 0]))
    assert units_in_the_last_place(results[:, 1], np.tanh(wide)).max() <= 7
    assert np.abs(results[:, 2] - 1 / (1 + np.exp(-wide))).max() < 1e-7


@pytest.mark.skipif(shutil.which("clang") is None, reason="Clang is not installed")
def test_compilers_give_the_same_bits(values: np.ndarray, tmp_path: Path) -> None:
    assert (
        results_of(tmp_path, "clang", [], values).tobytes()
        == results_of(tmp_path, "gcc", [], values).tobytes()
    )


def test_the_ends_of_the_range(tmp_path: Path) -> None:
    ends = np.array([np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 0, -0.0], np.float32)
    expected = [
        [np.nan] * 3, [np.inf, 1, 1], [0, -1, 0], [np.inf, 1, 1], [0, -1, 0], [1, 0, 0.5], [1, 0, 0.5],
    ]  # fmt: skip
    np.testing.assert_array_equal(
        results_of(tmp_path, "gcc", SANITIZED, ends), np.array(expected, np.float32)
    )


@pytest.mark.parametrize(
    ("flags", "way"), [(["-ffast-math"], "-fno-fast-math"), (["-mfpmath=387"], "-mfpmath=sse")]
)
def test_wider_or_looser_floats_are_refused_with_the_option(flags: list[str], way: str) -> None:
    header = resource_dir("firmware") / "include" / "mcud_compiler.h"
    command = ["gcc", "-std=c99", *flags, "-fsyntax-only", "-xc", header]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "#error" in done.stderr and way in done.stderr


def test_packed_structs_are_refused_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "mcud_config.h").write_text(
        "#define MCUD_ALIGN 4\ntypedef unsigned mcud_offset, mcud_code;\n", "utf-8"
    )
    folder = resource_dir("firmware") / "include"
    command = ["gcc", "-std=c11", f"-I{tmp_path}", f"-I{folder}", "-fsyntax-only", "-xc", folder / "mcud.h"]
    packed = subprocess.run([*command, "-fpack-struct"], capture_output=True, text=True, check=False)
    assert packed.returncode != 0 and "compile these files with -fno-pack-struct" in packed.stderr
    assert subprocess.run([*command, "-fpack-struct", "-fno-pack-struct"], check=False).returncode == 0
