"""Activations of ONNX Runtime's own domain."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from harness import check_against_onnx
from onnx import helper, numpy_helper
from plain_node import loaded
from single_node import normal

from tests.networks.onnx_files import build


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "BiasGelu", "QuickGelu"])
def test_gelu(op: str) -> None:
    rng = np.random.default_rng(4)
    x = 3 * normal(rng, (1, 5, 24))
    biased = op in ("BiasGelu", "FastGelu")
    item = helper.make_node(op, ["x", "b"] if biased else ["x"], ["y"], "node", domain="com.microsoft")
    graph = check_against_onnx(
        build([item], {"x": x}, {"y": (x.dtype, x.shape)}, {"b": normal(rng, (24,))} if biased else {}),
        {"x": x},
    )
    functions = {"FastGelu": "gelu_tanh", "QuickGelu": "swish"}
    assert graph.operators[-1].op.function == functions.get(op, "gelu")


FORMS = {
    "PyTorch's": ("gelu", "a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)"),
    "a share": ("gelu", "a = Mul(x, s) b = Erf(a) c = Add(one, b) d = Mul(half, c) y = Mul(d, x)"),
    "TensorFlow's": (
        "gelu_tanh",
        "a = Pow(x, three) b = Mul(k, a) c = Add(x, b) d = Mul(t, c) e = Tanh(d) f = Add(e, one)"
        "g = Mul(x, half) y = Mul(g, f)",
    ),
    "the fast one": (
        "gelu_tanh",
        "a = Mul(x, t) b = Mul(x, k) c = Mul(b, x) d = Add(c, one) e = Mul(a, d) f = Tanh(e) g = Add(one, f)"
        "h = Mul(half, x) y = Mul(h, g)",
    ),
    "SiLU": ("swish", "a = Sigmoid(x) y = Mul(x, a)"),
    "a steep one": ("swish", "a = Mul(x, s) b = Sigmoid(a) y = Mul(b, x)"),
}
NUMBERS = {
    "r": 2**0.5,
    "s": 0.5**0.5,
    "one": 1,
    "half": 0.5,
    "three": 3,
    "k": 0.044715,
    "t": (2 / np.pi) ** 0.5,
}


def composed(nodes: str) -> onnx.ModelProto:
    """A model of these nodes over constants."""
    body = f'<ir_version: 9, opset_import: ["" : 17]> form (float[1,5,8] x) => (float[1,5,8] y) {{ {nodes} }}'
    model = onnx.parser.parse_model(body)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.array(value, np.float32), name) for name, value in NUMBERS.items()
    )
    return model


@pytest.mark.parametrize("form", FORMS)
def test_products_are_one_function(form: str) -> None:
    function, nodes = FORMS[form]
    graph = check_against_onnx(composed(nodes), {"x": 3 * normal(np.random.default_rng(4), (1, 5, 8))})
    assert [getattr(operator.op, "function", "") for operator in graph.operators] == [function]


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Neg(x) b = Sigmoid(a) y = Mul(x, b)",
        "a = Sigmoid(x) b = Mul(x, a) y = Add(a, b)",
        "a = Div(x, r) b = Erf(a) c = Add(b, half) d = Mul(x, c) y = Mul(d, half)",
        "a = Div(x, s) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)",
    ],
)
def test_products_that_differ_stay(nodes: str) -> None:
    assert len(loaded(composed(nodes)).operators) > 2
