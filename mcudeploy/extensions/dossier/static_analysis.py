"""MISRA C:2012 over the files of one library, by cppcheck with the macros of the board's compiler."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import BuildError
from mcudeploy.common.programs import find_program
from mcudeploy.common.resources import resource_dir
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.toolchain.firmware_build import find_compiler
from mcudeploy.toolchain.tools import run_tool

_ANALYSIS_S = 300
_FINDING = re.compile(r"^(.*?):(\d+): \[([\w.,-]+)\]$", re.M)
_TARGET = re.compile(r"#define (__(?:ARM|riscv|GNUC|BYTE_ORDER|ORDER|VFP|thumb)\w*) (.*)")
"""Macros of a compiler by which the sources choose their code."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A rule that files of a library deviate from, at `places` lines.

    `reason`: why that is accepted; "" if no reason is stated.
    """

    rule: str
    files: tuple[str, ...]
    places: int
    reason: str


@dataclass(frozen=True, slots=True)
class StaticAnalysis:
    """The deviations of a library's files that `tool` finds; or `absent`: why no tool ran."""

    tool: str = ""
    deviations: tuple[Deviation, ...] = ()
    absent: str = ""


def analyse(library: Path, board: Board, prefix: str) -> StaticAnalysis:
    """Return the deviations of the C files of a model's library, except its arrays of weights.

    Raises BuildError if cppcheck fails.
    """
    tool = find_program("cppcheck")
    if tool is None:
        return StaticAnalysis(absent=f"cppcheck is not installed: {install_command('cppcheck')}")
    sources = sorted(it for it in (library / "src").glob("*.c") if not it.name.endswith("_weights.c"))
    options = ["--addon=misra", "--quiet", "--std=c99", "--template={file}:{line}: [{id}]"]
    options += [f"--suppress={it}" for it in ("missingInclude", "missingIncludeSystem", "unusedStructMember")]
    options += [f"-I{library / name}" for name in ("src", "include")]
    options += [f"-D{name}={value}" for name, value in _target_macros(board).items()]
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda it: run_tool([tool, *options, str(it)], _ANALYSIS_S), sources))
    places: dict[str, set[tuple[str, str]]] = {}
    for source, ended in zip(sources, results, strict=True):
        if ended.status != 0:
            cause = ended.output.strip()[:300] or f"it takes more than {_ANALYSIS_S} s"
            raise BuildError(f"cppcheck fails on {source.name}: {cause}")
        for file, line, rule in _FINDING.findall(ended.output):
            places.setdefault(rule, set()).add((Path(file).name, line))
    version = run_tool([tool, "--version"], _ANALYSIS_S).output.strip()
    return StaticAnalysis(
        version, tuple(_deviation(rule, at, prefix) for rule, at in sorted(places.items(), key=_order))
    )


def _order(item: tuple[str, object]) -> list[int | str]:
    """The key by which rules are sorted, with their numbers as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", item[0])]


def _deviation(rule: str, places: set[tuple[str, str]], prefix: str) -> Deviation:
    reasons, files = accepted(), Counter(file for file, _ in places)
    listed = ["model.c" if file == f"{prefix}.c" else file for file in files]
    stated = [reasons.get(("misra", rule, it)) or reasons.get(("misra", rule, "*"), "") for it in listed]
    reason = "" if "" in stated else "; ".join(dict.fromkeys(stated))
    return Deviation(rule, tuple(sorted(files)), len(places), reason)


def accepted() -> Mapping[tuple[str, str, str], str]:
    """Return the reason of each accepted finding, by tool, check and file; `*` as a file stands for all."""
    text = (resource_dir("firmware") / "deviations.txt").read_text("utf-8")
    lines = (line.split(None, 3) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {(tool, check, file): reason for tool, check, file, reason in lines}


def _target_macros(board: Board) -> Mapping[str, str]:
    """Return the predefined macros of the board's compiler; none if that is not on this computer."""
    compiler = find_compiler(board.toolchain) if board.toolchain != "platformio" else None
    if compiler is None:
        return {}
    command = [compiler, *board.cpu_flags, "-dM", "-E", "-x", "c", os.devnull]
    return dict(_TARGET.findall(run_tool(command, _ANALYSIS_S).output))
