"""Compact builders of graphs: shapes follow from the operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Shape, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.image.resize import Resize, ResizeMode, resize_samples
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.planner.axes import AxisGraph, Edge


def graph(inputs: Mapping[str, Shape], operators: Sequence[tuple[str, Any, str]]) -> Graph:
    """Return a graph of operators (name, definition, names of inputs); a tensor has its operator's name."""
    shapes = dict(inputs)
    built = []
    for name, op, sources in operators:
        read = tuple(sources.split())
        shapes[name] = op.loops(tuple(shapes[source] for source in read)).output_shape()
        built.append(Operator(name, op, read, name))
    read_names = {source for operator in built for source in operator.inputs}
    outputs = [operator.name for operator in built if operator.name not in read_names]
    return Graph(
        "test",
        {name: Tensor(name, shape, DType.FLOAT32) for name, shape in shapes.items()},
        tuple(built),
        tuple(_border(name, shapes[name]) for name in inputs),
        tuple(_border(name, shapes[name]) for name in outputs),
    )


def _border(name: str, shape: Shape) -> GraphIO:
    return GraphIO(name, name, shape, "float32", np.arange(np.prod(shape), dtype=np.int32))


def conv(
    channels: int,
    kernel: int = 3,
    stride: int = 1,
    pad: int | None = None,
    groups: int = 1,
    dilation: int = 1,
) -> Conv2d:
    pad = dilation * (kernel // 2) if pad is None else pad
    return Conv2d(
        channels, (kernel, kernel), (stride, stride), (dilation, dilation), (pad, pad, pad, pad), groups
    )


def global_pool(rows: int, cols: int) -> AveragePool:
    return AveragePool((rows, cols), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False)


def max_pool(kernel: int, stride: int, pads: tuple[int, int], rows: int) -> MaxPool:
    top, bottom = pads
    return MaxPool((kernel, 1), (stride, 1), (1, 1), (top, 0, bottom, 0), (rows, 8))


def resize(mode: ResizeMode, rows: int, scale: int, cols: int = 8) -> Resize:
    def samples(size: int, factor: int) -> Any:
        return resize_samples(size, size * factor, factor, mode=mode, coordinates="half_pixel")

    return Resize(mode, samples(rows, scale), samples(cols, 1))


def named(axes: AxisGraph, edges: Sequence[Edge] | None = None) -> set[tuple[str, str]]:
    """Return edges as ("producer.axis", "reader.axis"), without graph inputs."""
    operators = axes.graph.operators
    return {
        (
            f"{operators[edge.source.operator].name}.{edge.source.name}",
            f"{operators[edge.target.operator].name}.{edge.target.name}",
        )
        for edge in (axes.edges if edges is None else edges)
        if edge.source is not None
    }


def row_edge(axes: AxisGraph, reader: str, operand: int = 0) -> Edge:
    """Return the only edge along rows by which `reader` reads an operand."""
    (edge,) = (
        edge
        for edge in axes.along(0)
        if axes.graph.operators[edge.target.operator].name == reader and edge.operand == operand
    )
    return edge


def names(graph: Graph, groups: Sequence[frozenset[int]]) -> list[str]:
    """Return each group as the names of its operators, in order."""
    return [" ".join(graph.operators[member].name for member in sorted(members)) for members in groups]
