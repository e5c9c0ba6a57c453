"""The reference: ONNX Runtime on the CPU, graph optimisations off, every tensor of interest an output."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import first_line
from mcudeploy.frontend.expose import expose
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices

Array = NDArray[Any]


class Reference:
    """Runs a model, with the user's choices for its inputs, and returns the tensors `names`.

    The inputs `states` hold the state between runs. All floats are float32, as in the program, unless
    `own_floats`. Raises ModelError if ONNX Runtime refuses the model.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        choices: InputChoices = AS_IN_FILE,
        states: Collection[str] = (),
        *,
        own_floats: bool = False,
    ) -> None:
        # Read on import; without it there are a device id and a database in the home folder, for uploads.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime  # noqa: PLC0415 - commands that run nothing start without it

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._names = list(dict.fromkeys(names))
        try:
            self._session = onnxruntime.InferenceSession(
                expose(path, self._names, choices, states, own_floats=own_floats),
                options,
                providers=["CPUExecutionProvider"],
            )
        except Exception as error:  # onnxruntime has no common base of its errors
            raise ModelError(f"ONNX Runtime does not load {path.name}: {first_line(error)}") from error
        self._floats = {item.name for item in self._session.get_inputs() if item.type == "tensor(float)"}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return tensor values by name, for inputs by name in the ONNX model's shape and type."""
        given = {
            name: value.astype(np.float32) if name in self._floats else value
            for name, value in inputs.items()
        }
        try:
            values = self._session.run(self._names, given)
        except Exception as error:  # as above
            raise ModelError(f"ONNX Runtime does not run the model: {first_line(error)}") from error
        return {name: np.asarray(value) for name, value in zip(self._names, values, strict=True)}
