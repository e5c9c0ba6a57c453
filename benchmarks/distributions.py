"""Builds wheel and sdist twice, in two folders, and compares them byte for byte.

    python benchmarks/distributions.py [--output dist]

They are left in the folder. SOURCE_DATE_EPOCH is the time of the last commit, unless it is set.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(folder: Path, epoch: str) -> dict[str, bytes]:
    """Return the files that hatchling writes, by name."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def main() -> int:
    """Return 1 if the two builds differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", metavar="FOLDER", type=Path, default=ROOT / "dist")
    output = parser.parse_args().output
    dated = ["git", "log", "-1", "--format=%ct"]
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(dated, cwd=ROOT, text=True).strip()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, second = build(Path(one), epoch), build(Path(other), epoch)
    if first != second or len(first) != 2:
        print(f"the builds differ: {', '.join(first)}; {', '.join(second)}", file=sys.stderr)
        return 1
    output.mkdir(exist_ok=True)
    for name, content in first.items():
        (output / name).write_bytes(content)
        print(f"{output.name}/{name}: {len(content):,} B, the same twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
