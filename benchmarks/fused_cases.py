"""Fused operators over ranges of shapes, for the costs of kernels and for tests; and a random convolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mcudeploy.ir.graph import DType, Graph, Operator, Shape, Tensor
from mcudeploy.ir.one_operator import one_operator
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.fused.fused import Fused
from mcudeploy.ops.requantize import Rounding


def weighted(op: Any, shape: Shape, weights: tuple[int, ...], dtype: DType) -> Graph:
    """Return a convolution with random weights of this shape."""
    rng = np.random.default_rng(0)
    count, quantized = weights[0], dtype is DType.INT8
    values = rng.integers(-127, 128, weights) if quantized else rng.normal(0, 1, weights)
    constants: dict[str, ConstantArray] = {
        "weights": values.astype(dtype),
        "bias": np.zeros(count, "int32" if quantized else dtype),
    }
    if quantized:
        constants["weight_scale"] = rng.uniform(0.001, 0.002, count).astype(np.float32)
    return one_operator(op, (shape,), dtype, constants)


def fused_cases(rounding: Rounding = "once") -> Iterator[Graph]:
    """Bottlenecks of few columns, so that the calls of stages do not hide the rest."""
    for shape, expanded, projected, stride in (
        ((8, 6, 8), 16, 8, 1),
        ((12, 4, 8), 32, 12, 2),
        ((10, 9, 4), 48, 9, 1),
        ((9, 3, 16), 64, 24, 1),
        ((16, 12, 8), 48, 16, 2),
        ((7, 7, 12), 32, 7, 1),
    ):
        yield _bottleneck(shape, expanded, projected, stride, rounding)


def _bottleneck(shape: Shape, expanded: int, projected: int, stride: int, rounding: Rounding) -> Graph:
    convs = (
        Conv2d(expanded),
        Conv2d(expanded, (3, 3), (stride, stride), pads=(1, 1, 1, 1), groups=expanded),
        Conv2d(projected),
    )
    stages, tensors, source = list[Operator](), list[Tensor](), shape
    for once, names in zip(convs, ("xe", "ed", "dy"), strict=True):
        conv = replace(once, rounding=rounding)
        graph = weighted(
            conv, source, (conv.out_channels, *conv.kernel_shape, source[2] // conv.groups), DType.INT8
        )
        (operator,) = graph.operators
        stages.append(replace(operator, name=f"to_{names[1]}", inputs=(names[0],), output=names[1]))
        tensors.append(replace(graph.tensors["y"], name=names[1]))
        source = tensors[-1].shape
    return one_operator(Fused(tuple(stages), tuple(tensors[:-1])), (shape,), DType.INT8)
