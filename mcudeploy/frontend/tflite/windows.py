"""Windows of convolutions and pools, and the two pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.tflite.contents import TfliteOperator
from mcudeploy.frontend.tflite.scales import fused
from mcudeploy.frontend.tflite.writer import Writer

_SAME, _VALID = 0, 1


def strides_of(operator: TfliteOperator) -> tuple[int, int]:
    """(rows, cols) of the strides. Raises Unsupported for strides below 1."""
    strides = operator.integer("StrideH"), operator.integer("StrideW")
    if min(strides) < 1:
        raise Unsupported(f"strides {list(strides)} must be at least 1")
    return strides


def window_attributes(operator: TfliteOperator, size: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """The attributes of the ONNX node of an operator over an image of `size`, both (rows, columns).

    Raises Unsupported for options that do not fit.
    """
    strides = strides_of(operator)
    dilations = [int(operator.options.get(f"Dilation{letter}Factor", 1)) for letter in "HW"]
    if min(*kernel, *dilations) < 1:
        raise Unsupported(f"window {list(kernel)} and dilations {dilations} must be at least 1")
    padding = operator.integer("Padding")
    if padding not in (_SAME, _VALID):
        raise Unsupported(f"padding {padding} is neither SAME nor VALID")
    befores, afters = [], []
    for length, reach, stride, dilation in zip(size, kernel, strides, dilations, strict=True):
        outputs = -(-length // stride)
        total = (
            max((outputs - 1) * stride + (reach - 1) * dilation + 1 - length, 0) if padding == _SAME else 0
        )
        befores.append(total // 2)
        afters.append(total - total // 2)
    attributes = {"kernel_shape": list(kernel), "strides": list(strides), "pads": [*befores, *afters]}
    return attributes if dilations == [1, 1] else {**attributes, "dilations": dilations}


def average_pool(writer: Writer, operator: TfliteOperator) -> None:
    """AVERAGE_POOL_2D: padding is excluded; ties of integers round away from zero."""
    image, result = writer.input(operator, 0), writer.output(operator)
    name = writer.image(image)
    made = writer.node("AveragePool", [name], **pool_attributes(operator, image.shape))
    if image.kind != "FLOAT32" and image.scales == result.scales:
        writer.round_exactly(made, image)
    writer.finish(result, writer.channels_last(made), fused(operator), late=True)


def max_pool(writer: Writer, operator: TfliteOperator) -> None:
    """MAX_POOL_2D: padding is never the largest."""
    image, result = writer.input(operator, 0), writer.output(operator)
    name = writer.image(image)
    made = writer.node("MaxPool", [name], **pool_attributes(operator, image.shape))
    writer.finish(result, writer.channels_last(made), fused(operator), late=True)


def pool_attributes(operator: TfliteOperator, shape: Sequence[int]) -> dict[str, Any]:
    """The attributes of the ONNX node of a pool over an image of this shape, as window_attributes."""
    kernel = operator.integer("FilterHeight"), operator.integer("FilterWidth")
    return window_attributes(operator, shape[1:3], kernel)
