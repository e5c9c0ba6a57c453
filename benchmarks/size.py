"""A model's needs on a board, beside those at another commit.

    python benchmarks/size.py --board stm32f405 [--base main] [--model MODEL.onnx]

Prints arena, flash, stack, RAM and time of both, or without a base of this side alone. Uncommitted changes
count as this side's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples/vww/model.onnx"
KEYS = ("arena_bytes", "flash_bytes", "code_bytes", "stack_bytes", "total_ram_bytes")


def figures(tree: Path, board: str, model: Path) -> dict[str, int]:
    """Run a model with the sources in `tree`; return its figures by name. Raises CalledProcessError."""
    command = [sys.executable, "-m", "mcudeploy", "run", str(model), "--board", board]
    command += ["--emulate", "--json", "--quiet"]
    done = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    latency = report["latency"]
    return {key: report[key] for key in KEYS} | {latency["unit"]: latency["value"]}


def figures_at(commit: str, board: str, model: Path) -> dict[str, int]:
    """Return the figures of another commit, from a temporary worktree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            return figures(tree, board, model)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="stm32f405")
    parser.add_argument("--base", help="the commit to compare with")
    parser.add_argument("--model", type=Path, default=EXAMPLE)
    options = parser.parse_args()
    try:
        here = figures(ROOT, options.board, options.model.resolve())
        base = {}
        if options.base is not None:
            base = figures_at(options.base, options.board, options.model.resolve())
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with exit code {error.returncode}", file=sys.stderr)
        return 1
    print(f"{'':18}{'here':>14}{(options.base or '')[:12]:>14}{'change':>12}")
    for key, value in here.items():
        before = base.get(key)
        change = f"{value - before:>+12,}" if before is not None else ""
        print(f"{key:18}{value:>14,}{'-' if before is None else f'{before:,}':>14}{change}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
