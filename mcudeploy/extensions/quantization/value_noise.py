"""The noise that values in int8 add to the outputs of a model.

It is measured for each value alone. The noise of several values is taken as the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import ModelProto, TensorProto, helper

from mcudeploy.extensions.quantization.agreement import MOVERS, SUFFIX, Agreement, Noise
from mcudeploy.extensions.quantization.clip_ranges import Range
from mcudeploy.extensions.quantization.data import Array, Sample
from mcudeploy.frontend.onnx.protos import constants_of, copy_of, import_domain, refill, sizes_of
from mcudeploy.verify.reference import Reference

Powers = Mapping[str, float]
"""Powers of noise by model output."""

_SATURATING = ("LogSoftmax", "Sigmoid", "Softmax")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value that layer `producer` (None for an input) computes and layers `readers` read.

    `noise`: if all readers read it in int8; `by_reader`: if one of them does. `steps`: the places of the
    first and the last node that write or read it. `range`: that its int8 values cover.
    """

    name: str
    producer: int | None
    readers: tuple[int, ...]
    noise: Powers
    by_reader: Mapping[int, Powers]
    elements: int
    steps: tuple[int, int]
    range: Range


class Grid(NamedTuple):
    """The scale and the zero point of a value. Values that share a scale name the same constant."""

    scale: TensorProto
    zero: TensorProto


@dataclass(frozen=True, slots=True, eq=False)
class Int8Model:
    """A model quantised to int8 throughout, and the range of each value."""

    proto: ModelProto
    ranges: Mapping[str, Range]

    def grids(self) -> dict[str, Grid]:
        """The grid of each quantised value, by name."""
        constants = constants_of(self.proto.graph)
        return {
            node.input[0].removesuffix(SUFFIX): Grid(*(constants[name] for name in node.input[1:3]))
            for node in self.proto.graph.node
            if node.op_type == "QuantizeLinear" and node.input[0] not in constants
        }


class NoiseMeter:
    """Measures the noise at the outputs of models, over `samples`; `path`: a file to write models to.

    If a Softmax or Sigmoid computes an output, the input of that node is compared as well: the output
    saturates, so that only the few samples between classes show noise there.
    """

    def __init__(self, prepared: ModelProto, samples: Sequence[Sample], path: Path) -> None:
        self.prepared, self.path, self._samples = prepared, path, samples
        self._outputs = [it.name for it in prepared.graph.output]
        producers = {name: node for node in prepared.graph.node for name in node.output}
        ends = [producers[name] for name in self._outputs if name in producers]
        self._ends = {f"before {it.name}": it.name for it in ends if it.op_type in _SATURATING}
        self._wanted = list(self._run(prepared))
        self._known: dict[tuple[str, bytes, bytes], Agreement] = {}

    def agreement(self, model: ModelProto) -> Agreement:
        """Compare a model with the prepared one, whose nodes have the same names."""
        noises = {name: Noise() for name in (*self._outputs, *self._ends)}
        for wanted, got in zip(self._wanted, self._run(model), strict=True):
            for name, noise in noises.items():
                noise.add(wanted[name], got[name])
        return Agreement(noises, None, None, len(self._samples))

    def budgets(self, reference: Agreement, within: float) -> dict[str, float]:
        """The noise that may be added to a reference, by output.

        The added noise lowers the signal to noise ratio of each output to `within` decibels below that of the
        reference's worst output. Inputs of a last Softmax or Sigmoid have the worst of these as their limit.
        """
        budgets = {}
        for names in filter(None, (self._outputs, [*self._ends])):
            target = min(reference.outputs[name].decibels for name in names) - within
            for name in names:
                known = reference.outputs[name]
                budgets[name] = max(known.signal * 10 ** (-target / 10) - known.noise, 0.0)
        return budgets

    def _run(self, model: ModelProto) -> Iterator[dict[str, Array]]:
        """Yield for each sample the outputs by name, and the inputs of a last Softmax or Sigmoid."""
        onnx.save(model, self.path)
        inputs = {node.name: node.input[0] for node in model.graph.node if node.input}
        names = {it: it for it in self._outputs} | {name: inputs[node] for name, node in self._ends.items()}
        reference = Reference(self.path, list(names.values()))
        for sample in self._samples:
            values = reference.run(sample)
            yield {name: values[read] for name, read in names.items()}

    def values(
        self, layer: Mapping[str, int], models: Sequence[Int8Model], advance: Callable[[int, int], None]
    ) -> list[Value]:
        """The values between layers. `layer`: of each node; `models`: by calibration method.

        Values that share a scale take the range of the model with which they add the least noise together.
        """
        grids, shared = [it.grids() for it in models], dict[str, list[str]]()
        for name, grid in grids[0].items():
            shared.setdefault(grid.scale.name, []).append(name)
        values = []
        for done, names in enumerate(shared.values()):
            advance(done, len(shared))
            losses = [sum(_loss(self._alone(name, of_model[name])) for name in names) for of_model in grids]
            best = losses.index(min(losses))
            ranges = models[best].ranges
            values += [self._value(name, layer, grids[best][name], ranges[name]) for name in names]
        return values

    def _value(self, name: str, layer: Mapping[str, int], grid: Grid, in_range: Range) -> Value:
        graph = self.prepared.graph
        producer = next((node for node in graph.node if name in node.output), None)
        own_layer = None if producer is None else layer[producer.name]
        readers = sorted({layer[it.name] for it in graph.node if name in it.input} - {own_layer})
        noise = _powers(self._alone(name, grid))
        by_reader = dict.fromkeys(readers, noise)
        for reader in readers if len(readers) > 1 else ():
            nodes = [node for node, its_layer in layer.items() if its_layer == reader]
            by_reader[reader] = _powers(self.agreement(_with_pair(self.prepared, name, grid, nodes)))
        if producer is not None and producer.op_type in MOVERS:  # its input has the same scale
            noise = dict.fromkeys(noise, 0.0)
        places = [at for at, node in enumerate(graph.node) if name in (*node.input, *node.output)]
        steps = (0 if producer is None else places[0], places[-1])
        infos = (*graph.value_info, *graph.input, *graph.output)
        elements = next((prod(sizes_of(it)) for it in infos if it.name == name), 1)
        return Value(name, own_layer, tuple(readers), noise, by_reader, elements, steps, in_range)

    def noise_of_weights(self, narrow: ModelProto, name: str) -> Powers:
        """The noise of the node `name` with its weights and bias in the quantised model `narrow`."""
        result, constants = copy_of(self.prepared), constants_of(narrow.graph)
        producers = {it.output[0]: it for it in narrow.graph.node if it.op_type == "DequantizeLinear"}
        node = next(it for it in result.graph.node if it.name == name)
        quantised_node = next(it for it in narrow.graph.node if it.name == name)
        dequantizers = []
        for at, read in enumerate(quantised_node.input[1:], 1):
            dequantizers.append(copy_of(producers[read]))
            dequantizers[-1].output[0] = node.input[at] = f"{read}/stored"
            result.graph.initializer.extend(constants[it] for it in dequantizers[-1].input)
        refill(result.graph.node, [*dequantizers, *result.graph.node])
        for entry in narrow.opset_import:
            import_domain(result, entry.domain)
        return _powers(self.agreement(result))

    def _alone(self, name: str, grid: Grid) -> Agreement:
        """The agreement of the model with the value `name` alone in int8."""
        key = name, grid.scale.SerializeToString(), grid.zero.SerializeToString()
        if key not in self._known:
            self._known[key] = self.agreement(_with_pair(self.prepared, name, grid))
        return self._known[key]


def _loss(agreement: Agreement) -> float:
    """The noise relative to the signal, as a ratio of powers, of the worst output."""
    return float(10 ** (-agreement.decibels / 10))


def _powers(agreement: Agreement) -> dict[str, float]:
    return {name: it.noise for name, it in agreement.outputs.items()}


def int4_sizes(model: ModelProto) -> dict[str, int]:
    """The number of weights of each node with int4 weights, by name."""
    stored = {it.name: prod(it.dims) for it in model.graph.initializer if it.data_type == TensorProto.INT4}
    restored = {it.output[0]: it.input[0] for it in model.graph.node if it.op_type == "DequantizeLinear"}
    return {
        node.name: stored[restored[node.input[1]]]
        for node in model.graph.node
        if len(node.input) > 1 and restored.get(node.input[1]) in stored
    }


def with_float_weights(model: ModelProto, prepared: ModelProto) -> ModelProto:
    """A quantised model with the weights and biases of the prepared model, by the names of nodes."""
    result, constants = copy_of(model), constants_of(prepared.graph)
    floats = {node.name: node for node in prepared.graph.node}
    used: set[str] = set()
    for node in result.graph.node:
        float_node = floats.get(node.name)
        for at, name in enumerate(() if float_node is None else float_node.input):
            if name in constants and constants[name].data_type == TensorProto.FLOAT and at < len(node.input):
                node.input[at] = f"{name}/float"
                used.add(name)
    for name in sorted(used):
        result.graph.initializer.add().CopyFrom(constants[name])
        result.graph.initializer[-1].name = f"{name}/float"
    return result


def _with_pair(
    model: ModelProto, name: str, grid: Grid, readers: Collection[str] | None = None
) -> ModelProto:
    """The model in which the nodes `readers` read a value quantised. None: all readers do, and if the value
    is an output, the model gives it quantised.
    """
    result = copy_of(model)
    parameters = [f"{name}/scale", f"{name}/zero point"]
    for tensor, parameter in zip(grid, parameters, strict=True):
        result.graph.initializer.add().CopyFrom(tensor)
        result.graph.initializer[-1].name = parameter
    is_output = readers is None and any(it.name == name for it in result.graph.output)
    source, target = (f"{name}/float", name) if is_output else (name, f"{name}/int8")
    pair = [
        helper.make_node("QuantizeLinear", [source, *parameters], [f"{name}/stored"]),
        helper.make_node("DequantizeLinear", [f"{name}/stored", *parameters], [target]),
    ]
    nodes = [] if any(name in node.output for node in result.graph.node) else [*pair]
    for node in result.graph.node:
        nodes.append(node)
        if name in node.output:
            node.output[list(node.output).index(name)] = source
            nodes += pair
        if readers is None or node.name in readers:
            for at, read in enumerate(node.input):
                node.input[at] = target if read == name else read
    refill(result.graph.node, nodes)
    return result
