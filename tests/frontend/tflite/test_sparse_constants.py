"""Sparse constants: made dense as they were, and refused if their tree does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mcudeploy.frontend.tflite.sparse_constants import Sparsity, TreeLevel

Array = NDArray[Any]


def encoded(dense: Array, order: tuple[int, ...], blocked: dict[int, int], lists: frozenset[int]) -> Any:
    """The values of a tensor, and its tree. `blocked`: sizes of blocks by axis; `lists`: sparse levels."""
    rank, sizes = dense.ndim, list(dense.shape)
    axes = list(blocked)
    split = dense
    for inside, axis in enumerate(axes):
        sizes[axis] //= blocked[axis]
        shape = split.shape
        at = axis
        split = split.reshape(*shape[:at], sizes[axis], blocked[axis], *shape[at + 1 :])
        split = np.moveaxis(split, at + 1, rank + inside)
    tree = np.transpose(split, order)
    levels, nodes = [], [tree]
    for depth, size in enumerate(tree.shape):
        if depth not in lists:
            levels.append(TreeLevel(size))
            nodes = [node[place] for node in nodes for place in range(size)]
            continue
        used = [[place for place in range(size) if np.any(node[place])] for node in nodes]
        segments = np.cumsum([0, *map(len, used)])
        levels.append(TreeLevel(0, segments, np.array([it for each in used for it in each], np.int64)))
        nodes = [node[place] for node, each in zip(nodes, used, strict=True) for place in each]
    return np.array(nodes, dense.dtype), Sparsity(order, tuple(axes), tuple(levels))


@given(st.integers(0, 2**32 - 1), st.sets(st.integers(0, 1)), st.sampled_from([0.0, 0.1, 0.7, 1.0]))
def test_a_tensor_becomes_dense_as_it_was(seed: int, axes: set[int], share: float) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 4, 2) * 2)
    dense = random.integers(1, 100, shape) * (random.random(shape) < share)
    blocked = dict.fromkeys(sorted(axes), 2)
    order = tuple(random.permutation(2).tolist()) + tuple(range(2, 2 + len(axes)))
    lists = frozenset(depth for depth in range(2) if random.random() < 0.5)
    values, sparsity = encoded(dense.astype(np.int8), order, blocked, lists)
    assert np.array_equal(sparsity.dense(values, shape), dense)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"order": (0, 0)}, "levels in the order"),
        ({"blocked": (5,), "order": (0, 1, 2)}, "levels in the order"),
        ({"levels": (TreeLevel(4), TreeLevel(9))}, "nodes for"),
        ({"levels": (TreeLevel(2), TreeLevel(0, np.array([0, 1]), np.array([0])))}, "segments for"),
        ({"levels": (TreeLevel(1), TreeLevel(0, np.array([1, 0]), np.array([0])))}, "do not rise"),
        ({"levels": (TreeLevel(1), TreeLevel(0, np.array([0, 8]), np.array([0] * 8)))}, "nodes for"),
        ({"levels": (TreeLevel(1), TreeLevel(0, np.array([0, 4]), np.array([0, 1, 2, 9])))}, "outside"),
        (
            {"levels": (TreeLevel(1), TreeLevel(0, np.array([0, 2]), np.array([0, 1])))},
            "2 leaves for 4",
        ),
    ],
)
def test_a_tree_that_does_not_fit_is_refused(change: dict[str, Any], reason: str) -> None:
    sound = Sparsity((0, 1), (), (TreeLevel(1), TreeLevel(4)))
    assert sound.dense(np.arange(4), (1, 4)).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(ValueError, match=reason):
        replace(sound, **change).dense(np.arange(4), (1, 4))
