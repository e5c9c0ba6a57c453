"""TensorFlow Lite Micro as a second reference, by the interpreter of the package `tflite-micro`.

It runs in a separate process, because an operator that it lacks ends the process.
As a program: MODEL INPUTS.npz OUTPUTS.npz, with arrays named by run and position.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ConfigError, ModelError, UsageError
from mcudeploy.common.programs import empty_folder, python_module, start
from mcudeploy.common.text import count_text
from mcudeploy.frontend.onnx.names import printable
from mcudeploy.frontend.parsing import is_tflite
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.samples import Sample

_PATIENCE_S = 600
Array = NDArray[Any]


def require_micro(model: Path, options: Options) -> None:
    """Raise UsageError for another file than .tflite, and with --hop; ConfigError without the package."""
    if options.hop is not None:
        raise UsageError("--reference tflm is for whole runs of a file: leave out --hop")
    if not is_tflite(model):
        raise UsageError(f"--reference tflm: TensorFlow Lite Micro runs .tflite files; {model.name} is none")
    if find_spec("tflite_micro") is None:
        raise ConfigError(
            "--reference tflm needs the package tflite-micro: pip install 'mcudeploy[tflm]' on Linux with "
            "Python 3.11"
        )
    if any(it.op == "CALL" for it in contents_of(model.read_bytes(), str(model)).operators):
        raise UsageError(
            "--reference tflm: TensorFlow Lite Micro has no CALL, by which a front end makes several rows in "
            "a run: leave out --before, or --reference"
        )


def micro_reasons(
    model: Path, graph: Graph, samples: Sequence[Sample], outputs: Sequence[Mapping[str, Array]]
) -> tuple[str, ...]:
    """Return the runs whose outputs differ in a bit from those of the interpreter, as reasons.

    `outputs`: those of the device, by tensor. Raises ModelError if the interpreter does not run the file.
    """
    reasons = []
    for number, (wanted, found) in enumerate(zip(_run(model, graph, samples), outputs, strict=True)):
        for border, expected in zip(graph.own_outputs(), wanted, strict=True):
            own = from_device(border, graph.tensors[border.tensor], found[border.tensor])
            if own.dtype != expected.dtype or own.size != expected.size:
                raise UsageError(
                    f"--reference tflm: output {printable(border.name)!r} is {own.dtype} here, and "
                    f"{expected.dtype} in TensorFlow Lite Micro"
                )
            differ = int(np.count_nonzero(own.reshape(-1) != expected.reshape(-1)))
            if differ:
                reasons.append(
                    f"sample {number}: {printable(border.name)!r} differs from TensorFlow Lite Micro in "
                    f"{differ} of {count_text(own.size, 'element')}"
                )
    return tuple(reasons)


def _run(model: Path, graph: Graph, samples: Sequence[Sample]) -> list[list[Array]]:
    """The outputs of successive runs."""
    names = [border.name for border in graph.own_inputs()]
    with empty_folder() as folder:
        given, made = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
        arrays = {
            f"{run}_{place}": sample.inputs[name]
            for run, sample in enumerate(samples)
            for place, name in enumerate(names)
        }
        np.savez(given, **arrays)  # type: ignore[arg-type]
        command = [*python_module(__name__), str(model.resolve()), str(given), str(made)]
        pipes = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": PIPE}
        with start(command, folder, None, **pipes) as process:
            try:
                _, said = process.communicate(timeout=_PATIENCE_S)
            except TimeoutExpired as error:
                process.kill()
                raise ModelError(f"TensorFlow Lite Micro has no result after {_PATIENCE_S} s") from error
        if process.returncode:
            last = (said.decode(errors="replace").strip() or "no reason").splitlines()[-1]
            raise ModelError(f"TensorFlow Lite Micro does not run {model.name}: {printable(last)}")
        with np.load(made) as outputs:
            places = range(len(graph.own_outputs()))
            return [[outputs[f"{at}_{place}"] for place in places] for at in range(len(samples))]


def _main(model: str, given: str, made: str) -> None:
    from tflite_micro.python.tflite_micro import (  # type: ignore[import-untyped]  # noqa: PLC0415 - only here
        runtime,
    )

    interpreter = runtime.Interpreter.from_file(model)
    outputs: dict[str, Array] = {}
    with np.load(given) as inputs:
        places = 1 + max(int(name.partition("_")[2]) for name in inputs)
        for run in range(len(inputs) // places):
            for place in range(places):
                interpreter.set_input(inputs[f"{run}_{place}"], place)
            interpreter.invoke()
            at = 0
            while True:
                try:
                    outputs[f"{run}_{at}"] = interpreter.get_output(at).copy()
                except (IndexError, ValueError, RuntimeError):
                    break
                at += 1
    np.savez(made, **outputs)  # type: ignore[arg-type]


if __name__ == "__main__":
    _main(*sys.argv[1:])
