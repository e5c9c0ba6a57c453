"""Index arrays: the permutations, dimensions and parts that layouts are found by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcudeploy.frontend.lower.slice import slice_of
from mcudeploy.frontend.onnx.names import Names
from mcudeploy.frontend.onnx.values import (
    default_layout,
    image_index,
    image_positions,
    natural_shape,
    permutation,
    positions,
    stored_axis,
)

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_permutations_are_found(sizes: list[int], data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(len(sizes))))
    wanted = positions(tuple(sizes)).transpose(perm)
    order_found = permutation(wanted)
    assert order_found is not None
    rebuilt = positions(order_found.dims).transpose(order_found.perm)
    assert np.array_equal(rebuilt.reshape(-1), wanted.reshape(-1))


@settings(max_examples=80, deadline=None)
@given(count=st.integers(2, 40), data=st.data())
def test_other_orders_are_refused(count: int, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(count))), np.int32)
    computed = permutation(order)
    if computed is not None:
        assert np.array_equal(positions(computed.dims).transpose(computed.perm).reshape(-1), order)
    assert permutation(np.arange(count, dtype=np.int32)[::-1]) is None


@settings(max_examples=40, deadline=None)
@given(shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)), rank=st.sampled_from([3, 4]))
def test_images_are_read_as_they_are_stored(shape: tuple[int, int, int], rank: int) -> None:
    if rank == 3:
        shape = (shape[0], 1, shape[2])
    index = image_index(shape, rank)
    assert index.shape == ((1, shape[2], shape[0]) if rank == 3 else (1, shape[2], *shape[:2]))
    assert np.array_equal(image_positions(index), positions(shape))


def test_stored_axes() -> None:
    index = image_index((4, 5, 3), 4)
    assert [stored_axis(index, (4, 5, 3), axis) for axis in (1, 2, 3)] == [2, 0, 1]
    flat = index.reshape(1, 3, 20)
    assert stored_axis(flat, (4, 5, 3), 2) is None
    assert stored_axis(flat, (20, 1, 3), 2) == 0


def test_regular_parts() -> None:
    index = positions((6, 5, 4))
    op, places = slice_of(index[1:5:2, :, ::-1][..., :2], (6, 5, 4)) or pytest.fail("not found")
    assert (op.start, op.step, op.out_shape) == ((1, 0, 3), (2, 1, -1), (2, 5, 2))
    assert np.array_equal(places, positions((2, 5, 2)))
    assert slice_of(index[[0, 1, 3]], (6, 5, 4)) is None
    repeated = np.array([2, 4, 4, 3, 5, 5])  # as many as a slice of everything has
    assert slice_of(repeated, (2, 1, 3)) is None


@pytest.mark.parametrize(
    ("shape", "stored"),
    [
        ((), (1, 1, 1)),
        ((7,), (1, 1, 7)),
        ((1, 7), (1, 1, 7)),
        ((3, 7), (3, 1, 7)),
        ((1, 3, 7), (3, 1, 7)),
        ((1, 2, 3, 7), (2, 3, 7)),
        ((2, 2, 3, 7), (2, 6, 7)),
    ],
)
def test_natural_shapes(shape: tuple[int, ...], stored: tuple[int, int, int]) -> None:
    assert natural_shape(shape) == stored


def test_default_layout_of_an_image_is_channels_last() -> None:
    stored, index = default_layout((1, 3, 4, 5))
    assert stored == (4, 5, 3)
    assert index[0, 1, 2, 3] == (2 * 5 + 3) * 3 + 1


def test_names() -> None:
    names = Names()
    assert names.like("Image", "input") == "image"
    assert names.like("image", "input") == "input_0"
    assert names.like("int", "input") == "input_1"
    assert names.like("a b", "input") == "input_2"
    assert [names.numbered("conv"), names.numbered("conv")] == ["conv_0", "conv_1"]
