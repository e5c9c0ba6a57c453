"""Operators of ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from single_node import normal

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import build
from tests.networks.refusals import problems_of

ROWS, WIDTH = 6, 5
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")
NUMBERED_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def model_of(op: str, outputs: list[tuple[str, int, Any]], **attributes: Any) -> onnx.ModelProto:
    """A model of one node; outputs by name, element type and shape."""
    names = [name for name, _, _ in outputs]
    item = helper.make_node(op, ["x"], names, "node", domain="ai.onnx.ml", **attributes)
    return build(
        [item], {"x": (np.float32, (ROWS, WIDTH))}, {name: kind for name, *kind in outputs}, ai_onnx_ml=3
    )


def classifier(op: str, classes: int, **attributes: Any) -> onnx.ModelProto:
    """A model with labels and scores."""
    outputs = [("label", TensorProto.INT64, (ROWS,)), ("scores", TensorProto.FLOAT, (ROWS, classes))]
    return model_of(op, outputs, **attributes)


def forest(
    rng: np.random.Generator, prefix: str, targets: int, *, positive: bool = False, trees: int = 7
) -> dict[str, Any]:
    """Random trees of up to four levels, with nodes of all modes; `prefix` begins the names of weights."""
    facts: dict[str, list[Any]] = {}

    def add(**columns: Any) -> None:
        for name, value in columns.items():
            facts.setdefault(name, []).append(value)

    for tree in range(trees):
        count, waiting = 1, [(0, 0)]
        while waiting:
            node, depth = waiting.pop(0)
            leaf = depth == 4 or (depth > 0 and rng.uniform() < 0.3)
            add(
                nodes_treeids=tree,
                nodes_nodeids=node,
                nodes_featureids=0 if leaf else int(rng.integers(WIDTH)),
                nodes_values=0.0 if leaf else float(np.float32(rng.normal())),
                nodes_modes="LEAF" if leaf else str(rng.choice(MODES)),
                nodes_truenodeids=0 if leaf else count,
                nodes_falsenodeids=0 if leaf else count + 1,
                nodes_missing_value_tracks_true=int(rng.integers(2)),
            )
            if not leaf:
                waiting += [(count, depth + 1), (count + 1, depth + 1)]
                count += 2
                continue
            for target in range(targets):
                weight = float(np.float32(rng.normal()))
                entry = {"treeids": tree, "nodeids": node, "ids": target}
                entry["weights"] = abs(weight) / trees if positive else weight
                add(**{f"{prefix}_{name}": value for name, value in entry.items()})
    return facts


def ensemble(rng: np.random.Generator, targets: int, trees: int = 7) -> dict[str, Any]:
    """Random trees in the form of version 5: leaves apart from inner nodes, each of them of one target."""
    columns = (
        "featureids",
        "truenodeids",
        "falsenodeids",
        "trueleafs",
        "falseleafs",
        "missing_value_tracks_true",
    )
    facts: dict[str, list[Any]] = {f"nodes_{name}": [] for name in columns}
    modes, splits, weights, leaf_targets, roots = [], [], [], [], []
    for _ in range(trees):
        roots.append(len(modes))
        waiting: list[tuple[str, int] | None] = [None]
        for depth in range(4):
            following: list[tuple[str, int] | None] = []
            for parent in waiting:
                at = len(modes)
                if parent is not None:
                    facts[f"nodes_{parent[0]}nodeids"][parent[1]] = at
                modes.append(int(rng.integers(len(NUMBERED_MODES))))
                splits.append(float(np.float32(rng.normal())))
                facts["nodes_featureids"].append(int(rng.integers(WIDTH)))
                facts["nodes_missing_value_tracks_true"].append(int(rng.integers(2)))
                for branch in ("true", "false"):
                    leaf = depth == 3 or rng.uniform() < 0.3
                    facts[f"nodes_{branch}leafs"].append(int(leaf))
                    facts[f"nodes_{branch}nodeids"].append(len(weights) if leaf else 0)
                    if leaf:
                        weights.append(float(np.float32(rng.normal())))
                        leaf_targets.append(int(rng.integers(targets)))
                    else:
                        following.append((branch, at))
            waiting = following
    splits[-1] = np.inf
    arrays = {"nodes_splits": (splits, np.float32), "nodes_modes": (modes, np.uint8)}
    arrays["leaf_weights"] = weights, np.float32
    tensors = {name: numpy_helper.from_array(np.array(*it), name) for name, it in arrays.items()}
    return {**facts, **tensors, "tree_roots": roots, "leaf_targetids": leaf_targets, "n_targets": targets}


@pytest.mark.parametrize("how", range(2))
def test_trees_of_version_5(how: int) -> None:
    facts = ensemble(np.random.default_rng(how), 3)
    outputs = [("y", TensorProto.FLOAT, (ROWS, 3))]
    model = model_of("TreeEnsemble", outputs, aggregate_function=how, **facts)
    model.opset_import[1].version = 5
    check_against_onnx(model, values(model, 1))


def test_a_tree_of_one_leaf() -> None:
    """Both branches of its only node are the leaf."""
    facts = ensemble(np.random.default_rng(3), 1, trees=1)
    for name in ("truenodeids", "falsenodeids", "trueleafs", "falseleafs", "featureids"):
        facts[f"nodes_{name}"] = [1 if name.endswith("leafs") else 0]
    facts["nodes_missing_value_tracks_true"] = [0]
    arrays = {"nodes_splits": np.zeros(1, np.float32), "nodes_modes": np.zeros(1, np.uint8)}
    arrays["leaf_weights"] = np.full(1, 1.5, np.float32)
    facts |= {name: numpy_helper.from_array(it, name) for name, it in arrays.items()}
    facts |= {"leaf_targetids": [0], "tree_roots": [0]}
    model = model_of("TreeEnsemble", [("y", TensorProto.FLOAT, (ROWS, 1))], **facts)
    model.opset_import[1].version = 5
    check_against_onnx(model, values(model, 1))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("aggregate_function", 2, "the aggregation 2 is not supported"),
        ("post_transform", 1, "ONNX and ONNX Runtime differ"),
        ("tree_roots", [10_000], "its nodes form no tree"),
        ("nodes_truenodeids", None, "its nodes form no tree"),
    ],
)
def test_refused_trees_of_version_5(name: str, value: Any, reason: str, tmp_path: Path) -> None:
    facts = ensemble(np.random.default_rng(1), 2)
    if value is None:  # a node that follows itself
        leafs = facts["nodes_trueleafs"]
        value = [
            at if not leaf else way for at, (leaf, way) in enumerate(zip(leafs, facts[name], strict=True))
        ]
    model = model_of("TreeEnsemble", [("y", TensorProto.FLOAT, (ROWS, 2))], **{**facts, name: value})
    model.opset_import[1].version = 5
    path = tmp_path / "trees.onnx"
    onnx.save(model, path)
    with pytest.raises(ModelError, match=reason):
        load(path)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("nodes_truenodeids", -1, "a node has leaf -1 of "),
        ("nodes_falsenodeids", 1000, "a node has leaf 1000 of "),
        ("leaf_targetids", 1, "a leaf adds to a target beyond the 1"),
    ],
)
def test_leaves_that_do_not_exist(name: str, value: int, reason: str, tmp_path: Path) -> None:
    facts = ensemble(np.random.default_rng(3), 1, trees=1)
    leaf = 0 if name.startswith("leaf") else facts[name.replace("nodeids", "leafs")].index(1)
    facts[name][leaf] = value
    model = model_of("TreeEnsemble", [("y", TensorProto.FLOAT, (ROWS, 1))], **facts)
    model.opset_import[1].version = 5
    onnx.save(model, tmp_path / "trees.onnx")
    with pytest.raises(ModelError, match=reason):
        load(tmp_path / "trees.onnx")


def values(model: onnx.ModelProto, seed: int) -> dict[str, NDArray[np.float32]]:
    """Random rows, with values that equal thresholds, and one that is none."""
    x = normal(np.random.default_rng(seed), (ROWS, WIDTH))
    thresholds = next((it.floats for it in model.graph.node[0].attribute if it.name == "nodes_values"), ())
    if thresholds:
        x[1] = thresholds[:WIDTH]
        x[2, 3] = np.nan
    return {"x": x}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tracks", range(2))
def test_the_branch_of_what_is_not_a_number(mode: str, tracks: int) -> None:
    facts: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [1.0, 0.0, 0.0],
        "nodes_modes": [mode, "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "nodes_missing_value_tracks_true": [tracks, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [10.0, 20.0],
    }
    model = model_of("TreeEnsembleRegressor", [("y", TensorProto.FLOAT, (ROWS, 1))], n_targets=1, **facts)
    x = normal(np.random.default_rng(5), (ROWS, WIDTH))
    x[:3, 0] = np.nan, 1.0, 2.0
    check_against_onnx(model, {"x": x})


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("how", ["SUM", "AVERAGE"])
def test_regression_by_trees(transform: str, base: bool, how: str) -> None:
    facts = forest(np.random.default_rng(1), "target", 3)
    if base:
        facts["base_values"] = [0.5, -1.0, 2.0]
    outputs = [("y", TensorProto.FLOAT, (ROWS, 3))]
    model = model_of(
        "TreeEnsembleRegressor",
        outputs,
        n_targets=3,
        post_transform=transform,
        aggregate_function=how,
        **facts,
    )
    check_against_onnx(model, values(model, 1))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -3, 20]])
def test_classes_by_trees(transform: str, labels: list[int]) -> None:
    facts = forest(np.random.default_rng(2), "class", 3)
    model = classifier(
        "TreeEnsembleClassifier", 3, classlabels_int64s=labels, post_transform=transform, **facts
    )
    check_against_onnx(model, values(model, 3))


@pytest.mark.parametrize(("positive", "transform"), [(True, "NONE"), (False, "NONE"), (False, "LOGISTIC")])
@pytest.mark.parametrize("labels", [[0, 1], [5, 4]])
def test_one_weighed_class(positive: bool, transform: str, labels: list[int]) -> None:
    facts = forest(np.random.default_rng(4), "class", 1, positive=positive)
    model = classifier(
        "TreeEnsembleClassifier", 2, classlabels_int64s=labels, post_transform=transform, **facts
    )
    for seed in range(4):
        check_against_onnx(model, values(model, seed))


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_norms(norm: str) -> None:
    model = model_of("Normalizer", [("y", TensorProto.FLOAT, (ROWS, WIDTH))], norm=norm)
    inputs = values(model, 5)
    inputs["x"][2] = 0
    check_against_onnx(model, inputs)


@pytest.mark.parametrize("missing", [np.nan, 2.0])
@pytest.mark.parametrize("count", [1, WIDTH])
def test_missing_values_are_filled(missing: float, count: int) -> None:
    output = [("y", TensorProto.FLOAT, (ROWS, WIDTH))]
    filling = [float(at) / 4 for at in range(count)]
    model = model_of("Imputer", output, imputed_value_floats=filling, replaced_value_float=missing)
    inputs = values(model, 5)
    inputs["x"][1, 2] = inputs["x"][3] = missing
    check_against_onnx(model, inputs)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_categories_become_columns(kind: type) -> None:
    output = [("y", TensorProto.FLOAT, (ROWS, WIDTH, 3))]
    model = model_of("OneHotEncoder", output, cats_int64s=[3, 1, 0], zeros=1)
    model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    check_against_onnx(model, {"x": np.random.default_rng(1).integers(0, 5, (ROWS, WIDTH)).astype(kind)})


@pytest.mark.parametrize(
    ("keys", "results"),
    [(np.int64, np.float32), (np.float32, np.int64), (np.int64, np.int64), (np.float32, np.float32)],
)
def test_numbers_are_encoded(keys: type, results: type) -> None:
    names = {np.int64: "int64s", np.float32: "floats"}
    numbers: dict[str, Any] = {f"keys_{names[keys]}": np.array([1, 4, 2], keys).tolist()}
    numbers[f"values_{names[results]}"] = np.array([7, 8, 9], results).tolist()
    numbers |= {"default_int64": -5, "default_float": -2.5}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(results))
    model = model_of("LabelEncoder", [("y", kind, (ROWS, WIDTH))], **numbers)
    model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(keys))
    check_against_onnx(model, {"x": np.random.default_rng(1).integers(0, 6, (ROWS, WIDTH)).astype(keys)})


def test_columns_are_joined() -> None:
    item = helper.make_node(
        "FeatureVectorizer", ["x", "n"], ["y"], domain="ai.onnx.ml", inputdimensions=[5, 2]
    )
    inputs = [("x", TensorProto.FLOAT, (ROWS, 5)), ("n", TensorProto.FLOAT, (ROWS, 2))]
    model = build(
        [item], {name: kind for name, *kind in inputs}, {"y": (np.float32, (ROWS, 7))}, ai_onnx_ml=3
    )
    rng = np.random.default_rng(2)
    check_against_onnx(model, {"x": normal(rng, (ROWS, 5)), "n": normal(rng, (ROWS, 2))})


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("OneHotEncoder", {"cats_strings": ["a", "b"]}, "its categories are texts"),
        ("OneHotEncoder", {"cats_int64s": [1], "zeros": 0}, "zeros=0 is not supported"),
        ("LabelEncoder", {"keys_floats": [1.0], "values_strings": ["a"]}, "its values are texts"),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0]}, "its values do not fit 5 columns"),
    ],
)
def test_columns_that_are_refused(op: str, attributes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    kind = TensorProto.STRING if "values_strings" in attributes else TensorProto.FLOAT
    model = model_of(op, [("y", kind, None)], **attributes)
    path = tmp_path / "columns.onnx"
    onnx.save(model, path)
    assert reason in problems_of(path)[0].reason


@pytest.mark.parametrize("count", [1, WIDTH])
def test_scales_and_thresholds(count: int) -> None:
    output = [("y", TensorProto.FLOAT, (ROWS, WIDTH))]
    drawn = np.random.default_rng(6).normal(size=(2, count)).astype(np.float32)
    model = model_of("Scaler", output, offset=drawn[0].tolist(), scale=drawn[1].tolist())
    check_against_onnx(model, values(model, 7))
    model = model_of("Binarizer", output, threshold=0.3)
    check_against_onnx(model, values(model, 8))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_models(transform: str) -> None:
    rng = np.random.default_rng(9)
    facts = {"coefficients": rng.normal(size=3 * WIDTH).tolist(), "intercepts": rng.normal(size=3).tolist()}
    model = classifier(
        "LinearClassifier", 3, classlabels_ints=[4, 5, 9], post_transform=transform, multi_class=1, **facts
    )
    check_against_onnx(model, values(model, 10))
    model = model_of("LinearRegressor", [("y", TensorProto.FLOAT, (ROWS, 3))], targets=3, **facts)
    check_against_onnx(model, values(model, 11))


def pipeline(*nodes: onnx.NodeProto, constants: dict[str, Any]) -> onnx.ModelProto:
    """Nodes between x and the outputs label and y, whose inner shapes ONNX does not infer."""
    return build(
        nodes,
        {"x": (np.float32, (ROWS, WIDTH))},
        {"label": (np.int64, (1, ROWS)), "y": (np.float32, (ROWS, 3))},
        constants,
    )


def test_a_pipeline_and_labels_from_a_table() -> None:
    rng = np.random.default_rng(14)
    domain = {"domain": "ai.onnx.ml"}
    facts = {"coefficients": rng.normal(size=3 * WIDTH).tolist(), "targets": 3}
    nodes = [
        helper.make_node("Scaler", ["x"], ["scaled"], "scaler", offset=[0.5], scale=[2.0], **domain),
        helper.make_node("Normalizer", ["scaled"], ["normal"], "norm", norm="L2", **domain),
        helper.make_node("LinearRegressor", ["normal"], ["y"], "linear", **facts, **domain),
        helper.make_node("ArgMax", ["y"], ["place"], "max", axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["labels", "place"], ["label"], "label", **domain),
    ]
    model = pipeline(*nodes, constants={"labels": np.array([7, -20, 1 << 20])})
    check_against_onnx(model, values(model, 15))


def refusal(model: onnx.ModelProto, folder: Path) -> str:
    """Why the only node is refused."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    return " ".join(problem.reason for problem in problems_of(path))


def test_what_is_refused(tmp_path: Path) -> None:
    facts = forest(np.random.default_rng(12), "class", 3)
    model = classifier("TreeEnsembleClassifier", 3, classlabels_int64s=[0, 1, 2], **facts)
    model.graph.node[0].attribute.append(helper.make_attribute("post_transform", "PROBIT"))
    assert "PROBIT" in refusal(model, tmp_path)
    facts["nodes_modes"][0] = "BRANCH_MEMBER"
    model = classifier("TreeEnsembleClassifier", 3, classlabels_int64s=[0, 1, 2], **facts)
    assert "BRANCH_MEMBER" in refusal(model, tmp_path)
    texts = {"cats_int64s": [1], "cats_strings": ["a"]}
    model = model_of("CategoryMapper", [("y", TensorProto.STRING, (ROWS, WIDTH))], **texts)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert "hummingbird-ml" in refusal(model, tmp_path)


def test_trees_that_are_none(tmp_path: Path) -> None:
    """Features that a row lacks, and two nodes of one number."""
    facts = forest(np.random.default_rng(12), "target", 1)
    output = [("y", TensorProto.FLOAT, (ROWS, 1))]
    root = facts["nodes_featureids"][0]
    for feature in (-1, WIDTH, (1 << 15) + 1):
        facts["nodes_featureids"][0] = feature
        model = model_of("TreeEnsembleRegressor", output, n_targets=1, **facts)
        assert "beyond the 5 of a row" in refusal(model, tmp_path)
    facts["nodes_featureids"][0] = root
    facts["nodes_nodeids"][-1] = facts["nodes_nodeids"][-2]
    model = model_of("TreeEnsembleRegressor", output, n_targets=1, **facts)
    assert "two of one number" in refusal(model, tmp_path)
