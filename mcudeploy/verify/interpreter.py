"""Another interpreter of a .tflite file, in a separate process, which an operator that it lacks may end.

Its module is a program too: MODEL INPUTS.npz OUTPUTS.npz, with arrays named by run and position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError
from mcudeploy.common.programs import empty_folder, python_module, start
from mcudeploy.common.text import printable

_PATIENCE_S = 600
Array = NDArray[Any]
Run = Sequence[Array]
"""Inputs or outputs of a run, in the order of the file."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`module`: the program. `title` names the interpreter in messages."""

    title: str
    module: str

    def run(self, model: Path, inputs: Sequence[Run], outputs: int) -> list[list[Array]]:
        """Return the outputs of successive runs. Raises ModelError if the interpreter does not run the
        file, or takes more than ten minutes.
        """
        with empty_folder() as folder:
            source, target = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
            np.savez(source, **_by_place(inputs))  # type: ignore[arg-type]
            command = [*python_module(self.module), str(model.resolve()), str(source), str(target)]
            pipes: dict[str, Any] = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": PIPE}
            with start(command, folder, None, **pipes) as process:
                try:
                    _, errors = process.communicate(timeout=_PATIENCE_S)
                except TimeoutExpired as error:
                    process.kill()
                    raise ModelError(f"{self.title} has no result after {_PATIENCE_S} s") from error
            if process.returncode:
                lines = errors.decode(errors="replace").strip().splitlines() or [f"exit {process.returncode}"]
                stated = [line for line in lines if "Error: " in line] or lines
                raise ModelError(f"{self.title} does not run {model.name}: {printable(stated[-1])}")
            with np.load(target) as values:
                return [[values[f"{at}_{place}"] for place in range(outputs)] for at in range(len(inputs))]


def _by_place(runs: Sequence[Run]) -> dict[str, Array]:
    return {f"{at}_{place}": value for at, values in enumerate(runs) for place, value in enumerate(values)}


def read_runs(path: str) -> Iterator[Run]:
    """Yield the inputs of each run, in the program of an interpreter."""
    with np.load(path) as values:
        places = 1 + max(int(name.partition("_")[2]) for name in values)
        for at in range(len(values) // places):
            yield [values[f"{at}_{place}"] for place in range(places)]


def write_runs(path: str, runs: Sequence[Run]) -> None:
    """Write the outputs of each run, in the program of an interpreter."""
    np.savez(path, **_by_place(runs))  # type: ignore[arg-type]
