"""Vectors that become rows, computed by hand; every plan of such a graph is sound."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from graphs import Q, graph_io, tensor

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ir.plan import Plan, Rewrites
from mcudeploy.ops.conv.conv import Conv2d, Conv2dByRows, Conv2dToRows
from mcudeploy.ops.move.feed import StreamedInput
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.axes import components
from mcudeploy.planner.model.channels import channels_as_rows, choose, row_channels
from mcudeploy.planner.model.forms import in_form, stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import work_bytes
from tests.one_memory import lay_out

BOARD = load_board("mps2-an386")

ACCUMULATING = Rewrites(accumulating=True)


def vector(name: str, channels: int) -> Tensor:
    return tensor(name, (1, 1, channels))


def dense(name: str, source: str, target: str, inputs: int, outputs: int) -> Operator:
    constants: dict[str, ConstantArray] = {
        "weights": np.ones((outputs, 1, 1, inputs), np.int8),
        "bias": np.zeros(outputs, np.int32),
        "weight_scale": np.full(outputs, 0.01, np.float32),
    }
    return Operator(name, Conv2d(outputs), (source,), target, constants)


def chain(*sizes: int) -> Graph:
    """Fully connected layers in sequence: x -> fc_0 -> t0 -> fc_1 -> ... -> the last t."""
    names = ["x", *(f"t{i}" for i in range(len(sizes) - 1))]
    return _graph(
        [vector(name, size) for name, size in zip(names, sizes, strict=True)],
        [
            dense(f"fc_{i}", names[i], names[i + 1], *layer)
            for i, layer in enumerate(pairwise(sizes))
        ],
    )  # fmt: skip


def _graph(tensors: list[Tensor], operators: list[Operator]) -> Graph:
    first, last = tensors[0], tensors[-1]
    by_name = {one.name: one for one in tensors}
    inputs, outputs = graph_io(first.name, first.shape), graph_io(last.name, last.shape)
    return Graph("dense", by_name, tuple(operators), (inputs,), (outputs,))


def chosen(graph: Graph) -> list[tuple[set[str], int]]:
    return [(set(one.tensors), one.gain_bytes) for one in choose(graph)]


@pytest.mark.parametrize(
    ("channels", "row"),
    [
        (1024, 16), (512, 8), (640, 16), (784, 16), (4096, 64), (128, 8), (32, 8), (100, 20), (96, 8),
        (31, None), (24, None), (1021, None), (1022, None), (8, None), (1, None), (4 * 257, None),
    ],
)  # fmt: skip
def test_rows_of_a_vector(channels: int, row: int | None) -> None:
    assert row_channels(channels) == row


def test_a_wide_vector_is_worth_its_sums() -> None:
    # 16 of the vector and 64 sums of 4 bytes instead of the whole vector.
    assert chosen(chain(64, 1024, 64)) == [({"t0"}, 1024 - 16 - 256)]


def test_a_vector_is_not_worth_more_sums_than_it_has_bytes() -> None:
    assert chosen(chain(64, 512, 512)) == []
    assert chosen(chain(64, 256, 62)) == []  # 8 + 248 are not less than 256
    assert chosen(chain(64, 256, 61)) == [({"t0"}, 4)]


def test_of_two_neighbours_the_one_with_the_larger_gain_is_taken() -> None:
    assert [tensors for tensors, _ in chosen(chain(64, 1024, 128, 2048, 16))] == [{"t2"}, {"t0"}]
    # t0 and t1 compete for fc_1: it reads rows of t0, or writes rows of t1.
    assert [tensors for tensors, _ in chosen(chain(32, 1024, 160, 16))] == [{"t0"}]
    assert [tensors for tensors, _ in chosen(chain(512, 1024, 1024, 64))] == [{"t1"}]


def test_the_layers_around_it_are_rewritten() -> None:
    before = chain(64, 1024, 64)
    after = in_form(before, Rewrites(), ACCUMULATING)
    assert [operator.op for operator in after.operators] == [
        Conv2dToRows(64, 16),
        Conv2dByRows(64, (64, 1)),
    ]
    assert after.tensors["t0"].shape == (64, 1, 16) and after.tensors["t0"].quantization == Q
    assert after.operators[1].constants["weights"].shape == (64, 64, 1, 16)
    assert [after.tensors[name] for name in ("x", "t1")] == [before.tensors[name] for name in ("x", "t1")]
    assert components(after) == (frozenset({0, 1}),)


def test_elementwise_operators_in_between_take_rows_too() -> None:
    def elementwise(
        name: str, op: Binary | Lut, source: str, target: str, constant: ConstantArray
    ) -> Operator:
        return Operator(name, op, (source,), target, {"constant": constant, "table": np.arange(256)})

    per_channel = np.arange(1024, dtype=np.int16).astype(np.int8).reshape(1, 1, 1024)
    scalar = np.full((1, 1, 1), 3, np.int8)
    graph = _graph(
        [vector(name, size) for name, size in zip("xabcdy", (64, 1024, 1024, 1024, 1024, 32), strict=True)],
        [
            dense("fc_0", "x", "a", 64, 1024),
            elementwise("mul", Binary("mul", 1, (1, 1, 1024), Q), "a", "b", per_channel),
            elementwise("add", Binary("add", 0, (1, 1, 1), Q), "b", "c", scalar),
            elementwise("lut", Lut(), "c", "d", scalar),
            dense("fc_1", "d", "y", 1024, 32),
        ],
    )
    after = channels_as_rows(graph)
    assert {after.tensors[name].shape for name in "abcd"} == {(64, 1, 16)}
    mul, add = (operator for operator in after.operators if isinstance(operator.op, Binary))
    assert mul.op == Binary("mul", 1, (64, 1, 16), Q) and add.op == Binary("add", 0, (1, 1, 1), Q)
    assert mul.constants["constant"].shape == (64, 1, 16)
    assert mul.constants["constant"].ravel().tolist() == per_channel.ravel().tolist()
    assert add.constants["constant"].shape == (1, 1, 1)


def _gated(other: str) -> Graph:
    """x -> a, x -> b, a * b -> y -> out; `other` is the source of the second factor."""
    sizes = {"x": 64, "a": 512, "b": 512, "y": 512, "out": 16}
    return _graph(
        [vector(name, size) for name, size in sizes.items()],
        [
            dense("fc_a", "x", "a", 64, 512),
            dense("fc_b", other, "b", sizes[other], 512),
            Operator("mul", Binary("mul"), ("a", "b"), "y"),
            dense("fc_out", "y", "out", 512, 16),
        ],
    )


def test_two_layers_can_make_one_vector() -> None:
    # Both whole factors are 1024; a row of 8 of both, and 16 sums.
    assert chosen(_gated("x")) == [({"a", "b", "y"}, 1024 - 16 - 64)]


def test_a_layer_that_would_make_and_take_one_vector_is_left() -> None:
    assert chosen(_gated("a")) == []


def test_what_else_reads_or_makes_it_keeps_it_whole() -> None:
    wide, image = vector("t0", 1024), tensor("image", (4, 4, 64))
    graph = chain(64, 1024, 64)
    kept = Graph(
        "g", graph.tensors, graph.operators, graph.inputs, (*graph.outputs, graph_io("t0", wide.shape))
    )
    assert chosen(kept) == []
    pooled = _graph(
        [image, wide, vector("y", 32)],
        [Operator("flat", Conv2d(1024, (4, 4)), ("image",), "t0", dense("", "", "", 1024, 1024).constants),
         dense("fc", "t0", "y", 1024, 32)],
    )  # fmt: skip
    assert chosen(pooled) == []  # the layer after the flatten reads rows of the image instead


def test_a_fed_vector_comes_in_rows_and_a_resident_one_stays() -> None:
    graph = chain(784, 32, 10)
    assert chosen(graph) == []
    fed = in_form(graph, Rewrites(), Rewrites(streamed=True, accumulating=True))
    assert fed.operators[0].op == StreamedInput(0, (49, 1, 16)) and fed.tensors["x"].shape == (49, 1, 16)
    assert fed.operators[1].op == Conv2dByRows(32, (49, 1))
    assert chosen(stream_inputs(graph)) == [({"x"}, 784 - 16 - 128)]
    with pytest.raises(ValueError, match="does not go back"):
        in_form(fed, Rewrites(accumulating=True), Rewrites(streamed=True, accumulating=True))


def test_float_sums_are_the_values() -> None:
    graph = chain(64, 256, 64)
    tensors = {name: Tensor(name, one.shape, DType.FLOAT32) for name, one in graph.tensors.items()}
    operators = tuple(
        Operator(one.name, one.op, one.inputs, one.output,
                 {name: array.astype(np.float32) for name, array in one.constants.items()})
        for one in graph.operators
    )  # fmt: skip
    floats = Graph("floats", tensors, operators, graph.inputs, graph.outputs)
    assert chosen(floats) == [({"t0"}, 4 * (256 - 8 - 64))]


@pytest.mark.parametrize("rows", [1, 3, 16, 64])
@pytest.mark.parametrize("graph", [chain(64, 1024, 64), _gated("x"), stream_inputs(chain(784, 32, 10))])
def test_every_cut_passes_the_checker_and_needs_what_the_arithmetic_says(graph: Graph, rows: int) -> None:
    gain = sum(one.gain_bytes for one in choose(graph))
    after = in_form(graph, Rewrites(), ACCUMULATING)
    calls = {o.name: o.op.kernel(o, after.input_tensors(o), after.tensors[o.output]) for o in after.operators}
    work, flow = work_bytes(calls), Dataflow.of(after)
    height = {
        operator.name: min(rows, total)
        for operator, total in zip(after.operators, flow.iteration_rows, strict=True)
    }
    tiled = TiledGraph(flow, height)
    schedule = reverse_post_order(tiled)
    layout, estimate = lay_out(tiled, schedule, work, "sram", 4)
    check(Plan(after, "host", height, schedule, layout, estimate), work, BOARD)
    if rows == 1:
        whole = Dataflow.of(graph)
        sizes = {o.name: count for o, count in zip(graph.operators, whole.iteration_rows, strict=True)}
        uncut = TiledGraph(whole, sizes)
        plain = {o.name: (0, 0) for o in graph.operators}
        _, unsplit = lay_out(uncut, reverse_post_order(uncut), plain, "sram", 4)
        assert estimate.peak_bytes <= unsplit.peak_bytes - gain
