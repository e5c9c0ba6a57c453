"""Caches of int8 rows, with a scale for each: what is stored, what it costs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target, open_device
from mcudeploy.extensions.attention.attend import Attend
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.protos import refill
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.planner.plan_options import Options
from mcudeploy.report.wording import int8_caches_text
from mcudeploy.verify.compare import run_once
from mcudeploy.verify.samples import load_samples
from mcudeploy.verify.verdict import judge
from tests import reports
from tests.networks.decoder import Cache, Sizes, decoder, states
from tests.networks.onnx_files import build, node, save
from tests.weekly import examples, sample

SMALL = Sizes(dim=16, layers=1, heads=4, kv_heads=2, vocabulary=16, context=6, hidden=24)
WIDE = replace(SMALL, dim=128, heads=2, kv_heads=2)
"""Heads of 64 values."""


def _graph(path: Path, model: onnx.ModelProto) -> Graph:
    return load(path, choices=InputChoices(states=states(model), int8_caches=("*",)))


def _options(model: onnx.ModelProto) -> Options:
    return Options(time_limit=0.5, split=False, states=tuple(states(model).items()), int8_caches=("*",))


def _tokens(folder: Path, sizes: Sizes) -> list[Path]:
    """Files of tokens at all positions."""
    tokens = np.random.default_rng(0).integers(0, sizes.vocabulary, (sizes.context, 1, 1))
    np.save(folder / "token.npy", tokens)
    np.save(folder / "position.npy", np.arange(sizes.context)[:, np.newaxis])
    return [folder / "token.npy", folder / "position.npy"]


@pytest.mark.parametrize("cache", sample(get_args(Cache), ("scatter", "slide")))
def test_every_operator_of_a_decoder_is_verified(cache: Cache, tmp_path: Path) -> None:
    """ONNX Runtime quantises the rows as the program does, over more runs than one."""
    model = decoder(SMALL, cache)
    path = save(model, tmp_path)
    report = reports.verified(path, options=_options(model), inputs=_tokens(tmp_path, SMALL))
    assert report["state_bytes"] == 2 * SMALL.context * (SMALL.kv_heads * SMALL.head + 4)
    loss = report["int8_caches"]
    assert loss["runs"] == SMALL.context and 30 < loss["sqnr_db"] < 80
    assert 0 < loss["largest_difference"] < 0.05 * loss["range"]
    checks = report["operator_checks"]
    assert {name for name, it in checks.items() if it["error_unit"] == "LSB"} >= {"quantize_0", "quantize_1"}


@pytest.mark.parametrize("cache", get_args(Cache))
def test_scales_are_those_of_positions_or_of_large_heads(cache: Cache, tmp_path: Path) -> None:
    for sizes, scales in ((SMALL, SMALL.context), (WIDE, WIDE.context * WIDE.kv_heads)):
        model = decoder(sizes, cache)
        graph = _graph(save(model, tmp_path), model)
        kinds = [graph.tensors[it.tensor] for it in graph.states]
        assert [it.dtype for it in kinds] == [DType.INT8, DType.FLOAT32] * 2
        assert [it.elements for it in kinds[1::2]] == [scales] * 2
        (op,) = (it.op for it in graph.operators if isinstance(it.op, Attend))
        assert len(op.scales) == 2 and all((it.head == 0) == (sizes is SMALL) for it in op.scales)


def test_large_heads_are_verified(tmp_path: Path) -> None:
    model = decoder(WIDE)
    reports.verified(save(model, tmp_path), options=_options(model), inputs=_tokens(tmp_path, WIDE))


@pytest.mark.parametrize("cache", sample(get_args(Cache), ("scatter",)))
def test_a_text_is_verified_under_sanitizers(cache: Cache, tmp_path: Path) -> None:
    """Positions outside of the cache, which ONNX Runtime refuses, then leave rows and scales as they are."""
    size, target = replace(SMALL, context=examples(12, 256)), Target(load_board("host"))
    model = decoder(size, cache)
    deployment = plan_model(save(model, tmp_path), target.board, _options(model))
    graph, storage = deployment.plan.graph, deployment.storage
    samples = load_samples(graph, _tokens(tmp_path, size), [], 0)
    path, choices = deployment.model.path, deployment.model.choices
    with open_device(target, deployment.build(target, sanitize=True)) as device:
        verdict = judge(device, deployment.plan, path, samples, SILENT, choices=choices)
        assert not verdict.reasons and len(verdict.host) == size.context
        outside = (size.context, 2**31 - 1, -size.context - 1, -(2**31)) if cache != "slide" else ()
        for position in outside:
            given = {"token": 3, "position": position}
            stored = {io.tensor: np.array([[[given[io.name]]]], np.int32) for io in graph.own_inputs()}
            run_once(device, storage, stored)
            for it in graph.states:
                last = verdict.host[-1][it.after.tensor]
                assert np.array_equal(storage.get_tensor(device, it.after.tensor), last)


def _by_the_file(model: onnx.ModelProto, dtype: type[np.generic]) -> onnx.ModelProto:
    """The decoder with caches that the file itself quantises, all rows of a cache by one scale."""
    kind, zero = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), 128 if dtype is np.uint8 else 7
    nodes = list(model.graph.node)
    for name, after in states(model).items():
        constants = {f"{name}_scale": np.float32(0.03), f"{name}_zero": dtype(zero)}
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.array(it), own) for own, it in constants.items()
        )
        at = next(number for number, it in enumerate(nodes) if after in it.output)
        for each in nodes[at + 1 :]:
            for number, it in enumerate(each.input):
                each.input[number] = f"{name}_real" if it == after else it
        by = f"{name}_scale {name}_zero"
        nodes.insert(at + 1, node("DequantizeLinear", f"{after} {by}", f"{name}_real"))
        nodes.insert(at, node("QuantizeLinear", f"{nodes[at].input[2]} {by}", f"{name}_row"))
        nodes[at + 1].input[2] = f"{name}_row"
    for value in (*model.graph.input[2:], *model.graph.output[1:]):
        value.type.tensor_type.elem_type = kind
    refill(model.graph.node, nodes)
    return model


@pytest.mark.parametrize("dtype", sample((np.int8, np.uint8), 1))
def test_caches_that_the_file_quantises(dtype: type[np.generic], tmp_path: Path) -> None:
    model = _by_the_file(decoder(SMALL), dtype)
    options = replace(_options(model), int8_caches=())
    report = reports.verified(save(model, tmp_path), options=options, inputs=_tokens(tmp_path, SMALL))
    assert report["state_bytes"] == 2 * SMALL.context * SMALL.kv_heads * SMALL.head
    kernels = {it["name"]: it["kernel"] for it in report["operators"]}
    assert kernels["attend_0"] == "attend_s8" and not any("dequantize" in it for it in kernels)


def _one_layer(opset: int) -> onnx.ModelProto:
    """Attention of one query over caches [rows, values], as older operator sets have it."""
    nodes = [
        node("Reshape", "position column", "line"),
        node("Expand", "line row", "places"),
        node("ScatterElements", "key places k", "key_out", axis=0),
        node("ScatterElements", "value places v", "value_out", axis=0),
        node("Transpose", "key_out", "turned", perm=[1, 0]),
        node("MatMul", "q turned", "scores"),
        node("LessOrEqual", "rows position", "seen"),
        node("Where", "seen scores never", "masked"),
        node("Softmax", "masked", "weights", axis=-1),
        node("MatMul", "weights value_out", "y"),
    ]
    row, cache = np.zeros((1, 6), np.float32), np.zeros((5, 6), np.float32)
    inputs = {
        "q": row,
        "k": row,
        "v": row,
        "position": np.zeros((1,), np.int64),
        "key": cache,
        "value": cache,
    }
    constants = {
        "column": np.array([1, 1]),
        "row": np.array([1, 6]),
        "rows": np.arange(5),
        "never": np.float32(-np.inf),
    }
    return build(nodes, inputs, ["y", "key_out", "value_out"], constants, opset=opset)


@pytest.mark.parametrize("opset", sample((13, 17, 18), 1))
def test_operator_sets(opset: int, tmp_path: Path) -> None:
    path = save(_one_layer(opset), tmp_path)
    options = Options(time_limit=0.5, states=(("key", "key_out"), ("value", "value_out")), int8_caches=("*",))
    report = reports.verified(path, options=options)
    assert "attend_s8" in {it["kernel"] for it in report["operators"]} and report["int8_caches"]["runs"] == 4


def _cache(folder: Path, *nodes: onnx.NodeProto, late: bool = False) -> Path:
    """A cache of which a run writes a row, and that `nodes` read; with `late` also before that."""
    every_node = [
        node("Reshape", "position column", "line"),
        node("Expand", "line shape", "places"),
        node("ScatterElements", "cache places x", "cache_out", axis=2),
        *nodes,
    ]
    every_node += [node("Sub", "cache x", "late")] if late else []
    inputs = {
        "x": np.zeros((1, 2, 1, 3), np.float32),
        "cache": np.zeros((1, 2, 5, 3), np.float32),
        "h": np.zeros((1, 2, 1, 3), np.float32),
        "position": np.zeros((1,), np.int64),
    }
    constants = {"shape": np.array([1, 2, 1, 3]), "column": np.array([1, 1, 1, 1]), "axis": np.array([2])}
    outputs = ["y", "cache_out", "h_out", *(["late"] if late else [])]
    every_node += [node("ReduceMax", "cache_out axis", "y", keepdims=0), node("Add", "h x", "h_out")]
    return save(build(every_node, inputs, outputs, constants, opset=18), folder)


def test_a_cache_that_others_read_is_refused(tmp_path: Path) -> None:
    choices = InputChoices(states={"cache": "cache_out"}, int8_caches=("cache",))
    with pytest.raises(ModelError) as raised:
        load(_cache(tmp_path), choices=choices)
    (problem,) = raised.value.problems
    assert "those that a position decides; ReduceMax reads it in another way" in problem.reason
    with pytest.raises(ModelError, match="state 'cache': nodes read the rows that it has before the run"):
        load(_cache(tmp_path, late=True), choices=choices)


def test_keys_without_their_values_are_refused(tmp_path: Path) -> None:
    model = decoder(SMALL, "scatter")
    path = save(model, tmp_path)
    with pytest.raises(ModelError) as raised:
        load(path, choices=InputChoices(states=states(model), int8_caches=("value_*",)))
    (problem,) = raised.value.problems
    assert "both int8 or both float32" in problem.reason and "name the other cache" in problem.reason


def test_the_loss_of_outputs_that_are_not_finite_is_not_a_number() -> None:
    nothing = {"runs": 2, "sqnr_db": None, "largest_difference": float("nan"), "range": float("nan")}
    assert "an output is not finite" in int8_caches_text({"int8_caches": nothing})


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (("h",), ModelError, "state 'h' is not a cache of which a run writes some rows"),
        (
            ("cache,key_*",),
            UsageError,
            "--int8-cache: no state is named 'key_[*]'; the states are cache, h",
        ),
    ],
)
def test_other_states_are_refused(
    names: tuple[str, ...], error: type[Exception], message: str, tmp_path: Path
) -> None:
    choices = InputChoices(states={"cache": "cache_out", "h": "h_out"}, int8_caches=names)
    with pytest.raises(error, match=message):
        load(_cache(tmp_path), choices=choices)


def test_states_have_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no states: name its caches by --state"):
        load(_cache(tmp_path), choices=InputChoices(int8_caches=("*",)))
