"""Attention of one query for each head over the rows that a position shows as live."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import graph_of, run_operator
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from single_node import bounded, normal, seeds

from mcudeploy.extensions.attention.attend import Attend, Bound, Rows
from mcudeploy.ir.graph import DType, Tensor


def _int8(rows: NDArray[Any], *, own: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows [rows, heads, values] as int8, and their scales [rows, heads or 1, 1]."""
    sizes = np.abs(rows)
    scales = (sizes.max(axis=2 if own else (1, 2), keepdims=True) / 127).astype(np.float32)
    return np.round(rows / scales).astype(np.int8), scales


@given(
    shared=st.integers(1, 3),
    group=st.integers(1, 3),
    width=st.integers(1, 13),
    values=st.integers(1, 17),
    count=st.integers(1, 20),
    bounds=st.tuples(st.integers(-3, 20), st.integers(-1, 1), st.integers(0, 22), st.integers(-1, 1)),
    position=st.one_of(st.integers(-5, 25), st.sampled_from([2**31 - 1, -(2**31)])),
    scale=st.sampled_from([0.35, -0.5, 1.0]),
    scales=st.sampled_from(["none", "one", "of positions", "of heads"]),
    seed=seeds,
)
@bounded
def test_live_rows(
    shared: int,
    group: int,
    width: int,
    values: int,
    count: int,
    bounds: tuple[int, int, int, int],
    position: int,
    scale: float,
    scales: str,
    seed: int,
) -> None:
    """Rows of heads side by side, as a queue stores them; those that are not live hold NaN, or large int8."""
    rng = np.random.default_rng(seed)
    heads = shared * group
    first, end = (min(max(offset + step * position, 0), count) for offset, step in (bounds[:2], bounds[2:]))
    query = normal(rng, (1, 1, heads * width))
    keys, mixed = (normal(rng, (count, shared, size)) for size in (width, values))
    of_scales, stored, meaning = (), {"k": keys, "v": mixed}, (1.0, 0)
    if scales == "one":
        meaning = (0.02, 5)
        stored = {name: np.round(it / 0.02).clip(-128, 127).astype(np.int8) for name, it in stored.items()}
        keys, mixed = stored["k"].astype(np.float64), 0.02 * (stored["v"].astype(np.float64) - 5)
        scale *= 0.02
    elif scales != "none":
        own = scales == "of heads"
        (stored["k"], stored["ks"]), (stored["v"], stored["vs"]) = (
            _int8(it, own=own) for it in (keys, mixed)
        )
        keys, mixed = stored["k"] * stored["ks"], stored["v"] * stored["vs"]
        of_scales = (Rows(1, shared if own else 1, 1 if own else 0),) * 2
    if first < end:
        for rows in stored.values():
            dead = np.nan if rows.dtype == np.float32 else 127
            rows[:first] = rows[end:] = dead
    layouts = (Rows(size, shared * size, size) for size in (width, values))
    op = Attend(
        heads, group, count, scale, *layouts, Bound(*bounds[:2]), Bound(*bounds[2:]), of_scales, *meaning
    )
    arrays = {
        "at": np.array([[[position]]], np.int32),
        "q": query,
        **{name: rows.reshape(1, 1, -1) for name, rows in stored.items()},
    }
    tensors = [Tensor(name, it.shape, DType(it.dtype.name)) for name, it in arrays.items()]
    y = Tensor("y", (1, 1, heads * values), DType.FLOAT32)
    graph = graph_of(op, *tensors, y)
    output = run_operator(graph, graph.operators[0], arrays, seed=seed).reshape(heads, values)
    rows = slice(first, end) if first < end else slice(0, count)
    for head in range(heads):
        key, value = (it[rows, head // group].astype(np.float64) for it in (keys, mixed))
        scores = scale * key @ query.reshape(heads, width)[head] if first < end else np.zeros(count)
        weights = np.exp(scores - scores.max())
        assert np.allclose(output[head], weights @ value / weights.sum(), rtol=1e-5, atol=1e-5)
