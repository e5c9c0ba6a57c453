"""Programs of a main file and a library that `build` wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

CLANG_STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
STRICT = (*CLANG_STRICT, "-Wcast-align=strict")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def linked(library: Path, main: str | Path, *flags: object, compiler: str = "gcc") -> Path:
    """Compile a main file, or its text, with the library in a folder; every warning is an error."""
    program = library / "program"
    if isinstance(main, str):
        program.with_suffix(".c").write_text(main)
        main = program.with_suffix(".c")
    strict = CLANG_STRICT if compiler == "clang" else STRICT
    folders = [f"-I{library / name}" for name in ("include", "src")]
    sources = [*sorted((library / "src").glob("*.c")), main]
    command = [compiler, *strict, *map(str, flags), *folders, *map(str, sources), "-lm", "-o", str(program)]
    subprocess.run(command, check=True)
    return program
