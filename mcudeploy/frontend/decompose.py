"""Operators that are made of others: replaced by them before anything is lowered.

Functions of the file itself are inlined, and operators of ONNX follow the rules below. Values inside have
names of their own: `Expanded.made` tells them from those of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto, inliner

from mcudeploy.frontend.decomposing import Infos, Maker
from mcudeploy.frontend.rules_attention import attention
from mcudeploy.frontend.rules_conv import conv_transpose
from mcudeploy.frontend.rules_norm import (
    group_normalization,
    instance_normalization,
    lp_normalization,
    mean_variance_normalization,
)
from mcudeploy.frontend.rules_qoperator import (
    of_one,
    of_two,
    qgemm,
    qlinear_concat,
    qlinear_conv,
    qlinear_matmul,
    same,
)
from mcudeploy.frontend.rules_shape import cast_like, depth_to_space, space_to_depth
from mcudeploy.frontend.rules_sums import chain, log_softmax, of_sum, swapped

Rule = Callable[[NodeProto, Maker], bool]
"""Adds the nodes that replace one; False where that cannot be, and the node stays."""

RULES: dict[str, Rule] = {
    "Attention": attention,
    "CastLike": cast_like,
    "ConvTranspose": conv_transpose,
    "DepthToSpace": depth_to_space,
    "Greater": swapped("Less"),
    "GreaterOrEqual": swapped("LessOrEqual"),
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LogSoftmax": log_softmax,
    "LpNormalization": lp_normalization,
    "Max": chain("Max"),
    "Mean": chain("Add"),
    "MeanVarianceNormalization": mean_variance_normalization,
    "Min": chain("Min"),
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "ReduceL1": of_sum,
    "ReduceL2": of_sum,
    "ReduceLogSum": of_sum,
    "ReduceLogSumExp": of_sum,
    "ReduceSumSquare": of_sum,
    "SpaceToDepth": space_to_depth,
    "Sum": chain("Add"),
}


MICROSOFT_RULES: dict[str, Rule] = {
    "DequantizeLinear": same,
    "QGemm": qgemm,
    "QLinearAdd": of_two("Add"),
    "QLinearAveragePool": of_one("AveragePool"),
    "QLinearConcat": qlinear_concat,
    "QLinearConv": qlinear_conv,
    "QLinearGlobalAveragePool": of_one("GlobalAveragePool"),
    "QLinearLeakyRelu": of_one("LeakyRelu"),
    "QLinearMul": of_two("Mul"),
    "QLinearSigmoid": of_one("Sigmoid"),
    "QLinearSoftmax": of_one("Softmax"),
    "QuantizeLinear": same,
}
"""Those of the domain com.microsoft, which ONNX Runtime's quantiser makes."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A model, and the names of values that are not in its file."""

    proto: ModelProto
    made: frozenset[str]

    @property
    def changed(self) -> bool:
        return bool(self.made)


def inlined(proto: ModelProto) -> ModelProto:
    """The model without functions of its own. Raises what onnx raises for those that are malformed."""
    return inliner.inline_local_functions(proto) if proto.functions else proto


def with_real_operators(proto: ModelProto) -> ModelProto:
    """The model with float operators between quantisations in place of those on integers: some kernels of
    ONNX Runtime for these saturate inside.
    """
    found = expand(proto, 0, {}, _integer_rule)
    for node in found.proto.graph.node if found.changed else ():
        node.name = ""  # ONNX Runtime refuses names that several nodes have
    return found.proto


def expand(
    proto: ModelProto, opset: int, infos: Infos, rule_of: Callable[[NodeProto], Rule | None] | None = None
) -> Expanded:
    """The model with such operators replaced; `infos` of its values by name, as far as they are known.
    `rule_of` chooses among the rules.
    """
    rule_of = rule_of or _rule
    if not any(map(rule_of, proto.graph.node)):
        return Expanded(proto, frozenset())
    constants = {tensor.name: tensor for tensor in proto.graph.initializer} | dict(_constant_nodes(proto))
    known = {name for node in proto.graph.node for name in (*node.input, *node.output)}
    result, nodes = ModelProto(), list[NodeProto]()
    for number, node in enumerate(proto.graph.node):
        make = Maker(node, node.name or f"#{number}", opset, infos, constants)
        nodes += make.nodes if _replaced(rule_of(node), node, make) else [node]
    result.CopyFrom(proto)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    _add_constants(result, constants)
    made = {name for node in nodes for name in node.output} - known
    return Expanded(result, frozenset(made))


def _replaced(rule: Rule | None, node: NodeProto, make: Maker) -> bool:
    """Whether a rule replaces the node. One that is malformed stays: lowering refuses it by its name."""
    try:
        return rule is not None and rule(node, make)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
        return False


def _integer_rule(node: NodeProto) -> Rule | None:
    return _rule(node) if node.op_type.startswith("Q") and node.op_type != "QuantizeLinear" else None


def _rule(node: NodeProto) -> Rule | None:
    if node.domain == "com.microsoft":
        return MICROSOFT_RULES.get(node.op_type)
    return RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None


def _constant_nodes(proto: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """What nodes give that hold a tensor, by its name."""
    for node in proto.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            yield node.output[0], node.attribute[0].t


def _add_constants(proto: ModelProto, constants: Mapping[str, TensorProto]) -> None:
    there = {tensor.name for tensor in proto.graph.initializer} | dict(_constant_nodes(proto)).keys()
    proto.graph.initializer.extend(tensor for name, tensor in constants.items() if name not in there)
