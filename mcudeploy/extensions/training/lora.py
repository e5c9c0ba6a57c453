"""Low-rank factors beside frozen weights (LoRA, Hu et al., ICLR 2022), as layers of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.training.forward import parameter_name
from mcudeploy.extensions.training.int8_values import is_stored, real_constant
from mcudeploy.extensions.training.recipe import FACTORS, Update
from mcudeploy.ir.graph import Graph, Operator, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.scalar.elementwise import Binary

Array = NDArray[Any]

(_DOWN, _UP), _FROZEN, _SUM = FACTORS, "frozen", "lora_sum"


def with_factors(graph: Graph, rank: int) -> Graph:
    """Return the graph with two layers, A and B, beside each dense convolution: conv(x) + B(A(x)).

    A has the windows of the convolution, `rank` channels and random weights; B has 1x1 windows and zeros. A
    convolution with no more weights than A and B together stays alone. Raises UsageError if all
    convolutions do, and for int8 models.
    """
    if any(is_stored(tensor) for tensor in graph.tensors.values()):
        raise UsageError(f"--update lora:{rank} is for float32 models: this one is int8")
    tensors, operators = dict(graph.tensors), list[Operator]()
    for number, operator in enumerate(graph.operators):
        if not _has_factors(operator, rank):
            operators.append(operator)
            continue
        op = operator.op
        assert isinstance(op, Conv2d)
        output, unclipped = tensors[operator.output], replace(op, low=-inf, high=inf)
        names = {kind: f"{operator.output}_{kind}" for kind in (_FROZEN, _DOWN, _UP)}
        for kind, name in names.items():
            channels = rank if kind == _DOWN else op.out_channels
            tensors[name] = Tensor(name, (*output.shape[:2], channels), output.dtype)
        down, up = replace(unclipped, out_channels=rank), Conv2d(op.out_channels)
        total = Binary("add", low=op.low, high=op.high)
        random, zeros = _random(operator, rank, number), _zeros(op.out_channels, rank)
        x, nodes = operator.inputs, operator.onnx_nodes
        frozen, narrow, wide = names[_FROZEN], names[_DOWN], names[_UP]
        operators += [
            Operator(operator.name, unclipped, x, frozen, operator.constants, nodes),
            Operator(factor_name(operator, _DOWN), down, x, narrow, random, nodes),
            Operator(factor_name(operator, _UP), up, (narrow,), wide, zeros, nodes),
            Operator(factor_name(operator, _SUM), total, (frozen, wide), operator.output, {}, nodes),
        ]
    if len(operators) == len(graph.operators):
        raise UsageError(
            f"--update lora:{rank}: no layer has more weights than factors of this rank would have: take a "
            "smaller rank, or another update"
        )
    return replace(graph, tensors=tensors, operators=tuple(operators))


def adapted(graph: Graph, update: Update) -> Graph:
    """Return the graph that an update trains: with factors, or as it is."""
    return with_factors(graph, update.count) if update.kind == "lora" else graph


def factor_name(operator: Operator, kind: str) -> str:
    """The name of an operator of this kind that is added beside another."""
    return f"{operator.name}_{kind}"


def merged(graph: Graph, rank: int, factors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights W + B * A and the biases b + B * a + b' of the graph without factors, by parameter;
    a and b' are the biases of A and B.
    """
    result: dict[str, Array] = {}
    for operator in graph.operators:
        if not _has_factors(operator, rank):
            continue
        (down, down_bias), (up, up_bias) = (
            [
                factors[f"{factor_name(operator, kind)}_{name}"].astype(np.float64)
                for name in ("weights", "bias")
            ]
            for kind in (_DOWN, _UP)
        )
        up = up.reshape(up.shape[:2])
        result |= {
            parameter_name(operator, "weights"): real_constant(graph, operator, "weights")
            + np.tensordot(up, down, 1),
            parameter_name(operator, "bias"): operator.constants["bias"] + up @ down_bias + up_bias,
        }
    return {name: np.asarray(values, np.float32) for name, values in result.items()}


def _has_factors(operator: Operator, rank: int) -> bool:
    if not isinstance(operator.op, Conv2d) or operator.op.groups != 1:
        return False
    outputs, *window = operator.constants["weights"].shape
    depth = int(np.prod(window))
    return bool(rank * (outputs + depth) < outputs * depth)


def _random(operator: Operator, rank: int, seed: int) -> dict[str, Array]:
    """The initial constants of A: weights drawn uniformly within PyTorch's bound, 1 / sqrt(inputs)."""
    shape = (rank, *operator.constants["weights"].shape[1:])
    width = float(np.prod(shape[1:])) ** -0.5
    drawn = np.random.default_rng(seed).uniform(-width, width, shape)
    return {"weights": drawn.astype(np.float32), "bias": np.zeros(rank, np.float32)}


def _zeros(outputs: int, rank: int) -> dict[str, Array]:
    """The initial constants of B."""
    return {"weights": np.zeros((outputs, 1, 1, rank), np.float32), "bias": np.zeros(outputs, np.float32)}
