"""Rule for TreeEnsemble, the form of trees since version 5 of ai.onnx.ml: the nodes of the older form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import numpy_helper

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_AVERAGE, _SUM = 0, 1


@dataclass(slots=True)
class _Columns:
    """The attributes of the older form under construction: nodes and leaves of all trees."""

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
    # ONNX's checker refuses the operator where TreeEnsemble stands, so it is in the domain of our nodes.
    sums = make.add("TreeEnsembleRegressor", make.inputs[0], domain=DOMAIN, n_targets=count, **columns)
    make.reshaped(sums, [rows, count], out=make.outputs[0])


def _columns_of(make: Maker) -> dict[str, Any]:
    """Walk the trees from their roots. A leaf gets a node for each way to it; they follow the inner nodes.

    Raises Unsupported for branches that form no trees.
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
            ways = []
            for branch in ("true", "false"):
                way = int(attributes[f"nodes_{branch}nodeids"][at])
                if attributes[f"nodes_{branch}leafs"][at]:
                    if not 0 <= way < len(weights):
                        raise Unsupported(f"a node has leaf {way} of {len(weights)}")
                    target, weight = int(attributes["leaf_targetids"][way]), float(weights[way])
                    columns.add("target", treeids=tree, nodeids=number, ids=target, weights=weight)
                    columns.add("nodes", treeids=tree, nodeids=number, modes="LEAF", featureids=0, values=0.0)
                    columns.add("nodes", truenodeids=0, falsenodeids=0, missing_value_tracks_true=0)
                    way, number = number, number + 1
                else:
                    waiting.append(way)
                ways.append(way)
            feature = int(attributes["nodes_featureids"][at])
            columns.add("nodes", treeids=tree, nodeids=at, modes=_MODES[modes[at]], featureids=feature)
            columns.add("nodes", values=float(splits[at]), missing_value_tracks_true=int(tracks[at]))
            columns.add("nodes", truenodeids=ways[0], falsenodeids=ways[1])
    return columns.lists
