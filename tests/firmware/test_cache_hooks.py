"""The kernels that hand over tensors call the application's cache functions for the bytes of each step."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mcudeploy.codegen.kernelfiles import source_folders, source_index
from mcudeploy.codegen.render import Types, render

PROGRAM = r"""
#include <stdio.h>

#include "clean.h"
#include "invalidate.h"
#include "mcud_cache.h"

static uint8_t arena[256];

static void told(const char *what, const void *address, uint32_t bytes)
{
    printf("%s %d+%u\n", what, (int)((const uint8_t *)address - arena), (unsigned)bytes);
}

void mcud_cache_clean(const void *address, uint32_t bytes)
{
    told("clean", address, bytes);
}

void mcud_cache_invalidate(const void *address, uint32_t bytes)
{
    told("invalidate", address, bytes);
}

int main(void)
{
    /* Five rows of 8 bytes: in blocks of two rows at 0, 64, 128, and whole at 192. */
    static const mcud_offset apart[] = {0, 16, 32}, whole[] = {48};
    const mcud_tensor blocks = {arena, apart, 8, 2, 0}, one = {arena, whole, 8, 5, 0};
    const mcud_tensor *const inputs[] = {&blocks};
    const mcud_clean_params row = {8};
    const mcud_invalidate_params same = {8};
    const mcud_op in_place = {mcud_clean, &row, inputs, &blocks, 0, 5, 2};
    const mcud_op elsewhere = {mcud_invalidate, &same, inputs, &one, 0, 5, 5};
    for (uint8_t i = 0; i < 40; i++) {
        arena[(i / 16) * 64 + i % 16] = i;
    }
    mcud_clean(&in_place, 2, 4);
    mcud_clean(&in_place, 4, 5);
    mcud_invalidate(&elsewhere, 0, 5);
    int32_t wrong = 0;
    for (uint8_t i = 0; i < 40; i++) {
        wrong += arena[192 + i] != i;
    }
    printf("wrong %d\n", (int)wrong);
    return 0;
}
"""


def test_ranges(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    config = render("config.h.j2", config=Types(4, 16, 8))
    (tmp_path / "mcud_config.h").write_text(config)
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = [source_index()[f"{name}.c"].path for name in ("clean", "invalidate")]
    folders = [f"-I{folder}" for folder in (tmp_path, *source_folders())]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    program = tmp_path / "program"
    files = map(str, (tmp_path / "main.c", *sources))
    subprocess.run([compiler, *flags, *folders, *files, "-o", str(program)], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert output.splitlines() == [
        "clean 64+16",
        "clean 128+8",
        "invalidate 0+16",
        "invalidate 64+16",
        "invalidate 128+8",
        "wrong 0",
    ]
