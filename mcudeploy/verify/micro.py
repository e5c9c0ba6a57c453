"""TensorFlow Lite Micro as a second reference, by the interpreter of the package `tflite-micro`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.common.text import count_text, printable
from mcudeploy.frontend.parsing import is_tflite
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.host_io import from_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.interpreter import Interpreter, read_runs, write_runs
from mcudeploy.verify.samples import Sample

Array = NDArray[Any]


def require_micro(model: Path, options: Options) -> None:
    """Raise UsageError for another file than .tflite, and with --hop; ConfigError without the package."""
    if options.hop is not None:
        raise UsageError("--reference tflm is for whole runs of a file: leave out --hop")
    if not is_tflite(model):
        raise UsageError(f"--reference tflm compares .tflite files alone, and {model.name} is not one")
    if find_spec("tflite_micro") is None:
        raise ConfigError(
            "--reference tflm needs the package tflite-micro: pip install tflite-micro, on Linux with "
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
    for number, (wanted, outputs_of_run) in enumerate(zip(_run(model, graph, samples), outputs, strict=True)):
        for io, expected in zip(graph.own_outputs(), wanted, strict=True):
            own = from_device(io, graph.tensors[io.tensor], outputs_of_run[io.tensor])
            if own.dtype != expected.dtype or own.size != expected.size:
                raise UsageError(
                    f"--reference tflm: output {printable(io.name)!r} is {own.dtype} here, and "
                    f"{expected.dtype} in TensorFlow Lite Micro"
                )
            differ = int(np.count_nonzero(own.reshape(-1) != expected.reshape(-1)))
            if differ:
                reasons.append(
                    f"sample {number}: {printable(io.name)!r} differs from TensorFlow Lite Micro in "
                    f"{differ} of {count_text(own.size, 'element')}"
                )
    return tuple(reasons)


def _run(model: Path, graph: Graph, samples: Sequence[Sample]) -> list[list[Array]]:
    """Return the outputs of successive runs."""
    names = [io.name for io in graph.own_inputs()]
    inputs = [[sample.inputs[name] for name in names] for sample in samples]
    return Interpreter("TensorFlow Lite Micro", __name__).run(model, inputs, len(graph.own_outputs()))


def _main(model: str, inputs: str, outputs: str) -> None:
    from tflite_micro.python.tflite_micro import (  # type: ignore[import-untyped]  # noqa: PLC0415 - only here
        runtime,
    )

    interpreter = runtime.Interpreter.from_file(model)
    results: list[list[Array]] = []
    for values in read_runs(inputs):
        for place, value in enumerate(values):
            interpreter.set_input(value, place)
        interpreter.invoke()
        results.append(list(_outputs(interpreter)))
    write_runs(outputs, results)


def _outputs(interpreter: Any) -> Iterator[Array]:
    for place in count():
        try:
            yield interpreter.get_output(place).copy()
        except (IndexError, ValueError, RuntimeError):  # nothing tells the number of outputs
            return


if __name__ == "__main__":
    _main(*sys.argv[1:])
