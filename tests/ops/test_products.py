"""Products of every shape: MatMul, Gemm and Einsum, with and without a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from reference_node import check_reference
from single_node import Quantized, check_float, check_quantized, kinds, node, normal

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((6,), (6,)),
        ((6,), (6, 4)),
        ((3, 6), (6,)),
        ((2, 3, 6), (6,)),
        ((5, 3, 6), (6, 4)),
        ((3, 6), (5, 6, 4)),
        ((2, 1, 3, 6), (5, 6, 4)),
        ((2, 5, 3, 6), (2, 1, 6, 4)),
        ((2, 1, 3, 6), (1, 5, 6, 4)),
        ((2, 5, 3, 6), (2, 5, 6, 1)),
    ],
)
def test_matmul(a: Shape, b: Shape) -> None:
    rng = np.random.default_rng(1)
    inputs = {"a": normal(rng, a), "b": normal(rng, b)}
    check_float(node("MatMul", "a", "b"), inputs)
    for name, constant in inputs.items():
        computed = {other: array for other, array in inputs.items() if other != name}
        check_float(node("MatMul", "a", "b", constants={name: constant}), computed)


def test_many_constant_matrices_of_integers() -> None:
    rng = np.random.default_rng(2)
    inputs = {"a": Quantized.draw(rng, (1, 4, 3, 6), np.int8)}
    weights = Quantized(rng.integers(-128, 128, (1, 4, 6, 5)).astype(np.int8), 0.02, 0)
    graph = check_quantized(node("MatMul", "a", "w"), inputs, weights={"w": weights})
    assert kinds(graph) >= {"Conv2d"}


@pytest.mark.parametrize("constant", ["", "b", "bc"])
@pytest.mark.parametrize("c", [(3, 4), (3, 1), (4,), (1, 4), ()])
def test_gemm(constant: str, c: Shape) -> None:
    rng = np.random.default_rng(3)
    inputs = {"a": normal(rng, (6, 3)), "b": normal(rng, (4, 6)), "c": normal(rng, c)}
    constants = {name: inputs.pop(name) for name in constant}
    attributes = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
    check_float(node("Gemm", "a", "b", "c", constants=constants, **attributes), inputs)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(3, 4)]),
        ("ij->i", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("...ii ->...i", [(3, 5, 5)]),
        ("i,i", [(5,), (5,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("bij, bjk -> bik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (1, 5, 4, 2)]),
        ("bqhd,bkhd->bhqk", [(1, 3, 2, 4), (1, 5, 2, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("abc,cd,b->ad", [(2, 3, 4), (4, 5), (3,)]),
        ("ij,ij->ij", [(2, 3), (1, 3)]),
        ("bi,ij", [(2, 3), (3, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[Shape]) -> None:
    rng = np.random.default_rng(4)
    inputs = {f"x{place}": normal(rng, shape) for place, shape in enumerate(shapes)}
    item = helper.make_node("Einsum", list(inputs), ["y"], name="node", equation=equation)
    check_reference(item, inputs, {}, 21)
    last = f"x{len(shapes) - 1}"
    if len(shapes) > 1:
        check_reference(item, inputs, {last: inputs.pop(last)}, 21)
