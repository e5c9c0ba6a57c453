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
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.extensions.quantization.data import Sample
from mcudeploy.extensions.quantization.model_walk import ModelWalk
from mcudeploy.extensions.quantization.weight_rounding import LayerWeights, Moments, round_weights
from mcudeploy.extensions.quantization.weights import output_axis
from mcudeploy.frontend.onnx.protos import attribute_of, copy_of, sizes_of
from mcudeploy.frontend.onnx.windows import same_pads
from mcudeploy.frontend.pieces import names_read

Array = NDArray[Any]

_MOST_INPUTS = 2048
"""Limit of n, the weights of a channel, for adaptive rounding, whose time grows with n^3.

With g groups the limit applies to sqrt(g) * n.
"""

_MOST_ROWS = 32_768
_MOST_PRODUCTS = 1e10
"""Limits for a layer: the rows from all samples, and the products for the moments."""

_MOST_BYTES = 2**28
"""Limit of the largest tensor over all samples."""

_FEWEST_SAMPLES = 16
_CHECK_EVERY = 4
"""One sample out of this number is not fitted; it decides how closely to fit the others."""

_LEVELS = {int(TensorProto.INT8): (-127, 127), int(TensorProto.INT4): (-8, 7)}
_MOST_BIAS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class _StoredConstant:
    """A constant of the quantised model: its integers, and their scale for each channel or for all."""

    tensor: TensorProto
    scale: TensorProto


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A node of the quantised model with integer weights, of g groups with K channels of n weights each.

    `result`, `real`: the name of the result, and the weights, of the same node in the float model.
    """

    node: NodeProto
    result: str
    real: TensorProto
    weights: _StoredConstant
    bias: _StoredConstant | None

    @property
    def groups(self) -> int:
        """The number g of groups."""
        return int(attribute_of(self.node, "group", 1))

    @property
    def inputs(self) -> int:
        """The number n of weights of a channel."""
        dims = self.weights.tensor.dims
        return math.prod(dims[1:]) if self._channels_first else int(dims[0])

    @property
    def products(self) -> int:
        """The number g n^2 of products that the moments need for a row."""
        return self.groups * self.inputs**2

    @property
    def _channels_first(self) -> bool:
        return output_axis(self.node) == 0

    def grouped(self, weights: Array) -> Array:
        """The weights in the node's order as [g, K, n]."""
        ordered = weights if self._channels_first else weights.T
        return np.reshape(ordered, (self.groups, -1, self.inputs))

    def ungrouped(self, weights: Array) -> Array:
        """The weights [g, K, n] in the node's order."""
        return weights.reshape(tuple(self.weights.tensor.dims)) if self._channels_first else weights[0].T

    def rows(self, x: Array, y: Array, most: int) -> tuple[Array, Array]:
        """Rows of the input `x` of a sample as [g, rows, n], and their results in `y` as [g, rows, K].

        `most`: limit of the rows of a matrix product, or of the positions of a convolution in each image.
        """
        if self.node.op_type == "Conv":
            return self._rows_of_windows(x, y, most)
        columns, results = (it.reshape(1, -1, it.shape[-1]) for it in (x, y))
        places = _places(columns.shape[1], most)
        return columns[:, places], results[:, places]

    def _rows_of_windows(self, x: Array, y: Array, most: int) -> tuple[Array, Array]:
        """Rows of a convolution of `x` [N, C, ...]; `y` is [N, g K, ...]."""
        kernel, sizes = tuple(self.weights.tensor.dims[2:]), y.shape[2:]
        places = _places(math.prod(sizes), most)
        at: Any = (slice(None), slice(None), *np.unravel_index(places, sizes))
        shape = (len(x), self.groups, -1, len(places))
        windows = _windows(x, self.node, kernel)[at].reshape(*shape, math.prod(kernel))
        return (
            windows.transpose(1, 0, 3, 2, 4).reshape(self.groups, -1, self.inputs),
            y[at].reshape(shape).transpose(1, 0, 3, 2).reshape(self.groups, len(x) * len(places), -1),
        )


def round_adaptively(
    model: ModelProto,
    floats: ModelProto,
    samples: Sequence[Sample],
    folder: Path,
    advance: Callable[[int, int], None],
) -> ModelProto:
    """Return the quantised `model` with weights rounded adaptively by calibration samples.

    `floats`: the prepared float model. Weights and biases of convolutions and matrix products change.
    """
    result = copy_of(model)
    layers = list(_layers(result, floats))
    used = samples[: max(_FEWEST_SAMPLES, _MOST_BYTES // _largest(floats))]
    walk = ModelWalk(result, folder / "piece.onnx", used)
    float_walk = ModelWalk(floats, folder / "float piece.onnx", used)
    for done, layer in enumerate(layers):
        advance(done, len(layers))
        values = walk.to(layer.node.input[0]), float_walk.to(layer.result)
        moments = _moments(layer, *values, len(used))
        if moments is not None:
            _round(layer, *moments)
    return result


def _round(layer: _Layer, fit: Moments, check: Moments) -> None:
    """Replace the constants of a layer by those that `round_weights` finds."""
    weights, scale = layer.weights.tensor, layer.weights.scale
    real = layer.grouped(numpy_helper.to_array(layer.real).astype(np.float64))
    old_scales = numpy_helper.to_array(scale).astype(np.float64).reshape(-1)
    shape = (*real.shape[:2], 1)
    scales = np.broadcast_to(old_scales, math.prod(shape)).reshape(shape)
    unrounded = LayerWeights(real, scales, *_LEVELS[weights.data_type], layer.bias is not None)
    rounded = round_weights(unrounded, fit, check)
    dtype = helper.tensor_dtype_to_np_dtype(weights.data_type)
    _store(weights, layer.ungrouped(rounded.integers).astype(dtype))
    new_scales = rounded.scales.reshape(-1)
    if new_scales.size == old_scales.size:
        _store(scale, new_scales.astype(np.float32))
    if layer.bias is not None:
        _store_bias(layer.bias, rounded.bias.reshape(-1), new_scales / old_scales)


def _store_bias(stored: _StoredConstant, bias: Array, growth: Array) -> None:
    """Replace a stored bias by the real values `bias`. `growth`: the factor by which its scales change."""
    scales = (numpy_helper.to_array(stored.scale) * growth).astype(np.float32)
    integers = np.rint(bias / scales.astype(np.float64))
    _store(stored.tensor, np.clip(integers, -_MOST_BIAS, _MOST_BIAS).astype(np.int32))
    _store(stored.scale, scales)


def _store(tensor: TensorProto, values: Array) -> None:
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))


def _moments(
    layer: _Layer, inputs: Iterator[Array], results: Iterator[Array], count: int
) -> tuple[Moments, Moments] | None:
    """The moments of the samples to fit and of the samples to check; None if a value is not finite."""
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
    stored = _stored_constants(model)
    restored = {it.output[0] for it in model.graph.node if it.op_type == "DequantizeLinear"}
    float_nodes = {it.name: it for it in floats.graph.node}
    floats_by_name = {it.name: it for it in floats.graph.initializer}
    for node in model.graph.node:
        float_node = float_nodes.get(node.name)
        if float_node is None or not _is_product(node) or node.input[0] not in restored:
            continue
        real, weights = floats_by_name.get(float_node.input[1]), stored.get(node.input[1])
        bias_name = "".join(node.input[2:])
        bias = stored.get(bias_name)
        if real is None or weights is None or (bias_name and (bias is None or len(bias.tensor.dims) != 1)):
            continue
        layer = _Layer(node, float_node.output[0], real, weights, bias)
        is_matrix = len(weights.tensor.dims) == 2
        if (is_matrix or node.op_type == "Conv") and layer.products <= _MOST_INPUTS**2:
            yield layer


def _stored_constants(model: ModelProto) -> dict[str, _StoredConstant]:
    """The integer constants that only one node reads, by the names of their real values."""
    constants = {it.name: it for it in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in names_read(node))
    stored = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and readers[node.output[0]] == readers[node.input[0]] == 1:
            tensor, scale = (constants.get(it) for it in node.input[:2])
            if tensor is not None and scale is not None:
                stored[node.output[0]] = _StoredConstant(tensor, scale)
    return stored


def _is_product(node: NodeProto) -> bool:
    """Whether the node is a convolution, or a matrix product without factors."""
    if node.op_type == "Gemm":
        defaults = {"alpha": 1.0, "beta": 1.0, "transA": 0}
        return all(attribute_of(node, name, value) == value for name, value in defaults.items())
    return node.op_type in ("Conv", "MatMul")


def _largest(model: ModelProto) -> int:
    """The bytes of the largest float32 tensor of a model, by the shapes that the file states."""
    values = (*model.graph.value_info, *model.graph.input)
    return 4 * max((1, *(math.prod(sizes_of(it)) for it in values)))


def _places(count: int, most: int) -> Array:
    """The numbers of at most `most` out of `count` rows, the same ones each time."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def _windows(x: Array, node: NodeProto, kernel: Sequence[int]) -> Array:
    """The windows [N, C, *outputs, *kernel] of a convolution of `x` [N, C, ...]."""
    ones = [1] * len(kernel)
    strides, dilations = (attribute_of(node, name, ones) for name in ("strides", "dilations"))
    reaches = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    auto_pad = attribute_of(node, "auto_pad", b"NOTSET")
    if auto_pad.startswith(b"SAME"):
        axes = zip(x.shape[2:], reaches, strides, strict=True)
        pads = [same_pads(*axis, upper=auto_pad == b"SAME_UPPER")[:2] for axis in axes]
    else:
        stated = attribute_of(node, "pads", [0, 0] * len(kernel))
        pads = list(zip(stated[: len(kernel)], stated[len(kernel) :], strict=True))
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    windows = sliding_window_view(padded, reaches, axis=tuple(range(2, x.ndim)))
    steps = tuple(slice(None, None, it) for it in (*strides, *dilations))
    return windows[:, :, *steps]
