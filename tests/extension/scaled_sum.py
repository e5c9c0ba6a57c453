"""The extension of a foreign package: operators by a rule, a lowering and a pass, a function of Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcudeploy.extension import Extension
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, OnnxModel
from mcudeploy.frontend.onnx.values import OnnxValue
from mcudeploy.ir.graph import DType
from mcudeploy.ops.scalar.unary import Unary

DOMAIN = "org.example"


def scaled_sum(make: Maker) -> None:
    """Replace ScaledSum: factor * (a + b)."""
    total = make.add("Add", make.inputs[0], make.inputs[1])
    factor = make.constant(make.number("factor", 1.0))
    make.add("Mul", total, factor, out=make.outputs[0])


def magnitude(builder: Builder, node: Node) -> None:
    """Lower Magnitude: |x|."""
    value = builder.real(node.inputs[0])
    shape = builder.shape_of(value.tensor)
    result = builder.emit(Unary("abs"), (value.tensor,), shape, DType.FLOAT32, nodes=(node,))
    builder.define(node.output, OnnxValue(result, value.index, real=True))


def joined_magnitudes(model: OnnxModel) -> OnnxModel:
    """Replace sqrt(x * x) by Magnitude."""
    squares = {it.output: it.inputs[0] for it in model.nodes if it.op == "Mul" and len(set(it.inputs)) == 1}
    nodes = (
        replace(it, op="Magnitude", domain=DOMAIN, inputs=(squares[it.inputs[0]],))
        if it.op == "Sqrt" and it.inputs[0] in squares
        else it
        for it in model.nodes
    )
    return replace(model, nodes=tuple(nodes))


def magnitudes(values: Iterable[float]) -> list[float]:
    """Return what Magnitude computes."""
    return [abs(value) for value in values]


RULES = {DOMAIN: {"ScaledSum": scaled_sum}}
LOWERINGS = {DOMAIN: {"Magnitude": magnitude}}
WAYS_OUT = {DOMAIN: "ScaledSum and Magnitude are the operators of this domain"}
EXTENSION = Extension(
    "example",
    rules="scaled_sum:RULES",
    lowerings="scaled_sum:LOWERINGS",
    passes="scaled_sum:joined_magnitudes",
    ways_out="scaled_sum:WAYS_OUT",
    functions=("scaled_sum:magnitudes",),
)
NAMELESS = Extension("../\n\x1b[2J", rules="scaled_sum:RULES")
