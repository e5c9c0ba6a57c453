"""Removal of constant and unread channels.

A constant channel is folded into the bias of the convolutions that read it. It stays if padding makes its
products differ by position (its value is not the zero point), or if another operator reads it. A constant
float32 channel is folded only if it is zero. Operators that work channel by channel lose the same channels in
inputs and output. The number of remaining channels is a multiple of four. All results are the same bits: a
check compares the integers of the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.lower.tidy_ranges import Range, ranges_of
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, RemovedChannels, Tensor
from mcudeploy.ir.opdef import Params
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_constants import ConvConstants, Results, numbers_of
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.requantize import INT32_MAX
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.ops.scalar.unary import Unary

Mask = NDArray[np.bool_]
_CHANNEL_MULTIPLE = 4
"""Kernels compute four channels together, and remainders slowly."""
_ATTEMPTS = 4
"""Attempts to find a bias from which a kernel derives the wanted constants: kernels round the bias."""


def prune_channels(graph: Graph) -> Graph:
    """Remove constant and unread channels; return the same object if there are none."""
    ranges = ranges_of(graph)
    untrimmed: set[str] = set()
    while True:
        masks = _remaining(graph, ranges, untrimmed)
        if all(mask.all() for mask in masks.values()):
            return graph
        convolutions = {
            it.name: _convolution(graph, it, ranges, masks)
            for it in graph.operators
            if isinstance(it.op, Conv2d) and it.name not in untrimmed
        }
        failed = {name for name, smaller in convolutions.items() if smaller is None}
        if not failed:
            return _rewritten(
                graph, masks, {name: smaller for name, smaller in convolutions.items() if smaller}
            )
        untrimmed |= failed


# --- which channels stay ----------------------------------------------------------------------------------


def _remaining(graph: Graph, ranges: Mapping[str, Range], untrimmed: set[str]) -> dict[str, Mask]:
    """Return the masks of the channels that stay, by tensor; operators in `untrimmed` keep all channels."""
    masks = {name: np.zeros(tensor.shape[2], np.bool_) for name, tensor in graph.tensors.items()}
    for io in (*graph.inputs, *graph.outputs):
        masks[io.tensor][:] = True
    before = -1
    while (count := sum(int(mask.sum()) for mask in masks.values())) > before:
        before = count
        for operator in reversed(graph.operators):
            _require(graph, operator, ranges, masks, operator.name in untrimmed)
        for mask in masks.values():
            _fill(mask)
    return masks


def _fill(mask: Mask) -> None:
    """Keep further channels, so that their number is a multiple of four."""
    mask[np.flatnonzero(~mask)[: -int(mask.sum()) % _CHANNEL_MULTIPLE]] = True


def _require(
    graph: Graph, operator: Operator, ranges: Mapping[str, Range], masks: dict[str, Mask], untrimmed: bool
) -> None:
    """Add to `masks` the channels that an operator needs of its inputs, and of an output that must match."""
    op, out_mask = operator.op, masks[operator.output]
    if not out_mask.any():
        out_mask[0] = True  # a tensor has at least one channel
    if untrimmed:
        for name in (operator.output, *operator.inputs):
            masks[name][:] = True
    elif isinstance(op, Conv2d) and op.groups == 1:
        source = graph.tensors[operator.inputs[0]]
        masks[source.name] |= _needed_channels(op, operator, source, ranges[source.name], out_mask)
    elif _is_depthwise(op, graph.input_tensors(operator)[0]):
        in_mask = masks[operator.inputs[0]]
        by_input = out_mask.reshape(in_mask.size, -1)
        in_mask |= by_input.any(axis=1)
        by_input |= in_mask[:, None]
    elif _is_channelwise(graph, operator):
        both = np.logical_or.reduce([out_mask, *(masks[name] for name in operator.inputs)])
        for name in (operator.output, *operator.inputs):
            masks[name] |= both
    elif isinstance(op, Concat) and op.axis == 2:
        for name, span in zip(operator.inputs, _spans(graph, operator), strict=True):
            masks[name] |= out_mask[span]
            out_mask[span] |= masks[name]
    else:
        for name in (operator.output, *operator.inputs):
            masks[name][:] = True


def _needed_channels(
    conv: Conv2d, operator: Operator, source: Tensor, bounds: Range, out_mask: Mask
) -> Mask:
    """The input channels that remaining outputs of a dense convolution use, and that cannot be folded."""
    weights = operator.constants["weights"]
    used = (weights[out_mask] != 0).any(axis=(0, 1, 2))
    return np.asarray(used & ~_foldable(conv, source, bounds))


def _foldable(conv: Conv2d, source: Tensor, bounds: Range) -> Mask:
    """Constant channels whose products are the same at every position."""
    padding = 0.0 if source.quantization is None else source.quantization.zero_point
    if source.dtype is DType.INT8 and conv.pads == (0, 0, 0, 0):
        return bounds.constant
    return np.asarray(bounds.constant & (bounds.low == padding))


def _is_depthwise(op: object, source: Tensor) -> bool:
    return isinstance(op, Conv2d) and 1 < op.groups == source.shape[2]


def _is_channelwise(graph: Graph, operator: Operator) -> bool:
    op = operator.op
    if isinstance(op, MaxPool | AveragePool | Lut | Unary | Quantize | Dequantize):
        return True
    alike = len({tensor.shape for tensor in graph.input_tensors(operator)}) == 1
    return isinstance(op, Binary) and op.constant_operand is None and alike


def _spans(graph: Graph, operator: Operator) -> list[slice]:
    """The places of the channels of each input of a concatenation in its output."""
    ends = np.cumsum([0, *(tensor.shape[2] for tensor in graph.input_tensors(operator))])
    return [slice(first, end) for first, end in pairwise(ends.tolist())]


# --- the graph of the remaining channels ------------------------------------------------------------------


def _convolution(
    graph: Graph, operator: Operator, ranges: Mapping[str, Range], masks: Mapping[str, Mask]
) -> Operator | None:
    """The convolution of the remaining channels; None if its kernel would compute with other integers."""
    conv, source, output = operator.op, graph.tensors[operator.inputs[0]], graph.tensors[operator.output]
    assert isinstance(conv, Conv2d)
    in_mask, out_mask = masks[source.name], masks[output.name]
    if in_mask.all() and out_mask.all():
        return operator
    dense = conv.groups == 1
    constants = {name: value[out_mask] for name, value in operator.constants.items()}
    constants["weights"] = constants["weights"][..., in_mask] if dense else constants["weights"]
    groups = 1 if dense else int(in_mask.sum())
    smaller = replace(conv, out_channels=int(out_mask.sum()), groups=groups)
    trimmed = replace(operator, op=smaller, constants=constants)
    if output.dtype is DType.FLOAT32:
        return trimmed
    try:
        before, numbers = numbers_of(Results(conv.low, conv.high), operator, source, output)
        weights = before.weights[out_mask]
        folded = (
            (weights[..., ~in_mask] * ranges[source.name].low[~in_mask]).sum(axis=(1, 2, 3)) if dense else 0
        )
        wanted = ConvConstants(
            weights[..., in_mask] if dense else weights,
            before.bias[out_mask] + folded,
            None if before.multipliers is None else before.multipliers[out_mask],
        )
        return _with_bias_for(
            trimmed, (_with_channels(source, in_mask), _with_channels(output, out_mask)), wanted, numbers
        )
    except ValueError:  # the kernel refuses the numbers
        return None


def _with_bias_for(
    operator: Operator, tensors: tuple[Tensor, Tensor], wanted: ConvConstants, numbers: Params
) -> Operator | None:
    """The operator with a bias from which its kernel derives the wanted constants; None if none is found.

    `tensors`: input and output; `numbers`: the wanted parameters of the kernel.
    """
    assert isinstance(operator.op, Conv2d)
    results = Results(operator.op.low, operator.op.high)
    for _ in range(_ATTEMPTS):
        constants_now, numbers_now = numbers_of(results, operator, *tensors)
        error = wanted.bias - constants_now.bias.astype(np.int64)
        if not error.any():
            return operator if constants_now.same_as(wanted) and numbers_now == numbers else None
        bias = operator.constants["bias"] + error
        if np.abs(bias).max() > INT32_MAX:
            return None
        operator = replace(operator, constants={**operator.constants, "bias": bias.astype(np.int32)})
    return None


def _with_channels(tensor: Tensor, mask: Mask) -> Tensor:
    return replace(tensor, shape=(*tensor.shape[:2], int(mask.sum())))


def _rewritten(graph: Graph, masks: Mapping[str, Mask], convolutions: Mapping[str, Operator]) -> Graph:
    operators = tuple(convolutions.get(it.name, it) for it in graph.operators)
    tensors = {name: _with_channels(tensor, masks[name]) for name, tensor in graph.tensors.items()}
    references = {name: _reference(io, masks[io.tensor]) for name, io in graph.references.items()}
    smaller = replace(graph, operators=operators, tensors=tensors, references=references)
    return replace(
        smaller,
        trimmed=RemovedChannels(
            sum(int((~mask).sum()) for mask in masks.values()),
            _macs(graph) - _macs(smaller),
            _weight_bytes(graph) - _weight_bytes(smaller),
        ),
    )


def _reference(io: GraphIO, mask: Mask) -> GraphIO:
    """The reference of a tensor without the removed channels, whose elements get the place -1."""
    pixel, channel = np.divmod(io.order, mask.size)
    place = np.cumsum(mask) - 1
    order = np.where(mask[channel], pixel * int(mask.sum()) + place[channel], -1)
    return replace(io, order=order.astype(np.int32))


def _macs(graph: Graph) -> int:
    return sum(graph.loops(operator).macs() for operator in graph.operators)


def _weight_bytes(graph: Graph) -> int:
    return sum(it.constants["weights"].nbytes for it in graph.operators if "weights" in it.constants)
