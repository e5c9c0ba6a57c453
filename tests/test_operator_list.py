"""docs/operators.md is what the tables of the front end say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_list_of_operators_is_up_to_date() -> None:
    script = ROOT / "benchmarks" / "operators.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run python benchmarks/operators.py"
