"""Removal of constant and unread channels.

A constant channel is folded into the bias of the convolutions that read it. It stays if padding makes its
products differ by position (its value is not the zero point), or if another operator reads it. Operators that
work channel by channel lose the same channels in inputs and output. The integers of the kernels stay the
same, which is checked: results are bit-exact. A constant float32 channel is folded if it is zero. The
remaining channels are a multiple of four.
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
_TOGETHER = 4
_ATTEMPTS = 4
"""Attempts to find a bias that a kernel, which rounds by its multiplier, maps to the wanted result."""


def prune_channels(graph: Graph) -> Graph:
    """Remove constant and unread channels; return the same object if there are none."""
    ranges = ranges_of(graph)
    whole: set[str] = set()
    while True:
        masks = _kept(graph, ranges, whole)
        if all(mask.all() for mask in masks.values()):
            return graph
        convolutions = {
            it.name: _convolution(graph, it, ranges, masks)
            for it in graph.operators
            if isinstance(it.op, Conv2d) and it.name not in whole
        }
        failed = {name for name, smaller in convolutions.items() if smaller is None}
        if not failed:
            return _rewritten(
                graph, masks, {name: smaller for name, smaller in convolutions.items() if smaller}
            )
        whole |= failed


# --- which channels stay ----------------------------------------------------------------------------------


def _kept(graph: Graph, ranges: Mapping[str, Range], whole: set[str]) -> dict[str, Mask]:
    """Return the masks of the channels that stay, by tensor; operators in `whole` keep all channels."""
    masks = {name: np.zeros(tensor.shape[2], np.bool_) for name, tensor in graph.tensors.items()}
    for io in (*graph.inputs, *graph.outputs):
        masks[io.tensor][:] = True
    before = -1
    while (now := sum(int(mask.sum()) for mask in masks.values())) > before:
        before = now
        for operator in reversed(graph.operators):
            _require(graph, operator, ranges, masks, operator.name in whole)
        for mask in masks.values():
            _fill(mask)
    return masks


def _fill(mask: Mask) -> None:
    """Keep more channels, up to a multiple of four: kernels take four together, and remainders are slow."""
    mask[np.flatnonzero(~mask)[: -int(mask.sum()) % _TOGETHER]] = True


def _require(
    graph: Graph, operator: Operator, ranges: Mapping[str, Range], masks: dict[str, Mask], whole: bool
) -> None:
    """Add the channels that an operator needs of its inputs, and of its output if both must match."""
    op, out_mask = operator.op, masks[operator.output]
    if not out_mask.any():
        out_mask[0] = True  # a tensor has at least one channel
    if not whole and isinstance(op, Conv2d) and op.groups == 1:
        source = graph.tensors[operator.inputs[0]]
        masks[source.name] |= _read(op, operator, source, ranges[source.name], out_mask)
    elif not whole and _is_depthwise(op, graph.input_tensors(operator)[0]):
        in_mask = masks[operator.inputs[0]]
        by_input = out_mask.reshape(in_mask.size, -1)
        in_mask |= by_input.any(axis=1)
        by_input |= in_mask[:, None]
    elif not whole and _is_channelwise(graph, operator):
        both = np.logical_or.reduce([out_mask, *(masks[name] for name in operator.inputs)])
        for name in (operator.output, *operator.inputs):
            masks[name] |= both
    elif not whole and isinstance(op, Concat) and op.axis == 2:
        for name, span in zip(operator.inputs, _spans(graph, operator), strict=True):
            masks[name] |= out_mask[span]
            out_mask[span] |= masks[name]
    else:
        for name in (operator.output, *operator.inputs):
            masks[name][:] = True


def _read(conv: Conv2d, operator: Operator, source: Tensor, known: Range, out_mask: Mask) -> Mask:
    """The channels that a dense convolution multiplies for remaining outputs and cannot fold."""
    weights = operator.constants["weights"]
    used = (weights[out_mask] != 0).any(axis=(0, 1, 2))
    return np.asarray(used & ~_foldable(conv, source, known))


def _foldable(conv: Conv2d, source: Tensor, known: Range) -> Mask:
    """Constant channels whose products are the same at every position."""
    silent = 0.0 if source.quantization is None else source.quantization.zero_point
    if source.dtype is DType.INT8 and conv.pads == (0, 0, 0, 0):
        return known.constant
    return np.asarray(known.constant & (known.low == silent))


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


# --- the graph without the others -------------------------------------------------------------------------


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
    one = replace(operator, op=smaller, constants=constants)
    if output.dtype is DType.FLOAT32:
        return one
    try:
        before, numbers = numbers_of(Results(conv.low, conv.high), operator, source, output)
        weights = before.weights[out_mask]
        lost = (
            (weights[..., ~in_mask] * ranges[source.name].low[~in_mask]).sum(axis=(1, 2, 3)) if dense else 0
        )
        wanted = ConvConstants(
            weights[..., in_mask] if dense else weights,
            before.bias[out_mask] + lost,
            None if before.multipliers is None else before.multipliers[out_mask],
        )
        return _settled(
            one, (_with_channels(source, in_mask), _with_channels(output, out_mask)), wanted, numbers
        )
    except ValueError:  # the kernel would refuse it
        return None


def _settled(
    operator: Operator, tensors: tuple[Tensor, Tensor], wanted: ConvConstants, numbers: Params
) -> Operator | None:
    """The operator with a bias that yields the wanted kernel constants; None if no bias does."""
    assert isinstance(operator.op, Conv2d)
    results = Results(operator.op.low, operator.op.high)
    for _ in range(_ATTEMPTS):
        numbers_now, same = numbers_of(results, operator, *tensors)
        off = wanted.bias - numbers_now.bias.astype(np.int64)
        if not off.any():
            alike = numbers_now.same_as(wanted) and same == numbers
            return operator if alike else None
        bias = operator.constants["bias"] + off
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
    """The input or output of a tensor without the removed channels."""
    pixel, channel = np.divmod(io.order, mask.size)
    place = np.cumsum(mask) - 1
    order = np.where(mask[channel], pixel * int(mask.sum()) + place[channel], -1)
    return replace(io, order=order.astype(np.int32))


def _macs(graph: Graph) -> int:
    return sum(graph.loops(operator).macs() for operator in graph.operators)


def _weight_bytes(graph: Graph) -> int:
    return sum(it.constants["weights"].nbytes for it in graph.operators if "weights" in it.constants)
