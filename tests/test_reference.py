"""ONNX Runtime as the commands load it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = ROOT / "tests/regressions/fail_tiny_scale.onnx"
SESSION = """
import sys
from pathlib import Path
from mcudeploy.verify.reference import Reference
Reference(Path(sys.argv[1]), [])
"""


def _session(home: Path, folder: Path) -> str:
    """The output of a session."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "ORT_"))}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SESSION, str(SMALL)]
    done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_it_collects_nothing_in_the_home_folder(tmp_path: Path) -> None:
    assert not _session(tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())


def test_it_says_nothing_where_there_is_no_home_folder(tmp_path: Path) -> None:
    assert not _session(Path("/dev/null"), tmp_path)
