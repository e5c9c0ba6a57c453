"""TFLite Micro's interpreter on a file, in a separate process: it shares symbols with LiteRT.

As a program: MODEL INPUTS.npy OUTPUTS.npy.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]


def run_micro(path: Path, inputs: Array) -> Array:
    """The outputs of successive inferences; skips the test without TFLite Micro."""
    if find_spec("tflite_micro") is None:
        pytest.skip("tflite-micro is not installed")
    given, made = path.with_name("inputs.npy"), path.with_name("outputs.npy")
    np.save(given, inputs)
    subprocess.run([sys.executable, __file__, path, given, made], check=True, timeout=60)
    return np.load(made)


def _main(path: str, given: str, made: str) -> None:
    from tflite_micro.python.tflite_micro import runtime  # noqa: PLC0415

    interpreter = runtime.Interpreter.from_file(path)
    outputs = []
    for value in np.load(given):
        interpreter.set_input(value, 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).copy())
    np.save(made, outputs)


if __name__ == "__main__":
    _main(*sys.argv[1:])
