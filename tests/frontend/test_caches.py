"""Caches of which a run writes some rows, and caches in parts: states that are updated in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnxruntime
import pytest

from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.move.write_rows import WriteRows
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.verify.samples import tables_rows
from tests import reports
from tests.networks.decoder import Cache, Sizes, decoder, states
from tests.networks.onnx_files import build, node, save

SMALL = Sizes(dim=16, layers=1, heads=4, kv_heads=2, vocabulary=16, context=6, hidden=24)
_ROWS = (1, 2, 5, 3)
"""The shape of a cache whose axis 2 is time."""


def _graph(path: Path, caches: dict[str, str]) -> Graph:
    return load(path, choices=InputChoices(states=caches))


def _options(caches: dict[str, str]) -> Options:
    return Options(time_limit=0.5, states=tuple(caches.items()))


def _kinds(graph: Graph) -> list[str]:
    return [operator.op.kind for operator in graph.operators]


@pytest.mark.parametrize("cache", get_args(Cache))
def test_the_caches_of_a_decoder_are_written_in_place(cache: Cache, tmp_path: Path) -> None:
    """Each token is read at its position, over more runs than one; the reference is ONNX Runtime."""
    model = decoder(SMALL, cache)
    path, caches = save(model, tmp_path), states(model)
    graph = _graph(path, caches)
    kind = "Queue" if cache == "slide" else "WriteRows"
    assert _kinds(graph).count(kind) == len(graph.states) == 2
    tokens = np.random.default_rng(0).integers(0, 16, (SMALL.context, 1, 1))
    np.save(tmp_path / "token.npy", tokens)
    np.save(tmp_path / "position.npy", np.arange(SMALL.context)[:, np.newaxis])
    files = [tmp_path / "token.npy", tmp_path / "position.npy"]
    report = reports.verified(path, options=_options(caches), inputs=files)
    assert len(report["outputs"]) == SMALL.context
    assert report["state_bytes"] == 2 * 4 * SMALL.context * SMALL.kv_heads * SMALL.head


def _written(folder: Path, *nodes: onnx.NodeProto, position: Any = (1,), **constants: Any) -> Path:
    """A cache that nodes write into `cache_out`, from the rows x; its sum along time is read."""
    count = np.prod(position, dtype=int)
    model = build(
        [*nodes, node("ReduceMax", "cache_out axis", "y", keepdims=0)],
        {
            "x": np.zeros((1, 2, count, 3), np.float32),
            "cache": np.zeros(_ROWS, np.float32),
            "position": np.zeros(position, np.int64),
        },
        ["y", "cache_out"],
        {"axis": np.array([2]), **constants},
        opset=24,
    )
    return save(model, folder)


def _elements(count: int, source: str = "places") -> list[onnx.NodeProto]:
    return [
        node("Reshape", "position column", "line"),
        node("Expand", "line shape", "places"),
        node("ScatterElements", f"cache {source} x", "cache_out", axis=2),
    ]


_TENSOR = node("TensorScatter", "cache x position", "cache_out", axis=2)
_RING = node("TensorScatter", "cache x position", "cache_out", axis=-2, mode="circular")


@pytest.mark.parametrize(
    ("nodes", "positions", "count"),
    [
        (_elements(1), [[0], [3], [-1], [4], [3]], 1),
        (_elements(2), [[0, 3], [1, -1], [2, 0]], 2),
        ([_TENSOR], [[0], [4], [2]], 1),
        ([_TENSOR], [[0], [3], [1]], 2),
        ([_RING], [[0], [4], [7], [12]], 2),
    ],
    ids=["elements", "several elements", "tensor", "several rows", "ring"],
)
def test_rows_at_positions(
    nodes: list[onnx.NodeProto], positions: list[list[int]], count: int, tmp_path: Path
) -> None:
    places = np.array(positions)
    shape = np.array([1, 2, count, 3])
    path = _written(
        tmp_path, *nodes, position=(count,), shape=shape, column=np.array([1, 1, count, 1])
    ) if len(positions[0]) == count else _several(tmp_path, nodes, count)  # fmt: skip
    graph = _graph(path, {"cache": "cache_out"})
    assert _kinds(graph).count("WriteRows") == 1 and not _copies(graph)
    x = np.random.default_rng(1).standard_normal((len(places), 1, 2, count, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "position.npy", places)
    files = [tmp_path / "x.npy", tmp_path / "position.npy"]
    reports.verified(path, options=_options({"cache": "cache_out"}), inputs=files)


def test_a_cache_that_is_no_state_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="name its cache, --state OUTPUT=INPUT"):
        _graph(_written(tmp_path, _TENSOR, position=(1,)), {})


def test_drawn_positions_lie_within_the_axis_that_they_index(tmp_path: Path) -> None:
    """ONNX Runtime refuses others, also where elements are written into a flat table."""
    nodes = _elements(1)
    nodes[-1].attribute.append(onnx.helper.make_attribute("reduction", "add"))
    path = _written(tmp_path, *nodes, shape=np.array([1, 2, 1, 3]), column=np.array([1, 1, 1, 1]))
    graph = _graph(path, {"cache": "cache_out"})
    assert "ScatterRows" in _kinds(graph) and tables_rows(graph, "position") == [_ROWS[2]]
    reports.verified(path, options=_options({"cache": "cache_out"}))


def test_a_ring_does_not_limit_positions(tmp_path: Path) -> None:
    for nodes, rows in ((_RING, []), (_TENSOR, [_ROWS[2]])):
        graph = _graph(_written(tmp_path, nodes), {"cache": "cache_out"})
        assert tables_rows(graph, "position", rings=False) == rows
        assert tables_rows(graph, "position") == [_ROWS[2]]


def _several(folder: Path, nodes: list[onnx.NodeProto], count: int) -> Path:
    """A model whose rows begin at one position."""
    model = onnx.load(_written(folder, *nodes))
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = count
    return save(model, folder)


def _copies(graph: Graph) -> list[str]:
    """The operators that copy a whole state."""
    whole = {graph.tensors[state.tensor].elements for state in graph.states}
    return [
        it.name
        for it in graph.operators
        if isinstance(it.op, Slice) and graph.tensors[it.output].elements in whole
    ]


def _with_a_late_reader(folder: Path) -> Path:
    """A cache whose rows of the run before are read as well."""
    path = _written(folder, *_elements(1), shape=np.array([1, 2, 1, 3]), column=np.array([1, 1, 1, 1]))
    model = onnx.load(path)
    model.graph.node.append(node("Sub", "cache cache_out", "change"))
    model.graph.output.append(onnx.helper.make_tensor_value_info("change", 1, _ROWS))
    return save(model, folder)


def test_a_reader_of_the_old_rows_has_a_copy_of_them(tmp_path: Path) -> None:
    path = _with_a_late_reader(tmp_path)
    assert len(_copies(_graph(path, {"cache": "cache_out"}))) == 1
    places = np.array([[0], [2], [0], [-2]])
    np.save(tmp_path / "position.npy", places)
    np.save(tmp_path / "x.npy", np.random.default_rng(2).random((4, 1, 2, 1, 3), np.float32))
    files = [tmp_path / "x.npy", tmp_path / "position.npy"]
    reports.verified(path, options=_options({"cache": "cache_out"}), inputs=files)


def test_the_checker_refuses_a_read_of_old_rows_after_the_write(tmp_path: Path) -> None:
    options = _options({"cache": "cache_out"})
    model = read_model(_with_a_late_reader(tmp_path), options)
    plan = find_plans(model, reports.HOST.board, options).baseline
    names = [plan.graph.operators[step.operator].name for step in plan.schedule.steps]
    (copy,) = _copies(plan.graph)
    steps = list(plan.schedule.steps)
    (write,) = (it.name for it in plan.graph.operators if isinstance(it.op, WriteRows))
    first, last = names.index(copy), names.index(write)
    steps.insert(last, steps.pop(first))  # the write comes one step earlier than the copy
    assert first < last
    late = replace(plan, schedule=replace(plan.schedule, steps=tuple(steps)))
    with pytest.raises(PlanFaultError):
        check_plan(late, model.work, reports.HOST.board)


def test_the_checker_refuses_another_tensor_in_the_cache(tmp_path: Path) -> None:
    model_file = decoder(SMALL)
    options = _options(states(model_file))
    model = read_model(save(model_file, tmp_path), options)
    plan = find_plans(model, reports.HOST.board, options).baseline
    blocks = dict(plan.layout.blocks)
    state = plan.graph.states[0].tensor
    home = blocks[state][0][0]
    for name, residences in blocks.items():
        if name in {it.output for it in plan.graph.operators} - {it.after.tensor for it in plan.graph.states}:
            moved = tuple(tuple(replace(it, offset=home.offset) for it in block) for block in residences)
            wrong = replace(plan, layout=replace(plan.layout, blocks={**blocks, name: moved}))
            with pytest.raises(PlanFaultError):
                check_plan(wrong, model.work, reports.HOST.board)
            return
    raise AssertionError("the decoder has no other tensor")


def _in_parts(folder: Path, *, late: bool = False) -> Path:
    """A cache [2, 1, 3, 6, 2]: of each half two queues along axis 2, replaced by ScatterND and Concat."""
    made: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {"end": np.array([2**62]), "time": np.array([2]), "one": np.array([1])}
    constants |= {f"limit_{at}": np.array([at]) for at in (0, 2, 6)}
    for half in (0, 1):
        constants |= {f"half_{half}": np.array(half), f"at_{half}": np.array([[half]])}
        before = "cache" if half == 0 else "cache_1"
        made.append(node("Gather", f"{before} half_{half}", f"h{half}"))
        for part, (first, last) in enumerate(((0, 2), (2, 6))):
            name = f"{half}{part}"
            made += [
                node("Slice", f"h{half} limit_{first} limit_{last} time", f"old_{name}"),
                node("Concat", f"old_{name} x", f"rows_{name}", axis=2),
                node("Slice", f"rows_{name} one end time", f"new_{name}"),
                node("ReduceMean", f"rows_{name} time", f"mean_{name}", keepdims=0),
            ]
        made += [
            node("Concat", f"new_{half}0 new_{half}1", f"joined_{half}", axis=2),
            node("Unsqueeze", f"joined_{half} limit_0", f"update_{half}"),
            node("ScatterND", f"{before} at_{half} update_{half}", "cache_out" if half else "cache_1"),
        ]
    made.append(node("Sum", "mean_00 mean_01 mean_10 mean_11", "y"))
    if late:
        made.append(node("ReduceMax", "cache", "largest", keepdims=0))
    inputs = {"x": np.zeros((1, 3, 1, 2), np.float32), "cache": np.zeros((2, 1, 3, 6, 2), np.float32)}
    outputs = ["y", "cache_out", *(["largest"] if late else [])]
    return save(build(made, inputs, outputs, constants, opset=18), folder)


def test_parts_of_a_cache_are_queues(tmp_path: Path) -> None:
    path, caches = _in_parts(tmp_path), {"cache": "cache_out"}
    graph = _graph(path, caches)
    assert [isinstance(it.op, Queue) for it in graph.operators if it.output in _after(graph)] == [True] * 4
    assert "ScatterRows" not in _kinds(graph) and not _copies(graph)
    rows = sum(graph.tensors[state.tensor].shape[1] for state in graph.states)
    assert rows == 2 * (2 + 4) + 4  # a queue has its newest row too
    report = reports.verified(path, options=_options(caches), steps=7)
    assert report["state_bytes"] == rows * 3 * 2 * 4


def _after(graph: Graph) -> set[str]:
    return {state.after.tensor for state in graph.states}


def test_the_steps_equal_the_model_with_its_cache_fed_back(tmp_path: Path) -> None:
    path = _in_parts(tmp_path)
    session = onnxruntime.InferenceSession(path)
    steps = np.random.default_rng(1).standard_normal((6, 1, 3, 1, 2)).astype(np.float32)
    cache, outputs = np.zeros((2, 1, 3, 6, 2), np.float32), []
    for x in steps:
        y, cache = session.run(["y", "cache_out"], {"x": x, "cache": cache})
        outputs.append(y)
    for name, values in (("x", steps), ("y", np.stack(outputs))):
        np.save(tmp_path / f"{name}.npy", values)
    inputs, expected = ([tmp_path / f"{name}.npy"] for name in "xy")
    reports.verified(path, options=_options({"cache": "cache_out"}), inputs=inputs, expected=expected)


def test_a_cache_that_is_also_read_whole_stays_whole(tmp_path: Path) -> None:
    path, caches = _in_parts(tmp_path, late=True), {"cache": "cache_out"}
    assert len(_graph(path, caches).states) == 1
    reports.verified(path, options=_options(caches), steps=3)
