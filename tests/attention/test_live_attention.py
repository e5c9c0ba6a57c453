"""Attention of one query: the pass that finds it in decoders, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.device.target import Target
from mcudeploy.extensions.attention.attend import Attend, Bound
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.networks.decoder import Cache, Sizes, decoder, states
from tests.networks.onnx_files import build, node, save

SMALL = Sizes(dim=16, layers=1, heads=4, kv_heads=2, vocabulary=16, context=6, hidden=24)
HEADS, ROWS, DEPTH = 4, 7, 5


def _attends(path: Path, caches: dict[str, str] | None = None) -> list[Attend]:
    graph = load(path, choices=InputChoices(states=caches or {}))
    return [operator.op for operator in graph.operators if isinstance(operator.op, Attend)]


@pytest.mark.parametrize("cache", get_args(Cache))
def test_a_decoder_reads_the_live_rows_of_its_caches(cache: Cache, tmp_path: Path) -> None:
    model = decoder(SMALL, cache)
    (op,) = _attends(save(model, tmp_path), states(model))
    rows = SMALL.context
    live = (Bound(rows - 1, -1), Bound(rows, 0)) if cache == "slide" else (Bound(0, 0), Bound(1, 1))
    assert (op.first, op.end) == live and (op.heads, op.group, op.count) == (4, 2, rows)


def _attention(folder: Path, *mask: onnx.NodeProto, keys: str = "k", **constants: Any) -> Path:
    """q . k, scaled; the nodes of `mask` make `masked` of `scaled`; softmax . v."""
    model = build(
        [
            node("MatMul", f"q {keys}", "scores"),
            node("Mul", "scores factor", "scaled"),
            *mask,
            node("Softmax", "masked", "weights", axis=-1),
            node("MatMul", "weights v", "y"),
        ],
        {
            "q": np.zeros((1, HEADS, 1, DEPTH), np.float32),
            "k": np.zeros((1, HEADS, DEPTH, ROWS), np.float32),
            "v": np.zeros((1, HEADS, ROWS, 3), np.float32),
            "position": np.zeros((1,), np.int64),
            "bias": np.zeros((ROWS,), np.float32),
        },
        ["y"],
        {
            "factor": np.float32(0.3),
            "places": np.arange(ROWS),
            "zero": np.float32(0),
            "never": np.float32(-np.inf),
            "two": np.array([2]),
            **constants,
        },
        opset=18,
    )
    used = {name for each in model.graph.node for name in each.input}
    for value in [it for it in model.graph.input if it.name not in used]:
        model.graph.input.remove(value)
    return save(model, folder)


_SEEN = node("LessOrEqual", "places position", "seen")
_ADDED = (_SEEN, node("Where", "seen zero never", "mask"), node("Add", "scaled mask", "masked"))
_CHOSEN = (_SEEN, node("Where", "seen scaled never", "masked"))
_HIDDEN = (
    node("Greater", "places position", "hidden"),
    node("Where", "hidden never scaled", "masked"),
)
_WINDOW = (
    _SEEN,
    node("Add", "places two", "reach"),
    node("GreaterOrEqual", "reach position", "near"),
    node("And", "seen near", "both"),
    node("Where", "both scaled never", "masked"),
)


@pytest.mark.parametrize(
    ("mask", "first"),
    [
        (_ADDED, Bound(0, 0)),
        (_CHOSEN, Bound(0, 0)),
        (_HIDDEN, Bound(0, 0)),
    ],
    ids=["added", "chosen", "hidden"],
)
def test_masks_of_a_position(mask: tuple[onnx.NodeProto, ...], first: Bound, tmp_path: Path) -> None:
    """Every position counts, each in a run; keys and values are computed, and lie in rows of columns."""
    path = _attention(tmp_path, *mask)
    (op,) = _attends(path)
    assert (op.first, op.end, op.group) == (first, Bound(1, 1), 1) and op.scale == pytest.approx(0.3)
    rng, files = np.random.default_rng(0), []
    shapes = {"q": (HEADS, 1, DEPTH), "k": (HEADS, DEPTH, ROWS), "v": (HEADS, ROWS, 3)}
    for position in range(ROWS):
        for name, shape in shapes.items():
            np.save(tmp_path / f"{name}{position}.npy", rng.standard_normal((1, *shape)).astype(np.float32))
            files.append(tmp_path / f"{name}{position}.npy")
        np.save(tmp_path / f"p{position}.npy", np.array([position]))
        files.append(tmp_path / f"p{position}.npy")
    reports.verified(path, inputs=files)


def _onnx_attention(folder: Path, flat: bool, outputs: str = "y", **attributes: Any) -> Path:
    """Attention of opset 23 with a mask of the position; two heads share keys. `flat`: of 3 dimensions."""
    count = {"q_num_heads": HEADS, "kv_num_heads": 2} if flat else {}
    shapes = [(1, HEADS * DEPTH), (ROWS, 2 * DEPTH)] if flat else [(HEADS, 1, DEPTH), (2, ROWS, DEPTH)]
    floats = dict(zip("qkv", ((1, *it) for it in (shapes[0], shapes[1], shapes[1])), strict=True))
    model = build(
        [
            node("LessOrEqual", "places position", "seen"),
            node("Attention", "q k v seen", outputs, **count, **attributes),
        ],
        {
            **{name: np.zeros(it, np.float32) for name, it in floats.items()},
            "position": np.zeros((1,), np.int64),
        },
        [outputs.rsplit(maxsplit=1)[-1]],
        {"places": np.arange(ROWS).reshape(1, ROWS)},
        opset=23,
    )
    return save(model, folder)


@pytest.mark.parametrize("flat", [False, True])
def test_the_operator_of_onnx_with_a_mask_of_the_position(flat: bool, tmp_path: Path) -> None:
    path = _onnx_attention(tmp_path, flat)
    (op,) = _attends(path)
    assert (op.heads, op.count) == (HEADS, ROWS) and op.scale == pytest.approx(DEPTH**-0.5)
    assert (op.first, op.end) == (Bound(0, 0), Bound(1, 1))
    rng, files = np.random.default_rng(0), []
    for position in (0, 2, ROWS - 1):
        for it in onnx.load(path).graph.input[:3]:
            shape = [each.dim_value for each in it.type.tensor_type.shape.dim]
            files.append(tmp_path / f"{it.name}{position}.npy")
            np.save(files[-1], rng.standard_normal(shape).astype(np.float32))
        files.append(tmp_path / f"p{position}.npy")
        np.save(files[-1], np.array([position]))
    reports.verified(path, inputs=files)


@pytest.mark.parametrize(
    ("outputs", "attributes"),
    [("y", {"softcap": 5.0}), ("y - - z", {"qk_matmul_output_mode": 3})],
    ids=["bent scores", "weights that others read"],
)
def test_other_forms_of_the_operator_stay(outputs: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    assert _attends(_onnx_attention(tmp_path, False, outputs, **attributes)) == []


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param((node("Add", "scaled bias", "masked"),), id="a mask that is an input"),
        pytest.param(
            (_SEEN, node("Where", "seen zero small", "mask"), node("Add", "scaled mask", "masked")),
            id="rows that count a little",
        ),
        pytest.param(
            (node("Mod", "places two", "odd"), node("LessOrEqual", "odd position", "seen"), *_ADDED[1:]),
            id="rows apart",
        ),
        pytest.param(
            (
                node("Mul", "position two", "far"),
                node("LessOrEqual", "places far", "seen"),
                *_ADDED[1:],
            ),
            id="two rows a position",
        ),
        pytest.param(_WINDOW, id="a window that ends beyond all rows"),
        pytest.param((*_ADDED, node("Softmax", "masked", "z", axis=-1)), id="scores that others read"),
    ],
)
def test_other_masks_stay(mask: tuple[onnx.NodeProto, ...], tmp_path: Path) -> None:
    path = _attention(tmp_path, *mask, small=np.float32(-50))
    if mask[-1].output[0] == "z":
        model = onnx.load(path)
        model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, [1, HEADS, 1, ROWS]))
        onnx.save(model, path)
    assert _attends(path) == []


def test_an_int8_decoder_is_as_before(tmp_path: Path) -> None:
    """Where scores are quantised, their rounding belongs to the model: nothing is joined."""
    model = onnx.load(_attention(tmp_path, *_ADDED))
    quantize = [
        node("QuantizeLinear", "scores s", "scores_q"),
        node("DequantizeLinear", "scores_q s", "scores_r"),
    ]
    at = next(i for i, it in enumerate(model.graph.node) if it.op_type == "Mul")
    model.graph.node[at].input[0] = "scores_r"
    for number, each in enumerate(quantize):
        model.graph.node.insert(at + number, each)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.1), "s"))
    assert _attends(save(model, tmp_path)) == []


def test_positions_decide_how_long_it_takes(tmp_path: Path) -> None:
    """On an emulated board, a token at the first position takes less time than one at the last."""
    size = Sizes(dim=16, layers=1, heads=4, kv_heads=2, vocabulary=16, context=64, hidden=24)
    model = decoder(size)
    path = save(model, tmp_path)
    options = Options(time_limit=0.5, states=tuple(states(model).items()))
    board, ticks = Target(load_board("mps2-an386")), []
    for position in (0, 63):
        np.save(tmp_path / "token.npy", np.zeros((1, 1), np.int64))
        np.save(tmp_path / "position.npy", np.array([position]))
        files = [tmp_path / "token.npy", tmp_path / "position.npy"]
        report = reports.verified(path, board, options, inputs=files)
        ticks.append({it["name"]: it["ticks"] for it in report["operators"]}["attend_0"])
    assert 8 * ticks[0] < ticks[1]
