"""Random networks to train: layers in a row, and pools, branches, gates and activations of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper

from tests.networks.onnx_files import build

Array = NDArray[Any]


class Network:
    """A network of images under construction; `value` is its last value, of the shape [1, *size]."""

    def __init__(self, seed: int, size: tuple[int, int, int]) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.size = size
        self.value = "x"
        self._input = size

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Add a node and return its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        self.value = name
        return name

    def weights(self, *shape: int) -> str:
        """Add random weights, whose products keep the size of their inputs."""
        name = f"w{len(self.constants)}"
        scale = 1.4 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        self.constants[name] = self.rng.normal(0, scale, shape).astype(np.float32)
        return name

    def conv(self, outputs: int, kernel: int, stride: int = 1, dilation: int = 1, group: int = 1) -> None:
        """Add a convolution with padding."""
        channels, rows, cols = self.size
        reach = dilation * (kernel - 1)
        pads = [reach // 2, reach // 2, reach - reach // 2, reach - reach // 2]
        inputs = [self.value, self.weights(outputs, channels // group, kernel, kernel), self.weights(outputs)]
        window = {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": pads, "group": group}
        self.node("Conv", inputs, **window)
        self.size = (outputs, -(-rows // stride), -(-cols // stride))

    def activation(self, kind: str) -> None:
        """Add an activation: Relu, Clip to [0, 6] or [-1, 1], Sigmoid, Tanh, or none for ""."""
        if kind.startswith("Clip"):
            low, high = (0.0, 6.0) if kind == "Clip6" else (-1.0, 1.0)
            names = []
            for bound in (low, high):
                names.append(f"w{len(self.constants)}")
                self.constants[names[-1]] = np.array(bound, np.float32)
            self.node("Clip", [self.value, *names])
        elif kind:
            self.node(kind, [self.value])

    def dense(self, outputs: int) -> None:
        """Add a flatten and a dense layer."""
        self.node("Flatten", [self.value])
        depth = int(np.prod(self.size))
        self.node("Gemm", [self.value, self.weights(outputs, depth), self.weights(outputs)], transB=1)
        self.size = (outputs, 1, 1)

    def model(self) -> ModelProto:
        """The model, whose output is the last value of a dense layer."""
        x, y = (np.float32, [1, *self._input]), (np.float32, [1, self.size[0]])
        return build(self.nodes, {"x": x}, {self.value: y}, self.constants)


ACTIVATIONS = ("Relu", "Clip6", "Clip1", "Sigmoid", "Tanh", "")


def random_network(seed: int) -> ModelProto:
    """A network of two to six layers: convolutions of all kinds, residual sums, a mean, dense layers."""
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(1, 6))
    network = Network(seed, (channels, int(rng.integers(5, 11)), int(rng.integers(5, 11))))
    for _ in range(int(rng.integers(1, 5))):
        channels, before = network.size[0], (network.value, network.size)
        kind = rng.choice(["dense", "pointwise", "depthwise", "multiplied"])
        stride, dilation = int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2]))
        outputs = int(rng.integers(1, 9))
        if kind == "depthwise":
            network.conv(channels, int(rng.choice([3, 5])), stride, dilation, channels)
        elif kind == "multiplied":
            network.conv(2 * channels, 3, stride, 1, channels)
        else:
            network.conv(outputs, 1 if kind == "pointwise" else 3, stride, dilation)
        network.activation(str(rng.choice(ACTIVATIONS)))
        if network.size == before[1] and rng.random() < 0.7:
            network.node(str(rng.choice(["Add", "Sub", "Mul"])), [network.value, before[0]])
            network.activation(str(rng.choice(["Relu", "", ""])))
    if rng.random() < 0.5:
        network.node("GlobalAveragePool", [network.value])
        network.size = (network.size[0], 1, 1)
    network.dense(int(rng.integers(2, 7)))
    if rng.random() < 0.5:
        network.activation("Relu")
        network.size = (network.size[0], 1, 1)
        depth, outputs = network.size[0], int(rng.integers(2, 6))
        inputs = [network.value, network.weights(outputs, depth), network.weights(outputs)]
        network.node("Gemm", inputs, transB=1)
        network.size = (outputs, 1, 1)
    return network.model()


ALL_ACTIVATIONS = (
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
        self.activation(self.drawn(*ALL_ACTIVATIONS))

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
            self.activation(self.drawn(*ALL_ACTIVATIONS))
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
        self.activation(self.drawn(*ALL_ACTIVATIONS))
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
