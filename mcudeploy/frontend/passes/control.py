"""Removal of control flow: a branch of If is selected, or both are computed; loops are unrolled.

Nodes are processed in order, and conditions are folded on the way. Conditions may follow from shapes, and the
condition of a loop from its counter. Values and nodes of inner graphs get unique names.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.convert import node_of
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, constant_tensor, copy_of, graphs_of, refill
from mcudeploy.frontend.onnx.tensors import array_of
from mcudeploy.frontend.passes.folding import Folder
from mcudeploy.frontend.passes.scopes import Scope, SubgraphCall, renamed

_MAX_NODES = 2**14
_MAX_BYTES = 2**28
"""Limits of the nodes that replace control flow, and of their serialised size."""

_AXES_AS_INPUT = 13
"""First opset in which Unsqueeze takes its axes as an input."""

_SCAN_WITHOUT_BATCH = 9
"""First opset in which Scan has no batch axis."""

_WHERE_FROM = 9
"""First opset with Where."""

_FAULTS = (ModelError, ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
"""Exceptions for nodes with malformed attributes and subgraphs."""


def is_control(node: NodeProto) -> bool:
    """Whether a node contains graphs."""
    return node.op_type in CONTROL and node.domain in ONNX_DOMAINS


@dataclass(frozen=True, slots=True)
class FlatModel:
    """A model without control flow. `refusals`: by node label, why a node remains; `notes`: for the user."""

    proto: ModelProto
    refusals: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stacked:
    """A result of a loop that concatenates a value of each iteration, the last first if `backward`."""

    pieces: list[str]
    axis: int = 0
    backward: bool = False


def flattened(proto: ModelProto, folder: Folder) -> FlatModel:
    """Remove the control flow of a checked model. `folder` belongs to the same model."""
    flat = _FlatBuilder(proto.graph, folder)
    refusals: dict[str, str] = {}
    top = Scope(ChainMap({}), "", "")
    for number, node in enumerate(proto.graph.node):
        if not is_control(node):
            flat.keep(node)
            continue
        call = SubgraphCall(node, number, top, tuple(node.output))
        node_count, note_count = len(flat.nodes), len(flat.notes)
        try:
            flat.replace(call)
        except Unsupported as reason:
            del flat.nodes[node_count:], flat.notes[note_count:]
            flat.keep(node)
            refusals[node.name] = str(reason)
        except _FAULTS as fault:
            raise ModelError(f"node {call.label} ({node.op_type}) is malformed: {fault}") from fault
    result = copy_of(proto)
    refill(result.graph.node, flat.nodes)
    result.graph.initializer.extend(flat.constants)
    return FlatModel(result, refusals, tuple(flat.notes))


class _FlatBuilder:
    """The flat model under construction."""

    def __init__(self, graph: GraphProto, folder: Folder) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.notes: list[str] = []
        self._folder = folder
        self._producers: dict[str, NodeProto] = {}  # of values that were not learned yet
        self._entered: set[str] = set()
        self._spent_nodes = self._spent_bytes = 0
        self._shared_constants: dict[tuple[str, str], str] = {}
        self._used = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
        self._used |= {name for each in graphs_of(graph) for node in each.node for name in node.output}
        self._read = {name for each in graphs_of(graph) for node in each.node for name in node.input}
        self._read |= {value.name for each in graphs_of(graph) for value in each.output}

    # -- known values ----------------------------------------------------------------------------

    def _learn(self, name: str) -> None:
        """Fold a value that follows from constants and shapes, else infer its shape, after its inputs."""
        waiting = [name]
        while waiting:
            node = self._producers.get(waiting[-1])
            before = [] if node is None else [each for each in node.input if each in self._producers]
            if node is not None and before and waiting[-1] not in self._entered:
                self._entered.add(waiting[-1])
                waiting += before
                continue
            waiting.pop()
            if node is not None:
                for each in node.output:
                    self._producers.pop(each, None)
                self._fold(node)

    def _fold(self, node: NodeProto) -> None:
        constants = self._folder.constants
        if node.op_type == "Identity" and node.domain in ONNX_DOMAINS and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
            return
        with suppress(Exception):  # lowering will refuse the node, and state the reason
            item = node_of(node, 0)
            if not self._folder.fold(item):
                self._folder.complete(item)

    def _number_of(self, name: str) -> int | None:
        """The number of a value of one element; None if the value is computed by a run."""
        self._learn(name)
        constant = self._folder.constants.get(name)
        return (
            int(constant.value.reshape(-1)[0]) if constant is not None and constant.value.size == 1 else None
        )

    def _known(self, name: str, label: str) -> int:
        """The number of a value of one element. Raises Unsupported, naming `label`, if a run computes it."""
        number = self._number_of(name)
        if number is None:
            raise Unsupported(
                f"{label} is computed while the model runs; it must be constant, or follow from shapes: "
                "export the model with the branch, or the number of iterations, that is meant"
            )
        return number

    # -- new nodes and constants -----------------------------------------------------------------

    def _spend(self, size: int = 0) -> None:
        """Count a node of `size` bytes, or an iteration. Raises Unsupported beyond the limits."""
        self._spent_nodes += 1
        self._spent_bytes += size
        if self._spent_nodes > _MAX_NODES or self._spent_bytes > _MAX_BYTES:
            raise Unsupported(
                f"unrolled, it has more than {_MAX_NODES:,} nodes, or {_MAX_BYTES // 2**20} MiB of them: "
                "export the model with fewer iterations, or with RNN, GRU or LSTM instead of a loop"
            )

    def _new(self, wish: str) -> str:
        """An unused name."""
        name, number = wish, 0
        while name in self._used:
            number += 1
            name = f"{wish}'{number}"
        self._used.add(name)
        return name

    def _add(self, node: NodeProto) -> None:
        self._spend(node.ByteSize())
        self.keep(node)

    def keep(self, node: NodeProto) -> None:
        """Add a node as it is, without counting it."""
        self.nodes.append(node)
        self._producers.update((name, node) for name in node.output if name)

    def _make(
        self, call: SubgraphCall, op: str, inputs: Sequence[str], output: str = "", **attributes: Any
    ) -> str:
        """Add a node in place of a call; return the name of its output."""
        output = output or self._new(f"{call.label}/{op}")
        self._add(helper.make_node(op, inputs, [output], name=call.label, **attributes))
        return output

    def _constant(self, value: NDArray[np.generic] | TensorProto, place: str, name: str) -> str:
        """Add a constant that all iterations share; return its name."""
        key = place, name
        if key not in self._shared_constants:
            tensor = TensorProto()
            tensor.CopyFrom(value if isinstance(value, TensorProto) else numpy_helper.from_array(value))
            tensor.name = self._shared_constants[key] = self._new(f"{place}{printable(name)}")
            self._folder.constants[tensor.name] = Constant(array_of(tensor))
            self.constants.append(tensor)
        return self._shared_constants[key]

    def _number(self, value: int) -> str:
        return self._constant(np.array(value, np.int64), "", f"number {value}")

    # -- graphs ----------------------------------------------------------------------------------

    def replace(self, call: SubgraphCall) -> None:
        """Add the nodes that replace a node with graphs. Raises Unsupported; _FAULTS for malformed nodes."""
        _HANDLERS[call.node.op_type](self, call)

    def _graph(self, graph: GraphProto, scope: Scope, arguments: Sequence[str]) -> list[str]:
        """Add the nodes of a graph with these inputs; return the names of its outputs."""
        self._spend()
        for tensor in graph.initializer:
            scope.names[tensor.name] = self._constant(tensor, scope.place, tensor.name)
        scope.names.update(zip((value.name for value in graph.input), arguments, strict=True))
        for number, node in enumerate(graph.node):
            constant = constant_tensor(node)
            if constant is not None:
                scope.names[node.output[0]] = self._constant(constant, scope.place, node.output[0])
                continue
            outputs = [self._new(scope.prefix + printable(name)) if name else "" for name in node.output]
            call = SubgraphCall(node, number, scope, tuple(outputs))
            if is_control(node):
                self.replace(call)
            else:
                self._add(renamed(call))
            scope.names.update(zip(node.output, outputs, strict=True))
        return [scope.of(value.name) for value in graph.output]

    def branch(self, call: SubgraphCall) -> None:
        """Replace an If by the branch that will run if it is known, else by both and a choice of results."""

        def branch(name: str) -> list[str]:
            return self._graph(call.graph(name), call.inside(name), ())

        condition = self._number_of(call.inputs[0])
        if condition is None:
            self._choose(call, branch("then_branch"), branch("else_branch"))
            return
        results = branch("then_branch" if condition else "else_branch")
        for output, source in zip(call.outputs, results, strict=True):
            if output:
                self._make(call, "Identity", [source], output)

    def _choose(self, call: SubgraphCall, ones: Sequence[str], others: Sequence[str]) -> None:
        """Add a choice between the results of two branches. Raises Unsupported if types or shapes differ."""
        no_axes = self._constant(np.zeros(0, np.int64), "", "no axes")
        condition = self._make(call, "Reshape", [call.inputs[0], no_axes])
        for output, one, other in zip(call.outputs, ones, others, strict=True):
            types = [self._type(name) for name in (one, other)]
            if types[0] != types[1] or self._folder.model.opset < _WHERE_FROM:
                raise Unsupported(
                    "its condition is computed while the model runs, which needs results of one type and "
                    f"shape and opset {_WHERE_FROM}; they are {' and '.join(types)} in opset "
                    f"{self._folder.model.opset}: export the model with the branch that is meant"
                )
            if output:
                self._make(call, "Where", [condition, one, other], output)
        self.notes.append(f"{call.label}: both branches run, and a choice between their results follows")

    def _type(self, name: str) -> str:
        """Type and shape of a value, as text."""
        self._learn(name)
        constant, info = self._folder.constants.get(name), self._folder.infos.get(name)
        if constant is not None:
            return f"{constant.value.dtype} {list(constant.shape)}"
        return f"{info.dtype} {list(info.shape)}" if info and info.shape is not None else f"{name!r}, unknown"

    def loop(self, call: SubgraphCall) -> None:
        """Replace a Loop by its iterations."""
        count, condition, *carried = [*call.inputs, ""][: max(2, len(call.inputs))]
        body = call.graph("body")
        limit = self._known(count, "the number of its iterations") if count else None
        continues = not condition or bool(self._known(condition, "its condition"))
        stacked: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
        iteration = 0
        while continues and (limit is None or iteration < limit):
            inputs = [self._number(iteration), self._constant(np.array(True), "", "true"), *carried]
            outputs = self._graph(body, call.inside("body", f"{iteration}/"), inputs)
            continues = bool(self._known(outputs[0], "whether it goes on"))
            self._collect(stacked, outputs[1 + len(carried) :])
            carried = outputs[1 : 1 + len(carried)]
            iteration += 1
        self._finish(call, carried, list(map(_Stacked, stacked)))

    def scan(self, call: SubgraphCall) -> None:
        """Replace a Scan by its iterations."""
        if self._folder.model.opset < _SCAN_WITHOUT_BATCH:
            raise Unsupported(f"Scan is read from opset {_SCAN_WITHOUT_BATCH}: export it with a newer one")
        body = call.graph("body")
        count = next(item.i for item in call.node.attribute if item.name == "num_scan_inputs")
        if not 0 < count <= len(call.inputs):
            raise ValueError(f"num_scan_inputs is {count}")
        carried, sources = call.inputs[:-count], call.inputs[-count:]
        results = len(body.output) - len(carried)
        axes = call.integers("scan_input_axes", count)
        backward = call.integers("scan_input_directions", count)
        out_axes = call.integers("scan_output_axes", results)
        out_backward = call.integers("scan_output_directions", results)
        length = self._length(sources[0], axes[0])
        stacked: list[list[str]] = [[] for _ in range(results)]
        for iteration in range(length):
            places = [self._number(length - 1 - iteration if it else iteration) for it in backward]
            slices = [
                self._make(call, "Gather", [source, place], axis=axis)
                for source, place, axis in zip(sources, places, axes, strict=True)
            ]
            outputs = self._graph(body, call.inside("body", f"{iteration}/"), [*carried, *slices])
            self._collect(stacked, outputs[len(carried) :])
            carried = outputs[: len(carried)]
        self._finish(call, carried, list(map(_Stacked, stacked, out_axes, map(bool, out_backward))))

    def _length(self, name: str, axis: int) -> int:
        self._learn(name)
        constant, info = self._folder.constants.get(name), self._folder.infos.get(name)
        shape = constant.shape if constant is not None else None if info is None else info.shape
        if shape is None:
            raise Unsupported("the length of the sequence that it reads is not known: export its shape")
        return shape[axis]

    @staticmethod
    def _collect(stacked: Sequence[list[str]], names: Sequence[str]) -> None:
        for pieces, name in zip(stacked, names, strict=True):
            pieces.append(name)

    def _finish(self, call: SubgraphCall, carried: Sequence[str], stacked: Sequence[_Stacked]) -> None:
        """Add the nodes that write the results of a loop: last values, and those of all iterations joined."""
        for output, source in zip(call.outputs, carried, strict=False):
            if output:
                self._make(call, "Identity", [source], output)
        for output, name, result in zip(
            call.outputs[len(carried) :], call.node.output[len(carried) :], stacked, strict=False
        ):
            if not name or name not in self._read:
                continue
            if not result.pieces:
                raise Unsupported(
                    f"it has no iterations, so that its result {printable(name)!r} has no elements. Export "
                    "the model without the nodes that read this result"
                )
            pieces = [self._unsqueezed(call, piece, result.axis) for piece in result.pieces]
            self._make(call, "Concat", pieces[::-1] if result.backward else pieces, output, axis=result.axis)

    def _unsqueezed(self, call: SubgraphCall, name: str, axis: int) -> str:
        """Add an axis of size 1 to a value."""
        if self._folder.model.opset < _AXES_AS_INPUT:
            return self._make(call, "Unsqueeze", [name], axes=[axis])
        axes = self._constant(np.array([axis], np.int64), "", f"axis {axis}")
        return self._make(call, "Unsqueeze", [name, axes])


_HANDLERS: dict[str, Callable[[_FlatBuilder, SubgraphCall], None]] = {
    "If": _FlatBuilder.branch,
    "Loop": _FlatBuilder.loop,
    "Scan": _FlatBuilder.scan,
}
CONTROL = frozenset(_HANDLERS)
"""The operators with graphs inside."""
