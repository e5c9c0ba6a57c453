"""Signal operators in separate memory: in pieces, in place, under sanitizers. Values are tested beside
TensorFlow Lite Micro, in tests/frontend/tflite/test_tflite_signal.py.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from harness import check_graph
from signal_cases import signal_cases

from mcudeploy.extensions.audio.fourier import radices
from mcudeploy.ir.graph import DType, Graph

_IN_STATE = ("OverlapAdd", "RunCount")
"""Kinds that change a state, which the harness takes for an input."""


def _kernel(graph: Graph) -> str:
    (operator,) = graph.operators
    return operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"]).kernel


def _cases() -> list[Graph]:
    """The first and last cases of every kernel."""
    ordered = sorted(signal_cases(), key=_kernel)
    groups = [list(each) for _, each in groupby(ordered, _kernel)]
    chosen = [graph for each in groups for graph in (each[0], each[-1])]
    return [graph for graph in chosen if graph.operators[0].op.kind not in _IN_STATE]


@pytest.mark.parametrize("graph", _cases(), ids=_kernel)
def test_pieces_have_the_bits_of_the_whole(graph: Graph) -> None:
    random = np.random.default_rng(0)
    values = {}
    for io in graph.inputs:
        tensor = graph.tensors[io.tensor]
        if tensor.dtype is DType.FLOAT32:
            values[tensor.name] = random.normal(0, 1, tensor.shape).astype(np.float32)
        else:
            limits = np.iinfo(tensor.dtype.value)
            values[tensor.name] = random.integers(limits.min, limits.max, tensor.shape, limits.dtype)
    check_graph(graph, values)


@pytest.mark.parametrize("length", [2, 7, 14, 66, 100_000])
def test_lengths_that_are_not_supported(length: int) -> None:
    with pytest.raises(ValueError, match="transform of"):
        radices(length)


@pytest.mark.parametrize("length", [4, 6, 10, 20, 24, 120, 512, 1024])
def test_radices_multiply_to_the_length(length: int) -> None:
    assert 2 * np.prod(radices(length)) == length
