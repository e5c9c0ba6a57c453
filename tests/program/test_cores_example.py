"""The documentation's example for a chip's second core compiles, beside the headers of a library."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mcudeploy.codegen.render import Types, render
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain.firmware_build import find_compiler

_PAGE = Path(__file__).parents[2] / "docs" / "parallel.md"
_SDK = "".join(f"void {name}(void);\n" for name in ("__dsb", "__sev", "__wfe"))
_SDK += "void multicore_launch_core1(void (*entry)(void));\n"


def test_the_second_core_of_the_docs_compiles(tmp_path: Path) -> None:
    compiler = find_compiler("arm-none-eabi")
    if compiler is None:
        pytest.skip("no compiler for Arm")
    (code,) = re.findall(r"```c\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    for folder in ("pico", "hardware"):
        (tmp_path / folder).mkdir()
    (tmp_path / "hardware" / "sync.h").write_text("")
    (tmp_path / "pico" / "multicore.h").write_text(_SDK)
    (tmp_path / "core1.c").write_text("void core1_main(void);\n" + code)
    (tmp_path / "mcud_config.h").write_text(render("config.h.j2", config=Types(4, 16, 16)))
    flags = ["-std=c99", "-mcpu=cortex-m0plus", "-mthumb", "-O2", "-Wall", "-Wextra", "-Werror"]
    include = [f"-I{tmp_path}", f"-I{resource_dir('firmware') / 'include'}"]
    compiled = subprocess.run(
        [compiler, *flags, *include, "-c", "core1.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
