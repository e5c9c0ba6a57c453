"""Random networks of pools, branches, gates and activations of all kinds, to train."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto
from training_models import Network

ACTIVATIONS = (
    "Relu", "Clip6", "Clip1", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Selu",
    "Celu", "Softplus", "Erf", "",
)  # fmt: skip


class Branching(Network):
    """A network whose blocks are drawn with its generator of weights."""

    def drawn(self, *choices: Any) -> Any:
        """One of these."""
        return choices[int(self.rng.integers(len(choices)))]

    def integers(self, *values: int) -> str:
        """A constant of int64 values."""
        name = f"w{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def layer(self) -> None:
        """A convolution and an activation."""
        channels, rows, cols = self.size
        stride = self.drawn(1, 1, 2) if min(rows, cols) > 4 else 1
        if self.drawn(True, False):
            self.conv(channels, 3, stride, 1, channels)
        else:
            self.conv(int(self.rng.integers(2, 9)), self.drawn(1, 3), stride)
        self.activation(self.drawn(*ACTIVATIONS))

    def pool(self) -> None:
        """A pool with random windows, pads and strides."""
        kernel, ceil = [self.drawn(1, 2, 3), self.drawn(2, 3)], self.drawn(0, 1)
        strides, pad = [self.drawn(1, 2, 3), self.drawn(1, 2)], self.drawn(0, 0, 1)
        pads = [min(pad, kernel[0] - 1), 0, 0, pad]
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": ceil}
        op = self.drawn("MaxPool", "AveragePool")
        if op == "AveragePool" and not ceil:
            attributes["count_include_pad"] = self.drawn(0, 1)
        sizes = []
        for at in (0, 1):
            free = self.size[at + 1] + pads[at] + pads[at + 2] - kernel[at]
            count = free // strides[at] + 1
            more = ceil and free % strides[at] and count * strides[at] < self.size[at + 1] + pads[at]
            sizes.append(count + int(bool(more)))
        self.node(op, [self.value], **attributes)
        self.size = (self.size[0], sizes[0], sizes[1])

    def branches(self) -> None:
        """Two or three layers of one value, side by side."""
        start, size, values, channels = self.value, self.size, [], 0
        for _ in range(self.drawn(2, 3)):
            self.value, self.size = start, size
            self.conv(int(self.rng.integers(1, 6)), self.drawn(1, 3))
            self.activation(self.drawn(*ACTIVATIONS))
            values.append(self.value)
            channels += self.size[0]
        if self.drawn(True, False):
            values.append(start)
            channels += size[0]
        self.node("Concat", values, axis=1)
        self.size = (channels, *size[1:])

    def gate(self) -> None:
        """Squeeze and excitation, or a sum with what would be the gate."""
        start, size = self.value, self.size
        self.node("GlobalAveragePool", [start])
        self.size = (size[0], 1, 1)
        self.conv(size[0], 1)
        self.activation(self.drawn("HardSigmoid", "Sigmoid", "Tanh"))
        self.node(self.drawn("Mul", "Add", "Sub"), self.drawn([start, self.value], [self.value, start]))
        self.size = size

    def residual(self) -> None:
        """A layer of the same size, joined with its input."""
        start = self.value
        self.conv(self.size[0], 3)
        self.activation(self.drawn(*ACTIVATIONS))
        self.node(self.drawn("Add", "Sub", "Mul"), [self.value, start])
        self.activation(self.drawn("Relu", "", "LeakyRelu"))

    def moved(self) -> None:
        """Repeated, cropped, padded or shuffled values."""
        channels, rows, cols = self.size
        kind = self.drawn("Resize", "Slice", "Pad", "Transpose")
        if kind == "Resize" and rows * cols <= 64:
            scales = f"w{len(self.constants)}"
            self.constants[scales] = np.array([1, 1, 2, 2], np.float32)
            how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            self.node("Resize", [self.value, "", scales], **how)
            self.size = (channels, 2 * rows, 2 * cols)
        elif kind == "Slice" and channels > 1:
            bounds = self.integers(1), self.integers(channels), self.integers(1)
            self.node("Slice", [self.value, *bounds])
            self.size = (channels - 1, rows, cols)
        elif kind == "Transpose":
            self.node("Transpose", [self.value], perm=[0, 1, 3, 2])
            self.size = (channels, cols, rows)
        else:
            self.node("Pad", [self.value, self.integers(0, 0, 1, 0, 0, 0, 0, 2)])
            self.size = (channels, rows + 1, cols + 2)


def branching_network(seed: int) -> ModelProto:
    """A network of a layer and two to five blocks, a pool of the whole image or none, and a dense layer."""
    rng = np.random.default_rng([seed, 1])
    net = Branching(seed, (int(rng.integers(1, 4)), int(rng.integers(6, 12)), int(rng.integers(6, 12))))
    net.layer()
    for _ in range(int(rng.integers(2, 6))):
        block = net.drawn(net.layer, net.pool, net.branches, net.gate, net.residual, net.moved)
        if block != net.pool or min(net.size[1:]) >= 3:
            block()
    if net.drawn(True, False):
        net.node(net.drawn("GlobalAveragePool", "GlobalMaxPool"), [net.value])
        net.size = (net.size[0], 1, 1)
    net.dense(int(rng.integers(2, 6)))
    return net.model()
