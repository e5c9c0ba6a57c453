"""Runs the tutorials of docs/tutorials, or of another folder, unchanged.

    python benchmarks/tutorials.py [NAME...] [--pages docs/tutorials]

Each gets an empty folder with `examples` and `firmware` in it. In the order of the page, a block with a title
is written to the file of that name, and a block of `sh` is run by bash; the first command that fails ends the
tutorial. Other blocks are for reading only.
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
PAGES = ROOT / "docs" / "tutorials"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w./-]+)")?\n(.*?)^```', re.M | re.S)
MOST_S = 900
"""Seconds that one block may take."""


def run(page: Path, folder: Path) -> str | None:
    """Run a tutorial in this folder. Returns the failed command."""
    for part in ("examples", "firmware"):
        (folder / part).symlink_to(ROOT / part)
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for language, title, body in BLOCK.findall(page.read_text("utf-8")):
        if title:
            (folder / title).parent.mkdir(exist_ok=True)
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
    """Run the named tutorials, or all; return 1 if any failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all pages, unless named")
    parser.add_argument("--pages", metavar="FOLDER", type=Path, default=PAGES)
    options = parser.parse_args()
    pages = {page.stem: page for page in sorted(options.pages.glob("*.md"))}
    names = options.names or list(pages)
    if unknown := set(names) - pages.keys():
        parser.error(f"no such tutorial: {', '.join(sorted(unknown))}")
    failed = False
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            fault = run(pages[name], Path(folder))
        failed |= fault is not None
        print(f"{name}: {fault or 'ok'}, {time.monotonic() - started:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
