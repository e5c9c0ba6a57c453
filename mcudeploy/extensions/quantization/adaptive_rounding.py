"""Rounding of the weights of a quantised model, layer by layer, to the results of the float model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from mcudeploy.extensions.quantization.data import Sample
from mcudeploy.extensions.quantization.model_walk import ModelWalk
from mcudeploy.extensions.quantization.weight_rounding import LayerWeights, Moments, round_weights
from mcudeploy.frontend.onnx.protos import attribute_of, copy_of
from mcudeploy.frontend.pieces import names_read

Array = NDArray[Any]

_MOST_INPUTS = 2048
"""Weights of a channel above which a layer keeps the nearest rounding: time grows with their cube."""

_MOST_ROWS = 32_768
_MOST_PRODUCTS = 1e10
"""Limits for a layer: of rows from all samples, and of products for the moments."""

_MOST_BYTES = 2**28
"""Limit of the largest tensor over all samples."""

_FEWEST_SAMPLES = 16
_CHECK_EVERY = 4
"""One sample of this number is not fitted: it decides how much to fit."""

_LEVELS = {int(TensorProto.INT8): (-127, 127), int(TensorProto.INT4): (-8, 7)}
_MOST_BIAS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A node of the quantised model with stored weights, the same node of the float model, and its constants.

    `bias` are the tensors of a quantised bias and its scale; None without a bias.
    """

    node: NodeProto
    float_node: NodeProto
    weights: TensorProto
    scale: TensorProto
    bias: tuple[TensorProto, TensorProto] | None

    @property
    def products(self) -> int:
        """The number of products of two inputs in a row."""
        groups, _, inputs = self.grouped(numpy_helper.to_array(self.weights)).shape
        return int(groups * inputs**2)

    def grouped(self, weights: Array) -> Array:
        """The weights in the node's order as [g, K, n]."""
        if self.node.op_type == "Conv":
            groups = int(attribute_of(self.node, "group", 1))
            return np.reshape(weights, (groups, -1, math.prod(weights.shape[1:])))
        return self._transposed(weights)[None]

    def ungrouped(self, weights: Array) -> Array:
        """The weights [g, K, n] in the node's order."""
        if self.node.op_type == "Conv":
            return weights.reshape(tuple(self.weights.dims))
        return self._transposed(weights[0])

    def _transposed(self, matrix: Array) -> Array:
        """The matrix [K, n] in the node's order, and the other way round."""
        return matrix if attribute_of(self.node, "transB", 0) else matrix.T

    def rows(self, x: Array, y: Array, most: int) -> tuple[Array, Array]:
        """At most this number of rows of inputs [g, rows, n], and their results [g, rows, K]."""
        groups = attribute_of(self.node, "group", 1)
        if self.node.op_type != "Conv":
            columns, results = x.reshape(1, -1, x.shape[-1]), y.reshape(1, -1, y.shape[-1])
            places = _places(columns.shape[1], most)
            return columns[:, places], results[:, places]
        windows = _windows(x, self.node, y.shape[2:], tuple(self.weights.dims[2:]))
        places = _places(math.prod(y.shape[2:]), most)
        at: Any = (slice(None), slice(None), *np.unravel_index(places, y.shape[2:]))
        windows = windows[at].reshape(len(x), groups, -1, len(places), math.prod(self.weights.dims[2:]))
        results = y[at].reshape(len(x), groups, -1, len(places))
        return (
            windows.transpose(1, 0, 3, 2, 4).reshape(groups, -1, math.prod(self.weights.dims[1:])),
            results.transpose(1, 0, 3, 2).reshape(groups, len(x) * len(places), -1),
        )


def round_adaptively(
    model: ModelProto,
    floats: ModelProto,
    samples: Sequence[Sample],
    folder: Path,
    advance: Callable[[int, int], None],
) -> ModelProto:
    """Round the weights of the quantised `model` of the prepared model `floats` by calibration samples.

    Weights of convolutions and of products by matrices take part, with the biases; other weights stay.
    """
    result = copy_of(model)
    layers = list(_layers(result, floats))
    used = samples[: max(_FEWEST_SAMPLES, _MOST_BYTES // _largest(floats))]
    quantised = ModelWalk(result, folder / "piece.onnx", used)
    wanted = ModelWalk(floats, folder / "float piece.onnx", used)
    real = {it.name: it for it in floats.graph.initializer}
    for done, layer in enumerate(layers):
        advance(done, len(layers))
        values = quantised.to(layer.node.input[0]), wanted.to(layer.float_node.output[0])
        moments = _moments(layer, *values, len(used))
        if moments is not None:
            _round(layer, numpy_helper.to_array(real[layer.float_node.input[1]]), moments)
    return result


def _round(layer: _Layer, real: Array, moments: tuple[Moments, Moments]) -> None:
    """Replace the constants of a layer, which has the float weights `real`."""
    float_weights = layer.grouped(real.astype(np.float64))
    stored = numpy_helper.to_array(layer.weights)
    old_scales = numpy_helper.to_array(layer.scale).astype(np.float64).reshape(-1)
    shape = (*float_weights.shape[:2], 1)
    scales = np.broadcast_to(old_scales, math.prod(shape)).reshape(shape)
    rounded = round_weights(
        LayerWeights(float_weights, scales, *_LEVELS[layer.weights.data_type], layer.bias is not None),
        *moments,
    )
    _store(layer.weights, layer.ungrouped(rounded.integers).astype(stored.dtype))
    scales = rounded.scales.reshape(-1)
    if scales.size == old_scales.size:
        _store(layer.scale, scales.astype(np.float32))
    if layer.bias is not None:
        bias, scale = layer.bias
        units = (numpy_helper.to_array(scale) * (scales / old_scales)).astype(np.float32)
        integers = np.rint(rounded.bias.reshape(-1) / units.astype(np.float64))
        _store(bias, np.clip(integers, -_MOST_BIAS, _MOST_BIAS).astype(np.int32))
        _store(scale, units)


def _store(tensor: TensorProto, values: Array) -> None:
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))


def _moments(
    layer: _Layer, inputs: Iterator[Array], results: Iterator[Array], count: int
) -> tuple[Moments, Moments] | None:
    """The moments of the samples to fit, and of those that decide how much; None if values are not finite."""
    rows = min(_MOST_ROWS, int(_MOST_PRODUCTS / layer.products))
    parts: list[Moments | None] = [None, None]
    for number, (x, y) in enumerate(zip(inputs, results, strict=True)):
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return None
        more = Moments.of(*layer.rows(x, y, max(1, rows // count)))
        part = number % _CHECK_EVERY == _CHECK_EVERY - 1
        known = parts[part]
        parts[part] = more if known is None else known.joined(more)
    fit, check = parts
    assert fit is not None
    return fit, check or fit


def _layers(model: ModelProto, floats: ModelProto) -> Iterator[_Layer]:
    """The layers whose weights are rounded, in the order in which they run."""
    constants = {it.name: it for it in model.graph.initializer}
    restored = {it.output[0]: it for it in model.graph.node if it.op_type == "DequantizeLinear"}
    float_nodes = {it.name: it for it in floats.graph.node}
    real = {it.name for it in floats.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in names_read(node))

    def stored(name: str) -> tuple[TensorProto, TensorProto] | None:
        """A constant that this node alone reads, and its scale."""
        node = restored.get(name)
        if node is None or readers[name] > 1 or readers[node.input[0]] > 1:
            return None
        tensor, scale = (constants.get(it) for it in node.input[:2])
        return None if tensor is None or scale is None else (tensor, scale)

    for node in model.graph.node:
        float_node = float_nodes.get(node.name)
        if float_node is None or not _is_plain(node) or float_node.input[1] not in real:
            continue
        weights, bias = stored(node.input[1]), None
        if weights is None or node.input[0] not in restored:
            continue
        if len(node.input) > 2 and node.input[2]:
            bias = stored(node.input[2])
            if bias is None or len(bias[0].dims) != 1:
                continue
        layer = _Layer(node, float_node, *weights, bias)
        is_matrix = len(weights[0].dims) == 2
        if (is_matrix or node.op_type == "Conv") and layer.products <= _MOST_INPUTS**2:
            yield layer


def _is_plain(node: NodeProto) -> bool:
    """Whether the node is a convolution, or the product by a matrix."""
    if node.op_type == "Gemm":
        defaults = {"alpha": 1.0, "beta": 1.0, "transA": 0}
        return all(attribute_of(node, name, value) == value for name, value in defaults.items())
    return node.op_type in ("Conv", "MatMul")


def _largest(model: ModelProto) -> int:
    """The bytes of the largest tensor of a model in float, by the shapes that it states."""
    values = (*model.graph.value_info, *model.graph.input)
    sizes = [math.prod(int(dim.dim_value) for dim in it.type.tensor_type.shape.dim) for it in values]
    return 4 * max((1, *sizes))


def _places(count: int, most: int) -> Array:
    """Which of `count` rows to take: the same ones each time."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def _windows(x: Array, node: NodeProto, shape: Sequence[int], kernel: Sequence[int]) -> Array:
    """The windows [N, C, *outputs, *kernel] of a convolution with results of this shape."""
    ones = [1] * len(kernel)
    strides, dilations = (attribute_of(node, name, ones) for name in ("strides", "dilations"))
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    pads = _pads(
        node,
        [
            max(0, (count - 1) * stride + span - size)
            for count, stride, span, size in zip(shape, strides, reach, x.shape[2:], strict=True)
        ],
    )
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    windows = sliding_window_view(padded, reach, axis=tuple(range(2, x.ndim)))
    steps = tuple(slice(None, None, it) for it in (*strides, *dilations))
    return windows[:, :, *steps]


def _pads(node: NodeProto, missing: Sequence[int]) -> list[tuple[int, int]]:
    """The padding before and after each axis; `missing`: what all windows reach beyond the input."""
    match attribute_of(node, "auto_pad", b"NOTSET"):
        case b"SAME_UPPER":
            return [(it // 2, it - it // 2) for it in missing]
        case b"SAME_LOWER":
            return [(it - it // 2, it // 2) for it in missing]
    pads = attribute_of(node, "pads", [0] * 2 * len(missing))
    return list(zip(pads[: len(missing)], pads[len(missing) :], strict=True))
