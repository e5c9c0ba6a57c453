"""Makes tables of the documentation again: those between two comments, of which the first has the command.

    python benchmarks/figures.py --models MODELS [--only TEXT]
    python benchmarks/figures.py --check

A table stands between `<!-- figures: SCRIPT ARGUMENTS -->` and `<!-- commit C, kernels K -->`. The script is
one of benchmarks/, MODELS in the arguments stands for the folder of the models. K is a digest of the sources
of kernels in KERNELS without their comments: --check prints the tables of other kernels, and exits 1 if
there are any. Tables without these comments are made by hand, by the command beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from mcudeploy.codegen.kernelfiles import source_index

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
KERNELS = (
    "arith", "kernels/conv", "kernels/convert", "kernels/elementwise", "kernels/matmul", "kernels/move",
    "kernels/pool", "kernels/reduce", "kernels/resize", "kernels/tape", "kernels/transfer",
)  # fmt: skip
"""The folders of firmware with the code that networks in the tables run."""
MEASURED = ("mcudeploy", "firmware", "templates", "boards")
"""The folders that decide about the figures: C is the last commit that changed them."""
TABLE = re.compile(
    r"<!-- figures: (?P<command>.*?) -->\n\n(?P<table>(?:\|.*\n)*)\n"
    r"<!-- commit (?P<commit>\w+), kernels (?P<kernels>\w+) -->"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page."""

    page: Path
    command: str
    kernels: str
    lines: str

    @property
    def name(self) -> str:
        """Its page and command."""
        return f"{self.page.relative_to(ROOT)}: {self.command}"


def tables() -> Iterator[Table]:
    """All tables with a command."""
    for page in PAGES:
        for match in TABLE.finditer(page.read_text("utf-8")):
            yield Table(page, match["command"], match["kernels"], match["table"])


def kernels_digest() -> str:
    """The digest of the code in KERNELS, without comments and the checks of debug builds."""
    digest = hashlib.sha256()
    for folder in KERNELS:
        sources = [it for it in source_index().values() if f"{it.folder}/".startswith(f"{folder}/")]
        for source in sorted(sources, key=attrgetter("path")):
            text = re.sub(r"/\*.*?\*/|#ifdef MCUD_CHECK_OWNER.*?#endif", "", source.text, flags=re.S)
            digest.update(f"{source.name} {' '.join(text.split())}\n".encode())
    return digest.hexdigest()[:8]


def outdated() -> list[str]:
    """The tables that other kernels were measured for."""
    return [table.name for table in tables() if table.kernels != kernels_digest()]


def remake(table: Table, models: Path) -> None:
    """Run the command of a table and put its output into the page. Raises SystemExit if it fails."""
    script, *arguments = shlex.split(table.command.replace("MODELS", shlex.quote(str(models.resolve()))))
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    lines = "".join(f"{line}\n" for line in done.stdout.splitlines() if line.startswith("|"))
    if done.returncode or not lines:
        raise SystemExit(f"{table.name} ends with {done.returncode} and {len(lines)} characters of a table")
    last = ["git", "log", "-1", "--format=%h", "--abbrev=8", "--", *MEASURED]
    commit = subprocess.run(last, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    start = f"<!-- figures: {table.command} -->\n\n"
    end = f"\n<!-- commit {commit}, kernels {kernels_digest()} -->"
    text = table.page.read_text("utf-8")
    old = next(it for it in TABLE.finditer(text) if it["command"] == table.command)
    table.page.write_text(text[: old.start()] + start + lines + end + text[old.end() :], "utf-8")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path)
    parser.add_argument("--only", default="", help="part of the page's name or the command")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        print("\n".join(outdated()) or "all tables are of these kernels")
        return int(bool(outdated()))
    if arguments.models is None:
        parser.error("--models names the folder of the models")
    for table in [it for it in tables() if arguments.only in it.name]:
        print(table.name, file=sys.stderr, flush=True)
        remake(table, arguments.models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
