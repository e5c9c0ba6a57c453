"""Rules for models of scikit-learn and similar libraries, in ONNX's domain ai.onnx.ml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from mcudeploy.common.text import printable
from mcudeploy.extensions.learned.class_names import ML_DOMAIN
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.norm_rules import divide_by_norm, norm_of
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN

_CLASS_COLUMNS = ("treeids", "nodeids", "ids", "weights")
_HALF = 0.5
_EXACT = 1 << 24
"""Labels up to this number are exact as float32."""


def scaler(make: Maker) -> None:
    """Replace Scaler: the difference to an offset, times a factor, for each value."""
    make.require_float()
    offset, scale = (make.constant(make.attributes.get(name, [0.0])) for name in ("offset", "scale"))
    make.add("Mul", make.add("Sub", make.inputs[0], offset), scale, out=make.outputs[0])


def binarizer(make: Maker) -> None:
    """Replace Binarizer: 1 for values above a threshold."""
    make.require_float()
    above = make.add("Less", make.constant(make.number("threshold")), make.inputs[0])
    make.add("Cast", above, out=make.outputs[0], to=TensorProto.FLOAT)


def normalizer(make: Maker) -> None:
    """Replace Normalizer: rows divided by their largest value or their norm, unless that is 0."""
    make.require_float()
    x, norm = make.inputs[0], text_of(make, "norm", b"MAX")
    axes = [len(make.sizes(x)) - 1]
    match norm:
        case "MAX":
            size = make.reduce("ReduceMax", x, axes)
        case "L1" | "L2":
            size = norm_of(make, x, int(norm[1]), axes)
        case _:
            raise Unsupported(f"the norm {norm} is not supported; MAX, L1 and L2 are")
    divide_by_norm(make, x, size)


def feature_extractor(make: Maker) -> None:
    """Replace ArrayFeatureExtractor: elements along the last axis; those of a vector become a row."""
    x, indices = make.inputs
    shape, count = make.sizes(x), int(np.prod(make.sizes(indices)))
    flat = make.reshaped(indices, [count])
    if len(shape) == 1:
        chosen = make.add("Gather", x, flat, axis=0)
        make.reshaped(chosen, [1, count], out=make.outputs[0])
    else:
        make.add("Gather", x, flat, out=make.outputs[0], axis=len(shape) - 1)


def linear_regressor(make: Maker) -> None:
    """Replace LinearRegressor: a dense layer."""
    make.require_float()
    if transform_of(make) != "NONE":
        raise Unsupported(f"the transformation {transform_of(make)} is not supported; NONE is")
    _dense(make, make.integer("targets", 1), make.outputs[0])


def linear_classifier(make: Maker) -> None:
    """Replace LinearClassifier with coefficients of each class: a dense layer and its largest value."""
    make.require_float()
    labels = class_labels(make, "classlabels_ints")
    count = len(labels)
    width = make.sizes(make.inputs[0])[-1]
    if len(make.attributes.get("coefficients", ())) != count * width:
        raise Unsupported(f"it has no row of coefficients for each of {count} classes, which is needed")
    scores = _dense(make, count, "")
    choose_label(make, make.add("ArgMax", scores, axis=1, keepdims=0), labels)
    _scores(make, scores, transform_of(make))


def tree_regressor(make: Maker) -> None:
    """Replace base values, means and transformations of TreeEnsembleRegressor; sums of weights stay."""
    attributes = dict(make.attributes)
    base, transform = attributes.pop("base_values", []), transform_of(make)
    attributes.pop("post_transform", None)
    attributes.pop("aggregate_function", None)
    how = text_of(make, "aggregate_function", b"SUM")
    if how not in ("SUM", "AVERAGE"):
        raise Unsupported(f"the aggregation {how} is not supported; SUM and AVERAGE are")
    make.require_float()
    _require_lists(make)
    if how == "SUM" and transform == "NONE" and not any(base):
        if not make.shape(make.outputs[0]):
            rows = make.sizes(make.inputs[0])[0]
            make.state(make.outputs[0], np.float32, (rows, make.integer("n_targets", 1)))
        return
    if how == "AVERAGE":
        trees = len(set(attributes["nodes_treeids"]))
        attributes["target_weights"] = [weight / trees for weight in attributes["target_weights"]]
    sums = make.add("TreeEnsembleRegressor", make.inputs[0], domain=ML_DOMAIN, **attributes)
    sums = make.reshaped(sums, [make.sizes(make.inputs[0])[0], make.integer("n_targets", 1)])
    if any(base):
        sums = make.add("Add", sums, make.constant(base))
    _transformed(make, sums, transform, make.outputs[0])


def tree_classifier(make: Maker) -> None:
    """Replace TreeEnsembleClassifier: sums of weights, and the class of the largest."""
    make.require_float()
    _require_lists(make)
    labels, base = class_labels(make, "classlabels_int64s"), list(make.attributes.get("base_values", []))
    ids = make.attributes.get("class_ids", [])
    one_is_weighed = len(labels) == 2 and len(set(ids)) == 1
    count = 1 if one_is_weighed else len(labels)
    attributes = {name: value for name, value in make.attributes.items() if name.startswith("nodes_")}
    for column in _CLASS_COLUMNS:
        attributes[f"target_{column}"] = make.attributes.get(f"class_{column}", [])
    if one_is_weighed:
        attributes["target_ids"] = [0] * len(ids)
    rows = make.sizes(make.inputs[0])[0]
    sums = make.add("TreeEnsembleRegressor", make.inputs[0], domain=ML_DOMAIN, n_targets=count, **attributes)
    sums = make.reshaped(sums, [rows, count])
    if one_is_weighed:
        _one_score(make, sums, labels, base)
        return
    if base:
        if len(base) != count:
            raise Unsupported(f"it has {len(base)} base values for {count} classes")
        sums = make.add("Add", sums, make.constant(base))
    choose_label(make, make.add("ArgMax", sums, axis=1, keepdims=0), labels)
    _scores(make, sums, transform_of(make))


def _one_score(make: Maker, sums: str, labels: list[int], base: list[float]) -> None:
    """Choose between two classes by the score of one, as ONNX Runtime does.

    The class needs more than one half if all weights are positive, else more than zero.
    """
    if len(base) > 1:
        raise Unsupported("base values of both classes, of which one is weighed, are not supported")
    if base:
        sums = make.add("Add", sums, make.constant(base))
    positive = min(make.attributes.get("class_weights", [0.0])) >= 0
    transform = transform_of(make)
    if transform not in ("NONE", "LOGISTIC") or (positive and transform == "LOGISTIC"):
        raise Unsupported(f"the transformation {transform} of one weighed class is not supported")
    above = make.add("Less", make.constant(_HALF if positive else 0.0), sums)
    flat = make.reshaped(above, [make.sizes(make.inputs[0])[0]])
    choose_label(make, make.add("Cast", flat, to=TensorProto.INT64), labels)
    other = make.add("Sub", make.constant(1.0), sums) if positive else make.add("Neg", sums)
    _scores(make, make.add("Concat", other, sums, axis=1), transform)


def _dense(make: Maker, count: int, out: str) -> str:
    width = make.sizes(make.inputs[0])[-1]
    coefficients = np.array(make.attributes.get("coefficients", ()), np.float32)
    intercepts = np.array(make.attributes.get("intercepts", ()) or [0.0] * count, np.float32)
    if coefficients.size != count * width or intercepts.size != count:
        raise Unsupported(f"{coefficients.size} coefficients do not fit {count} results of {width} values")
    weights = make.constant(coefficients.reshape(count, width))
    return make.add("Gemm", make.inputs[0], weights, make.constant(intercepts), out=out, transB=1)


def class_labels(make: Maker, name: str) -> list[int]:
    """Return the numbers of the classes. Raises Unsupported for texts that are an output."""
    texts = make.attributes.get("classlabels_strings", ())
    if texts and make.output(0) and make.is_read(make.output(0)):
        raise Unsupported(
            "its labels are texts: train with numbers as labels, or cut the label output off the model "
            "(onnx.utils.extract_model) and take the largest probability"
        )
    labels = [int(label) for label in make.attributes.get(name, ())] or list(range(len(texts)))
    if any(abs(label) > _EXACT for label in labels):
        raise Unsupported(f"labels beyond {_EXACT:,} are not supported")
    return labels


def choose_label(make: Maker, place: str, labels: list[int]) -> None:
    """Add the output 0: the labels at `place`, int64 indices of classes."""
    if not make.output(0):
        return
    if labels == list(range(len(labels))):
        make.add("Identity", place, out=make.output(0))
        return
    label = make.add("Gather", make.constant(labels), place, axis=0)
    make.add("Cast", label, out=make.output(0), to=TensorProto.INT64)


def _scores(make: Maker, scores: str, transform: str) -> None:
    if make.output(1):
        _transformed(make, scores, transform, make.output(1))


def _transformed(make: Maker, name: str, transform: str, out: str) -> None:
    ops: dict[str, tuple[str, dict[str, Any]]] = {
        "NONE": ("Identity", {}),
        "LOGISTIC": ("Sigmoid", {}),
        "SOFTMAX": ("Softmax", {"axis": -1}),
    }
    if transform not in ops:
        raise Unsupported(f"the transformation {transform} is not supported; {', '.join(ops)} are")
    op, attributes = ops[transform]
    make.add(op, name, out=out, **attributes)


def transform_of(make: Maker) -> str:
    """Return the transformation of the scores."""
    return text_of(make, "post_transform", b"NONE")


def text_of(make: Maker, name: str, default: bytes) -> str:
    """Return a text attribute."""
    return printable(make.attributes.get(name, default).decode("ascii", "replace"))


def _require_lists(make: Maker) -> None:
    tensors = sorted(name for name in make.attributes if name.endswith("_as_tensor"))
    if tensors:
        raise Unsupported(f"{tensors[0]} is not supported: export float32 thresholds and weights as lists")


_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_AVERAGE, _SUM = 0, 1


@dataclass(slots=True)
class _Columns:
    """The attributes of a TreeEnsembleRegressor under construction: nodes and leaves of all trees."""

    lists: dict[str, Any] = field(default_factory=dict)

    def add(self, prefix: str, **values: Any) -> None:
        for name, value in values.items():
            self.lists.setdefault(f"{prefix}_{name}", []).append(value)


def tree_ensemble(make: Maker) -> None:
    """Replace TreeEnsemble: sums of weights of leaves, as TreeEnsembleRegressor has them."""
    make.require_float()
    how, transform = make.integer("aggregate_function", _SUM), make.integer("post_transform")
    if how not in (_AVERAGE, _SUM):
        raise Unsupported(f"the aggregation {how} is not supported; 0 (average) and 1 (sum) are")
    if transform:
        raise Unsupported(
            f"post_transform {transform}: ONNX and ONNX Runtime differ in the numbers of transformations; "
            "export the trees without, and add a Sigmoid or Softmax after them"
        )
    count, rows = make.integer("n_targets", 1), make.sizes(make.inputs[0])[0]
    columns = _columns_of(make)
    if how == _AVERAGE:
        trees = len(make.attributes["tree_roots"])
        columns["target_weights"] = [weight / trees for weight in columns["target_weights"]]
    # ONNX's checker refuses the older operator at this version of the domain, so it gets our own domain.
    sums = make.add("TreeEnsembleRegressor", make.inputs[0], domain=DOMAIN, n_targets=count, **columns)
    make.reshaped(sums, [rows, count], out=make.outputs[0])


def _columns_of(make: Maker) -> dict[str, Any]:
    """Return the attributes of the trees. Each branch to a leaf gets a node for it, after the inner nodes.

    Raises Unsupported for branches that do not form trees.
    """
    attributes = make.attributes
    modes, splits, weights = (
        numpy_helper.to_array(attributes[name]).reshape(-1)
        for name in ("nodes_modes", "nodes_splits", "leaf_weights")
    )
    if np.any(modes >= len(_MODES)):
        raise Unsupported(f"nodes of mode {modes.max()} are not supported; {', '.join(_MODES)} are")
    tracks = attributes.get("nodes_missing_value_tracks_true") or [0] * len(modes)
    columns, number = _Columns(), len(modes)
    for tree, root in enumerate(attributes["tree_roots"]):
        waiting, seen = [int(root)], set[int]()
        while waiting:
            at = waiting.pop()
            if at in seen or not 0 <= at < len(modes):
                raise Unsupported("its nodes form no tree")
            seen.add(at)
            children = []
            for branch in ("true", "false"):
                child = int(attributes[f"nodes_{branch}nodeids"][at])
                if attributes[f"nodes_{branch}leafs"][at]:
                    if not 0 <= child < len(weights):
                        raise Unsupported(f"a node has leaf {child} of {len(weights)}")
                    target, weight = int(attributes["leaf_targetids"][child]), float(weights[child])
                    columns.add("target", treeids=tree, nodeids=number, ids=target, weights=weight)
                    columns.add("nodes", treeids=tree, nodeids=number, modes="LEAF", featureids=0, values=0.0)
                    columns.add("nodes", truenodeids=0, falsenodeids=0, missing_value_tracks_true=0)
                    child, number = number, number + 1
                else:
                    waiting.append(child)
                children.append(child)
            feature = int(attributes["nodes_featureids"][at])
            columns.add("nodes", treeids=tree, nodeids=at, modes=_MODES[modes[at]], featureids=feature)
            columns.add("nodes", values=float(splits[at]), missing_value_tracks_true=int(tracks[at]))
            columns.add("nodes", truenodeids=children[0], falsenodeids=children[1])
    return columns.lists
