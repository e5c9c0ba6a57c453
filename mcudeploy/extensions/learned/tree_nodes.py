"""Ensembles of trees of ai.onnx.ml, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcudeploy.common.text import printable
from mcudeploy.extensions.learned.trees import LEAF, NAN_FIRST, TreeSums
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType
from mcudeploy.ir.opdef import ConstantArray

_ORDERED = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE")
_EQUAL = ("BRANCH_EQ", "BRANCH_NEQ")
_LEAF = "LEAF"
_MOST_FEATURES = NAN_FIRST
_MOST_TARGETS = 1 << 16
Key = tuple[int, int]
_Slot = tuple[list[int], int]
"""A place in the table of following nodes."""


@dataclass(slots=True)
class _Tables:
    """The tables under construction, in the order of the nodes on the way from the roots."""

    thresholds: list[float] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    following: list[list[int]] = field(default_factory=list)
    leaf_starts: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def node(self, feature: int, threshold: float, *, nan_first: bool) -> list[int]:
        """Add a node; return its row of following nodes: for values up to the threshold, and above it."""
        self.thresholds.append(threshold)
        self.features.append(feature | (NAN_FIRST if nan_first else 0))
        self.following.append([0, 0])
        return self.following[-1]

    def leaf(self, entries: Sequence[tuple[int, float]]) -> int:
        """Add a leaf; return its number as a following node."""
        for target, weight in entries:
            self.targets.append(target)
            self.weights.append(weight)
        self.leaf_starts.append(len(self.targets))
        return LEAF | len(self.leaf_starts) - 2

    def constants(self, roots: Sequence[int]) -> dict[str, ConstantArray]:
        """The tables as arrays; an ensemble of leaves alone has one node that nothing reaches."""
        return {
            "thresholds": np.array(self.thresholds or [0.0], np.float32),
            "features": np.array(self.features or [0], np.uint16),
            "next": np.array(self.following or [[LEAF, LEAF]], np.uint32),
            "roots": np.array(roots, np.uint32),
            "leaf_starts": np.array(self.leaf_starts, np.uint32),
            "targets": np.array(self.targets, np.uint16),
            "weights": np.array(self.weights, np.float32),
        }


def tree_regressor(builder: Builder, node: Node) -> None:
    """TreeEnsembleRegressor without base values and transformation, which rules have replaced."""
    value = builder.real(node.inputs[0])
    rows, width = value.shape if value.index.ndim == 2 else (1, value.index.size)
    count = node.integer("n_targets", 1)
    if width > _MOST_FEATURES or not 1 <= count <= _MOST_TARGETS:
        raise Unsupported(f"{width} values and {count} targets are too many")
    nodes = zip(_column(node, "nodes_modes"), _column(node, "nodes_featureids"), strict=False)
    if any(mode != _LEAF and not 0 <= feature < width for mode, feature in nodes):
        raise Unsupported(f"a node compares a value beyond the {width} of a row")
    if any(not 0 <= target < count for target in _column(node, "target_ids")):
        raise Unsupported(f"a leaf adds to a target beyond the {count}")
    tables = _Tables()
    lengths: list[int] = []
    roots = _add_trees(node, tables, lengths)
    source = builder.arranged(value.tensor, value.index.reshape(rows, 1, width), (node,))
    op = TreeSums(count, round(float(np.mean(lengths)), 2))
    tensor = builder.emit(
        op, (source,), (rows, 1, count), DType.FLOAT32, constants=tables.constants(roots), nodes=(node,)
    )
    builder.define(node.output, OnnxValue(tensor, positions((rows, count)), real=True))


def _add_trees(node: Node, tables: _Tables, lengths: list[int]) -> list[int]:
    """Add the nodes of all trees; return the roots, and add to `lengths` the depth of each leaf."""
    columns = [_column(node, f"nodes_{name}") for name in ("treeids", "nodeids")]
    places = {key: at for at, key in enumerate(zip(*columns, strict=True))}
    weights: dict[Key, list[tuple[int, float]]] = {}
    entries = [_column(node, f"target_{name}") for name in ("treeids", "nodeids", "ids", "weights")]
    for tree, leaf, target, weight in zip(*entries, strict=True):
        weights.setdefault((tree, leaf), []).append((target, weight))
    nodes = _NodeColumns.of(node)
    if not len(places) == len(columns[0]) == len(nodes.modes) > 0:
        raise Unsupported("it has no nodes, two of one number, or lists of nodes that differ in length")
    followed = {
        (key[0], number)
        for key, at in places.items()
        if nodes.modes[at] != _LEAF
        for number in (nodes.when_true[at], nodes.when_false[at])
    }
    firsts = [key for key in places if key not in followed]
    if sorted(key[0] for key in firsts) != sorted(set(columns[0])):
        raise Unsupported("its nodes form no trees, or several with one number")
    roots = []
    for first in firsts:
        tree, root = first[0], [0]  # a list, so that it can be a slot
        waiting: list[tuple[Key, list[_Slot], int]] = [(first, [(root, 0)], 0)]
        seen: set[Key] = set()
        while waiting:
            key, slots, depth = waiting.pop()
            if key in seen or key not in places:
                raise Unsupported("its nodes form no tree")
            seen.add(key)
            at = places[key]
            if nodes.modes[at] == _LEAF:
                _fill(slots, tables.leaf(weights.get(key, ())))
                lengths.append(depth)
                continue
            _fill(slots, len(tables.thresholds))
            for branch, into in nodes.add_comparison(at, tables):
                waiting.append(((tree, branch), into, depth + 1))
        roots.append(root[0])
    return roots


def _fill(slots: Sequence[_Slot], number: int) -> None:
    for into, place in slots:
        into[place] = number


@dataclass(frozen=True, slots=True)
class _NodeColumns:
    """Columns of the nodes of all trees."""

    modes: list[str]
    features: list[int]
    values: list[float]
    when_true: list[int]
    when_false: list[int]
    nan_true: list[int]

    @classmethod
    def of(cls, node: Node) -> _NodeColumns:
        modes = _column(node, "nodes_modes")
        known = *_ORDERED, *_EQUAL
        strange = sorted({printable(mode) for mode in modes if mode not in (_LEAF, *known)})
        if strange:
            raise Unsupported(f"nodes of mode {strange[0]} are not supported; {', '.join(known)} are")
        names = ("featureids", "values", "truenodeids", "falsenodeids")
        columns = [_column(node, f"nodes_{name}") for name in names]
        tracks = _column(node, "nodes_missing_value_tracks_true") or [0] * len(modes)
        if any(len(column) != len(modes) for column in (*columns, tracks)):
            raise Unsupported("its lists of nodes differ in length")
        return cls(modes, columns[0], columns[1], columns[2], columns[3], tracks)

    def add_comparison(self, at: int, tables: _Tables) -> list[tuple[int, list[_Slot]]]:
        """Add the comparison of node `at`; return its branches, with their places in the table."""
        mode, nan_true = self.modes[at], bool(self.nan_true[at])
        threshold, feature = np.float32(self.values[at]), self.features[at]
        below = np.nextafter(threshold, np.float32(-np.inf))
        branches = self.when_true[at], self.when_false[at]
        if mode in _EQUAL:  # equal: at most the threshold, and above the next smaller number
            equal, other = branches if mode == "BRANCH_EQ" else branches[::-1]
            nan_equal = nan_true and mode == "BRANCH_EQ"  # NaN differs from every number
            first = tables.node(feature, float(threshold), nan_first=nan_equal)
            first[0] = len(tables.thresholds)
            second = tables.node(feature, float(below), nan_first=False)
            return [(other, [(first, 1), (second, 0)]), (equal, [(second, 1)])]
        if mode in ("BRANCH_LT", "BRANCH_GTE"):
            threshold = below
        if mode in ("BRANCH_GT", "BRANCH_GTE"):
            branches, nan_true = branches[::-1], not nan_true
        follow = tables.node(feature, float(threshold), nan_first=nan_true)
        return [(branch, [(follow, place)]) for place, branch in enumerate(branches)]


def _column(node: Node, name: str) -> list[Any]:
    """The values of a list attribute, none if it is missing."""
    value = node.attributes.get(name, ())
    return list(value) if isinstance(value, tuple) else []
