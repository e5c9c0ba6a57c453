"""Channel shuffles as exporters write them, before operators that read a part of the channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from evaluate import assert_same, kinds
from shuffle_net import X0_5, ShuffleNet, quantised

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType
from mcudeploy.ir.interval import Interval
from tests.networks.onnx_files import Array, QuantizedModel, build, node, save

RANDOM = np.random.default_rng(4)
SHUFFLES = [(8, 2, 4), (12, 3, 6), (16, 4, 4), (6, 2, 3), (8, 2, 6), (12, 4, 6)]
"""Channels, groups, channels of the first part; of the last three no part is regular in every group."""


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def shapes(channels: int, groups: int, first: int) -> dict[str, Array]:
    return {
        "grouped": np.array([1, groups, channels // groups, 6, 5]),
        "image": np.array([1, channels, 6, 5]),
        "sizes": np.array([first, channels - first]),
        "begin": np.array([0]),
        "middle": np.array([first]),
        "end": np.array([channels]),
        "axis": np.array([1]),
    }


SHUFFLED = [
    node("Relu", "x", "r"),
    node("Reshape", "r grouped", "a"),
    node("Transpose", "a", "b", perm=[0, 2, 1, 3, 4]),
    node("Reshape", "b image", "c"),
]
PARTS = {
    "split": [node("Split", "c sizes", "p q", axis=1)],
    "slice": [node("Slice", "c begin middle axis", "p"), node("Slice", "c middle end axis", "q")],
}


@pytest.mark.parametrize("how", PARTS)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_parts_of_shuffled_channels(shuffle: tuple[int, int, int], how: str, tmp_path: Path) -> None:
    inputs = {"x": floats(1, shuffle[0], 6, 5)}
    path = save(build([*SHUFFLED, *PARTS[how]], inputs, ["p", "q"], shapes(*shuffle)), tmp_path)
    assert_same(path, inputs)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_unit_of_a_shuffle_net(shuffle: tuple[int, int, int], tmp_path: Path) -> None:
    """One part unchanged beside the other one after convolutions; images keep their rows."""
    channels, _, first = shuffle
    rest = channels - first
    weights = {"w": floats(4, rest, 1, 1), "d": floats(4, 1, 3, 3), "v": floats(rest, 4, 1, 1)}
    unit = [
        node("Conv", "q w", "e"),
        node("Conv", "e d", "f", pads=[1, 1, 1, 1], group=4),
        node("Conv", "f v", "g"),
        node("Concat", "p g", "h", axis=1),
    ]
    again = [
        node("Reshape", "h grouped", "i"),
        node("Transpose", "i", "j", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "j image", "k"),
        node("Split", "k sizes", "y z", axis=1),
    ]
    inputs = {"x": floats(1, channels, 6, 5)}
    nodes = [
        *SHUFFLED,
        *PARTS["split"],
        *unit,
        *again,
        node("Relu", "y", "end_y"),
        node("Relu", "z", "end_z"),
    ]
    graph = assert_same(
        save(build(nodes, inputs, ["end_y", "end_z"], shapes(*shuffle) | weights), tmp_path), inputs
    )
    convolved = [
        graph.tensors[operator.output] for operator in graph.operators if operator.op.kind == "Concat"
    ]
    assert [tensor.shape for tensor in convolved] == [(6, 5, channels)]


FOLDED = {
    "dense": {"w": floats(4, 12, 3, 3), "bias": floats(4)},
    "depthwise": {"w": floats(12, 1, 3, 3), "bias": floats(12)},
    "multiplied": {"w": floats(36, 1, 3, 3), "bias": floats(36)},
}


@pytest.mark.parametrize("kind", FOLDED)
@pytest.mark.parametrize("ends", [["y"], ["y", "c"], ["z"]])
def test_weights_follow_shuffled_channels(kind: str, ends: list[str], tmp_path: Path) -> None:
    """A graph output has its own order, and needs a Transpose unless a dense convolution made it."""
    constants = shapes(12, 3, 4) | FOLDED[kind] | {"v": floats(3, len(FOLDED[kind]["bias"]), 1, 1)}
    group = 1 if kind == "dense" else 12
    conv = [node("Conv", "c w bias", "y", group=group, pads=[1] * 4), node("Conv", "y v", "z")]
    used = [*SHUFFLED, *conv] if "z" in ends else [*SHUFFLED, conv[0]]
    inputs = {"x": floats(1, 12, 6, 5)}
    graph = assert_same(save(build(used, inputs, ends, constants), tmp_path), inputs)
    moved = ("c" in ends) + ("y" in ends and kind != "dense")
    assert kinds(graph).get("Transpose", 0) == moved


def test_groups_of_several_channels_need_their_order(tmp_path: Path) -> None:
    inputs, constants = {"x": floats(1, 12, 6, 5)}, shapes(12, 3, 4) | {"w": floats(6, 6, 1, 1)}
    nodes = [*SHUFFLED, node("Conv", "c w", "y", group=2)]
    graph = assert_same(save(build(nodes, inputs, ["y"], constants), tmp_path), inputs)
    assert kinds(graph)["Transpose"] == 1


@pytest.mark.parametrize("order", ["c x", "x c", "c c", "x r"])
@pytest.mark.parametrize("ends", [["z"], ["y"], ["z", "c"]])
def test_shuffled_channels_lie_side_by_side(order: str, ends: list[str], tmp_path: Path) -> None:
    constants = shapes(12, 3, 4) | {"w": floats(5, 24, 3, 3)}
    nodes = [*SHUFFLED, node("Concat", order, "y", axis=1), node("Conv", "y w", "z")]
    inputs = {"x": floats(1, 12, 6, 5)}
    read = nodes if "z" in ends else nodes[:-1]
    graph = assert_same(save(build(read, inputs, ends, constants), tmp_path), inputs)
    moved = ("c" in ends) + ("y" in ends and "c" in order)
    assert kinds(graph).get("Transpose", 0) + kinds(graph).get("Take", 0) == moved


def test_shuffled_channels_of_a_sequence(tmp_path: Path) -> None:
    constants = {"s": np.array([1, 2, 3, 7]), "t": np.array([1, 6, 7]), "w": floats(4, 12, 3)}
    nodes = [
        node("Conv", "i v", "x"),
        node("Reshape", "x s", "a"),
        node("Transpose", "a", "b", perm=[0, 2, 1, 3]),
        node("Reshape", "b t", "c"),
        node("Concat", "c x", "d", axis=1),
        node("Conv", "d w", "y"),
    ]
    constants["v"] = floats(6, 2, 1)
    inputs = {"i": floats(1, 2, 7)}
    graph = assert_same(save(build(nodes, inputs, ["y"], constants), tmp_path), inputs)
    assert "Transpose" not in kinds(graph)


def test_reversed_channels_need_no_operator(tmp_path: Path) -> None:
    """Blue and red in place of red and blue."""
    inputs, constants = {"x": floats(1, 3, 6, 5)}, {"e": np.array([2, 1, 0]), "w": floats(4, 3, 3, 3)}
    nodes = [node("Gather", "x e", "c", axis=1), node("Conv", "c w", "y")]
    graph = assert_same(save(build(nodes, inputs, ["y"], constants), tmp_path), inputs)
    assert kinds(graph) == {"Conv2d": 1}


def test_a_quantised_shuffle_net_has_no_transpose(tmp_path: Path) -> None:
    """Every tensor of the network has its own scale; a shuffle keeps it."""
    net = ShuffleNet(96, classes=10)
    images = {"image": np.random.default_rng(7).normal(size=net.image).astype(np.float32)}
    graph = assert_same(quantised(net, tmp_path), images)
    assert "Transpose" not in kinds(graph)
    assert len({tensor.quantization for tensor in graph.tensors.values()}) > 50
    assert not {"Slice", "Take"}.intersection(kinds(graph))
    whole = len(X0_5)  # the last unit of a stage is read whole
    assert kinds(graph)["Concat"] == whole
    assert kinds(graph)["ConcatChannels"] == 2 * (sum(units for units, _ in X0_5) - whole)


SPLIT = {"sizes": np.array([3, 5]), "far": np.array([7, 0, 2]), "twice": np.array([1, 1, 6])}


@pytest.mark.parametrize(
    ("reader", "wanted"),
    [
        (node("Split", "y sizes", "p q", axis=1), {"ConcatChannels": 2}),
        (node("Gather", "y far", "p", axis=1), {"ConcatChannels": 1, "Take": 1}),
        (node("Gather", "y twice", "p", axis=1), {"Concat": 1, "Take": 1}),
        (node("Gather", "y far", "p", axis=2), {"Concat": 1, "Take": 1}),
    ],
)
@pytest.mark.parametrize("scale", [0.03, 0.05])
def test_parts_of_images_side_by_side(
    reader: Any, wanted: dict[str, int], scale: float, tmp_path: Path
) -> None:
    """A part of channels is concatenated alone, through tables where scales differ; other parts are taken.

    A graph output has its own order, which a Take restores.
    """
    m = QuantizedModel()
    m.constants |= SPLIT
    x = [m.quantize(name, each, 5) for name, each in (("u", 0.03), ("v", scale))]
    y = m.quantize(m.add("Concat", " ".join(x), "y0", axis=1), 0.03, 5)
    read = onnx.NodeProto()
    read.CopyFrom(reader)
    read.input[0] = y
    m.nodes.append(read)
    ends = [m.quantize(m.add("Relu", m.quantize(name, 0.03, 5), f"e{name}"), 0.02, 0) for name in read.output]
    inputs = {"u": floats(1, 3, 8, 5), "v": floats(1, 5, 8, 5)}
    graph = assert_same(save(build(m.nodes, inputs, ends, m.constants), tmp_path), inputs)
    shapes = {
        kind: count
        for kind, count in kinds(graph).items()
        if kind in ("Concat", "ConcatChannels", "Take", "Slice")
    }
    assert shapes == wanted


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 5), (np.uint8, 131)])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_quantised_shuffle(shuffle: tuple[int, int, int], dtype: Any, zero: int, tmp_path: Path) -> None:
    """The quantised form, with a pair after every node: it stays int8."""
    channels, _, first = shuffle
    m = QuantizedModel()
    m.constants |= shapes(*shuffle)

    def pair(value: str) -> str:
        return m.quantize(value, 0.03, zero, dtype)

    a = pair(m.add("Reshape", f"{pair('x')} grouped", "a"))
    b = pair(m.add("Transpose", a, "b", perm=[0, 2, 1, 3, 4]))
    c = pair(m.add("Reshape", f"{b} image", "c"))
    m.nodes.append(node("Split", f"{c} sizes", "p q", axis=1))
    p, q = pair("p"), pair("q")
    w = m.weights("w", (channels - first, channels - first, 1, 1))
    e = m.quantize(m.add("Conv", f"{q} {w}", "e"), 0.05, zero, dtype)
    y = m.quantize(m.add("Concat", f"{p} {e}", "y", axis=1), 0.05, zero, dtype)
    inputs = {"x": floats(1, channels, 6, 5)}
    graph = assert_same(save(build(m.nodes, inputs, [y], m.constants), tmp_path), inputs)
    assert all(tensor.dtype is DType.INT8 for tensor in graph.tensors.values())
    assert kinds(graph)["Conv2d"] == 1


def test_shuffle_of_rows_of_channels(tmp_path: Path) -> None:
    """Channels last, as other exporters shuffle, and a Gather of every other channel."""
    constants = {"s": np.array([1, 6, 5, 2, 4]), "t": np.array([1, 6, 5, 8]), "e": np.arange(0, 8, 2)}
    nodes = [
        node("Relu", "x", "r"),
        node("Reshape", "r s", "a"),
        node("Transpose", "a", "b", perm=[0, 1, 2, 4, 3]),
        node("Reshape", "b t", "c"),
        node("Split", "c", "p q", axis=3),
        node("Gather", "c e", "g", axis=3),
    ]
    inputs = {"x": floats(1, 6, 5, 8)}
    assert_same(save(build(nodes, inputs, ["p", "q", "g"], constants), tmp_path), inputs)


def test_channels_without_order_keep_their_rows(tmp_path: Path) -> None:
    inputs = {"x": floats(1, 4, 6, 5)}
    nodes = [node("Gather", "x e", "y", axis=1)]
    path = save(build(nodes, inputs, ["y"], {"e": np.array([0, 3, 1])}), tmp_path)
    assert_same(path, inputs)
    graph = load(path)
    assert kinds(graph) == {"Take": 1}
    assert graph.loops(graph.operators[0]).rows_read(0, Interval(2, 3), 6) == Interval(2, 3)
