"""TFLite Micro's interpreter on a file, in a separate process: it shares symbols with LiteRT.

As a program: MODEL INPUTS.npy OUTPUTS.npz COUNT.
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
    return run_micro_all(path, inputs, 1)[0]


def run_micro_all(path: Path, inputs: Array, outputs: int) -> list[Array]:
    """Several outputs of successive inferences, each with all inferences in front."""
    if find_spec("tflite_micro") is None:
        pytest.skip("tflite-micro is not installed")
    source, destination = path.with_name("inputs.npy"), path.with_name("outputs.npz")
    np.save(source, inputs)
    subprocess.run(
        [sys.executable, __file__, path, source, destination, str(outputs)], check=True, timeout=60
    )
    with np.load(destination) as arrays:
        return [arrays[f"arr_{at}"] for at in range(outputs)]


def _main(path: str, source: str, destination: str, count: str) -> None:
    from tflite_micro.python.tflite_micro import runtime  # noqa: PLC0415

    interpreter = runtime.Interpreter.from_file(path)
    outputs: list[list[Array]] = [[] for _ in range(int(count))]
    for value in np.load(source):
        interpreter.set_input(value, 0)
        interpreter.invoke()
        for at, values in enumerate(outputs):
            values.append(interpreter.get_output(at).copy())
    np.savez(destination, *outputs)


if __name__ == "__main__":
    _main(*sys.argv[1:])
