"""Runs of a model from one tensor to the next, over all samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper

from mcudeploy.extensions.quantization.data import Sample
from mcudeploy.frontend.onnx.protos import element_type
from mcudeploy.frontend.pieces import names_read
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]


class ModelWalk:
    """Computes the tensors that the caller asks for, in the model's order, and runs each node once.

    It keeps only tensors that nodes still to run read. The caller may change constants in between: nodes that
    have not run read the new values. `path`: a file to write pieces of the model to.
    """

    def __init__(self, model: ModelProto, path: Path, samples: Iterable[Sample]) -> None:
        self._model, self._path = model, path
        self._known: list[dict[str, Array]] = [dict(sample) for sample in samples]
        self._producers = {name: node for node in model.graph.node for name in node.output if name}
        varying = {it.name for it in model.graph.input}
        self._left: dict[str, NodeProto] = {}  # by their first results
        for node in model.graph.node:
            if names_read(node) & varying:
                varying.update(node.output)
                self._left[node.output[0]] = node

    def to(self, name: str) -> Iterator[Array]:
        """Yield the value of a tensor for every sample."""
        if name not in self._known[0]:
            self._run(name)
        for values in self._known:
            yield values[name]

    def _run(self, name: str) -> None:
        """Compute a tensor, and all other results of the same nodes that later nodes read."""
        nodes = self._nodes_before(name)
        run = [self._left.pop(node.output[0]) for node in nodes if node.output[0] in self._left]
        later = {it for node in self._left.values() for it in names_read(node)} | {name}
        wanted = sorted(later.intersection(it for node in run for it in node.output))
        onnx.save(self._piece(nodes, wanted), self._path)
        reference = Reference(self._path, wanted)
        for at, values in enumerate(self._known):
            computed = values | reference.run(values)
            self._known[at] = {key: value for key, value in computed.items() if key in later}

    def _nodes_before(self, name: str) -> list[NodeProto]:
        """The nodes that compute this tensor from known tensors, in order."""
        needed, names = set(), [name]
        while names:
            current = names.pop()
            node = None if current in self._known[0] else self._producers.get(current)
            if node is not None and node.output[0] not in needed:
                needed.add(node.output[0])
                names += names_read(node)
        return [node for node in self._model.graph.node if node.output[0] in needed]

    def _piece(self, nodes: list[NodeProto], wanted: list[str]) -> ModelProto:
        """The model of these nodes, from known tensors to the wanted ones."""
        read = set[str]().union(*map(names_read, nodes))
        inputs = [
            helper.make_tensor_value_info(name, element_type(value.dtype), value.shape)
            for name, value in self._known[0].items()
            if name in read
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in wanted]
        constants = [it for it in self._model.graph.initializer if it.name in read]
        graph = helper.make_graph(nodes, "piece", inputs, outputs, constants)
        model = helper.make_model(
            graph, opset_imports=self._model.opset_import, functions=self._model.functions
        )
        model.ir_version = self._model.ir_version
        return model
