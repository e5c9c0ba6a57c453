"""Lowering of Attend: attention of one query for each head over live rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.attention.attend import Attend, Bound, Rows
from mcudeploy.extensions.attention.attention import PLACES
from mcudeploy.frontend.lower.builder import Builder, Lowering
from mcudeploy.frontend.onnx.int8_caches import WIDEN
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType, Quantization


def attend(builder: Builder, node: Node) -> None:
    """Read keys and values in place, if their rows and heads lie in regular steps; else from a copy."""
    position, query, *sources = node.inputs
    places: list[NDArray[Any]] = [
        np.asarray(node.attributes[name]) for name, _ in zip(PLACES, sources, strict=False)
    ]
    position_value, query_value = builder.value(position), builder.real(query)
    heads, count, _ = places[0].shape
    inputs = [
        builder.arranged(position_value.tensor, position_value.index.reshape(1, 1, 1), (node,)),
        builder.arranged(query_value.tensor, query_value.index.reshape(1, 1, -1), (node,)),
    ]
    layouts: list[Rows] = []
    quantizations: list[Quantization] = []
    groups: list[int] = []
    for value, wanted in zip(_stored(builder, sources), places, strict=True):
        index, tensor = value.index.reshape(-1)[wanted], value.tensor
        layout = _layout(index)
        if layout is None:
            tensor = builder.arranged(tensor, index.astype(np.int32).reshape(1, 1, -1), (node,))
            layout = _layout(positions(index.shape))
        if layout is None:
            raise Unsupported("its keys and values are not in rows")
        inputs.append(builder.viewed(tensor, (1, 1, builder.tensors[tensor].elements)))
        quantizations.append(builder.tensors[tensor].quantization or Quantization(1.0, 0))
        layouts.append(layout[0])
        groups.append(layout[1])
    group, value_group, *scale_groups = groups
    if group != value_group:
        raise Unsupported(f"{group} queries share keys, but {value_group} share values")
    if any(it not in (group, heads) for it in scale_groups):
        raise Unsupported(f"{group} queries share keys and values, but not their scales")
    first, end = (Bound(*map(int, node.integers(name) or ())) for name in ("first", "end"))
    keys, values, *scales = layouts
    scale = node.number("scale", 1.0) * float(quantizations[0].scale)
    of_values = float(quantizations[1].scale), int(quantizations[1].zero_point)
    op = Attend(heads, group, count, scale, keys, values, first, end, tuple(scales), *of_values)
    shape = (1, 1, heads * values.width)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, nodes=(node,))
    info = builder.model.infos[node.output]
    if info.shape is None or prod(info.shape) != shape[2]:
        raise Unsupported("the shape of its result is not known")
    builder.define(node.output, OnnxValue(tensor, positions(info.shape), real=True))


def _stored(builder: Builder, sources: Sequence[str]) -> list[OnnxValue]:
    """Keys, values and their scales as tensors; int8 if keys and values have one scale each."""
    int8_form = [it for name in sources[:2] if (it := builder.int8_form(name)) is not None]
    return int8_form if len(int8_form) == len(sources) else [builder.as_tensor(name) for name in sources]


def _layout(index: NDArray[Any]) -> tuple[Rows, int] | None:
    """The regular steps of positions [heads, rows, columns], and the number of heads that share rows.

    None if the steps are not regular.
    """
    heads, _, width = index.shape
    bases = index[:, 0, 0]
    group = int(np.argmax(bases != bases[0])) or heads
    head = int(bases[group] - bases[0]) if group < heads else 0
    pitch = int(index[0, 1, 0] - index[0, 0, 0])
    steps = np.meshgrid(*map(np.arange, index.shape), indexing="ij")
    regular = steps[0] // group * head + steps[1] * pitch + steps[2]
    return (Rows(width, pitch, head), group) if np.array_equal(index, regular) else None


def widen(builder: Builder, node: Node) -> None:
    """Raise Unsupported: all rows as floats would take more memory than a float cache."""
    consumers = builder.consumers.get(node.output, [])
    producers = builder.model.producers()
    attends = [[producers.get(name) for name in it.inputs[2:4]] for it in consumers if it.op == "Attend"]
    if any(it is None or it.op != WIDEN for rows in attends for it in rows):
        raise Unsupported(
            "attention reads keys and values that are both int8 or both float32, and only one of them is in "
            "--int8-cache: name the other cache there as well"
        )
    readers = ", ".join(dict.fromkeys(it.op for it in consumers))
    raise Unsupported(
        "an int8 cache is for attention over live rows, those that a position decides; "
        f"{readers or 'an output'} reads it in another way: leave its state out of --int8-cache"
    )


LOWERINGS: dict[str, dict[str, Lowering]] = {DOMAIN: {"Attend": attend, WIDEN: widen}}
