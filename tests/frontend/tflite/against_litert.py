"""The generated program beside LiteRT's reference kernels: every operator on their inputs, and the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from numpy.typing import NDArray

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.device.target import Target, open_device
from mcudeploy.frontend.tflite.contents import names_of
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from mcudeploy.ir.graph import State
from mcudeploy.ops.host_io import to_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, check_operators, merge_all, run_once
from mcudeploy.verify.difference import Difference, difference

Array = NDArray[Any]


@dataclass(frozen=True)
class Rounding:
    """Differences from LiteRT over all samples; `tops`: samples whose largest output has another place."""

    operators: Mapping[str, Difference]
    kinds: Mapping[str, str]
    outputs: Difference
    tops: int
    samples: int


class LiteRt:
    """LiteRT's reference kernels on a file, with every tensor; skips the test without LiteRT."""

    def __init__(self, path: Path) -> None:
        runtime = pytest.importorskip("ai_edge_litert.interpreter")
        self._interpreter = runtime.Interpreter(
            model_content=_acceptable(path.read_bytes()),
            experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        self._interpreter.allocate_tensors()
        contents = contents_of(path.read_bytes(), path.name)
        self._names = names_of(contents)
        computed = {number for it in contents.operators if it.op != "SHAPE" for number in it.outputs}
        self._computed = [
            tensor.index
            for tensor in contents.tensors
            if tensor.index in computed or tensor.index in contents.inputs or tensor.variable
        ]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The value of every tensor that is computed, by its name in the translation, as the inputs."""
        for detail in self._interpreter.get_input_details():
            self._interpreter.set_tensor(detail["index"], inputs[self._names[detail["index"]]])
        self._interpreter.invoke()
        return {self._names[number]: self._interpreter.get_tensor(number) for number in self._computed}

    def kept(self, state: State) -> Array:
        """The value of a variable tensor after a run: stored integers, or float32."""
        number = self._names.index(state.before.name)
        if state.initial.dtype != np.float32:
            return self._interpreter.get_tensor(number)
        scale, zero_point = self._interpreter.get_tensor_details()[number]["quantization"]
        value = self._interpreter.get_tensor(number).astype(np.float32)
        return (value - zero_point) * np.float32(scale) if scale else value


def rounding(path: Path, samples: int, given: Sequence[Array] = (), *, time_limit: float = 1) -> Rounding:
    """Build the program for this computer, run it on random or given inputs, and compare.

    `given` has one array for each sample, for a model of one input. The file's states continue: from LiteRT's
    values for every operator, from the program's for the whole.
    """
    target, litert = Target(load_board("host")), LiteRt(path)
    deployment = api.plan_model(path, target.board, Options(time_limit=time_limit))
    graph, storage = deployment.plan.graph, Storage.of(deployment.plan)
    random = np.random.default_rng(0)
    tables, outputs, tops = [], [], 0
    theirs = {state.tensor: state.initial for state in graph.states}
    ours = dict(theirs)
    with open_device(target, deployment.build(target)) as machine:
        for number in range(len(given) or samples):
            inputs = {io.name: _drawn(io.shape, io.dtype, random) for io in graph.own_inputs()}
            if given:
                inputs = {graph.inputs[0].name: given[number]}
            values = litert.run(inputs)
            stored = {
                io.tensor: to_device(io, graph.tensors[io.tensor], inputs[io.name])
                for io in graph.own_inputs()
            }
            references = {
                name: to_device(io, graph.tensors[io.tensor], values[io.name])
                for name, io in graph.references.items()
                if io.name in values  # the others belong to an operator of the file
            }
            tables.append(
                check_operators(machine, storage, {**stored, **theirs, **references}, references, {})
            )
            run_once(machine, storage, {**stored, **ours})
            for state in graph.states:
                theirs[state.tensor] = litert.kept(state).reshape(state.initial.shape)
                ours[state.tensor] = storage.get_tensor(machine, state.tensor)
            for io in graph.own_outputs():
                own = storage.get_tensor(machine, io.tensor)
                wanted = to_device(io, graph.tensors[io.tensor], values[io.name])
                outputs.append(difference(own, wanted))
                tops += int(wanted.flat[own.argmax()] != wanted.max())
    total = outputs[0]
    for each in outputs[1:]:
        total = total.merge(each)
    kinds = {operator.name: operator.op.kind for operator in graph.operators}
    return Rounding(merge_all(tables), kinds, total, tops, len(tables))


def _acceptable(content: bytes) -> bytes:
    """The file with axis 0 for the scales of vectors: old converters wrote axis 3, which LiteRT refuses."""
    changed = bytearray(content)
    graph = tflite.Model.GetRootAsModel(content, 0).Subgraphs(0)
    for tensor in map(graph.Tensors, range(graph.TensorsLength())):
        scales = tensor.Quantization()
        if scales is not None and tensor.ShapeLength() == 1 and scales.QuantizedDimension() > 0:
            place = scales._tab.Pos + scales._tab.Offset(16)
            changed[place : place + 4] = bytes(4)
    return bytes(changed)


def _drawn(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> Array:
    if dtype == "float32":
        return random.normal(0, 1, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
