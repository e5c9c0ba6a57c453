"""A smaller model that fails in the same way: nodes go, values become inputs and outputs, inputs shrink."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
from onnx import shape_inference

from fuzzing.draft import live_nodes, names_read
from fuzzing.running import BAD, Finding, Subject, examine

_SECONDS = 240.0


def reduced(subject: Subject) -> onnx.ModelProto:
    """The smallest model found that has the first defect of a subject; the model itself if none is."""
    finding = next(each for each in subject.findings if each.kind in BAD)
    model = onnx.load(subject.path)

    def fails(candidate: onnx.ModelProto) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            ways = [finding.way]
            (subject_found,) = examine([(subject.name, subject.seed, candidate)], Path(folder), ways)
        return any(_alike(each, finding) for each in subject_found.findings)

    return smaller(model, fails)


def smaller(model: onnx.ModelProto, fails: Callable[[onnx.ModelProto], bool]) -> onnx.ModelProto:
    """The remainder of a failing model, when no single change leaves one that fails, or after some
    minutes.
    """
    end = time.monotonic() + _SECONDS
    while True:
        candidates = sorted(_candidates(model), key=_size)
        for candidate in candidates:
            if time.monotonic() > end:
                return model
            if _size(candidate) < _size(model) and fails(candidate):
                model = candidate
                break
        else:
            return model


def _alike(one: Finding, other: Finding) -> bool:
    if (one.kind, one.way) != (other.kind, other.way):
        return False
    last = [each.text.strip().splitlines()[-1].partition(":")[0] for each in (one, other)]
    return one.kind != "traceback" or last[0] == last[1]


def _size(model: onnx.ModelProto) -> tuple[int, int]:
    elements = 0
    for info in model.graph.input:
        sizes = 1
        for dim in info.type.tensor_type.shape.dim:
            sizes *= max(1, dim.dim_value)
        elements += sizes
    return len(model.graph.node) + len(model.graph.output), elements


def _candidates(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    try:
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError:
        return
    infos = {info.name: info for info in (*inferred.value_info, *inferred.output, *inferred.input)}
    constants = {tensor.name for tensor in model.graph.initializer}
    steady = set(constants)  # values that depend on no input
    for node in model.graph.node:
        if all(name in steady for name in names_read(node) if name):
            steady.update(node.output)
    computed = [
        name for node in model.graph.node for name in node.output if name in infos and name not in steady
    ]
    for name in computed:
        yield _with(model, outputs=[infos[name]])
        yield _with(model, inputs=[infos[name]])
    for info in model.graph.output:
        yield _with(model, outputs=[it for it in model.graph.output if it.name != info.name])
    for node in model.graph.node:
        made_type = infos[node.output[0]].type if len(node.output) == 1 and node.output[0] in infos else None
        for name in node.input[:2]:
            if name in infos and name not in steady and infos[name].type == made_type:
                yield _with(model, without=(node, name))
    for at, info in enumerate(model.graph.input):
        if info.name not in constants:
            yield from _shrunk(model, at)


def _with(
    model: onnx.ModelProto,
    *,
    inputs: list[onnx.ValueInfoProto] | None = None,
    outputs: list[onnx.ValueInfoProto] | None = None,
    without: tuple[onnx.NodeProto, str] | None = None,
) -> onnx.ModelProto:
    """The model with more inputs, other outputs, or without a node, whose result then is this value."""
    reduced = onnx.ModelProto()
    reduced.CopyFrom(model)
    graph = reduced.graph
    if outputs is not None:
        del graph.output[:]
        graph.output.extend(outputs)
    fed = {info.name for info in inputs or ()}
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    nodes = [node for node in nodes if fed.isdisjoint(node.output)]
    if without is not None:
        gone, value = without
        nodes = [node for node in nodes if list(node.output) != list(gone.output)]
        for node in nodes:
            _rename(node, gone.output[0], value)
        for info in graph.output:
            info.name = value if info.name == gone.output[0] else info.name
    nodes = live_nodes(nodes, [info.name for info in graph.output])
    read = {name for node in nodes for name in names_read(node)} | {info.name for info in graph.output}
    declared = [info for info in (*graph.input, *(inputs or ())) if info.name in read]
    tensors = [tensor for tensor in graph.initializer if tensor.name in read]
    for kept, items in ((graph.node, nodes), (graph.input, declared), (graph.initializer, tensors)):
        copies = [type(item).FromString(item.SerializeToString()) for item in items]
        del kept[:]
        kept.extend(copies)
    del graph.value_info[:]
    return reduced


def _rename(node: onnx.NodeProto, old: str, new: str) -> None:
    """Lets a node, and the graphs inside it, read another value."""
    node.input[:] = [new if name == old else name for name in node.input]
    for graph in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
        for each in graph.node:
            _rename(each, old, new)


def _shrunk(model: onnx.ModelProto, at: int) -> Iterator[onnx.ModelProto]:
    """The model with one size of an input halved, or reduced by one; outputs have the resulting sizes."""
    sizes = [dim.dim_value for dim in model.graph.input[at].type.tensor_type.shape.dim]
    for axis in range(1, len(sizes)):
        for size in {sizes[axis] // 2, sizes[axis] - 1} - {0}:
            reduced = _with(model)
            reduced.graph.input[at].type.tensor_type.shape.dim[axis].dim_value = size
            for info in reduced.graph.output:
                info.type.tensor_type.ClearField("shape")
            try:
                inferred = shape_inference.infer_shapes(reduced, strict_mode=True, data_prop=True)
            except shape_inference.InferenceError:
                continue
            del reduced.graph.output[:]
            reduced.graph.output.extend(inferred.graph.output)
            yield reduced
