"""Replacement of composite operators, by the rules below, by operators that are lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, inliner, numpy_helper

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import described, printable
from mcudeploy.extension import added_for
from mcudeploy.frontend.decompose import (
    attention_rules,
    box_rules,
    index_rules,
    integer_rules,
    move_rules,
    norm_rules,
    product_rules,
    sequence_rules,
    sums_rules,
    transformer_rules,
    volume_rules,
    window_rules,
)
from mcudeploy.frontend.decompose.maker import Maker, ModelFacts
from mcudeploy.frontend.onnx.bounded_rows import SUPPRESSION
from mcudeploy.frontend.onnx.constants import Constant, dequantized
from mcudeploy.frontend.onnx.nodes import Infos, Unsupported
from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    computed_values,
    constants_of,
    copy_of,
    graphs_in,
    import_domain,
    refill,
)
from mcudeploy.frontend.onnx.rounding import DOMAIN

_MAX_NODES = 2**16
_MAX_DEPTH = 100
"""Limits of the functions of a file: nodes after inlining, and functions within each other."""
_OTHER_FLOATS = frozenset({"float16", "float64", "bfloat16"})

Rule = Callable[[Maker], None]
"""A rule adds the nodes that replace one node. If it adds none, the node stays for lowering. It raises
Unsupported if no nodes can replace the node.
"""

RULES: dict[str, Rule] = {
    "Attention": attention_rules.attention,
    "AveragePool": volume_rules.pool,
    "BatchNormalization": norm_rules.batch_normalization,
    "Cast": integer_rules.cast_of_int32_sums,
    "CastLike": move_rules.cast_like,
    "CausalConvWithState": sequence_rules.causal_conv,
    "CenterCropPad": move_rules.center_crop_pad,
    "Clip": sums_rules.computed_clip,
    "Concat": move_rules.concat,
    "Compress": index_rules.compress,
    "Conv": volume_rules.conv,
    "ConvInteger": integer_rules.conv_integer,
    "ConvTranspose": window_rules.conv_transpose,
    "CumProd": sums_rules.running("Mul"),
    "CumSum": sums_rules.running("Add"),
    "DepthToSpace": move_rules.depth_to_space,
    "Einsum": product_rules.einsum,
    "GatherElements": index_rules.gather_elements,
    "GatherND": index_rules.gather_nd,
    "Gemm": product_rules.gemm,
    "GlobalAveragePool": volume_rules.global_pool,
    "GlobalLpPool": window_rules.global_lp_pool,
    "GlobalMaxPool": volume_rules.global_pool,
    "Greater": sums_rules.swapped("Less"),
    "GreaterOrEqual": sums_rules.swapped("LessOrEqual"),
    "GRU": sequence_rules.batched,
    "GroupNormalization": norm_rules.group_normalization,
    "Hardmax": sums_rules.hardmax,
    "InstanceNormalization": norm_rules.instance_normalization,
    "IsInf": sums_rules.is_inf,
    "IsNaN": sums_rules.is_nan,
    "LRN": norm_rules.local_response_normalization,
    "LSTM": sequence_rules.batched,
    "LayerNormalization": norm_rules.layer_norm,
    "LogSoftmax": sums_rules.log_softmax,
    "LpNormalization": norm_rules.lp_normalization,
    "LpPool": window_rules.lp_pool,
    "MatMul": product_rules.matmul,
    "MatMulInteger": integer_rules.matmul_integer,
    "Max": sums_rules.chain("Max"),
    "MaxPool": volume_rules.pool,
    "MaxUnpool": index_rules.max_unpool,
    "Mean": sums_rules.chain("Add"),
    "MeanVarianceNormalization": norm_rules.mean_variance_normalization,
    "Min": sums_rules.chain("Min"),
    "OneHot": index_rules.one_hot,
    "Pow": sums_rules.mixed_power,
    "QLinearConv": integer_rules.qlinear_conv,
    "QLinearMatMul": integer_rules.qlinear_matmul,
    "Resize": volume_rules.resize,
    "RMSNormalization": norm_rules.layer_norm,
    "RNN": sequence_rules.batched,
    "ReduceL1": sums_rules.function_of_sum,
    "ReduceL2": sums_rules.function_of_sum,
    "ReduceLogSum": sums_rules.function_of_sum,
    "ReduceLogSumExp": sums_rules.function_of_sum,
    "ReduceMax": sums_rules.reduction,
    "ReduceMean": sums_rules.reduction,
    "ReduceMin": sums_rules.reduction,
    "ReduceProd": sums_rules.reduction,
    "ReduceSum": sums_rules.reduction,
    "ReduceSumSquare": sums_rules.function_of_sum,
    "RotaryEmbedding": sequence_rules.rotary_embedding,
    "Scatter": index_rules.scatter_elements,
    "ScatterElements": index_rules.scatter_elements,
    "ScatterND": index_rules.scatter_nd,
    "SpaceToDepth": move_rules.space_to_depth,
    "Sum": sums_rules.chain("Add"),
    "SwiGLU": sequence_rules.swiglu,
    "Trilu": move_rules.trilu,
}


MICROSOFT_RULES: dict[str, Rule] = {
    "Attention": transformer_rules.attention,
    "BiasGelu": sequence_rules.gelu,
    "DequantizeLinear": integer_rules.in_onnx_domain,
    "EmbedLayerNormalization": transformer_rules.embed_layer_norm,
    "FastGelu": sequence_rules.fast_gelu,
    "GatherBlockQuantized": integer_rules.gather_block_quantized,
    "Gelu": sequence_rules.gelu,
    "MatMulIntegerToFloat": integer_rules.matmul_integer_to_float,
    "MatMulNBits": integer_rules.matmul_nbits,
    "MultiHeadAttention": transformer_rules.multi_head_attention,
    "QGemm": integer_rules.qgemm,
    "QLinearAdd": integer_rules.of_two("Add"),
    "QLinearAveragePool": integer_rules.of_one("AveragePool"),
    "QLinearConcat": integer_rules.qlinear_concat,
    "QLinearConv": integer_rules.qlinear_conv,
    "QLinearGlobalAveragePool": integer_rules.of_one("GlobalAveragePool"),
    "QLinearLeakyRelu": integer_rules.of_one("LeakyRelu"),
    "QLinearMul": integer_rules.of_two("Mul"),
    "QLinearSigmoid": integer_rules.of_one("Sigmoid"),
    "QLinearSoftmax": integer_rules.qlinear_softmax,
    "QuantizeLinear": integer_rules.in_onnx_domain,
    "QuickGelu": sequence_rules.quick_gelu,
    "SimplifiedLayerNormalization": transformer_rules.simplified_layer_norm,
    "SkipLayerNormalization": transformer_rules.skip_layer_norm,
    "SkipSimplifiedLayerNormalization": transformer_rules.skip_layer_norm,
}
"""Rules for operators of the domain com.microsoft, which ONNX Runtime's quantiser and optimiser write."""


OWN_RULES: dict[str, Rule] = {SUPPRESSION: box_rules.non_max_suppression}
"""Rules for nodes that the front end itself writes."""


_RULES_BY_DOMAIN = {"": RULES, "com.microsoft": MICROSOFT_RULES, DOMAIN: OWN_RULES}


def require_replaced(proto: ModelProto, refusals: Mapping[str, str]) -> None:
    """Raise ModelError if a node could not be replaced; `refusals` has the reasons by node label."""
    if refusals:
        kinds = {node.name: node.op_type for node in proto.graph.node}
        problems = (Problem(printable(name), kinds.get(name, ""), why) for name, why in refusals.items())
        raise ModelError.unsupported(tuple(problems))


def require_finite(proto: ModelProto) -> None:
    """Raise ValueError if functions of the file are recursive, or have too many nodes after inlining."""
    bodies = {(function.domain, function.name): function.node for function in proto.functions}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[NodeProto], outer: frozenset[tuple[str, str]]) -> int:
        total = 0
        for node in nodes:
            called = node.domain, node.op_type
            if called in outer or len(outer) > _MAX_DEPTH:
                raise ValueError(f"function {node.op_type} calls itself, or lies too deep in others")
            if called in bodies and called not in counts:
                counts[called] = count(bodies[called], outer | {called})
            total += counts.get(called, 1)
            for inner in graphs_in(node):
                total += count(inner.node, outer)
            if total > _MAX_NODES:
                raise ValueError(f"its functions come to more than {_MAX_NODES} nodes")
        return total

    if bodies:
        count(proto.graph.node, frozenset())


def inlined(proto: ModelProto) -> ModelProto:
    """Inline the functions of the model. Raises the errors of onnx for malformed functions."""
    return inliner.inline_local_functions(proto) if proto.functions else proto


def expand(
    proto: ModelProto, opset: int, infos: Infos, rule_of: Callable[[NodeProto], Rule | None] | None = None
) -> tuple[ModelProto, dict[str, str]]:
    """Replace composite operators; return the model, and by node label why a node could not be replaced.

    `infos` has the known shapes and types of values by name. `rule_of` selects the rule of a node, by default
    `rule_for`. A model without composite operators is returned itself.
    """
    rules = [(rule_of or rule_for)(node) for node in proto.graph.node]
    if not any(rules):
        return proto, {}
    constants = constants_of(proto.graph)
    read = {info.name for info in proto.graph.output}.union(*(node.input for node in proto.graph.node))
    facts = ModelFacts(
        opset,
        infos,
        constants,
        _dequantized(proto, constants),
        frozenset(read - {""}),
        frozenset(computed_values(proto)),
    )
    nodes, refusals = list[NodeProto](), dict[str, str]()
    for number, (node, rule) in enumerate(zip(proto.graph.node, rules, strict=True)):
        label = node.name or f"#{number}"
        try:
            nodes += [node] if rule is None else _replaced(rule, node, label, facts)
        except Unsupported as reason:
            nodes.append(node)
            refusals[label] = str(reason)
    result = copy_of(proto)
    refill(result.graph.node, nodes)
    stated = {value.name: value for value in (*result.graph.value_info, *facts.stated)}
    refill(result.graph.value_info, stated.values())
    if any(node.domain == DOMAIN for node in nodes):
        import_domain(result, DOMAIN)
    _add_constants(result, constants)
    return result, refusals


def _replaced(rule: Rule, node: NodeProto, label: str, facts: ModelFacts) -> Sequence[NodeProto]:
    """The nodes by which a rule replaces a node; the node itself if the rule adds none.

    Raises Unsupported, also for a malformed node.
    """
    try:
        make = Maker(node, label, facts)
        rule(make)
        if not make.nodes:
            return [node]
        kind = make.dtype(node.input[0])
        if kind in _OTHER_FLOATS:
            raise Unsupported(f"it computes in {kind}; export the model in float32")
        return make.nodes
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as fault:
        raise Unsupported(f"its attributes and inputs do not fit: {described(fault)}") from fault


def rule_for(node: NodeProto) -> Rule | None:
    """The rule that replaces a node of the file; None if it is lowered as it is."""
    domain = "" if node.domain in ONNX_DOMAINS else node.domain
    rule: Rule | None = _RULES_BY_DOMAIN.get(domain, {}).get(node.op_type)
    return rule or added_for("rules", domain).get(node.op_type)


def _dequantized(proto: ModelProto, constants: Mapping[str, TensorProto]) -> dict[str, Constant]:
    """Compute the results of DequantizeLinear nodes on constants."""
    dequantized_constants: dict[str, Constant] = {}
    for node in proto.graph.node:
        plain = node.domain in ONNX_DOMAINS and node.op_type == "DequantizeLinear"
        if not plain or not all(name in constants for name in node.input if name):
            continue
        with suppress(ValueError, TypeError, IndexError):
            x, scale, *rest = (numpy_helper.to_array(constants[name]) for name in node.input if name)
            attributes = {item.name: item.i for item in node.attribute}
            zero = rest[0] if rest else np.zeros_like(scale)
            axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
            dequantized_constants[node.output[0]] = dequantized(x, scale, zero, axis, block)
    return dequantized_constants


def _add_constants(proto: ModelProto, constants: Mapping[str, TensorProto]) -> None:
    known_constants = constants_of(proto.graph)
    proto.graph.initializer.extend(
        tensor for name, tensor in constants.items() if name not in known_constants
    )
