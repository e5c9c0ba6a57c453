"""Final passes over the operators: fuse clamps into their producers, and drop unread results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from mcudeploy.ir.graph import GraphIO, Operator, Tensor
from mcudeploy.ops.affine import Affine
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.elementwise import Binary, Lut
from mcudeploy.ops.requantize import STORED


@dataclass(frozen=True, slots=True, eq=False)
class Tidied:
    """The final operators, and the inputs and outputs with their names."""

    operators: tuple[Operator, ...]
    outputs: tuple[GraphIO, ...]
    references: dict[str, GraphIO]


def tidy(
    operators: Sequence[Operator],
    outputs: Sequence[GraphIO],
    references: Mapping[str, GraphIO],
    tensors: Mapping[str, Tensor],
) -> Tidied:
    """The operators without dead ones and without tables that are a clip of the operator before them."""
    wanted = {border.tensor for border in outputs}
    alive, renamed = _clips_fused(_alive(operators, wanted), wanted, tensors)
    kept: dict[str, GraphIO] = {}
    for name, border in references.items():
        if name not in renamed.values():
            final = renamed.get(name, name)
            kept[final] = replace(border, tensor=final)
    ends = tuple(replace(border, tensor=renamed.get(border.tensor, border.tensor)) for border in outputs)
    return Tidied(tuple(alive), ends, kept)


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
) -> tuple[list[Operator], dict[str, str]]:
    """Fuse a Lut that only clamps into its producer, if that has a clip and no other reader.

    Also returns the removed tensors, each with the name of the tensor that holds its values.
    """
    readers: dict[str, int] = {}
    for operator in operators:
        for name in operator.inputs:
            readers[name] = readers.get(name, 0) + 1
    result: list[Operator] = []
    producers: dict[str, int] = {}
    renamed: dict[str, str] = {}
    for operator in operators:
        source = operator.inputs[0]
        sole = source in producers and readers[source] == 1 and source not in wanted
        fused = None
        if isinstance(operator.op, Lut) and sole:
            fused = _clipped(result[producers[source]], operator, tensors)
        if fused is not None:
            result[producers[source]] = fused
            renamed[operator.output] = source
            continue
        producers[operator.output] = len(result)
        inputs = tuple(renamed.get(name, name) for name in operator.inputs)
        result.append(replace(operator, inputs=inputs))
    return result, renamed


def _clipped(producer: Operator, table: Operator, tensors: Mapping[str, Tensor]) -> Operator | None:
    """The producer with the table's clamp; None if the table is no clamp or the producer has no clip."""
    op = producer.op
    quantization = tensors[table.output].quantization
    if not isinstance(op, Affine | Conv2d | Binary) or quantization is None:
        return None
    if tensors[producer.output].quantization != quantization:
        return None
    values = table.constants["table"].astype(np.int32)
    first, last = int(values.min()), int(values.max())
    if not np.array_equal(values, np.clip(STORED, first, last)):
        return None
    least = quantization.scale * (first - quantization.zero_point) if first > -128 else -inf
    most = quantization.scale * (last - quantization.zero_point) if last < 127 else inf
    low, high = (min(max(bound, least), most) for bound in (op.low, op.high))
    nodes = tuple(dict.fromkeys((*producer.onnx_nodes, *table.onnx_nodes)))
    return replace(producer, op=replace(op, low=low, high=high), onnx_nodes=nodes)
