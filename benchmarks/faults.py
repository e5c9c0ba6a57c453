"""Tries the faults of faults.toml, each in a copy of the last commit, and prints the tests that catch it.

    python benchmarks/faults.py [--only NAME ...] [--first] [--jobs 2] [--limit 240]

A fault's tests are those that its entry names, then those that import its module, the closest first. A fault
that passes all of them in `--limit` seconds has survived: a test is missing. Exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from nearest_tests import in_order, nearest

ROOT = Path(__file__).resolve().parent.parent
PASSED, NO_TESTS = 0, 5
"""Exit codes of pytest."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A plausible bug: in `file`, `new` replaces `old`, which occurs there once.

    `tests`: files to run first, for a file that no test imports, such as C.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()

    def chosen(self) -> list[str]:
        """Return the test files to run, in sequence."""
        return list(dict.fromkeys((*self.tests, *in_order(nearest({self.file}, ROOT)))))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The test files that failed, those that passed, and those that the time left out."""

    fault: Fault
    caught: tuple[str, ...]
    passed: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float

    def row(self) -> str:
        """Return the row of the table."""
        rest = f"; the time ended before {len(self.left)} of its files" if self.left else ""
        files = ", ".join(f"`{name.removeprefix('tests/')}`" for name in self.caught)
        return f"| {self.fault.name} | {files or f'**survived**{rest}'} | {self.seconds:.0f} |"


def all_faults() -> list[Fault]:
    """Return the entries of faults.toml."""
    entries = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text("utf-8"))["fault"]
    return [Fault(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]


def outcome(fault: Fault, copy: Path, limit_s: float, *, first: bool) -> Outcome:
    """Run the tests of a fault, until one fails if `first`, in a copy, which is restored."""
    path = copy / fault.file
    text = path.read_text("utf-8")
    path.write_text(text.replace(fault.old, fault.new), "utf-8")
    left, begin = fault.chosen(), time.monotonic()
    caught: list[str] = []
    passed: list[str] = []
    try:
        while left and not (first and caught):
            code = pytest(copy, left[0], limit_s - (time.monotonic() - begin), first=first)
            if code is None:
                break
            (passed if code in {PASSED, NO_TESTS} else caught).append(left.pop(0))
    finally:
        path.write_text(text, "utf-8")
    return Outcome(fault, tuple(caught), tuple(passed), tuple(left), time.monotonic() - begin)


def pytest(copy: Path, name: str, limit_s: float, *, first: bool) -> int | None:
    """Return the exit code of a test file; None if the time ends before."""
    cache = copy.with_name(f"{copy.name}-cache")  # what a fault leaves in it must not reach the user
    variables = {**os.environ, "PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=unshrunk"]
    with subprocess.Popen(
        [*command, *(["-x"] if first else []), name],
        cwd=copy,
        env=variables,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            return process.wait(max(limit_s, 0.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Yield copies of the last commit, which are deleted afterwards."""
    queue = SimpleQueue[Path]()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        paths = [Path(folder) / f"copy{number}" for number in range(count)]
        try:
            for path in paths:
                subprocess.run(["git", "worktree", "add", "-q", "--detach", path], cwd=ROOT, check=True)
                queue.put(path)
            yield queue
        finally:
            for path in paths:
                subprocess.run(["git", "worktree", "remove", "--force", path], cwd=ROOT, check=False)


def main() -> int:
    """Print the table, and with all files the faults that each one catches."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of faults")
    parser.add_argument("--first", action="store_true", help="stop a fault at the first test that fails")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults that are tried at once")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds per fault")
    options = parser.parse_args()
    faults = [it for it in all_faults() if not options.only or it.name in options.only]
    if missing := set(options.only or ()) - {it.name for it in faults}:
        parser.error(f"faults.toml has no {', '.join(sorted(missing))}")

    def tried(fault: Fault) -> Outcome:
        copy = queue.get()
        try:
            return outcome(fault, copy, options.limit, first=options.first)
        finally:
            queue.put(copy)

    print("| fault | test files that catch it | s |\n|---|---|---|", flush=True)
    results: list[Outcome] = []
    with copies(min(options.jobs, len(faults))) as queue, ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(tried, faults):
            print(result.row(), flush=True)
            results.append(result)
    if not options.first:
        print_files(results)
    survived = sum(not it.caught for it in results)
    print(f"\n{len(results) - survived} of {len(results)} faults are caught.")
    return int(survived > 0)


def print_files(results: list[Outcome]) -> None:
    """Print the faults that each test file catches, and those that it catches alone."""
    catches = Counter(name for it in results for name in it.caught)
    alone = Counter(it.caught[0] for it in results if len(it.caught) == 1)
    print("\n| test file | faults that it catches | alone |\n|---|---|---|")
    for name in sorted({name for it in results for name in (*it.caught, *it.passed)}):
        print(f"| `{name.removeprefix('tests/')}` | {catches[name]} | {alone[name]} |")


if __name__ == "__main__":
    sys.exit(main())
