"""ONNX's backend interface on the host build: `prepare(model).run(inputs)`.

It runs the firmware that `mcudeploy run --board host --no-split` builds. ONNX's test runner takes this module
as it takes the class `HostBackend`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, shape_inference
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.frontend.onnx.bounded_rows import counts_of
from mcudeploy.ir.graph import GraphIO
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Firmware
from mcudeploy.verify.compare import run_once

__all__ = ["HostBackend", "HostProgram", "prepare", "run_model", "run_node", "supports_device"]

Array = NDArray[Any]
Inputs = Array | Sequence[Array] | Mapping[str, Array]
"""Values of all inputs, in the model's order or by name; a single array is the only input."""
Described = Sequence[tuple[np.dtype[Any], tuple[int, ...]]]
"""Types and shapes of outputs."""

_OPTIONS = Options(split=False, float_io=True, time_limit=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class HostProgram(BackendRep):
    """A model built for this computer. `inputs` and `outputs`: names and types in the model's order.

    `counts`: by an output whose number of rows a run finds, the output that has this number.
    """

    deployment: Deployment
    target: Target
    inputs: Mapping[str, np.dtype[Any]]
    outputs: Mapping[str, np.dtype[Any]]
    counts: Mapping[str, str]
    sanitize: bool

    def build(self) -> Firmware:
        """Return the firmware of the model, from the cache if it is there."""
        return self.deployment.build(self.target, sanitize=self.sanitize)

    def run(self, inputs: Inputs, **_: Any) -> tuple[Array, ...]:
        """Return the outputs in the model's order, for arrays of the model's shapes and types.

        Raises UsageError for arrays that do not fit the model.
        """
        graph, arrays = self.deployment.model.graph, inputs_by_name(tuple(self.inputs), inputs)
        try:
            stored = {
                io.tensor: to_device(io, graph.tensors[io.tensor], self._own(io, arrays))
                for io in graph.inputs
            }
        except ValueError as error:
            raise UsageError(str(error)) from error
        storage = self.deployment.storage
        with open_device(self.target, self.build(), self.deployment.patience_s) as device:
            run_once(device, storage, stored)
            results = {
                io.name: from_device(io, graph.tensors[io.tensor], storage.get_tensor(device, io.tensor))
                for io in graph.outputs
            }
        for name, count in self.counts.items():
            results[name] = results[name][: int(results[count][0])]
        return tuple(results[name].astype(dtype, copy=False) for name, dtype in self.outputs.items())

    def _own(self, io: GraphIO, arrays: Mapping[str, Array]) -> Array:
        """Return an input in the type of its GraphIO, which differs from the model's if numpy lacks it."""
        value = arrays[io.name]
        fits = value.dtype == self.inputs[io.name]
        return value.astype(io.dtype, copy=False) if fits else value


def inputs_by_name(names: Sequence[str], inputs: Inputs) -> dict[str, Array]:
    """Return inputs by name. Raises UsageError if the names differ."""
    if isinstance(inputs, Mapping):
        fits, provided = set(inputs) == set(names), ", ".join(map(str, inputs))
        values = [inputs[name] for name in names if fits]
    elif isinstance(inputs, np.ndarray):
        fits, provided, values = len(names) == 1, "an array", [inputs]
    elif isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes):
        values = list(inputs)
        fits, provided = len(values) == len(names), count_text(len(values), "value")
    else:
        raise UsageError(f"inputs are arrays in a sequence or by name, found {type(inputs).__name__}")
    if not fits:
        raise UsageError(f"the model has the inputs {', '.join(names)}; found {provided}")
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


class HostBackend(Backend):
    """Runs models on this computer, as the firmware that a board would get."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether programs can run on the device: on the CPU alone."""
        _require(device, str, "the device", 'such as "CPU"')
        return device.partition(":")[0] == "CPU"

    @classmethod
    def prepare(
        cls, model: ModelProto, device: str = "CPU", *, sanitize: bool = False, **_: Any
    ) -> HostProgram:
        """Plan and build a model; with `sanitize` it checks addresses and undefined behaviour at run time.

        Raises BackendIsNotSupposedToImplementIt, which ONNX's runner counts as a skipped test, with the
        reasons for an unsupported model, and BuildError without a C compiler.
        """
        _require(model, ModelProto, "the model", "onnx.load reads one from a file")
        if not cls.supports_device(device):
            raise BackendIsNotSupposedToImplementIt(f"programs run on the CPU, not on {device}")
        try:
            deployment = _planned(model)
        except ModelError as error:
            reasons = [f"{it.node} ({it.op}): {it.reason}" for it in error.problems]
            raise BackendIsNotSupposedToImplementIt("; ".join(reasons) or str(error)) from error
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = _types(value for value in model.graph.input if value.name not in constants)
        outputs = _types(model.graph.output)
        counts = {rows: count for rows, count in counts_of(model).items() if rows in outputs}
        program = HostProgram(deployment, Target(deployment.board), inputs, outputs, counts, sanitize)
        program.build()
        return program

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Inputs, device: str = "CPU", **kwargs: Any
    ) -> tuple[Array, ...]:
        """Prepare a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: Described | None = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """Run one node, of the newest opset or of `opset_version`; undescribed outputs are inferred."""
        _require(node, NodeProto, "the node", "onnx.helper.make_node makes one")
        values = inputs_by_name(list(dict.fromkeys(filter(None, node.input))), inputs)
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        _require(version, int, "opset_version", "such as 21")
        return cls.run_model(_model_of(node, values, outputs_info, version), values, device, **kwargs)


def _require(value: object, kind: type, label: str, way_out: str) -> None:
    """Raise UsageError for an argument of another type."""
    if not isinstance(value, kind):
        raise UsageError(f"{label} must be of type {kind.__name__} ({way_out}), found {type(value).__name__}")


def _planned(model: ModelProto) -> Deployment:
    with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return plan_model(path, load_board("host"), _OPTIONS)


def _types(values: Iterable[onnx.ValueInfoProto]) -> dict[str, np.dtype[Any]]:
    return {it.name: helper.tensor_dtype_to_np_dtype(it.type.tensor_type.elem_type) for it in values}


def _model_of(
    node: NodeProto, values: Mapping[str, Array], outputs: Described | None, version: int
) -> ModelProto:
    """Return a model of one node."""
    inputs = [_info(name, value.dtype, value.shape) for name, value in values.items()]
    names = [name for name in node.output if name]
    if outputs is None:
        result_infos = [helper.make_empty_tensor_value_info(name) for name in names]
    else:
        try:
            result_infos = [_info(name, *described) for name, described in zip(names, outputs, strict=True)]
        except (TypeError, ValueError) as error:
            wanted = f"a type and a shape for each of {', '.join(names)}"
            raise UsageError(f"outputs_info needs {wanted}: {error}") from error
    graph = helper.make_graph([node], "node", inputs, result_infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    return shape_inference.infer_shapes(model)


def _info(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


prepare = HostBackend.prepare
run_model = HostBackend.run_model
run_node = HostBackend.run_node
supports_device = HostBackend.supports_device
