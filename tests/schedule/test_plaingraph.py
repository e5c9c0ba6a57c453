"""Plain graphs: their steps and buffers, errors of malformed files, and orders of all nodes."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.graphs.plaingraph import PlainGraph, graph_of, load_plain_graph

# w -> wt (a view), x -> conv(x, wt) -> y -> relu(y) -> z; grad(z, x) -> g; mul(g) -> s; sub(w, s) -> w'
TRAINING: dict[str, Any] = {
    "name": "tiny",
    "nodes": [
        {"id": 10, "op": "param", "inputs": [], "outputs": [0]},
        {"id": 11, "op": "input", "inputs": [], "outputs": [1]},
        {"id": 12, "op": "t", "inputs": [0], "outputs": [2], "view": True},
        {"id": 13, "op": "conv", "inputs": [1, 2], "outputs": [3]},
        {"id": 14, "op": "relu", "inputs": [3], "outputs": [4]},
        {"id": 15, "op": "view", "inputs": [4], "outputs": [5], "view": True},
        {"id": 16, "op": "grad", "inputs": [5, 1], "outputs": [6]},
        {"id": 17, "op": "mul", "inputs": [6], "outputs": [7]},
        {"id": 18, "op": "sub", "inputs": [2, 7], "outputs": [8], "phase": "update"},
    ],
    "tensors": [
        {"bytes": 100},
        {"bytes": 30},
        {"bytes": 100, "alias_of": 0},
        {"bytes": 50},
        {"bytes": 50},
        {"bytes": 50, "alias_of": 4},
        {"bytes": 100},
        {"bytes": 100},
        {"bytes": 100},
    ],
    "outputs": [4, 8],
    "inplace_updates": [[0, 8]],
}


def changed(**changes: Any) -> dict[str, Any]:
    """TRAINING with values replaced, by paths such as nodes__3__inputs."""
    content = deepcopy(TRAINING)
    for path, value in changes.items():
        *way, last = (int(key) if key.isdigit() else key for key in path.split("__"))
        place: Any = content
        for key in way:
            place = place[key]
        place[last] = value
    return content


def peak_by_hand(content: dict[str, Any], order: tuple[int, ...]) -> int:
    """Peak of an order of node ids, directly from the file: nothing shared with the package."""
    nodes = {node["id"]: node for node in content["nodes"]}
    producers = {tensor: node for node in content["nodes"] for tensor in node["outputs"]}
    over = {new: old for old, new in content.get("inplace_updates", [])}

    def root(tensor: int) -> int:
        onward = content["tensors"][tensor].get("alias_of")
        onward = over.get(tensor) if onward is None else onward
        return tensor if onward is None else root(onward)

    places: dict[int, list[int]] = {}
    unread = set(producers)
    for place, node in enumerate(order):
        if nodes[node]["op"] not in {"param", "input", "view", "t"}:
            unread -= {root(tensor) for tensor in (*nodes[node]["inputs"], *nodes[node]["outputs"])}
        for tensor in (*nodes[node]["inputs"], *nodes[node]["outputs"]):
            places.setdefault(root(tensor), []).append(place)
    for tensor in content["outputs"]:
        places[root(tensor)].append(len(order) - 1)
        unread.discard(root(tensor))
    for tensor, touched in places.items():
        if producers[tensor]["op"] == "input":
            touched.append(0)
    counted = [tensor for tensor in places if producers[tensor]["op"] != "param" and tensor not in unread]
    return max(
        sum(content["tensors"][t]["bytes"] for t in counted if min(places[t]) <= place <= max(places[t]))
        for place in range(len(order))
    )


def test_what_costs_nothing_is_not_a_step() -> None:
    graph = graph_of(TRAINING)
    assert [graph.nodes[place].op for place in graph.steps] == ["conv", "relu", "grad", "mul", "sub"]
    assert graph.problem.before == ((), (0,), (1,), (2,), (0, 3))
    buffers = {(b.size_bytes, b.touched_by, b.initial, b.kept) for b in graph.problem.buffers}
    assert buffers == {
        (30, (0, 2), True, False),
        (50, (0, 1), False, False),
        (50, (1, 2), False, True),
        (100, (2, 3), False, False),
        (100, (3, 4), False, False),
    }


def test_the_update_and_what_scales_it_are_deferred() -> None:
    assert graph_of(TRAINING).updates == (3, 4)


def test_the_order_of_the_file_is_counted_as_the_file_says() -> None:
    graph = graph_of(TRAINING)
    order = graph.node_order(range(5))
    assert order == (10, 12, 11, 13, 14, 15, 16, 17, 18)
    assert graph.problem.peak(range(5)) == peak_by_hand(TRAINING, order) == 250


def test_what_overwrites_comes_after_all_others_that_read() -> None:
    extra = {"id": 19, "op": "norm", "inputs": [2], "outputs": [9]}
    nodes = [*TRAINING["nodes"][:-1], extra, TRAINING["nodes"][-1]]
    graph = graph_of(changed(nodes=nodes, tensors=[*TRAINING["tensors"], {"bytes": 4}]))
    assert graph.problem.before[-1] == (0, 3, 4)
    late = graph_of_error(
        changed(nodes=[*TRAINING["nodes"], extra], tensors=[*TRAINING["tensors"], {"bytes": 4}])
    )
    assert late == "in-place update: node 19 (norm) reads tensor 0 after node 18 has overwritten it"


def test_a_view_of_two_memories_is_a_step() -> None:
    graph = graph_of(changed(nodes__5__inputs=[4, 1]))
    assert [graph.nodes[place].op for place in graph.steps][2] == "view"


def graph_of_error(content: object) -> str:
    with pytest.raises(ModelError) as caught:
        graph_of(content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 3}, "nodes: Input should be a valid tuple"),
        ({"nodes__3__inputs": None}, "nodes.3.inputs: Input should be a valid tuple"),
        ({"tensors__3__bytes": -1}, "tensors.3.bytes: Input should be greater than or equal to 0"),
        ({"tensors__3__bytes": "50"}, "tensors.3.bytes: Input should be a valid integer"),
        ({"tensors__3__bytes": 2**62}, "its tensors have more than 2^62 bytes together"),
        ({"tensors__3__id": 9}, "tensor 3 has id 9; ids count from 0 in the order of the file"),
        ({"nodes__3__id": 12}, "node 12 (conv): another node has this id"),
        ({"nodes__3__inputs": [1, 99]}, "node 13 (conv): tensor 99 does not exist, there are 9"),
        ({"nodes__3__inputs": [1, 6]}, "node 13 (conv): reads tensor 6, which no node before it makes"),
        ({"nodes__4__outputs": [3]}, "node 14 (relu): makes tensor 3, which another node makes too"),
        ({"nodes__7__outputs": [], "nodes__8__inputs": [2]}, "no node makes tensor 7"),
        ({"outputs": [9]}, "tensor 9 of the outputs or updates does not exist, there are 9"),
        ({"tensors__5__alias_of": 5}, "alias_of: tensor 5 leads back to itself"),
        ({"tensors__5__alias_of": 99}, "alias_of: tensor 99 does not exist, there are 9"),
        ({"tensors__3__alias_of": 6}, "tensor 3 is a view of tensor 6, which is made after it"),
        ({"tensors__4__bytes": 0}, "tensor 5 is a view of tensor 4, which has no bytes"),
        ({"tensors__8__bytes": 999}, "in-place update: tensor 8 is larger than tensor 0, which it overwrites"),  # noqa: E501
        ({"inplace_updates": [[0, 8], [6, 8]]}, "in-place update: tensor 8 overwrites two tensors"),
    ],
)  # fmt: skip
def test_malformed_graphs_are_told_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    assert graph_of_error(changed(**changes)) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "is not a dependency graph: the file: Input should be"),
        (gzip.compress(b'{"nodes": []}', mtime=0), "is not a dependency graph: tensors: Field required"),
        (gzip.compress(b"{}", mtime=0)[:-9], "cannot be read"),
        (b"\x1f\x8bnonsense", "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load_plain_graph(path)
    assert str(caught.value).startswith(f"{path} {message}")


def test_gzip_or_not_and_a_name_from_the_file(tmp_path: Path) -> None:
    nameless = {key: value for key, value in TRAINING.items() if key != "name"}
    plain, packed = tmp_path / "step.json", tmp_path / "step.json.gz"
    plain.write_text(json.dumps(nameless))
    packed.write_bytes(gzip.compress(json.dumps(nameless).encode()))
    assert [load_plain_graph(path).name for path in (plain, packed)] == ["step", "step"]
    assert load_plain_graph(plain).problem.before == load_plain_graph(packed).problem.before


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """Random graphs with parameters, inputs, views and updates in place."""
    nodes: list[dict[str, Any]] = []
    tensors: list[dict[str, Any]] = []
    for step in range(draw(st.integers(1, 9))):
        readable = range(len(tensors))
        kind = draw(st.sampled_from(("param", "input", "op", "op", "op", "view")))
        reads = sorted(draw(st.sets(st.sampled_from(readable), max_size=3))) if readable else []
        if kind == "view" and not reads:
            kind = "op"
        number = len(tensors)
        if kind == "view":
            nodes.append({"inputs": reads[:1], "view": True})
            tensors.append({"bytes": tensors[reads[0]]["bytes"], "alias_of": reads[0]})
        else:
            nodes.append({"inputs": reads if kind == "op" else []})
            tensors.append({"bytes": draw(st.integers(0, 9))})
        nodes[-1] |= {"id": 3 * step, "op": kind, "outputs": [number]}
    updates: list[tuple[int, int]] = []
    roots = [tensor for tensor, each in enumerate(tensors) if "alias_of" not in each]
    if draw(st.booleans()):
        old, size = draw(st.sampled_from([(root, tensors[root]["bytes"]) for root in roots]))
        updates.append((old, len(tensors)))
        nodes.append({"id": 99, "op": "sub", "inputs": [old], "outputs": [len(tensors)]})
        tensors.append({"bytes": size})
    outputs = sorted(draw(st.sets(st.sampled_from(range(len(tensors))), max_size=2)))
    return {"nodes": nodes, "tensors": tensors, "outputs": outputs, "inplace_updates": updates}


@settings(max_examples=200)
@given(content=contents(), seed=st.integers(0, 99))
def test_peaks_of_any_order_are_those_of_the_file(content: dict[str, Any], seed: int) -> None:
    graph = graph_of(content)
    order = any_order(graph, Random(seed))
    whole = graph.node_order(order)
    assert sorted(whole) == sorted(node["id"] for node in content["nodes"])
    done: set[int] = set()
    for node in (next(n for n in content["nodes"] if n["id"] == each) for each in whole):
        assert done.issuperset(node["inputs"])
        done.update(node["outputs"])
    if order:
        assert graph.problem.peak(order) == peak_by_hand(content, whole)


def any_order(graph: PlainGraph, rng: Random) -> list[int]:
    """A random valid order of the steps."""
    order: list[int] = []
    while len(order) < graph.problem.steps:
        ready = [
            step
            for step, needed in enumerate(graph.problem.before)
            if step not in order and all(other in order for other in needed)
        ]
        order.append(rng.choice(ready))
    return order
