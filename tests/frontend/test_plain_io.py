"""Inputs and outputs lie in the ONNX order or channels last, whatever the first and last operators are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from evaluate import assert_same, kinds

from mcudeploy.frontend.onnx.values import is_plain
from mcudeploy.ir.graph import Graph, GraphIO
from tests.networks.onnx_files import build, node, save

X = np.random.default_rng(3).standard_normal((1, 4, 2, 3)).astype(np.float32)
FLIP = {"s": np.array([-1]), "e": np.array([-100]), "a": np.array([1]), "p": np.array([-1])}
W = np.random.default_rng(4).standard_normal((5, 4, 1, 1)).astype(np.float32)

# nodes from r to y, constants, kinds of operators after the Unary
ENDS: list[tuple[str, list[onnx.NodeProto], dict[str, Any], dict[str, int]]] = [
    ("as_it_is", [node("Identity", "r", "y")], {}, {}),
    ("nhwc", [node("Transpose", "r", "y", perm=[0, 2, 3, 1])], {}, {}),
    ("swapped", [node("Transpose", "r", "y", perm=[0, 1, 3, 2])], {}, {"Transpose": 1}),
    ("flat", [node("Flatten", "r", "y")], {}, {"Transpose": 1}),
    ("mixed", [node("Gather", "r i", "y", axis=1)], {"i": np.array([1, 3, 0, 2])}, {"Take": 1}),
    ("flipped", [node("Slice", "r s e a p", "y")], FLIP, {"Slice": 1}),
    (
        "flipped_and_flat",
        [node("Slice", "r s e a p", "f"), node("Flatten", "f", "y")],
        FLIP,
        {"Slice": 1, "Transpose": 1},
    ),
]


def plain(graph: Graph) -> bool:
    def one(io: GraphIO) -> bool:
        return is_plain(io.order.reshape(io.shape))

    return all(one(io) for io in (*graph.inputs, *graph.outputs))


@pytest.mark.parametrize("end", ENDS, ids=[end[0] for end in ENDS])
def test_outputs(end: tuple[Any, ...], tmp_path: Path) -> None:
    _, nodes, constants, operators = end
    path = save(build([node("Relu", "x", "r"), *nodes], {"x": X}, ["y"], constants), tmp_path)
    graph = assert_same(path, {"x": X})
    assert kinds(graph) == {"Unary": 1, **operators}
    assert plain(graph)


def test_an_output_that_other_nodes_read_too(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "x", "r"),
        node("Transpose", "r", "y", perm=[0, 3, 1, 2]),
        node("Sigmoid", "y", "z"),
    ]
    graph = assert_same(save(build(nodes, {"x": X}, ["y", "z"]), tmp_path), {"x": X})
    assert kinds(graph) == {"Unary": 2, "Transpose": 2}
    assert plain(graph)


def test_input_that_a_convolution_reads_in_an_order_of_its_own(tmp_path: Path) -> None:
    nodes = [node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("Conv", "t w", "y")]
    graph = assert_same(save(build(nodes, {"x": X}, ["y"], {"w": W}), tmp_path), {"x": X})
    assert kinds(graph) == {"Transpose": 1, "Conv2d": 1}
    assert plain(graph)
