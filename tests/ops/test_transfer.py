"""Copy, Clean and Invalidate: the identity, in another place or in place."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check_graph, graph_of
from hypothesis import given
from hypothesis import strategies as st
from single_node import bounded, normal, seeds

from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate


@pytest.mark.parametrize("op", [Copy(), Clean(), Invalidate()])
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 9)),
    dtype=st.sampled_from(list(DType)),
    seed=seeds,
)
@bounded
def test_values_stay(op: OperatorDef, shape: tuple[int, int, int], dtype: DType, seed: int) -> None:
    quantization = Quantization(0.1, 3) if dtype is DType.INT8 else None
    x = (40 * normal(np.random.default_rng(seed), shape)).clip(-128, 127).astype(dtype.value)
    graph = graph_of(op, *(Tensor(name, shape, dtype, quantization) for name in "xy"))
    assert np.array_equal(check_graph(graph, {"x": x})["y"], x)


def test_the_same_values_only() -> None:
    x, y = (Tensor(f"by_{s}", (1, 1, 4), DType.INT8, Quantization(s, 0)) for s in (1.0, 2.0))
    with pytest.raises(ValueError, match="quantisation"):
        Copy().kernel(Operator("op", Copy(), (x.name,), y.name), (x,), y)
