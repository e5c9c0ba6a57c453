"""Attention in its forms, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from reference_node import check_reference
from single_node import normal

BATCH, HEADS, QUERIES, KEYS, DEPTH = 2, 4, 3, 5, 8
Shapes = dict[str, tuple[int, ...]]

SHOWN = ["y", "", "", "scores"]


def attention(
    shapes: Shapes,
    constants: dict[str, Any] | None = None,
    outputs: list[str] | None = None,
    *,
    heads: int = HEADS,
    length: int = KEYS,
    flat: bool = False,
    **attributes: Any,
) -> None:
    """`shapes` are shapes of further computed inputs, by the names of ONNX's operator."""
    rng = np.random.default_rng(3)
    if flat:
        sizes = [(BATCH, QUERIES, HEADS * DEPTH), *[(BATCH, length, heads * DEPTH)] * 2]
        attributes |= {"q_num_heads": HEADS, "kv_num_heads": heads}
    else:
        sizes = [(BATCH, HEADS, QUERIES, DEPTH), *[(BATCH, heads, length, DEPTH)] * 2]
    every = dict(zip(("q", "k", "v"), sizes, strict=True)) | shapes
    inputs = {name: normal(rng, shape) for name, shape in every.items()}
    constants = constants or {}
    order = ("q", "k", "v", "mask", "past_key", "past_value", "nonpad")
    names = [name if name in inputs or name in constants else "" for name in order]
    item = helper.make_node("Attention", names, outputs or ["y"], name="node", **attributes)
    check_reference(item, inputs, constants, 25)


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("flat", [False, True])
def test_heads_of_queries_that_share_keys(heads: int, flat: bool) -> None:
    attention({}, heads=heads, flat=flat, softcap=1.5, scale=0.4)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 1, 5), (1, 4, 3, 5), (2, 1, 3, 5), (2, 4, 3, 4)])
def test_masks_that_are_computed(shape: tuple[int, ...]) -> None:
    attention({"mask": shape}, is_causal=int(len(shape) == 2))


@pytest.mark.parametrize("heads", [2, 4])
def test_keys_of_earlier_calls(heads: int) -> None:
    past = dict.fromkeys(("past_key", "past_value"), (BATCH, heads, 3, DEPTH))
    results = ["y", "present_key", "present_value", "scores"]
    attention(past, None, results, heads=heads, is_causal=1)
    attention({}, None, results, heads=heads, flat=True)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_on_their_way(mode: int) -> None:
    """The reference caps the output of mode 0, ONNX's text does not."""
    attention({"mask": (3, 5)}, None, SHOWN, qk_matmul_output_mode=mode, softcap=2.0 if mode else 0.0)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("window", [{}, {"left_window_size": 1}, {"right_window_size": 0}])
def test_padding_and_windows(causal: int, window: dict[str, int]) -> None:
    """The second image has fewer keys than queries: rows without keys are 0."""
    attention({}, {"nonpad": np.array([5, 2])}, is_causal=causal, **window)


def test_a_query_that_a_mask_leaves_no_key() -> None:
    mask = np.ones((3, 5), np.bool_)
    mask[1], mask[2, 3] = False, False
    attention({}, {"mask": mask}, SHOWN, qk_matmul_output_mode=3)
