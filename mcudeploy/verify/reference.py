"""The reference: ONNX Runtime on the CPU, graph optimisations off, every tensor of interest an output.

Nodes that an extension adds are computed by its numpy functions, or by functions in the file.
"""

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
from mcudeploy.frontend.pieces import run_foreign

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
        # ONNX Runtime reads this on import; else it stores a device id, and a database for uploads, at home.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime  # noqa: PLC0415 - commands that run nothing start without it

        exposed = expose(path, names, choices, states, own_floats=own_floats)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._names = list(dict.fromkeys(names))
        try:
            sessions = [
                it.model
                and onnxruntime.InferenceSession(it.model, options, providers=["CPUExecutionProvider"])
                for it in exposed.pieces
            ]
        except Exception as error:  # onnxruntime has no common base of its errors
            fault = f"{first_line(error)}{exposed.way_out}"
            raise ModelError(f"ONNX Runtime does not load {path.name}: {fault}") from error
        self._steps = [
            (session, piece.names, piece.foreign)
            for session, piece in zip(sessions, exposed.pieces, strict=True)
        ]
        self._constants, self._floats = exposed.constants, exposed.float_inputs

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return tensor values by name, for inputs by name in the ONNX model's shape and type."""
        values = dict(self._constants)
        for name, value in inputs.items():
            values[name] = value.astype(np.float32) if name in self._floats else value
        for session, names, foreign in self._steps:
            if session is not None:
                values |= _run(session, names, values)
            values |= run_foreign(foreign, values)
        return {name: values[name] for name in self._names}


def _run(session: Any, names: Sequence[str], values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a session by name; `values` has those that it reads."""
    wanted = [item.name for item in session.get_inputs()]
    try:
        results = session.run(names, {name: values[name] for name in wanted if name in values})
    except Exception as error:  # as above
        raise ModelError(f"ONNX Runtime does not run the model: {first_line(error)}") from error
    return {name: np.asarray(value) for name, value in zip(names, results, strict=True)}
