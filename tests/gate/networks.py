"""Networks whose plans the gate watches: the architectures that microcontrollers run, with drawn weights.

Arena, instructions and flash depend on the shapes of a network, hardly on the values of its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import onnx

from tests.networks.onnx_files import QuantizedModel, build

_SCALE = 0.05
"""Of every activation."""

Shape = tuple[int, int, int]
"""Channels, height, width."""


class Net:
    """A network in the making, channels first as in ONNX; every value is a name with a shape.

    `quantized`: int8 as Q/DQ, else float32.
    """

    def __init__(self, image: Shape, *, quantized: bool = True) -> None:
        self.quantized = quantized
        self._model = QuantizedModel(seed=17)
        self._shapes: dict[str, Shape] = {}
        self._image = image
        self.image = self._stored("image", image) if quantized else self._known("image", image)

    def conv(
        self, source: str, channels: int, kernel: int = 1, stride: int = 1, *, deep: bool = False,
        relu: bool = True,
    ) -> str:  # fmt: skip
        """A convolution with SAME padding; `deep`: depthwise. Sequences (width 1) have narrow kernels."""
        inputs, height, width = self._shapes[source]
        size = (kernel, kernel if width > 1 else 1)
        strides = (stride, stride if width > 1 else 1)
        pads = [(each - 1) // 2 for each in size] + [each // 2 for each in size]
        weights = self._weights((channels, 1 if deep else inputs, *size))
        name = self._add(
            "Conv", f"{source} {weights}", strides=strides, pads=pads, group=inputs if deep else 1
        )  # fmt: skip
        rows, columns = (-(-extent // step) for extent, step in zip((height, width), strides, strict=True))
        return self._value(self._add("Relu", name) if relu else name, (channels, rows, columns))

    def add(self, one: str, other: str) -> str:
        """The sum of two values of one shape."""
        return self._value(self._add("Add", f"{one} {other}"), self._shapes[one])

    def concat(self, *sources: str) -> str:
        """Values side by side along their channels."""
        channels = sum(self._shapes[source][0] for source in sources)
        return self._value(
            self._add("Concat", " ".join(sources), axis=1), (channels, *self._shapes[sources[0]][1:])
        )  # fmt: skip

    def pool(self, source: str, kind: str = "MaxPool", kernel: int = 2, stride: int = 2) -> str:
        """A pool; one with stride 1 keeps the size."""
        channels, height, width = self._shapes[source]
        pads = [0] * 4 if stride > 1 else [(kernel - 1) // 2] * 2 + [kernel // 2] * 2
        name = self._add(
            kind, source, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=pads
        )  # fmt: skip
        return self._value(name, (channels, height // stride, width // stride))

    def resize(self, source: str) -> str:
        """Twice the height and width, bilinear."""
        channels, height, width = self._shapes[source]
        scales = f"scales_{len(self._shapes)}"
        self._model.constants[scales] = np.array([1, 1, 2, 2], np.float32)
        name = self._add("Resize", f"{source} - {scales}", mode="linear")
        return self._value(name, (channels, 2 * height, 2 * width))

    def dense(self, source: str, outputs: int, *, relu: bool = False) -> str:
        """A mean over the image, and a fully connected layer."""
        channels, height, width = self._shapes[source]
        pooled = source
        if height * width > 1:
            pooled = self._value(self._add("GlobalAveragePool", source), (channels, 1, 1))
        flat = self._add("Flatten", pooled)
        weights = self._weights((outputs, channels))
        name = self._add("Gemm", f"{flat} {weights}", transB=1)
        name = self._add("Relu", name) if relu else name
        result = self._value(name, (outputs, 1, 1))
        self._shapes[result] = (outputs, 1, 1)
        return result

    def finish(self, output: str) -> onnx.ModelProto:
        """The model."""
        image = np.zeros((1, *self._image), np.int8 if self.quantized else np.float32)
        if self.quantized:  # it ends at the quantised value
            output = next(one.input[0] for one in self._model.nodes if one.output[0] == output)
        used = {name for one in self._model.nodes for name in one.input}
        constants = {name: value for name, value in self._model.constants.items() if name in used}
        return build(self._model.nodes, {"image": image}, [output], constants)

    def _known(self, name: str, shape: Shape) -> str:
        self._shapes[name] = shape
        return name

    def _stored(self, name: str, shape: Shape) -> str:
        return self._known(self._model.dequantize(name, _SCALE, 0), shape)

    def _value(self, name: str, shape: Shape) -> str:
        return self._known(self._model.quantize(name, _SCALE, 0) if self.quantized else name, shape)

    def _add(self, op: str, inputs: str, **attributes: object) -> str:
        return self._model.add(op, inputs, f"{op.lower()}_{len(self._model.nodes)}", **attributes)

    def _weights(self, shape: tuple[int, ...]) -> str:
        name = f"weights_{len(self._model.nodes)}"
        if self.quantized:
            return self._model.weights(name, shape)
        self._model.constants[name] = self._model.random.normal(size=shape).astype(np.float32)
        return name


def keywords() -> onnx.ModelProto:
    """DS-CNN on 49 x 10 features, as for keyword spotting."""
    net = Net((1, 49, 10))
    value = net.conv(net.image, 64, 5, 2)
    for _ in range(4):
        value = net.conv(net.conv(value, 64, 3, deep=True), 64)
    return net.finish(net.dense(value, 12))


def wake_words() -> onnx.ModelProto:
    """MobileNetV1 x 0.25 on 96 x 96 pixels."""
    net = Net((3, 96, 96))
    value, channels = net.conv(net.image, 8, 3, 2), 8
    for outputs, stride in zip(
        (16, 32, 32, 64, 64, *[128] * 6, 256, 256), (1, 2, 1, 2, 1, 2, *[1] * 5, 2, 1), strict=True
    ):
        value = net.conv(net.conv(value, channels, 3, stride, deep=True), outputs)
        channels = outputs
    return net.finish(net.dense(value, 2))


def images(*, quantized: bool = True) -> onnx.ModelProto:
    """ResNet-8 on 32 x 32 pixels."""
    net = Net((3, 32, 32), quantized=quantized)
    value = net.conv(net.image, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        inner = net.conv(net.conv(value, channels, 3, stride), channels, 3, relu=False)
        value = net.add(inner, value if stride == 1 else net.conv(value, channels, 1, stride, relu=False))
    return net.finish(net.dense(value, 10))


def inverted(
    net: Net, value: str, inputs: int, outputs: int, stride: int, kernel: int = 3, widen: int = 6
) -> str:
    """An inverted residual block."""
    inner = net.conv(value, widen * inputs) if widen > 1 else value
    inner = net.conv(net.conv(inner, widen * inputs, kernel, stride, deep=True), outputs, relu=False)
    return net.add(inner, value) if stride == 1 and inputs == outputs else inner


def mobile(size: int = 96, *, quantized: bool = True) -> onnx.ModelProto:
    """MobileNetV2 x 0.35."""
    net = Net((3, size, size), quantized=quantized)
    value, inputs = inverted(net, net.conv(net.image, 16, 3, 2), 16, 8, 1, widen=1), 8
    for outputs, count, stride in ((8, 2, 2), (16, 3, 2), (24, 4, 2), (32, 3, 1), (56, 3, 2), (112, 1, 1)):
        for number in range(count):
            value = inverted(net, value, inputs, outputs, 1 if number else stride)
            inputs = outputs
    return net.finish(net.dense(net.conv(value, 256), 10))


def detector() -> onnx.ModelProto:
    """The front of MobileNetV2 with a head for each cell (FOMO)."""
    net = Net((3, 96, 96))
    value, inputs = inverted(net, net.conv(net.image, 16, 3, 2), 16, 8, 1, widen=1), 8
    for outputs, stride in ((8, 2), (8, 1), (16, 2), (16, 1), (16, 1)):
        value, inputs = inverted(net, value, inputs, outputs, stride), outputs
    return net.finish(net.conv(net.conv(value, 32), 3, relu=False))


def searched() -> onnx.ModelProto:
    """Blocks of mixed kernels as a search for microcontrollers finds them (MCUNet), 128 x 128 pixels."""
    net = Net((3, 128, 128))
    value, inputs = inverted(net, net.conv(net.image, 16, 3, 2), 16, 8, 1, widen=1), 8
    blocks = (
        (16, 2, 7, 3),
        (16, 1, 3, 4),
        (24, 2, 5, 5),
        (24, 1, 7, 4),
        (40, 2, 7, 5),
        (40, 1, 3, 4),
        (48, 1, 5, 5),
        (96, 2, 7, 6),
        (160, 1, 3, 4),
    )
    for outputs, stride, kernel, widen in blocks:
        value, inputs = inverted(net, value, inputs, outputs, stride, kernel, widen), outputs
    return net.finish(net.dense(value, 2))


def unet() -> onnx.ModelProto:
    """An encoder and a decoder with two skip connections, float32, 32 x 32 pixels."""
    net = Net((3, 32, 32), quantized=False)
    first = net.conv(net.conv(net.image, 8, 3), 8, 3)
    second = net.conv(net.conv(net.pool(first), 16, 3), 16, 3)
    bottom = net.conv(net.conv(net.pool(second), 24, 3), 16, 3)
    value = net.conv(net.concat(net.resize(bottom), second), 8, 3)
    return net.finish(net.conv(net.conv(net.concat(net.resize(value), first), 8, 3), 1, relu=False))


def cells() -> onnx.ModelProto:
    """Three cells of branches that meet in sums and a concatenation (NASNet), 32 x 32 pixels."""
    net = Net((3, 32, 32))
    before = value = net.conv(net.image, 16, 3)
    for _ in range(3):
        one, other = net.conv(value, 8), net.conv(before, 8)
        deep = [
            net.conv(net.conv(each, 8, kernel, deep=True), 8, relu=False)
            for each in (one, other)
            for kernel in (3, 5)
        ]
        sums = [
            net.add(deep[0], one),
            net.add(deep[1], deep[2]),
            net.add(net.pool(one, "AveragePool", 3, 1), other),
            net.add(deep[3], net.pool(other, "AveragePool", 3, 1)),
        ]
        before, value = value, net.concat(*sums)
    return net.finish(net.dense(value, 10))


def dense_blocks() -> onnx.ModelProto:
    """Two blocks in which every layer reads all before it (DenseNet), 32 x 32 pixels."""
    net = Net((3, 32, 32))
    value, channels = net.conv(net.image, 16, 3), 16
    for block in range(2):
        for _ in range(4):
            value = net.concat(value, net.conv(net.conv(value, 32), 8, 3))
            channels += 8
        if not block:
            channels //= 2
            value = net.pool(net.conv(value, channels), "AveragePool")
    return net.finish(net.dense(value, 10))


def series() -> onnx.ModelProto:
    """A 1-D network of residual blocks on 128 samples of 9 channels."""
    net = Net((9, 128, 1))
    value = net.conv(net.image, 32, 5, 2)
    for outputs, stride in ((32, 1), (48, 2), (48, 1), (64, 2)):
        inner = net.conv(net.conv(value, outputs, 5, stride), outputs, 3, relu=False)
        value = net.add(inner, net.conv(value, outputs, 1, stride, relu=False))
    return net.finish(net.dense(value, 6))


def anomalies() -> onnx.ModelProto:
    """A fully connected autoencoder."""
    net = Net((640, 1, 1))
    value = net.image
    for _, outputs in pairwise((640, 128, 128, 128, 8, 128, 128, 128)):
        value = net.dense(value, outputs, relu=True)
    return net.finish(net.dense(value, 640))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "keywords": keywords,
    "wake_words": wake_words,
    "images": images,
    "images_fp32": lambda: images(quantized=False),
    "mobile": mobile,
    "detector": detector,
    "searched": searched,
    "unet_fp32": unet,
    "cells": cells,
    "dense_blocks": dense_blocks,
    "series": series,
    "anomalies": anomalies,
}
