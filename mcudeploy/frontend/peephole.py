"""Last touches on the finished list of operators: clamps that their producer can do, results nobody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mcudeploy.frontend.quantization import STORED
from mcudeploy.graph import Border, Operator, Tensor
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary, Lut


def tidy(
    operators: Sequence[Operator],
    references: Mapping[str, Border],
    outputs: Sequence[Border],
    tensors: Mapping[str, Tensor],
) -> tuple[tuple[Operator, ...], dict[str, Border]]:
    """The operators without dead ones and without tables that are a clip of the operator before them."""
    wanted = {border.tensor for border in outputs}
    alive = _alive(operators, wanted)
    alive = _clips_fused(alive, wanted, tensors)
    made = {name for operator in alive for name in (operator.output, *operator.inputs)} | wanted
    return tuple(alive), {name: border for name, border in references.items() if name in made}


def _alive(operators: Sequence[Operator], wanted: set[str]) -> list[Operator]:
    needed = set(wanted)
    kept: list[Operator] = []
    for operator in reversed(operators):
        if operator.output in needed:
            needed.update(operator.inputs)
            kept.append(operator)
    return kept[::-1]


def _clips_fused(
    operators: Sequence[Operator], wanted: set[str], tensors: Mapping[str, Tensor]
) -> list[Operator]:
    """A Lut that only clamps, on the only use of a convolution's or a Binary's result, becomes its clip."""
    readers: dict[str, int] = {}
    for operator in operators:
        for name in operator.inputs:
            readers[name] = readers.get(name, 0) + 1
    result: list[Operator] = []
    producers: dict[str, int] = {}
    for operator in operators:
        fused = None
        source = operator.inputs[0] if operator.inputs else ""
        sole = source in producers and readers[source] == 1 and source not in wanted
        if isinstance(operator.op, Lut) and sole:
            fused = _clipped(result[producers[source]], operator, tensors)
        if fused is None:
            producers[operator.output] = len(result)
            result.append(operator)
        else:
            producers[operator.output] = producers[source]
            result[producers[source]] = fused
    return result


def _clipped(producer: Operator, table: Operator, tensors: Mapping[str, Tensor]) -> Operator | None:
    op = producer.op
    quantization = tensors[table.output].quantization
    if not isinstance(op, Conv2d | Binary) or quantization is None:
        return None
    if tensors[producer.output].quantization != quantization:
        return None
    values = table.constants["table"].astype(np.int32)
    first, last = int(values.min()), int(values.max())
    if not np.array_equal(values, np.clip(STORED, first, last)):
        return None
    low, high = op.low, op.high
    if first > -128:
        low = max(low, quantization.scale * (first - quantization.zero_point))
    if last < 127:
        high = min(high, quantization.scale * (last - quantization.zero_point))
    nodes = tuple(dict.fromkeys((*producer.onnx_nodes, *table.onnx_nodes)))
    clipped = replace(op, low=low, high=max(low, high))
    return replace(producer, op=clipped, output=table.output, onnx_nodes=nodes)
