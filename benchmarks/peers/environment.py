"""The virtual environment of the other tools: pinned packages, apart from those of the project."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from mcudeploy.common.resources import cache_dir
from peers.generated import NetworkRefusedError

EMX = "emx-onnx-cgen==1.4.0"
BAKENN = "bakenn[tflite]==1.0.0"
MICRO = "tflite-micro==0.dev20261023182759"
PACKAGES = (EMX, BAKENN, MICRO)
_PATIENCE_S = 900
_LONGEST = 400


def version(package: str) -> str:
    """Return the version of a pinned package."""
    return package.partition("==")[2]


@cache
def environment() -> Path:
    """Return the folder of the environment's programs; install the packages if they are missing."""
    key = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]
    folder = cache_dir() / "league" / f"peers-{key}"
    if not (folder / "complete").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", *PACKAGES], check=True)
        (folder / "complete").touch()
    return folder / "bin"


def output_of_tool(*command: str | Path) -> str:
    """Return the output of a program of the environment. Raises NetworkRefusedError with its last message."""
    called = [str(environment() / command[0]), *map(str, command[1:])]
    try:
        done = subprocess.run(called, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise NetworkRefusedError(f"no result in {_PATIENCE_S} s") from None
    if done.returncode:
        raise NetworkRefusedError(last_message(done.stderr or done.stdout))
    return done.stdout


def answer_of_tool(*command: str | Path) -> Any:
    """Return the last line of a program's output, as JSON. Raises NetworkRefusedError."""
    return json.loads(output_of_tool(*command).splitlines()[-1])


def last_message(text: str) -> str:
    """Return the message of an error, of a tool's output."""
    lines = [it.strip() for it in text.splitlines() if it.strip()]
    message = next(
        (it for it in reversed(lines) if "error" in it.lower()), lines[-1] if lines else "no message"
    )
    return message[:_LONGEST]
