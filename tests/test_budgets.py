"""Each package has a budget of code lines: no blank lines, comments, docstrings or imports; each function has
one of parameters and one of lines.

A raise is the changed number and a comment with the reason; a package that shrinks takes its budget along.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

import mcudeploy

ROOT = Path(mcudeploy.__file__).parent
# Functions of at most 60 lines cost some packages a dozen lines of headings.
BUDGETS = {
    "boards": 1232,  # a second flash, flash as a memory of transfers, chips of memories, contradictions
    "checker": 947,  # loaded constants: places, transfers, whole before their readers, or in pieces
    "cli": 2502,  # rows of chips, folders not to be searched, quiet notes, short help; int8 caches
    "codegen": 1985,  # loaded constants, joined streams, shared arenas, twins, short schedules
    "commands": 1_084,  # counts with a model of a unit, drivers in libraries, results name their deployment
    "common": 1302,  # faults of JSON, operating systems: locks, pipes, ports; compiled loops; TOML
    "costs": 748,  # starts of a unit, factors of boards, the clock of a unit, reads of flash, and their waits
    "device": 1790,  # streams of sockets and of pipes, the line of an emulator that opens late
    "execution": 1380,  # a second search for smaller plans, joined steps, cycles of a unit, waits for flash
    "extensions": 116,
    "extensions/architectures": 293,  # arguments refused, rows of a cache judged, executors that break
    "extensions/attention": 393,  # also the operator of ONNX; rows of int8 with their scales; keys alone
    "extensions/audio": 1969,  # several wake words, their front end, a VAD, manifests and names that mislead
    "extensions/bounds": 1400,
    "extensions/calibration": 263,  # tiles of five kinds, what is no chip, wrong counters, faults of files
    "extensions/curve": 100,
    "extensions/dossier": 340,
    "extensions/ethos_u": 1915,  # joined streams and their judge, operations of two operands, int16
    "extensions/evaluation": 1515,  # bases of the gate and their faults, ways out, differences of libraries
    "extensions/graphs": 1040,  # graphs, rectangles of plans, plans from cuts or offsets
    "extensions/heads": 620,
    "extensions/instances": 105,  # the place of states, room, what is refused
    "extensions/int16": 2305,  # int8 values beside int16, converted in integers
    "extensions/learned": 700,
    "extensions/quantization": 2355,  # weights rounded to the results of layers; int4; mixtures of integers
    "extensions/several_boards": 1960,  # frames measured in a chain, stages on the cores of a chip
    "extensions/text": 997,  # tokenizers and their faults, roles of inputs, the judge of a text, int8 caches
    "extensions/training": 3740,
    "frontend": 13710,  # weights in blocks, caches written in place and in parts; int8 caches; their faults
    "ir": 1020,  # loaded constants and their transfers, remainders, what continues a state, shared arrays
    "mcudeploy": 410,
    "ops": 5951,  # packed weights, also of four bits, rows written into states, lines, columns; dense layers
    "planner": 11873,  # loaded constants, bounds over all cuts, forms, int8 caches, Ctrl-C between searches
    "report": 1841,  # loads in pictures, bounds over all cuts; results name their deployment; int8 caches
    "tiling": 555,
    "toolchain": 2421,  # drivers and models of a unit, memories to start, programs of Windows and macOS
    "verify": 1485,  # shapes of images, indices of flat tables and of rings; the loss by int8 caches
}
_SLACK_PERCENT, _SLACK_LINES = 10, 50
"""The most that a budget may exceed the lines of its package, before it has to be lowered."""
_NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip


def code_lines(text: str) -> int:
    """The number of lines with code: neither imports nor texts that are statements, as docstrings are."""
    free: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            free.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - free)


def package(path: Path) -> str:
    """The name in the table: a folder of mcudeploy or of its extensions; "mcudeploy" for files on top."""
    *folders, _ = path.relative_to(ROOT).parts
    return "/".join(folders[: 2 if folders[:1] == ["extensions"] else 1]) or "mcudeploy"


def lines_by_package() -> Counter[str]:
    lines: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        lines[package(path)] += code_lines(path.read_text("utf-8"))
    return lines


LINES = lines_by_package()


def test_every_package_has_a_budget() -> None:
    assert sorted(LINES) == sorted(BUDGETS)


@pytest.mark.parametrize("name", BUDGETS)
def test_a_package_keeps_its_budget(name: str) -> None:
    lines, budget = LINES[name], BUDGETS[name]
    assert lines <= budget, f"{name} has {lines} lines of code: shorten it, or raise its budget with a reason"
    most = lines + lines * _SLACK_PERCENT // 100 + _SLACK_LINES
    assert budget <= most, f"{name} has {lines} lines of code only: lower its budget"


MOST_PARAMETERS = 8
"""The most that a function may have; values that travel together are a dataclass, as `RunRequest`."""
LISTS_OPTIONS = {"evaluate": 15, "quantize": 14}
"""Functions of `import mcudeploy` whose keywords are the options of the command, for `help()`."""


def test_functions_have_few_parameters() -> None:
    """Beside `self`, *args and **options. Commands count as well: `packed_as` joins their options."""
    many = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(it.arg not in ("self", "cls") for it in parameters)
                if count > MOST_PARAMETERS:
                    many[getattr(node, "name", "lambda")] = count
    assert many == LISTS_OPTIONS


MOST_LINES = 60
"""The most that a function may have, with its docstring."""
COMPILED_LOOPS = {"choose", "serve", "_search"}
"""Loops over a dozen arrays that numba compiles; a call in each turn would hand over all of them."""


def test_functions_have_few_lines() -> None:
    long = set()
    for path in (*ROOT.rglob("*.py"), *(ROOT.parent / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= MOST_LINES:
                long.add(node.name)
    assert long == COMPILED_LOOPS


OF_AN_OPERATOR = {
    *("mcudeploy/ops/pool/pool_indices.py", "mcudeploy/frontend/lower/pool.py"),
    *("firmware/kernels/pool/maxpool_indices.c", "firmware/kernels/pool/maxpool_indices.h"),
    *("benchmarks/cost_cases.py", "tests/ops/test_indexed.py"),
}
"""The files that a developer writes for an operator, as CONTRIBUTING.md lists them."""


def test_an_operator_is_six_files() -> None:
    """Any other one that names it would be a second copy of a fact."""
    top = ROOT.parent
    files = (
        path
        for folder in ("mcudeploy", "firmware", "benchmarks", "tests")
        for path in (top / folder).rglob("*.*")
        if path.suffix in (".py", ".c", ".h") and "golden" not in path.parts and path != Path(__file__)
    )
    named = re.compile("MaxPoolIndices|maxpool_indices")
    texts = ((path, path.read_text("utf-8", "replace")) for path in files)
    assert {path.relative_to(top).as_posix() for path, text in texts if named.search(text)} == OF_AN_OPERATOR


def test_code_alone_counts() -> None:
    assert code_lines('"""Text."""\n\nimport os  # used\n\n# note\nx = [\n    1,  # one\n\n]\n') == 3
    assert code_lines('def f():\n    """A text.\n\n    More.\n    """\n    return """a\n\nb"""\n') == 4
