"""Fused operators have the bits of their stages in sequence: for all cuts, kernels and groups."""

from __future__ import annotations

import numpy as np
import pytest
from harness import linked, run_graph, run_operator
from hypothesis import given
from hypothesis import strategies as st
from single_node import bounded, seeds

from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.requantize import Rounding
from mcudeploy.planner.model.forms import fuse
from mcudeploy.planner.search.fusing import chains


def convolutions(
    shape: Shape, convs: tuple[Conv2d, ...], dtype: DType = DType.INT8, *, seed: int = 0
) -> Graph:
    """Convolutions in a chain, with random constants; the tensors are t0, t1 and so on."""
    random = np.random.default_rng(seed)
    is_int8 = dtype is DType.INT8
    tensors = [Tensor("t0", shape, dtype, Quantization(0.05, 3) if is_int8 else None)]
    operators = []
    for number, conv in enumerate(convs):
        source = tensors[-1]
        result = conv.loops((source.shape,)).output_shape()
        weights = (conv.out_channels, *conv.kernel_shape, source.shape[2] // conv.groups)
        constants = {
            "weights": random.integers(-127, 128, weights).astype(np.int8)
            if is_int8
            else random.normal(0, 0.3, weights).astype(np.float32),
            "bias": random.integers(-500, 500, conv.out_channels).astype("int32" if is_int8 else "float32"),
        }
        if is_int8:
            constants["weight_scale"] = random.uniform(0.001, 0.002, conv.out_channels).astype(np.float32)
        scale = Quantization(0.05 * 0.6, -5 + number) if is_int8 else None
        tensors.append(Tensor(f"t{number + 1}", result, dtype, scale))
        operators.append(Operator(f"conv_{number}", conv, (source.name,), tensors[-1].name, constants))
    return linked(operators, tensors)


def bottleneck(
    shape: Shape, expanded: int, projected: int, stride: int = 1, rounding: Rounding = "once"
) -> Graph:
    """Expand, filter each channel, project."""
    convs = (
        Conv2d(expanded, low=0.0, high=1.2, rounding=rounding),
        Conv2d(
            expanded, (3, 3), (stride, stride), pads=(1, 1, 1, 1), groups=expanded, low=0.0, rounding=rounding
        ),
        Conv2d(projected, rounding=rounding),
    )
    return convolutions(shape, convs)


def fused(graph: Graph) -> Graph:
    return fuse(graph, [tuple(operator.name for operator in graph.operators)])


def calls_of(graph: Graph) -> list[KernelCall]:
    (operator,) = graph.operators
    call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors[operator.output])
    return [call, *call.others]


def check(graph: Graph, seed: int, number: int | None = None) -> None:
    """By any variant that runs on this machine, in any blocks."""
    random = np.random.default_rng(seed)
    x = next(iter(graph.inputs))
    tensor = graph.tensors[x.tensor]
    values = random.integers(-128, 128, tensor.shape).astype(np.int8)
    if tensor.dtype is DType.FLOAT32:
        values = random.normal(0, 1, tensor.shape).astype(np.float32)
    output = graph.operators[-1].output
    wanted = run_graph(graph, {x.tensor: values})[output]
    one = fused(graph)
    variants = [at for at, call in enumerate(calls_of(one)) if call.isa is Isa.ANY]
    for at in variants if number is None else [variants[number % len(variants)]]:
        height = int(random.integers(1, wanted.shape[0] + 1))
        (operator,) = one.operators
        result = run_operator(one, operator, {x.tensor: values}, height, seed=seed, variant=at)
        assert np.array_equal(result, wanted), calls_of(one)[at].variant


@given(
    size=st.tuples(st.integers(3, 12), st.integers(3, 7)),
    depth=st.integers(1, 9),
    expanded=st.sampled_from([2, 8, 12, 16, 20, 24, 44, 48, 76]),
    projected=st.integers(1, 9),
    stride=st.integers(1, 2),
    number=st.integers(0, 30),
    seed=seeds,
)
@bounded
def test_bottlenecks(
    size: tuple[int, int], depth: int, expanded: int, projected: int, stride: int, number: int, seed: int
) -> None:
    check(bottleneck((*size, depth), expanded, projected, stride), seed, number)


@pytest.mark.parametrize(("stride", "expanded"), [(1, 32), (2, 32), (1, 28)])
def test_every_form(stride: int, expanded: int) -> None:
    graph = bottleneck((11, 5, 4), expanded, 6, stride)
    modes = {call.mode for call in calls_of(fused(graph))}
    assert {"1rows", "2rows8", "4rows16lean"} <= modes
    check(graph, 1)


@pytest.mark.parametrize(
    "convs",
    [
        (Conv2d(4, (3, 3), (2, 2), pads=(0, 0, 1, 1)), Conv2d(8, (3, 3), pads=(1, 1, 1, 1))),
        (
            Conv2d(8, (5, 5), pads=(2, 2, 2, 2)),
            Conv2d(3, (1, 1), (2, 2)),
            Conv2d(4, (3, 3), pads=(1, 1, 1, 1)),
        ),
        (Conv2d(6, (3, 3), dilation=(2, 2), pads=(2, 2, 2, 2)), Conv2d(6, (3, 1), groups=6)),
        (Conv2d(8, (1, 1), (3, 3)), Conv2d(8, (3, 3), groups=8, pads=(2, 2, 2, 2)), Conv2d(2)),
    ],
)
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_other_chains(convs: tuple[Conv2d, ...], dtype: DType) -> None:
    check(convolutions((13, 9, 3), convs, dtype), 2)


def test_rounded_twice() -> None:
    graph = bottleneck((9, 6, 4), 16, 5, rounding="tflite")
    assert any("8" in call.mode for call in calls_of(fused(graph)))
    check(graph, 3)


def test_groups_read_parts_of_the_arrays() -> None:
    """So only the projection is packed in another way."""
    by_mode = {call.mode: call for call in calls_of(fused(bottleneck((8, 8, 8), 48, 8)))}
    sizes = {mode: sum(array.nbytes for array in by_mode[mode].arrays()) for mode in ("1rows", "1rows8")}
    assert sizes["1rows8"] <= 1.3 * sizes["1rows"]


def test_chains_are_the_widest() -> None:
    graph = bottleneck((16, 16, 8), 48, 8)
    assert chains(graph) == (("conv_0", "conv_1", "conv_2"),)
    narrow = convolutions((16, 16, 8), (Conv2d(4), Conv2d(2)))
    assert chains(narrow) == ()


@pytest.mark.parametrize(
    "names", [("conv_0", "conv_2"), ("conv_1", "conv_0"), ("conv_0", "conv_9"), ("conv_0",)]
)
def test_what_is_not_a_chain_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="to fuse"):
        fuse(bottleneck((8, 8, 8), 16, 8), [names])
