"""Runs the tutorials of docs/tutorials as they stand.

    python benchmarks/tutorials.py [NAME...]

Each gets an empty folder with `examples` in it. In the order of the page, a block with a title is written to
the file of that name, and a block of `sh` is run by bash; the first command that fails ends the tutorial.
Other blocks are only to be read.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```', re.M | re.S)
MOST_S = 900
"""How long one block may take."""


def run(page: Path, folder: Path) -> str | None:
    """Go through a tutorial in this folder. Returns what failed."""
    (folder / "examples").symlink_to(ROOT / "examples")
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for language, title, body in BLOCK.findall(page.read_text("utf-8")):
        if title:
            (folder / title).write_text(body, encoding="utf-8")
        elif language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", body]
            try:
                done = subprocess.run(
                    command, check=False, cwd=folder, env=os.environ | {"PATH": paths}, timeout=MOST_S
                )
            except subprocess.TimeoutExpired:
                return f"took more than {MOST_S} s:\n{body}"
            if done.returncode:
                return f"exit code {done.returncode}:\n{body}"
    return None


def main() -> int:
    """Run those that are named, or all; 1 if any failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PAGES))
    names = parser.parse_args().names or list(PAGES)
    if unknown := set(names) - PAGES.keys():
        parser.error(f"no such tutorial: {', '.join(sorted(unknown))}")
    failed = False
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            fault = run(PAGES[name], Path(folder))
        failed |= fault is not None
        print(f"{name}: {fault or 'ok'}, {time.monotonic() - started:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
