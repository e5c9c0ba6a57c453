"""Some channels of several images side by side."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check_graph, graph_of
from hypothesis import given
from hypothesis import strategies as st
from single_node import bounded, seeds, sizes

from mcudeploy.ir.graph import DType, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ops.move.concat_channels import ConcatChannels
from mcudeploy.ops.requantize import requantization_table

OWN, OTHER = Quantization(0.05, 3), Quantization(0.08, -7)


@st.composite
def channels(draw: st.DrawFn) -> tuple[int, tuple[int, ...]]:
    """The channels of an image, and some of them, adjacent ones among these."""
    size = draw(st.integers(1, 24))
    if draw(st.booleans()):
        first = draw(st.integers(0, size - 1))
        return size, tuple(range(first, draw(st.integers(first + 1, size))))
    return size, tuple(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))


@given(
    rows=sizes,
    cols=sizes,
    parts=st.lists(channels(), min_size=1, max_size=3),
    other=st.booleans(),
    seed=seeds,
)
@bounded
def test_against_numpy(
    rows: int, cols: int, parts: list[tuple[int, tuple[int, ...]]], other: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    quantizations = [OTHER if other and place % 2 == 0 else OWN for place in range(len(parts))]
    tensors = {
        f"x{place}": Tensor(f"x{place}", (rows, cols, size), DType.INT8, quantization)
        for place, ((size, _), quantization) in enumerate(zip(parts, quantizations, strict=True))
    }
    op = ConcatChannels(tuple(some for _, some in parts))
    shape = op.loops(tuple(tensor.shape for tensor in tensors.values())).output_shape()
    values = {name: rng.integers(-128, 128, it.shape).astype(np.int8) for name, it in tensors.items()}
    output = Tensor("y", shape, DType.INT8, OWN)
    graph = graph_of(op, *tensors.values(), output)
    wanted = [
        requantization_table(quantization, OWN)[values[name][..., list(some)].astype(np.int32) + 128]
        for name, quantization, (_, some) in zip(values, quantizations, parts, strict=True)
    ]
    assert np.array_equal(check_graph(graph, values)["y"], np.concatenate(wanted, axis=2))


def test_a_row_reads_its_row_alone() -> None:
    nest = ConcatChannels(((0, 2), (1,))).loops(((5, 4, 3), (5, 4, 2)))
    assert nest.output_shape() == (5, 4, 3) and nest.macs() == 0
    assert nest.rows_read(1, Interval(2, 3), 5) == Interval(2, 3)


@pytest.mark.parametrize("some", [(), (2, 1), (1, 1), (0, 3), (-1, 0)])
def test_channels_ascend(some: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not ascend"):
        ConcatChannels((some,)).loops(((5, 4, 3),))


def test_images_of_one_size_are_needed() -> None:
    with pytest.raises(ValueError, match="images of one size"):
        ConcatChannels(((0,), (0,))).loops(((5, 4, 3), (5, 3, 3)))
