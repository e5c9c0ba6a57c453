"""TRANSPOSE_CONV as a convolution that computes a block of pixels in its channels, and a rearrangement.

With a stride of s, an output pixel reads only every s-th tap. So the taps of each of the s * s places in a
block form a smaller filter. It has zeros at the end if the size of the whole filter is not a multiple of s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.convolutions import bias_of, require_ranks, require_scales_along, strides_of
from mcudeploy.frontend.tflite.scales import fused, parameters
from mcudeploy.frontend.tflite.writer import Writer


@dataclass(frozen=True, slots=True)
class UpsamplingAxis:
    """Geometry along rows or columns: `taps` of the small filters, and `pads` of the convolution.

    Each of the `blocks` has `stride` places; the result starts at place `first` of the first block.
    """

    stride: int
    taps: int
    pads: tuple[int, int]
    blocks: int
    first: int


def transpose_conv(writer: Writer, operator: TfliteOperator) -> None:
    """TRANSPOSE_CONV, with the inputs output shape, constant filter [K, R, S, C] and image [N, H, W, C]."""
    kernel, image, result = writer.input(operator, 1), writer.input(operator, 2), writer.output(operator)
    require_ranks(image, kernel)
    require_scales_along(kernel, 0)
    if kernel.data is None or len(result.shape) != 4 or result.shape[3] != kernel.shape[0]:
        raise Unsupported(f"its filter must be constant, and fit a result {list(result.shape)}")
    rows, cols = upsampling_axes(operator, image, kernel, result)
    inputs = [writer.image(image), _filters(writer, kernel, rows, cols)]
    bias = bias_of(writer, writer.optional_input(operator, 3), (image, kernel), result.shape[3])
    inputs += [_repeated(writer, name, rows.stride * cols.stride, result.shape[3]) for name in bias]
    pads = [rows.pads[0], cols.pads[0], rows.pads[1], cols.pads[1]]
    onnx_name = writer.channels_last(
        writer.node("Conv", inputs, kernel_shape=[rows.taps, cols.taps], pads=pads)
    )
    stored = writer.as_stored(onnx_name, result, fused(operator))
    writer.finish(result, placed(writer, stored, result, rows, cols))


def transpose_conv_with_bias(writer: Writer, operator: TfliteOperator) -> None:
    """MediaPipe's Convolution2DTransposeBias of image, filter and bias, which pads as TRANSPOSE_CONV does."""
    image, kernel, bias = operator.inputs
    options = {**operator.options, "Padding": operator.integer("TfLitePadding") - 1}
    transpose_conv(writer, replace(operator, inputs=(-1, kernel, image, bias), options=options))


def upsampling_axes(
    operator: TfliteOperator, image: TfliteTensor, kernel: TfliteTensor, result: TfliteTensor
) -> tuple[UpsamplingAxis, UpsamplingAxis]:
    """The geometry along rows and columns. Raises Unsupported for sizes that do not fit."""
    same = operator.integer("Padding") == 0
    strides = strides_of(operator)
    rows, cols = (
        _axis(image.shape[at], kernel.shape[at], stride, result.shape[at], same=same)
        for at, stride in zip((1, 2), strides, strict=True)
    )
    return rows, cols


def _axis(size: int, taps: int, stride: int, out_size: int, *, same: bool) -> UpsamplingAxis:
    """The geometry along an axis.

    Result r of block q is the sum over j of input q - j times tap stride * j + r, before the padding is cut.
    """
    total = max((-(-out_size // stride) - 1) * stride + taps - out_size, 0)
    before = total // 2 if same else 0
    small_taps, skipped = -(-taps // stride), before // stride
    blocks = (out_size - 1 + before) // stride - skipped + 1
    pads = small_taps - 1 - skipped, blocks - 1 + skipped - size + 1
    if out_size < 1 or taps < 1 or min(pads) < 0:
        raise Unsupported(f"a result of {out_size} from {size} by {taps} taps with a stride of {stride}")
    return UpsamplingAxis(stride, small_taps, pads, blocks, before % stride)


def _filters(writer: Writer, kernel: TfliteTensor, rows: UpsamplingAxis, cols: UpsamplingAxis) -> str:
    """The filters [stride * stride * K, C, taps, taps] of the places in a block, as float32 values."""
    quantized = kernel.kind != "FLOAT32"
    turned = filters_of_places(
        kernel.array(), (rows, cols), parameters(kernel).zero_point[0] if quantized else 0
    )
    name = writer.constant(np.ascontiguousarray(turned.transpose(0, 3, 1, 2)))
    if not quantized:
        return name
    scales = parameters(kernel).repeated(rows.stride * cols.stride)
    return writer.dequantized(name, scales.scale, kernel.dtype or "", scales)


def filters_of_places(
    array: NDArray[np.generic], axes: tuple[UpsamplingAxis, UpsamplingAxis], filling: int
) -> NDArray[np.generic]:
    """The small filters [stride * stride * K, taps, taps, C] of the places in a block, from [K, R, S, C].

    `filling`: the value of taps that the filter lacks.
    """
    rows, cols = axes
    count, height, width, depth = array.shape
    shape = count, rows.taps * rows.stride, cols.taps * cols.stride, depth
    if np.prod(shape, dtype=float) > MAX_TENSOR_ELEMENTS:
        raise Unsupported(
            f"its filter has the shape {list(array.shape)} for strides {rows.stride}, {cols.stride}"
        )
    filled: NDArray[np.generic] = np.full(shape, filling, array.dtype)
    filled[:, :height, :width] = array
    split = filled.reshape(count, rows.taps, rows.stride, cols.taps, cols.stride, depth)
    turned = split[:, ::-1, :, ::-1].transpose(2, 4, 0, 1, 3, 5)
    return np.ascontiguousarray(turned).reshape(-1, rows.taps, cols.taps, depth)


def _repeated(writer: Writer, name: str, times: int, count: int) -> str:
    """A vector of `count` values, repeated; only by movements, so that a constant keeps its integers."""
    for op, shape in (("Reshape", (1, count)), ("Expand", (times, count)), ("Reshape", (times * count,))):
        name = writer.part(op, [name, writer.int64(shape)])
    return name


def placed(
    writer: Writer, name: str, result: TfliteTensor, rows: UpsamplingAxis, cols: UpsamplingAxis
) -> str:
    """Rearrange blocks [N, H, W, stride * stride * K] to the result."""
    batch, height, width, channels = result.shape
    blocks = [batch, rows.blocks, cols.blocks, rows.stride, cols.stride, channels]
    uncropped = [batch, rows.blocks * rows.stride, cols.blocks * cols.stride, channels]
    name = writer.reshaped(name, blocks)
    name = writer.part("Transpose", [name], perm=[0, 1, 3, 2, 4, 5])
    name = writer.reshaped(name, uncropped)
    if uncropped == list(result.shape):
        return name
    limits = [rows.first, cols.first], [rows.first + height, cols.first + width], [1, 2]
    ranges = [writer.int64(each) for each in limits]
    return writer.part("Slice", [name, *ranges])
