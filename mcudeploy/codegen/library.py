"""The folder that `build` writes: a C library that needs nothing else, and the firmware if there is one."""

from __future__ import annotations

import shutil
from pathlib import Path

from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import Source, render_model, render_package
from mcudeploy.kernelfiles import ON_UNIT, kernel_files
from mcudeploy.plan import Plan

_UNIT_INTERFACE = ("mcud_unit.h", "mcud.h", "mcud_config.h")


def write_library(
    program: Program, plan: Plan, source: Source, directory: Path, firmware: Path | None
) -> list[Path]:
    """Write everything below `directory`; the files, in order. Raises OSError where it cannot be written."""
    written = []
    model = render_model(program, plan, source)
    texts = {
        f"include/{name}" if name == f"{program.prefix}.h" else f"src/{name}": text
        for name, text in model.items()
    }
    texts |= render_package(program, plan, source)
    texts |= {f"src/{path.name}": path.read_text("utf-8") for path in kernel_files(program.kernels)}
    if ON_UNIT in program.kernels:  # what the application needs to provide mcud_unit_run
        texts |= {f"include/{name}": texts.pop(f"src/{name}") for name in _UNIT_INTERFACE}
    for name, text in sorted(texts.items()):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        written.append(path)
    if firmware is None:
        return written
    elf = directory / "firmware" / f"{program.prefix}-{plan.board}.elf"
    elf.parent.mkdir(exist_ok=True)
    shutil.copyfile(firmware, elf)
    return [*written, elf]
