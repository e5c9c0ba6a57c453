"""Rules for the activations of ONNX Runtime's own domain: Gelu, with a bias, by tanh, and by a sigmoid."""

from __future__ import annotations

from math import pi, sqrt

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.qoperator_rules import padded

_CUBIC = 0.044715
"""Factor of the cube in the approximation by tanh."""
_QUICK_SLOPE = 1.702
"""Slope of QuickGelu's sigmoid if the node states none."""


def gelu(make: Maker) -> None:
    """Replace Gelu and BiasGelu: the product of x and the normal distribution function of x."""
    x = _biased(make)
    share = make.add("Erf", make.add("Mul", x, make.constant(sqrt(0.5))))
    _share_of(make, x, share, make.outputs[0])


def fast_gelu(make: Maker) -> None:
    """Replace FastGelu, which approximates the distribution function by tanh."""
    x = _biased(make)
    cube = make.add("Mul", make.add("Mul", x, x), x)
    inner = make.add("Add", x, make.add("Mul", cube, make.constant(_CUBIC)))
    share = make.add("Tanh", make.add("Mul", inner, make.constant(sqrt(2 / pi))))
    _share_of(make, x, share, make.outputs[0])


def quick_gelu(make: Maker) -> None:
    """Replace QuickGelu: the product of x and a sigmoid of x."""
    x = make.inputs[0]
    gate = make.add("Sigmoid", make.add("Mul", x, make.constant(make.number("alpha", _QUICK_SLOPE))))
    make.add("Mul", x, gate, out=make.outputs[0])


def _biased(make: Maker) -> str:
    x, bias = padded(make.inputs, 2)
    return make.add("Add", x, bias) if bias else x


def _share_of(make: Maker, x: str, share: str, out: str) -> None:
    """X * (1 + share) / 2."""
    half = make.add("Mul", x, make.constant(0.5))
    make.add("Mul", half, make.add("Add", share, make.constant(1.0)), out=out)
