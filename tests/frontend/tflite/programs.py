"""Programs of .tflite files on this computer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.commands import commands as api
from mcudeploy.device.target import open_device
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once
from tests.reports import HOST, QUICK


def results(path: Path, inputs: NDArray[Any], options: Options = QUICK) -> NDArray[Any]:
    """The outputs of a program with one input and one output, each run continuing from the previous one."""
    (result,) = all_results(path, inputs, options)
    return result


def all_results(path: Path, inputs: NDArray[Any], options: Options = QUICK) -> list[NDArray[Any]]:
    """All outputs of a program with one input, by output, each with all runs in front."""
    deployment = api.plan_model(path, HOST.board, options)
    graph, storage = deployment.plan.graph, Storage.of(deployment.plan)
    (source,) = graph.own_inputs()
    kept = {state.tensor: state.initial for state in graph.states}
    outputs: list[list[NDArray[Any]]] = [[] for _ in graph.own_outputs()]
    with open_device(HOST, deployment.build(HOST)) as machine:
        for x in inputs:
            given = to_device(source, graph.tensors[source.tensor], x)
            run_once(machine, storage, {source.tensor: given, **kept})
            for values, result in zip(outputs, graph.own_outputs(), strict=True):
                stored = storage.get_tensor(machine, result.tensor)
                values.append(from_device(result, graph.tensors[result.tensor], stored))
            kept = {it.tensor: storage.get_tensor(machine, it.after.tensor) for it in graph.states}
    return [np.array(values) for values in outputs]
