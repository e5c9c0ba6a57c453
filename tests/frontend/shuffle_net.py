"""ShuffleNetV2 as torchvision defines it, with drawn weights, quantised by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.networks.onnx_files import Array, build, node, save

_SAMPLES = 4
X0_5 = ((4, 48), (8, 96), (4, 192))
"""Units and channels of each stage."""


class ShuffleNet:
    """The network in the making, on images (1, 3, side, side)."""

    def __init__(self, side: int, stages: tuple[tuple[int, int], ...] = X0_5, *, classes: int = 1000) -> None:
        self.random = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.image = (1, 3, side, side)
        value = self._conv("image", 3, 24, 3, 2)
        value = self._add("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        side, inputs = side // 4, 24
        for units, outputs in stages:
            side, half = side // 2, outputs // 2
            shapes = f"{self._shape(1, 2, half, side, side)} {self._shape(1, outputs, side, side)}"
            value = self._unit(value, inputs, half, shapes, first=True)
            for _ in range(units - 1):
                value = self._unit(value, half, half, shapes)
            inputs = outputs
        value = self._conv(value, inputs, 1024)
        value = self._add("ReduceMean", value, axes=[2, 3], keepdims=0)
        weights = self._constant("w", self.random.normal(0, 0.03, (classes, 1024)).astype(np.float32))
        self.output = self._add("Gemm", value, self._with_bias(weights, classes), transB=1)

    def model(self) -> onnx.ModelProto:
        """The float model."""
        return build(
            self.nodes, {"image": np.zeros(self.image, np.float32)}, [self.output], self.constants, 13
        )

    def _unit(self, value: str, inputs: int, half: int, shapes: str, *, first: bool = False) -> str:
        """Half of the channels beside convolved ones; a first unit takes all of them, by two branches."""
        kept = convolved = value
        if first:
            deep = self._conv(value, inputs, inputs, 3, 2, deep=True, relu=False)
            kept = self._conv(deep, inputs, half)
        else:
            kept, convolved = f"kept_{len(self.nodes)}", f"split_{len(self.nodes)}"
            self.nodes.append(node("Split", value, f"{kept} {convolved}", axis=1))
        convolved = self._conv(convolved, inputs, half)
        convolved = self._conv(convolved, half, half, 3, 2 if first else 1, deep=True, relu=False)
        convolved = self._conv(convolved, half, half)
        grouped, flat = shapes.split()
        value = self._add("Reshape", self._add("Concat", f"{kept} {convolved}", axis=1), grouped)
        return self._add("Reshape", self._add("Transpose", value, perm=[0, 2, 1, 3, 4]), flat)

    def _conv(
        self, value: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, *, deep: bool = False,
        relu: bool = True,
    ) -> str:  # fmt: skip
        each = 1 if deep else inputs
        drawn = self.random.normal(0, (2 / (each * kernel * kernel)) ** 0.5, (outputs, each, kernel, kernel))
        weights = self._with_bias(self._constant("w", drawn.astype(np.float32)), outputs)
        output = self._add(
            "Conv", value, weights, strides=[stride] * 2, pads=[kernel // 2] * 4, group=inputs if deep else 1
        )
        return self._add("Relu", output) if relu else output

    def _with_bias(self, weights: str, outputs: int) -> str:
        return f"{weights} {self._constant('b', self.random.normal(0, 0.1, outputs).astype(np.float32))}"

    def _shape(self, *sizes: int) -> str:
        return self._constant("shape", np.array(sizes))

    def _constant(self, stem: str, value: Array) -> str:
        name = f"{stem}_{len(self.constants)}"
        self.constants[name] = value
        return name

    def _add(self, op: str, value: str, more: str = "", **attributes: object) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(node(op, f"{value} {more}", name, **attributes))
        return name


class _Images(CalibrationDataReader):
    def __init__(self, name: str, images: Iterator[Array]) -> None:
        self._rest = ({name: image} for image in images)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._rest, None)


def quantised(net: ShuffleNet, folder: Path) -> Path:
    """The int8 model with a Q and a DQ around every node, per channel, as a file."""
    images = np.random.default_rng(6).normal(0, 1, (_SAMPLES, *net.image)).astype(np.float32)
    path, int8 = save(net.model(), folder), folder / "int8.onnx"
    quantize_static(
        path, int8, _Images("image", iter(images)), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return int8
