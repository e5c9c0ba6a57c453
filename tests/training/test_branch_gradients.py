"""Gradients of operators that join, repeat and move values, against slopes and kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_gradients import SLOPE_TOLERANCE, drawn, step_of, worst_slope
from test_pool_gradients import largest_error

from mcudeploy.common.errors import ModelError
from tests.networks.onnx_files import save
from tests.networks.trained import Network
from tests.weekly import sample


def base(channels: int = 6) -> Network:
    """A convolution of an image with a Relu."""
    net = Network(5, (3, 8, 6))
    net.conv(channels, 3)
    net.activation("Relu")
    return net


def ended(net: Network, channels: int) -> Network:
    """A pointwise convolution, a mean and a dense layer after the last value."""
    net.node("Conv", [net.value, net.weights(5, channels, 1, 1), net.weights(5)])
    net.node("GlobalAveragePool", [net.value])
    net.size = (5, 1, 1)
    net.dense(4)
    return net


def constant(net: Network, *values: float, dtype: str = "int64") -> str:
    """A constant of these values."""
    name = f"w{len(net.constants)}"
    net.constants[name] = np.array(values, dtype)
    return name


def concatenated() -> Network:
    """Three branches, as in an Inception network, one of them without layers."""
    net = base()
    start, size = net.value, net.size
    branches = [start]
    for kernel in (1, 3):
        net.value, net.size = start, size
        net.conv(4, kernel)
        net.activation("Relu")
        branches.append(net.value)
    net.node("Concat", branches, axis=1)
    return ended(net, 14)


def concatenated_rows() -> Network:
    net = base()
    start = net.value
    net.conv(6, 1)
    net.node("Concat", [start, net.value], axis=2)
    return ended(net, 6)


def excited() -> Network:
    """Squeeze and excitation: channels times a gate that depends on their means."""
    net = base()
    start = net.value
    net.node("GlobalAveragePool", [start])
    net.size = (6, 1, 1)
    net.conv(3, 1)
    net.activation("Relu")
    net.conv(6, 1)
    net.node("HardSigmoid", [net.value])
    net.node("Mul", [start, net.value])
    return ended(net, 6)


def shifted() -> Network:
    """An image plus its means, and one minus the means over its channels."""
    net = base()
    start = net.value
    mean = net.node("GlobalAveragePool", [start])
    shifted = net.node("Add", [mean, start])
    row = net.node("ReduceMean", [shifted], axes=[1], keepdims=1)
    net.node("Sub", [shifted, row])
    return ended(net, 6)


def summed() -> Network:
    """An image times the sums of its columns."""
    net = base()
    start = net.value
    total = net.node("ReduceSum", [start, constant(net, 3)], keepdims=1)
    net.node("Tanh", [total])
    net.node("Mul", [net.value, start])
    return ended(net, 6)


def divided() -> Network:
    net = base()
    divisor = constant(net, *np.linspace(1, 2, 6), dtype="float32")
    net.constants[divisor] = net.constants[divisor].reshape(1, 6, 1, 1)
    net.node("Div", [net.value, divisor])
    net.node("Mul", [net.value, net.value])
    return ended(net, 6)


def enlarged() -> Network:
    net = base()
    net.node("Sigmoid", [net.value])
    scales = constant(net, 1, 1, 2, 3, dtype="float32")
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    net.node("Resize", [net.value, "", scales], **attributes)
    net.node("Conv", [net.value, net.weights(6, 6, 3, 3), net.weights(6)])
    net.activation("Relu")
    return ended(net, 6)


def sliced() -> Network:
    """Two halves of the channels, of which one passes a layer, and rows without the first."""
    net = base()
    start = net.value
    ends = [constant(net, each) for each in (0, 3, 1)]
    first = net.node("Slice", [start, *ends])
    second = net.node("Slice", [start, constant(net, 3), constant(net, 6), constant(net, 1)])
    net.value, net.size = second, (3, 8, 6)
    net.conv(3, 3)
    net.node("Concat", [first, net.value], axis=1)
    net.node("Slice", [net.value, constant(net, 1), constant(net, 8), constant(net, 2)])
    return ended(net, 6)


def padded() -> Network:
    net = base()
    net.node("Sigmoid", [net.value])
    net.node("Pad", [net.value, constant(net, 0, 1, 2, 0, 0, 0, 1, 3), constant(net, 0.5, dtype="float32")])
    return ended(net, 7)


def shuffled() -> Network:
    """Channels of two groups in turn, as ShuffleNet has them, added to those in order."""
    net = base()
    start = net.value
    net.node("Reshape", [net.value, constant(net, 1, 2, 3, 8, 6)])
    net.node("Transpose", [net.value], perm=[0, 2, 1, 3, 4])
    net.node("Reshape", [net.value, constant(net, 1, 6, 8, 6)])
    net.node("Add", [net.value, start])
    return ended(net, 6)


def sloped() -> Network:
    """Slopes of both signs below 0, by channel, and a square."""
    net = Network(5, (3, 8, 6))
    net.conv(6, 3)
    slope = constant(net, *np.linspace(-0.5, 1, 6), dtype="float32")
    net.constants[slope] = net.constants[slope].reshape(6, 1, 1)
    net.node("PRelu", [net.value, slope])
    net.node("Pow", [net.value, constant(net, 2, dtype="float32")])
    return ended(net, 6)


def weighted() -> Network:
    """Softmaxes over the channels and over the columns, and the largest value of each channel."""
    net = base()
    start = net.value
    net.node("Softmax", [start], axis=1)
    net.node("Softmax", [net.value], axis=3)
    total = net.node("Mul", [net.value, start])
    net.node("ReduceMax", [start], axes=[2, 3], keepdims=1)
    net.node("Add", [net.value, total])
    return ended(net, 6)


NETWORKS: list[Callable[[], Network]] = [
    concatenated, concatenated_rows, excited, shifted, summed, divided, enlarged, sliced, padded, shuffled,
    sloped, weighted,
]  # fmt: skip


@pytest.mark.parametrize("network", NETWORKS, ids=lambda it: it.__name__)
def test_gradients_are_slopes_of_the_loss(network: Callable[[], Network], tmp_path: Path) -> None:
    step = step_of(save(network().model(), tmp_path), "cross-entropy")
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("network", NETWORKS, ids=lambda it: it.__name__)
def test_gradients_of_the_kernels(network: Callable[[], Network], tmp_path: Path) -> None:
    assert largest_error(network().model(), tmp_path) <= 1e-5


def grouped() -> Network:
    """A convolution in two groups, as in ResNeXt and ShuffleNet."""
    net = base()
    net.conv(4, 3, stride=2, group=2)
    net.activation("Relu")
    return ended(net, 4)


def test_gradients_pass_groups(tmp_path: Path) -> None:
    """Its bias is trained, and the layers before and after it, but not the weights in groups."""
    path = save(grouped().model(), tmp_path)
    step = step_of(path, "cross-entropy", "bias")
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE
    assert largest_error(grouped().model(), tmp_path, "bias") <= 1e-5
    with pytest.raises(ModelError, match="its weights are in 2 groups: only dense and depthwise"):
        step_of(path, "cross-entropy")


def test_a_division_by_a_tensor_is_refused(tmp_path: Path) -> None:
    net = base()
    start = net.value
    net.node("Exp", [start])
    net.node("Div", [start, net.value])
    with pytest.raises(ModelError, match="only a division by a constant has a gradient"):
        step_of(save(ended(net, 6).model(), tmp_path), "cross-entropy")


RESIZES = [
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "nearest"},
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
]


def resized(size: tuple[int, int], attributes: dict[str, str]) -> Network:
    net = base()
    net.node("Resize", [net.value, "", "", constant(net, 1, 6, *size)], **attributes)
    net.node("Conv", [net.value, net.weights(6, 6, 3, 3), net.weights(6)])
    net.activation("Relu")
    return ended(net, 6)


@pytest.mark.parametrize("attributes", RESIZES, ids=lambda it: "-".join(it.values()))
@pytest.mark.parametrize("size", sample([(16, 12), (5, 9)], 1))
def test_gradients_of_resizes(attributes: dict[str, str], size: tuple[int, int], tmp_path: Path) -> None:
    step = step_of(save(resized(size, attributes).model(), tmp_path), "cross-entropy")
    assert worst_slope(step, drawn(step, "cross-entropy", 0)) < SLOPE_TOLERANCE


@pytest.mark.parametrize("attributes", [RESIZES[0], RESIZES[3]], ids=lambda it: it["mode"])
def test_kernels_of_resizes(attributes: dict[str, str], tmp_path: Path) -> None:
    assert largest_error(resized((13, 12), attributes).model(), tmp_path) <= 1e-5


def test_other_resizes_are_refused(tmp_path: Path) -> None:
    """Cubic ones, and those with a scale that is not the quotient of the sizes."""
    for scale, mode in ((2.0, "cubic"), (1.3, "linear")):
        net = base()
        net.node("Resize", [net.value, "", constant(net, 1, 1, scale, scale, dtype="float32")], mode=mode)
        with pytest.raises(ModelError, match=r"does not support it|not the quotients of its sizes"):
            step_of(save(ended(net, 6).model(), tmp_path), "cross-entropy")
