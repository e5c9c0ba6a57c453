"""Convolutions and pools of images of three dimensions, by convolutions and pools of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_node import check
from single_node import bounded, normal, seeds

few = settings(parent=bounded, max_examples=6)
triples = st.tuples(*(st.integers(1, 3) for _ in range(3)))
images = st.tuples(st.just(1), st.sampled_from([2, 4]), *(st.integers(3, 6) for _ in range(3)))


def _sizes(shape: tuple[int, ...], kernel: Any, stride: Any, pads: Any, dilation: Any) -> list[int]:
    return [
        (size + pads[at] + pads[at + 3] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1
        for at, size in enumerate(shape[2:])
    ]


@given(
    shape=images, kernel=triples, stride=triples, dilation=triples, groups=st.sampled_from([1, 2]), seed=seeds
)
@few
def test_conv(
    shape: tuple[int, ...], kernel: Any, stride: Any, dilation: Any, groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pads = [int(rng.integers(0, 3)) for _ in range(6)]
    sizes = _sizes(shape, kernel, stride, pads, dilation)
    if min(sizes) < 1:
        return
    weights, bias = normal(rng, (4, shape[1] // groups, *kernel)), normal(rng, (4,))
    operands = {"x": normal(rng, shape), "cw": weights, "cb": bias}
    check(
        "Conv", operands, {"y": (np.float32, (1, 4, *sizes))}, tolerance=1e-5,
        strides=stride, dilations=dilation, pads=pads, group=groups,
    )  # fmt: skip


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_conv_with_automatic_padding(auto_pad: str) -> None:
    rng = np.random.default_rng(1)
    sizes = (3, 3, 3) if auto_pad == "VALID" else (3, 5, 4)
    operands = {"x": normal(rng, (1, 2, 5, 5, 7)), "cw": normal(rng, (3, 2, 1, 3, 2))}
    check(
        "Conv", operands, {"y": (np.float32, (1, 3, *sizes))}, tolerance=1e-5,
        strides=[2, 1, 2], auto_pad=auto_pad,
    )  # fmt: skip


@given(
    shape=images, kernel=triples, stride=triples, padded=st.booleans(), ceil=st.booleans(),
    counted=st.booleans(), seed=seeds,
)  # fmt: skip
@few
def test_pools(
    shape: tuple[int, ...], kernel: Any, stride: Any, padded: bool, ceil: bool, counted: bool, seed: int
) -> None:
    x = normal(np.random.default_rng(seed), shape)
    stride = [min(pair) for pair in zip(stride, kernel, strict=True)]
    pads = [size // 2 if padded else 0 for size in kernel] * 2
    sizes = _sizes(shape, kernel, stride, pads, (1, 1, 1))
    if ceil:
        sizes = [
            min(-(-(size + 2 * pads[at] - kernel[at]) // stride[at]), (size + pads[at] - 1) // stride[at]) + 1
            for at, size in enumerate(shape[2:])
        ]
    window = {"kernel_shape": kernel, "strides": stride, "pads": pads, "ceil_mode": int(ceil)}
    results = {"y": (np.float32, (*shape[:2], *sizes))}
    check("MaxPool", {"x": x}, results, **window)
    check("AveragePool", {"x": x}, results, tolerance=1e-5, count_include_pad=int(counted), **window)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op: str) -> None:
    x = normal(np.random.default_rng(2), (1, 3, 4, 5, 6))
    check(op, {"x": x}, {"y": (np.float32, (1, 3, 1, 1, 1))}, tolerance=1e-5)


def test_batch_normalization() -> None:
    rng = np.random.default_rng(3)
    names = ("cs", "cb", "cm")
    operands = {"x": normal(rng, (1, 4, 3, 5, 2))} | {name: normal(rng, (4,)) for name in names}
    results = {"y": (np.float32, (1, 4, 3, 5, 2))}
    operands["cv"] = normal(rng, (4,)) ** 2
    check("BatchNormalization", operands, results, tolerance=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("by_sizes", [False, True])
def test_resize(mode: str, by_sizes: bool) -> None:
    x = normal(np.random.default_rng(4), (1, 2, 3, 4, 5))
    operands = {"x": x, "croi": np.zeros(0, np.float32)}
    if by_sizes:
        operands |= {"cscales": np.zeros(0, np.float32), "csizes": np.array([1, 2, 5, 4, 7])}
    else:
        operands["cscales"] = np.array([1, 1, 2, 1.5, 1], np.float32)
    result = (1, 2, 5, 4, 7) if by_sizes else (1, 2, 6, 6, 5)
    check("Resize", operands, {"y": (np.float32, result)}, tolerance=1e-5, mode=mode)


@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((6, 10, 8), {"strides": [2, 3, 2], "pads": [0, 1, 0, 1, 0, 2], "group": 2}),
        ((5, 5, 6), {"dilations": [2, 1, 2]}),
    ],
)
def test_transposed_convolution(sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    groups = attributes.get("group", 1)
    x, weights = normal(rng, (1, 4, 3, 4, 4)), normal(rng, (4, 3, 2, 2, 2))
    operands = {"x": x, "cw": weights, "cb": normal(rng, (3 * groups,))}
    results = {"y": (np.float32, (1, 3 * groups, *sizes))}
    check("ConvTranspose", operands, results, tolerance=1e-5, **attributes)


@pytest.mark.parametrize(
    ("shape", "kernel", "result", "attributes"),
    [
        ((1, 3, 6, 7), (2, 3, 3, 2), (3, 4), {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
        ((1, 4, 9, 9), (4, 1, 3, 3), (7, 7), {"group": 4}),
        ((1, 4, 12), (6, 2, 3), (8,), {"group": 2, "dilations": [2]}),
    ],
)
def test_weights_that_are_computed(
    shape: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    rng = np.random.default_rng(6)
    operands = {"x": normal(rng, shape), "w": normal(rng, kernel), "cb": normal(rng, kernel[:1])}
    check("Conv", operands, {"y": (np.float32, (1, kernel[0], *result))}, tolerance=1e-5, **attributes)
