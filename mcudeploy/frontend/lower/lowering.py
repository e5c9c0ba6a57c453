"""Lowering of a simplified model to the Graph: one function per ONNX operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import described, printable
from mcudeploy.extension import added_for
from mcudeploy.frontend.lower import (
    arithmetic,
    gather,
    integers,
    linear,
    move,
    norm,
    pool,
    quantized,
    recurrent,
    regions,
    resize,
    state_nodes,
)
from mcudeploy.frontend.lower import (
    slice as picks,
)
from mcudeploy.frontend.lower.builder import Builder, Lowering, OperatorLowering
from mcudeploy.frontend.lower.float_causes import cause_notes, float_causes
from mcudeploy.frontend.lower.graph_outputs import copy_if_all_are_views, output_io
from mcudeploy.frontend.lower.inputs import declare, placeholder
from mcudeploy.frontend.lower.packed import block_notes, four_bit_notes
from mcudeploy.frontend.lower.tidy_operators import fuse_last_steps, replaced_after_readers, tidy
from mcudeploy.frontend.onnx.int8_caches import WIDEN
from mcudeploy.frontend.onnx.nodes import Node, OnnxModel, Unsupported
from mcudeploy.frontend.onnx.protos import domain_ways_out
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.ir.graph import Graph, GraphIO

_FAMILIES = (
    arithmetic, gather, integers, linear, move, norm, pool, quantized, recurrent, regions, resize, picks,
)  # fmt: skip
LOWERINGS: Mapping[str, OperatorLowering] = {
    op: lowering for family in _FAMILIES for op, lowering in family.LOWERINGS.items()
}
"""The lowering of each supported ONNX operator, from the files of the families."""

_PRIVATE_LOWERINGS = {
    op: lowering
    for family in (norm, recurrent, regions, state_nodes)
    for op, lowering in family.PRIVATE.items()
}
"""Lowering functions of operators that ONNX lacks, whose nodes frontend/tflite and rules write."""

_LOWERINGS_BY_DOMAIN: Mapping[str, Mapping[str, Lowering]] = {
    "": {op: it.lowering for op, it in LOWERINGS.items()},
    DOMAIN: _PRIVATE_LOWERINGS,
}

_REAL_LOWERINGS = {op: it.real for op, it in LOWERINGS.items() if it.real is not None}

_LOSS = "a loss is for training; export the model without it"
_DYNAMIC = "the size of its result is known at run time only, by how many"
_END = "end the model before it (onnx.utils.extract_model), and compute it in the application"

WAYS_OUT: dict[str, str] = {
    "DynamicQuantizeLinear": "scales that are computed at run time are not supported; quantise with fixed "
    "ones: mcudeploy quantize, or onnxruntime.quantization.quantize_static",
    "NegativeLogLikelihoodLoss": _LOSS,
    "NonMaxSuppression": f"{_DYNAMIC} boxes it keeps, and it is in a loop or branch; {_END}",
    "NonZero": f"{_DYNAMIC} elements are not zero; {_END}",
    "SoftmaxCrossEntropyLoss": _LOSS,
    "TensorScatter": "it is supported where it writes a state: name its cache, --state OUTPUT=INPUT",
    "Unique": f"{_DYNAMIC} elements differ; {_END}",
}
"""Reasons, with a way out, that an error states for unsupported operators."""

_UNKNOWN = "this operator is not supported"
_FOREIGN = "an extension of yours can add it: docs/tutorials/operator.md, --extension FILE.py"
_STANDARD = ("ai.onnx", "com.microsoft", "mcudeploy", "tflite")
"""Beginnings of the domains of ONNX and ONNX Runtime, and of nodes that the front end writes."""

_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""Exceptions of numpy and operator definitions for attributes and shapes that do not fit."""


def lower(model: OnnxModel, reasons: Mapping[str, str], *, float_io: bool) -> Graph:
    """Lower a model to its Graph. `reasons`: why nodes, by label, could not be folded.

    Raises ModelError listing all unsupported nodes.
    """
    builder = Builder(model, _REAL_LOWERINGS)
    problems: list[Problem] = []
    unknown: set[str] = set()
    inputs: list[GraphIO] = []
    state_inputs = {state.before for state in model.states}
    for info in (info for info in model.inputs if info.name not in state_inputs):
        try:
            value = declare(builder, info, float_io=float_io)
            inputs.append(builder.io(info.name, value, info.dtype))
        except Unsupported as reason:
            problems.append(Problem(printable(info.name), "input", str(reason)))
            unknown.add(info.name)
    for node in model.nodes:
        if node.output in builder.done:
            continue
        problem = _lower_node(builder, node, reasons, unknown)
        if problem is not None:
            problems.append(_of_the_file(problem, node, model))
            spreads = node.op in (*WAYS_OUT, WIDEN)  # later nodes would be refused for the same cause
            unknown.update(
                name for name in node.outputs if name and (spreads or not placeholder(builder, name))
            )
    outputs = _outputs(builder, model, problems, unknown, float_io=float_io)
    if problems:
        raise ModelError.unsupported(tuple(dict.fromkeys(problems)))
    return _graph(builder, model, tuple(inputs), copy_if_all_are_views(builder, outputs))


def _of_the_file(problem: Problem, node: Node, model: OnnxModel) -> Problem:
    """Report the problem of a node that the front end wrote as one of the file's node that it replaces."""
    op = model.file_ops.get(node.label)
    if not op or op == node.op:
        return problem
    return replace(
        problem, op=printable(op), reason=f"{problem.reason} (in the {problem.op} that replaces it)"
    )


def _lower_node(
    builder: Builder, node: Node, reasons: Mapping[str, str], unknown: set[str]
) -> Problem | None:
    """Lower a node; return its problem, if any. Nodes that depend on `unknown` values are skipped."""
    lowering = _LOWERINGS_BY_DOMAIN.get(node.domain, {}).get(node.op)
    lowering = lowering or added_for("lowerings", node.domain).get(node.op)
    op = printable(node.op if node.domain in ("", DOMAIN) else f"{node.domain}::{node.op}")
    if lowering is None:
        standard = not node.domain or node.domain.startswith(_STANDARD)
        way_out = domain_ways_out().get(node.domain, _UNKNOWN if standard else f"{_UNKNOWN}; {_FOREIGN}")
        reason = reasons.get(node.label, WAYS_OUT.get(node.op, way_out))
        return Problem(printable(node.label), op, reason)
    if not unknown.isdisjoint(node.inputs):
        unknown.update(name for name in node.outputs if name)
        return None
    refused = node.label in builder.model.refusals
    if refused or (node.label in reasons and all(name in builder.constants for name in node.inputs if name)):
        return Problem(printable(node.label), op, reasons[node.label])
    try:
        lowering(builder, node)
    except Unsupported as reason:
        return Problem(printable(node.label), op, str(reason))
    except _FAULTS as fault:
        return Problem(printable(node.label), op, f"its attributes and inputs do not fit: {described(fault)}")
    return None


def _outputs(
    builder: Builder, model: OnnxModel, problems: list[Problem], unknown: set[str], *, float_io: bool
) -> tuple[GraphIO, ...]:
    ios: list[GraphIO] = []
    for info in model.outputs:
        if info.name in unknown:
            continue
        try:
            ios.append(output_io(builder, info, float_io=float_io))
        except Unsupported as reason:
            problems.append(Problem(printable(info.name), "output", str(reason)))
        except _FAULTS as fault:
            problems.append(Problem(printable(info.name), "output", f"it cannot be lowered: {fault}"))
    return tuple(ios)


def _graph(
    builder: Builder, model: OnnxModel, inputs: tuple[GraphIO, ...], outputs: tuple[GraphIO, ...]
) -> Graph:
    """The graph of the lowered operators, after the final passes over them."""
    # The application numbers the states in the order of the file; the operators may have another order.
    file_order = [state.before for state in model.states]
    states = tuple(sorted(builder.states, key=lambda state: file_order.index(state.before.name)))
    inputs += tuple(state.before for state in states)
    outputs += tuple(state.after for state in states)
    outputs = fuse_last_steps(builder, outputs)
    tidied = tidy(builder.operators, outputs, builder.references, builder.tensors)
    available = {io.tensor for io in inputs} | {operator.output for operator in tidied.operators}
    try:
        return Graph(
            name=model.name,
            tensors={name: tensor for name, tensor in builder.tensors.items() if name in available},
            operators=replaced_after_readers(tidied.operators, states),
            inputs=inputs,
            outputs=tidied.outputs,
            references={name: io for name, io in tidied.references.items() if name in available},
            notes=(
                *(*model.notes, *builder.notes, *block_notes(tidied.operators, builder.widened)),
                *four_bit_notes(tidied.operators, builder.tensors),
                *cause_notes(builder.float_causes),
            ),
            states=states,
            float_causes=float_causes(builder, tidied.operators, builder.tensors),
        )
    except ValueError as fault:
        raise ModelError(f"the model cannot be put in order: {fault}") from fault
