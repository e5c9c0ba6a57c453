"""Other forms of one graph, as other exporters write them, with the same outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuzzing.draft import names_read
from fuzzing.running import Finding, Subject, examine

Form = Callable[[onnx.ModelProto, np.random.Generator], None]
"""Rewrites a model in place."""


def constants_as_nodes(model: onnx.ModelProto, _: np.random.Generator) -> None:
    """Initializers that are not inputs become Constant nodes, also in graphs inside nodes."""
    for graph in _graphs(model.graph):
        inputs = {value.name for value in graph.input}
        moved = [tensor for tensor in graph.initializer if tensor.name not in inputs]
        nodes = []
        for tensor in moved:
            array = numpy_helper.to_array(tensor)
            nodes.append(
                helper.make_node("Constant", [], [tensor.name], value=numpy_helper.from_array(array))
            )
            graph.initializer.remove(tensor)
        _set_nodes(graph, [*nodes, *graph.node])


def with_identities(model: onnx.ModelProto, random: np.random.Generator) -> None:
    """An Identity after some inputs, constants and values, and before some outputs."""
    graph = model.graph
    outputs = {value.name for value in graph.output}
    inner = {name for node in graph.node for name in set(names_read(node)) - set(node.input)}
    first = [value.name for value in (*graph.input, *graph.initializer)]
    copies: dict[str, str] = {}

    def copied(name: str) -> list[onnx.NodeProto]:
        if not name or name in inner or name in copies or random.random() < 0.6:
            return []
        copies[name] = f"{name} (copy)"
        return [helper.make_node("Identity", [name], [copies[name]])]

    nodes = [each for name in dict.fromkeys(first) for each in copied(name)]
    for node in graph.node:
        node.input[:] = [copies.get(name, name) for name in node.input]
        after = [each for name in node.output if name not in outputs for each in copied(name)]
        for at, name in enumerate(node.output):
            if name in outputs and name not in inner and random.random() < 0.5:
                node.output[at] = f"{name} (before)"
                after.append(helper.make_node("Identity", [node.output[at]], [name]))
        nodes += [node, *after]
    _set_nodes(graph, nodes)


def reordered(model: onnx.ModelProto, random: np.random.Generator) -> None:
    """The nodes in another order in which each follows the producers of what it reads."""
    waiting, ordered = list(model.graph.node), list[onnx.NodeProto]()
    unmade = {name for node in waiting for name in node.output if name}
    while waiting:
        ready = [at for at, node in enumerate(waiting) if unmade.isdisjoint(names_read(node))]
        node = waiting.pop(int(random.choice(ready)))
        unmade.difference_update(node.output)
        ordered.append(node)
    _set_nodes(model.graph, ordered)


def renamed(model: onnx.ModelProto, random: np.random.Generator) -> None:
    """Other names of all values and nodes, which sort otherwise."""
    numbers = iter(random.permutation(1 << 14))
    names: dict[str, str] = {"": ""}
    for graph in _graphs(model.graph):
        named = [*graph.input, *graph.initializer, *graph.output, *graph.value_info]
        for value in named:
            value.name = names.setdefault(value.name, f"n{next(numbers)}")
        for node in graph.node:
            node.name = f"node {next(numbers)}"
            for field in (node.input, node.output):
                field[:] = [names.setdefault(name, f"n{next(numbers)}") for name in field]


def defaults_as_inputs(model: onnx.ModelProto, _: np.random.Generator) -> None:
    """All initializers are inputs as well, as in old files."""
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name not in inputs:
            model.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )


FORMS: dict[str, Form] = {
    "constants": constants_as_nodes,
    "identities": with_identities,
    "order": reordered,
    "names": renamed,
    "defaults": defaults_as_inputs,
}


def formed(model: onnx.ModelProto, names: Sequence[str], seed: int) -> onnx.ModelProto:
    """The model in these forms."""
    random = np.random.default_rng((seed, len(FORMS)))
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for name in names:
        FORMS[name](result, random)
    return result


def of_seed(seed: int) -> tuple[tuple[str, ...], ...]:
    """One form, and all of them together but one of two that exclude each other."""
    one = tuple(FORMS)[seed % len(FORMS)]
    without = ("constants", "defaults")[seed % 2]
    return (one,), tuple(name for name in FORMS if name != without)


def examine_forms(models: Sequence[tuple[str, int, onnx.ModelProto]], folder: Path) -> list[Subject]:
    """Examine the unsplit plans of models and of two other forms of each, which must have the same outputs
    and the same arena. The result is as of running.examine; each form is a subject.
    """
    drawn = [
        (f"{name}{suffix}", seed, formed(model, names, seed))
        for name, seed, model in models
        for suffix, names in zip(("", "_one", "_all"), ((), *of_seed(seed)), strict=True)
    ]
    subjects = examine(drawn, folder, [])
    for base, *others in zip(subjects[::3], subjects[1::3], subjects[2::3], strict=True):
        for other in others:
            other.findings += [
                Finding("form", it, "its other form: " + text) for it, text in _differences(base, other)
            ]
    return subjects


def _differences(base: Subject, other: Subject) -> Iterator[tuple[str, str]]:
    if "verified" not in (base.verdict, other.verdict):
        return
    if base.verdict != other.verdict:
        yield "front end", f"{base.verdict}, not {other.verdict}"
        return
    if base.outputs != other.outputs:
        yield "unsplit", "other outputs"
    arenas = [each.plans[0][0].plan.layout.arena_bytes for each in (base, other)]
    if arenas[0] != arenas[1]:
        yield "unsplit", f"an arena of {arenas[0]:,} B, not of {arenas[1]:,} B"


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for item in node.attribute:
            if item.HasField("g"):
                yield from _graphs(item.g)


def _set_nodes(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
