"""The nodes that ONNX Runtime's optimiser writes of transformers, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_against_onnx
from onnx import helper
from plain_node import loaded
from single_node import normal

from mcudeploy.common.errors import ModelError
from tests.networks.onnx_files import build

BATCH, LENGTH, HEADS, WIDTH = 2, 5, 2, 8
SEQUENCE = (BATCH, LENGTH, WIDTH)
Array = np.ndarray[Any, Any]


def model(op: str, inputs: dict[str, Array], *outputs: str, opset: int = 17, **attributes: Any) -> Any:
    """One node; inputs called c... are constant, an empty one is left out."""
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    names = [name if array.size else "" for name, array in inputs.items()]
    node = helper.make_node(op, names, list(outputs or ("y",)), "node", domain=domain, **attributes)
    given, constants = (
        {name: it for name, it in inputs.items() if it.size and (name[0] == "c") == constant}
        for constant in (False, True)
    )
    results = {name: (np.float32, None) for name in outputs or ("y",) if name}
    return build([node], given, results, constants, opset)


def check(op: str, inputs: dict[str, Array], *outputs: str, opset: int = 17, **attributes: Any) -> list[str]:
    """Compare with ONNX Runtime; the kinds of the operators."""
    proto = model(op, inputs, *outputs, opset=opset, **attributes)
    given = {name: it for name, it in inputs.items() if it.size and not name.startswith("c")}
    graph = check_against_onnx(proto, given, float_tolerance=1e-4, pieces=False)
    return [operator.op.kind for operator in graph.operators]


def drawn(*shape: int) -> Array:
    return normal(np.random.default_rng(len(shape) + sum(shape)), shape)


NONE = np.zeros(0, np.float32)


@pytest.mark.parametrize("opset", [13, 17])
def test_a_sum_and_its_norm(opset: int) -> None:
    terms = {"x": drawn(*SEQUENCE), "skip": 2 * drawn(*SEQUENCE)}
    gains = {"cg": drawn(WIDTH), "cb": drawn(WIDTH)}
    assert check("SkipLayerNormalization", terms | gains, opset=opset) == ["Binary", "LayerNorm"]
    check("SkipLayerNormalization", terms | gains | {"cbias": drawn(WIDTH)}, "y", "", "", "sum", opset=opset)
    gain = {"cg": drawn(WIDTH)}
    kinds = check("SkipSimplifiedLayerNormalization", terms | gain, opset=opset, epsilon=1e-5)
    assert kinds == ["Binary", "LayerNorm"]
    more = terms | gain | {"cbias": drawn(WIDTH)}
    check("SkipSimplifiedLayerNormalization", more, "y", "", "", "sum", opset=opset)
    simple = {"x": terms["x"]} | gain
    assert check("SimplifiedLayerNormalization", simple, opset=opset, axis=-1) == ["LayerNorm"]


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("positions", [False, True])
def test_embeddings(segments: bool, positions: bool) -> None:
    rng = np.random.default_rng(1)

    def numbers(most: int) -> Array:
        return rng.integers(0, most, (BATCH, LENGTH)).astype(np.int32)

    tables = {"cwords": drawn(11, WIDTH), "cplaces": drawn(7, WIDTH)}
    inputs = {"x": numbers(11), "kinds": numbers(2) if segments else NONE} | tables
    inputs |= {"ckinds": drawn(2, WIDTH) if segments else NONE, "cg": drawn(WIDTH), "cb": drawn(WIDTH)}
    inputs |= {"mask": NONE, "at": numbers(7) if positions else NONE}
    if not positions:
        inputs = {name: it for name, it in inputs.items() if name not in ("mask", "at")}
    check("EmbedLayerNormalization", inputs, *(["y", ""] if not positions else ["y", "", "sum"]))


MASKS = {
    "none": NONE,
    "keys": np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32),
    "lengths": np.array([5, 3], np.int32),
    "queries": np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32)),
}


@pytest.mark.parametrize("form", MASKS)
def test_attention_of_one_sequence(form: str) -> None:
    inputs = {"x": drawn(*SEQUENCE), "cw": drawn(WIDTH, 3 * WIDTH), "cb": drawn(3 * WIDTH)}
    inputs["mask"] = MASKS[form]
    check("Attention", inputs, num_heads=HEADS, unidirectional=int(form == "lengths"))


def test_attention_with_other_sizes_and_a_bias_of_scores() -> None:
    inputs = {"x": drawn(*SEQUENCE), "cw": drawn(WIDTH, 20), "cb": drawn(20)}
    inputs |= {"cmask": MASKS["keys"], "past": NONE, "bias": drawn(BATCH, HEADS, LENGTH, LENGTH)}
    check("Attention", inputs, num_heads=HEADS, qkv_hidden_sizes=[8, 8, 4], scale=0.3)


@pytest.mark.parametrize("form", ["none", "keys", "lengths"])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_of_queries_keys_and_values(form: str, biased: bool) -> None:
    inputs = {"q": drawn(BATCH, 3, WIDTH), "k": drawn(*SEQUENCE), "v": drawn(BATCH, LENGTH, 6)}
    inputs |= {"cb": drawn(2 * WIDTH + 6) if biased else NONE, "mask": MASKS[form]}
    inputs |= {"bias": drawn(1, HEADS, 3, LENGTH) if biased else NONE}
    check("MultiHeadAttention", inputs, num_heads=HEADS)


def test_attention_to_keys_that_are_stored_by_heads() -> None:
    by_heads = {"k": drawn(BATCH, HEADS, LENGTH, 4), "v": 2 * drawn(BATCH, HEADS, LENGTH, 4)}
    check("MultiHeadAttention", {"q": drawn(BATCH, 3, WIDTH)} | by_heads, num_heads=HEADS, scale=0.7)


def test_a_cache_and_packed_operands_are_refused() -> None:
    q = {"q": drawn(BATCH, 1, WIDTH), "k": drawn(BATCH, 1, WIDTH), "v": drawn(BATCH, 1, WIDTH)}
    past = {name: drawn(BATCH, HEADS, 3, 4) for name in ("pk", "pv")}
    cached = q | {"b": NONE, "m": NONE, "a": NONE} | past
    with pytest.raises(ModelError, match="export the model without a cache"):
        loaded(model("MultiHeadAttention", cached, "y", "k2", "v2", num_heads=HEADS))
    with pytest.raises(ModelError, match="packed in one tensor"):
        loaded(model("MultiHeadAttention", {"q": drawn(BATCH, LENGTH, HEADS, 3, 4)}, num_heads=HEADS))
