"""Constant and unread channels are removed, and no bit of an output changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run_graph
from numpy.typing import NDArray

from mcudeploy.frontend.load import load
from mcudeploy.frontend.lower.tidy_ranges import ranges_of
from mcudeploy.frontend.lower.tidy_trim import prune_channels
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Shape, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.model.model import load_model
from tests.weekly import sample

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
STEP = Quantization(0.05, -5)
Array = NDArray[Any]


def _outputs(graph: Graph, samples: list[dict[str, Array]]) -> list[bytes]:
    """Stored outputs of the kernels on this computer, for stored inputs."""
    results = [run_graph(graph, sample) for sample in samples]
    return [b"".join(values[it.tensor].tobytes() for it in graph.outputs) for values in results]


def _inputs(graph: Graph, count: int) -> list[dict[str, Array]]:
    rng = np.random.default_rng(1)
    tensors = [graph.tensors[io.tensor] for io in graph.inputs]
    return [{it.name: _drawn(it, rng) for it in tensors} for _ in range(count)]


def _drawn(tensor: Tensor, rng: np.random.Generator) -> Array:
    if tensor.dtype is DType.FLOAT32:
        return rng.standard_normal(tensor.shape).astype(np.float32)
    return rng.integers(-128, 128, tensor.shape, np.int8)


def _assert_same_bits(graph: Graph, smaller: Graph, count: int = 20) -> None:
    samples = _inputs(graph, count)
    expected = _outputs(graph, samples)
    assert _outputs(smaller, samples) == expected
    assert len(set(expected)) > 1


def test_half_of_the_example_is_removed() -> None:
    model = load_model(EXAMPLE)
    whole = load(EXAMPLE, keep_constant=True)
    assert whole.trimmed is None
    trimmed = model.graph.trimmed
    assert trimmed is not None and trimmed.macs > 3_700_000 and trimmed.weight_bytes > 170_000
    assert model.macs == 7_489_664 - trimmed.macs
    _assert_same_bits(whole, model.graph, 4)


class _Net:
    """An int8 graph, layer by layer."""

    def __init__(self, shape: Shape) -> None:
        self.tensors = {"x": Tensor("x", shape, DType.INT8, STEP)}
        self.operators: list[Operator] = []
        self._rng = np.random.default_rng(5)

    def add(self, name: str, op: Any, *inputs: str, **constants: Array) -> str:
        shapes = tuple(self.tensors[it].shape for it in inputs)
        shape = op.loops(shapes).output_shape()
        self.tensors[name] = Tensor(name, shape, DType.INT8, STEP)
        self.operators.append(Operator(name, op, inputs, name, constants))
        return name

    def conv(
        self,
        name: str,
        source: str,
        channels: int,
        *,
        kernel: int = 1,
        depthwise: bool = False,
        silent: Mapping[int, int] | None = None,
    ) -> str:
        """`silent`: output channels without weights, with their bias."""
        given = self.tensors[source].shape[2]
        pads = (kernel // 2,) * 4
        op = Conv2d(
            channels, (kernel, kernel), pads=pads, groups=given if depthwise else 1, low=-1.0, high=4.0
        )
        shape = (channels, kernel, kernel, 1 if depthwise else given)
        weights = self._rng.integers(-60, 60, shape, np.int8)
        bias = self._rng.integers(-500, 500, channels, np.int32)
        for channel, value in (silent or {}).items():
            weights[channel], bias[channel] = 0, value
        scale = np.full(channels, 0.01 / (kernel * kernel), np.float32)
        return self.add(name, op, source, weights=weights, bias=bias, weight_scale=scale)

    def graph(self, *outputs: str) -> Graph:
        def io(name: str) -> GraphIO:
            tensor = self.tensors[name]
            order = np.arange(tensor.elements, dtype=np.int32)
            return GraphIO(name, name, (tensor.elements,), "int8", order)

        return Graph("net", self.tensors, tuple(self.operators), (io("x"),), tuple(map(io, outputs)))


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels are not filled up to fours."""
    monkeypatch.setattr(import_module("mcudeploy.frontend.lower.tidy_trim"), "_CHANNEL_MULTIPLE", 1)


def _channels(graph: Graph) -> dict[str, int]:
    return {name: tensor.shape[2] for name, tensor in graph.tensors.items()}


@pytest.mark.usefixtures("one_by_one")
def test_constants_pass_through_a_network() -> None:
    """A residual block, a concatenation, pools and a dense layer."""
    net = _Net((12, 10, 3))
    net.conv("a", "x", 8, kernel=3, silent={1: 900, 4: -900, 5: 0})
    net.conv("b", "a", 8, kernel=3, depthwise=True)
    net.conv("c", "b", 8, silent={2: 5000, 4: -3})
    net.add("sum", Binary("add"), "a", "c")
    net.conv("d", "sum", 6, silent={0: 100})
    net.add("pool", MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (6, 5)), "sum")
    net.conv("e", "pool", 7, silent={3: 1000, 6: -9000})
    net.add("small", MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (6, 5)), "d")
    net.add("joined", Concat(2), "small", "e")
    net.add("mean", AveragePool((6, 5), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False), "joined")
    net.conv("y", "mean", 4)
    graph = net.graph("y")
    smaller = prune_channels(graph)
    assert _channels(smaller) == _channels(graph) | {
        "d": 5, "e": 5, "small": 5, "joined": 10, "mean": 10,
    }  # fmt: skip
    _assert_same_bits(graph, smaller)


@pytest.mark.usefixtures("one_by_one")
def test_a_constant_beside_padding_stays_unless_it_is_the_zero_point() -> None:
    net = _Net((9, 9, 2))
    scale = 0.01 * STEP.scale / STEP.scale  # of a bias, in steps of the output
    net.conv("a", "x", 6, silent={0: round(7 / scale), 1: 0, 2: -(2**20)})
    net.conv("y", "a", 5, kernel=3)
    graph = net.graph("y")
    known = ranges_of(graph)["a"]
    assert known.constant.tolist() == [True, True, True, False, False, False]
    assert known.low[:3].tolist() == [STEP.zero_point + 7, STEP.zero_point, STEP.zero_point - 20]
    smaller = prune_channels(graph)
    assert _channels(smaller)["a"] == 5
    _assert_same_bits(graph, smaller)


@pytest.mark.usefixtures("one_by_one")
def test_padding_that_an_average_counts_is_not_a_constant() -> None:
    net = _Net((6, 6, 2))
    net.conv("a", "x", 4, silent={1: 900, 2: 0})
    net.add("pool", AveragePool((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), (6, 6), True), "a")
    net.conv("y", "pool", 3)
    graph = net.graph("y")
    assert ranges_of(graph)["pool"].constant.tolist() == [False, False, True, False]
    smaller = prune_channels(graph)
    assert _channels(smaller) == {"x": 2, "a": 3, "pool": 3, "y": 3}
    _assert_same_bits(graph, smaller)


@pytest.mark.usefixtures("one_by_one")
def test_unread_channels_are_removed_with_what_makes_them() -> None:
    net = _Net((6, 6, 4))
    net.conv("a", "x", 8)
    net.conv("b", "a", 8, kernel=3, depthwise=True)
    net.conv("y", "b", 3)
    last = net.operators[-1]
    weights = last.constants["weights"].copy()
    weights[..., [0, 6]] = 0
    net.operators[-1] = replace(last, constants={**last.constants, "weights": weights})
    graph = net.graph("y")
    smaller = prune_channels(graph)
    assert _channels(smaller) == {"x": 4, "a": 6, "b": 6, "y": 3}
    _assert_same_bits(graph, smaller)


@pytest.mark.usefixtures("one_by_one")
def test_a_channel_clipped_to_one_value_is_constant() -> None:
    """Its weights are not zero, but its bias is beyond the clip for every input."""
    net = _Net((6, 6, 4))
    net.conv("a", "x", 5)
    first = net.operators[0]
    bias = first.constants["bias"].copy()
    bias[3] = 10**6
    net.operators[0] = replace(first, constants={**first.constants, "bias": bias})
    net.conv("y", "a", 3)
    smaller = prune_channels(net.graph("y"))
    assert _channels(smaller)["a"] == 4
    _assert_same_bits(net.graph("y"), smaller)


def test_multiples_of_four_channels_are_left() -> None:
    """Of 11 channels 5 are needed and 8 stay; of 6 channels none is worth removing."""
    net = _Net((6, 6, 4))
    net.conv("a", "x", 11, silent=dict.fromkeys(range(6), 40))
    net.conv("b", "a", 6, silent={3: -(2**20)})
    net.conv("y", "b", 3)
    graph = net.graph("y")
    smaller = prune_channels(graph)
    assert _channels(smaller) == {"x": 4, "a": 8, "b": 6, "y": 3}
    _assert_same_bits(graph, smaller)


def test_outputs_and_what_cannot_be_followed_stay_whole() -> None:
    net = _Net((6, 6, 4))
    net.conv("a", "x", 5, silent={0: 3})
    net.conv("y", "a", 6, silent={1: 3})
    graph = net.graph("a", "y")
    assert prune_channels(graph) is graph


@pytest.mark.usefixtures("one_by_one")
def test_a_network_of_constants_keeps_a_channel() -> None:
    net = _Net((4, 4, 2))
    net.conv("a", "x", 4, silent=dict.fromkeys(range(4), 700))
    net.conv("y", "a", 3)
    smaller = prune_channels(net.graph("y"))
    assert _channels(smaller) == {"x": 2, "a": 1, "y": 3}
    samples = _inputs(smaller, 3)
    assert _outputs(smaller, samples) == _outputs(net.graph("y"), samples)


def _branch(net: _Net, name: str, rng: np.random.Generator) -> str:
    """Random layers after the input, with silent channels."""
    last = "x"
    for depth in range(int(rng.integers(3, 7))):
        source, layer = last, f"{name}_{depth}"
        shape = net.tensors[source].shape
        channels = int(rng.integers(1, 10))
        silent = {
            channel: int(rng.choice([0, -(2**20), 2**20, rng.integers(-3000, 3000)]))
            for channel in range(channels)
            if rng.random() < 0.4
        }
        match rng.integers(6):
            case 0 | 1:
                last = net.conv(layer, source, channels, silent=silent)
            case 2:
                last = net.conv(layer, source, channels, kernel=3, silent=silent)
            case 3 if shape[2] > 1:
                few = {channel: value for channel, value in silent.items() if channel < shape[2]}
                last = net.conv(layer, source, shape[2], kernel=3, depthwise=True, silent=few)
            case 4:
                table = np.sort(rng.integers(-128, 128, 256)).astype(np.int8)
                last = net.add(layer, Lut(), source, table=table)
            case _:
                other = net.conv(f"{layer}b", source, shape[2], silent=silent if channels <= shape[2] else {})
                joined = Binary("add") if rng.random() < 0.5 else Concat(2)
                last = net.add(layer, joined, source, other)
        unread = net.operators[-1]
        if isinstance(unread.op, Conv2d) and unread.op.groups == 1 and rng.random() < 0.5:
            weights = unread.constants["weights"].copy()
            weights[..., rng.random(weights.shape[3]) < 0.3] = 0
            net.operators[-1] = replace(unread, constants={**unread.constants, "weights": weights})
    return net.conv(f"{name}_end", last, 3)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("seed", sample(range(2), 1))
def test_random_networks_keep_their_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = _Net((7, 6, 3))
    graph = net.graph(*[_branch(net, f"b{number}", rng) for number in range(12)])
    smaller = prune_channels(graph)
    assert smaller.trimmed is not None and smaller.trimmed.channels > 30
    _assert_same_bits(graph, smaller, 4)


def test_reference_elements_follow_their_channels() -> None:
    whole, smaller = load(EXAMPLE, keep_constant=True), load(EXAMPLE)
    name = next(it for it in whole.tensors if whole.tensors[it].shape != smaller.tensors[it].shape)
    io = next(b for b in smaller.references.values() if b.tensor == name)
    before = next(b for b in whole.references.values() if b.tensor == name)
    values = np.arange(before.order.size)
    channels = whole.tensors[name].shape[2]
    stored = before.stored(values).reshape(-1, channels)
    elements = io.stored(values).reshape(-1, smaller.tensors[name].shape[2])
    kept = [channel for channel in range(channels) if stored[0, channel] in elements[0]]
    assert np.array_equal(elements, stored[:, kept])
