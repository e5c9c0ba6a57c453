"""Attention of one query for each head over the rows that a position shows as live."""

from __future__ import annotations

import numpy as np
from harness import graph_of, run_operator
from hypothesis import given
from hypothesis import strategies as st
from single_node import bounded, normal, seeds

from mcudeploy.extensions.attention.attend import Attend, Bound, Rows
from mcudeploy.ir.graph import DType, Tensor


@given(
    shared=st.integers(1, 3),
    group=st.integers(1, 3),
    width=st.integers(1, 13),
    values=st.integers(1, 17),
    count=st.integers(1, 20),
    bounds=st.tuples(st.integers(-3, 20), st.integers(-1, 1), st.integers(0, 22), st.integers(-1, 1)),
    position=st.one_of(st.integers(-5, 25), st.sampled_from([2**31 - 1, -(2**31)])),
    scale=st.sampled_from([0.35, -0.5, 1.0]),
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
    seed: int,
) -> None:
    """Rows of heads side by side, as a queue stores them; those that are not live hold NaN."""
    rng = np.random.default_rng(seed)
    heads = shared * group
    first, end = (min(max(offset + step * position, 0), count) for offset, step in (bounds[:2], bounds[2:]))
    query = normal(rng, (1, 1, heads * width))
    keys, mixed = (normal(rng, (count, shared, size)) for size in (width, values))
    if first < end:
        keys[:first] = keys[end:] = mixed[:first] = mixed[end:] = np.nan
    layouts = (Rows(size, shared * size, size) for size in (width, values))
    op = Attend(heads, group, count, scale, *layouts, Bound(*bounds[:2]), Bound(*bounds[2:]))
    arrays = {
        "at": np.array([[[position]]], np.int32),
        "q": query,
        "k": keys.reshape(1, 1, -1),
        "v": mixed.reshape(1, 1, -1),
    }
    types = {"at": DType.INT32}
    tensors = [Tensor(name, it.shape, types.get(name, DType.FLOAT32)) for name, it in arrays.items()]
    y = Tensor("y", (1, 1, heads * values), DType.FLOAT32)
    graph = graph_of(op, *tensors, y)
    output = run_operator(graph, graph.operators[0], arrays, seed=seed).reshape(heads, values)
    rows = slice(first, end) if first < end else slice(0, count)
    for head in range(heads):
        key, value = (it[rows, head // group].astype(np.float64) for it in (keys, mixed))
        scores = scale * key @ query.reshape(heads, width)[head] if first < end else np.zeros(count)
        weights = np.exp(scores - scores.max())
        assert np.allclose(output[head], weights @ value / weights.sum(), rtol=1e-5, atol=1e-5)
