"""Reading of a file as a checked OnnxModel. Every fault of the file becomes a ModelError with its cause."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, shape_inference

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import printable
from mcudeploy.extension import added_for
from mcudeploy.frontend.decompose.decompose import expand, inlined, require_finite, require_replaced
from mcudeploy.frontend.decompose.old_opsets import modern
from mcudeploy.frontend.onnx.bounded_rows import bound_suppressions
from mcudeploy.frontend.onnx.convert import (
    info_of,
    label_of,
    model_of,
    require_all_bounded,
    require_total_bounded,
)
from mcudeploy.frontend.onnx.inference import inferred
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.frontend.onnx.nodes import Info, OnnxModel
from mcudeploy.frontend.onnx.plain_forms import in_plain_forms, walk_depth_first
from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    copy_of,
    domain_ways_out,
    graphs_of,
    import_domain,
    opset_of,
    refill,
)
from mcudeploy.frontend.onnx.shapes import Shapes, assumptions_named, fix_inputs
from mcudeploy.frontend.onnx.states import Stateful, keep_states
from mcudeploy.frontend.onnx.tensors import load_external, make_sparse_dense, require_consistent, tensors_of
from mcudeploy.frontend.onnx.windows import require_windows_bounded
from mcudeploy.frontend.parsing import is_tflite, parse
from mcudeploy.frontend.passes.batches import EntryModel, by_entry
from mcudeploy.frontend.passes.control import FlatModel, flattened, is_control
from mcudeploy.frontend.passes.element_types import TypedModel, typed
from mcudeploy.frontend.passes.folding import Folder, with_small_constants
from mcudeploy.frontend.passes.versions import drop_equal_versions, require_versions, version_notes

_MAX_ROUNDS = 64
"""Limit of the rounds in which rules are applied. Some rules replace nodes of others, a few levels deep."""
_RUNTIME_NORM = "SimplifiedLayerNormalization"
"""An operator that ONNX Runtime has in ONNX's domain, and ONNX lacks."""
_ONNX_FAULTS = (onnx.checker.ValidationError, shape_inference.InferenceError)


def read(path: Path, choices: InputChoices = AS_IN_FILE, *, stateful: bool = False) -> OnnxModel:
    """Read and check a model; `choices`: the user's for the inputs.

    With `stateful`, recurrent nodes keep their states between runs. Raises ModelError naming the fault, and
    UsageError for choices that do not fit the model.
    """
    parsed = parse(path, choices)
    bounded = bound_suppressions(parsed.proto)
    proto, notes = _sound(parsed.proto, path, choices.remaining_shapes)
    with assumptions_named((*parsed.notes, *notes)):
        values = _infos(proto)
        if is_tflite(path):  # inference has added the values of the translation
            values = {name: values[name] for name in _infos(parsed.proto)}
        require_total_bounded(values, {tensor.name for tensor in proto.graph.initializer})
        in_file = _values(parsed.proto.graph).union(value.name for value in parsed.proto.graph.input)
        names = {name for state in parsed.states for name in (state.initial, state.before, state.after)}
        flattening = _flat(proto, names)
        flat = flattening.proto
        walk_depth_first(flat.graph, sorted(names))
        require_windows_bounded(flat, _infos(flat))
        retyped = _typed(_modern(flat))
        proto, states = retyped.proto, Stateful(parsed.states)
        if stateful and not parsed.states:
            states = keep_states(proto)
            proto = _checked(proto)
        expanded, refusals = _expanded(proto)
        wholes = {entry.whole for entry in expanded.entries.values()}
        return replace(
            model_of(
                expanded.proto,
                (
                    *(*parsed.notes, *(it.note for it in bounded), *notes),
                    *(*flattening.notes, *retyped.notes, *states.notes),
                ),
            ),
            refusals={**parsed.refusals, **flattening.refusals, **refusals},
            introduced=frozenset((_values(expanded.proto.graph) | wholes) - in_file),
            entries=expanded.entries,
            file_ops=_operators(flat),
            file_types=retyped.types,
            states=states.states,
            declared=parsed.declared,
            roundings=parsed.roundings,
            off_by_one=retyped.off_by_one,
        )


def read_proto(path: Path, choices: InputChoices = AS_IN_FILE) -> tuple[ModelProto, tuple[str, ...]]:
    """Read a model as a checked proto without control flow, and notes.

    It has an opset that is lowered, no external tensors, and inferred shapes. Raises ModelError naming the
    fault, and UsageError for choices that do not fit the model.
    """
    parsed = parse(path, choices)
    require_replaced(parsed.proto, parsed.refusals)
    proto, notes = _sound(parsed.proto, path, choices.remaining_shapes)
    with assumptions_named(notes):
        flat = _flat(proto)
        require_replaced(flat.proto, flat.refusals)
        return _modern(flat.proto), (*notes, *flat.notes)


def _operators(proto: ModelProto) -> dict[str, str]:
    """The ONNX operator of each node name; "" for other domains, and for a name of several operators."""
    operators: dict[str, str] = {}
    for node in proto.graph.node:
        op = node.op_type if node.domain in ONNX_DOMAINS else ""
        operators[node.name] = op if operators.get(node.name, op) == op else ""
    return operators


def _values(graph: GraphProto) -> set[str]:
    """The names of all values that nodes write."""
    return {name for node in graph.node for name in node.output}


def _sound(proto: ModelProto, path: Path, shapes: Shapes) -> tuple[ModelProto, tuple[str, ...]]:
    """Name nodes, load tensors, fix input shapes and check the model; return it and notes."""
    _require_text(proto)
    for number, node in enumerate(proto.graph.node):
        node.name = node.name or f"#{number}"
        if node.op_type == _RUNTIME_NORM and node.domain in ONNX_DOMAINS:
            node.domain = "com.microsoft"
            import_domain(proto, node.domain)
    domains = {node.domain for node in proto.graph.node}.difference(ONNX_DOMAINS)
    for domain in sorted(domains & domain_ways_out().keys()) if domains else ():
        import_domain(proto, domain)  # so that lowering refuses its nodes, with the way out
    require_versions(proto)
    drop_equal_versions(proto)
    try:
        require_finite(proto)
    except ValueError as fault:
        raise ModelError(f"the model is malformed: {printable(str(fault))}") from fault
    for tensor in tensors_of(proto.graph):
        load_external(tensor, path)
        require_consistent(tensor)
    for graph in graphs_of(proto.graph):
        make_sparse_dense(graph)
    _require_order(proto.graph)
    notes = (*version_notes(proto), *fix_inputs(proto.graph, shapes))
    try:
        with assumptions_named(notes):
            return _checked(proto), notes
    except ModelError as fault:
        if not shapes:
            raise
        message = f"{fault} (with the shapes of --shape)"
        raise ModelError(message, fault.problems, fault.assumed) from fault


def _modern(proto: ModelProto) -> ModelProto:
    """Convert the checked model to an opset that is lowered."""
    converted = modern(proto)
    if converted is proto:
        return proto
    try:
        return _checked(converted)
    except ModelError as fault:
        problem = f"the model uses opset {opset_of(proto)}, which could not be converted"
        raise ModelError(f"{problem}: {fault}") from fault


def _flat(proto: ModelProto, fixed_names: Collection[str] = ()) -> FlatModel:
    """Inline the model's functions, remove control flow, and bring the nodes from inside into plain forms.

    The values `fixed_names` keep their names.
    """
    try:
        plain = inlined(_without_lowered_functions(proto))
        plain = plain if plain is proto else _checked(plain)
    except (RuntimeError, ValueError, TypeError, *_ONNX_FAULTS) as fault:
        raise ModelError(f"a function of the model is malformed: {_first_lines(str(fault))}") from fault
    flat = FlatModel(plain)
    if any(map(is_control, plain.graph.node)):
        flat = flattened(plain, Folder(model_of(plain, ())))
        flat = replace(flat, proto=_checked(flat.proto))
    if flat.proto is not proto:  # results keep their names, for the reference names states after them
        nodes = (node for node in flat.proto.graph.node if node.op_type != "Identity")
        in_plain_forms(flat.proto, {it for node in nodes for it in node.output}.union(fixed_names))
    return flat


def _without_lowered_functions(proto: ModelProto) -> ModelProto:
    """The model without the functions whose nodes an extension lowers; only the reference needs them."""
    functions = [it for it in proto.functions if it.name not in added_for("lowerings", it.domain)]
    if len(functions) == len(proto.functions):
        return proto
    result = copy_of(proto)
    refill(result.functions, functions)
    return result


def _typed(proto: ModelProto) -> TypedModel:
    """Convert the model to supported element types."""
    typed_model = typed(proto)
    if typed_model.proto is proto:
        return typed_model
    try:
        return replace(typed_model, proto=_checked(typed_model.proto))
    except ModelError as fault:
        raise ModelError(f"the model cannot be computed in float32: {fault}") from fault


def _expanded(plain: ModelProto) -> tuple[EntryModel, dict[str, str]]:
    """Replace composite operators, and repeat image operators for each entry of a batch.

    Also returns, by node label, why a node could not be replaced.
    """
    require_all_bounded(_infos(plain))
    expanded, refusals, folded_with = plain, dict[str, str](), dict[str, str]()
    for _ in range(_MAX_ROUNDS):  # rules need shapes that follow from the nodes of other rules
        before = refusals
        smaller, refusals = expand(expanded, opset_of(expanded), _infos(expanded))
        expanded = expanded if smaller is expanded else _checked(smaller)
        if not refusals:
            break
        if refusals == before:  # the lacking shapes may follow from constants that nodes compute
            if refusals == folded_with:
                break
            expanded = _checked(with_small_constants(expanded, model_of(expanded, ())))
            folded_with = refusals
    divided = by_entry(expanded, _infos(expanded))
    if divided.proto is expanded:
        return divided, refusals
    checked = _checked(divided.proto)  # with single images, which some rules need
    final, refusals = expand(checked, opset_of(checked), _infos(checked))
    return replace(divided, proto=checked if final is checked else _checked(final)), refusals


def _infos(proto: ModelProto) -> dict[str, Info]:
    """Shape and type of the values of a model, by name."""
    values = (*proto.graph.value_info, *proto.graph.input, *proto.graph.output)
    return {value.name: info_of(value) for value in values}


def _require_text(proto: ModelProto) -> None:
    """Raise ModelError for a name that is not UTF-8: protobuf returns it as bytes."""
    graph = proto.graph
    names: list[object] = [graph.name, *(entry.domain for entry in proto.opset_import)]
    for each in (*graphs_of(graph), *proto.functions):
        for node in each.node:
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [attribute.name for attribute in node.attribute]
    names += [tensor.name for tensor in tensors_of(graph)]
    for each in graphs_of(graph):
        for value in (*each.input, *each.output, *each.value_info):
            names += [value.name, *(size.dim_param for size in value.type.tensor_type.shape.dim)]
    if not all(isinstance(name, str) for name in names):
        raise ModelError("a name in the model is not UTF-8 text: the file is damaged")


def _require_order(graph: GraphProto) -> None:
    """Raise ModelError unless every value has one producer, before its readers."""
    available: set[str] = {value.name for value in graph.input}
    if len(available) != len(graph.input):
        raise ModelError("two graph inputs have the same name")
    initializers = {tensor.name for tensor in graph.initializer}
    if len(initializers) != len(graph.initializer):
        raise ModelError("two initializers have the same name")
    available |= initializers
    ever = available | {name for node in graph.node for name in node.output}
    for position, node in enumerate(graph.node):
        for name in node.input:
            if name and name not in available:
                why = "is made only later: the nodes form a cycle or are out of order"
                raise ModelError(
                    f"node {label_of(node, position)} ({printable(node.op_type)}) reads {printable(name)!r}, "
                    f"which {why if name in ever else 'nothing makes: an input or initializer is missing'}"
                )
        for name in node.output:
            if name and name in available:
                raise ModelError(
                    f"node {label_of(node, position)} makes {printable(name)!r}, which exists already"
                )
            if name:
                available.add(name)
    for value in graph.output:
        if value.name not in available:
            raise ModelError(f"graph output {printable(value.name)!r} is never made")
        if value.type.WhichOneof("value") is None:
            raise ModelError(
                f"graph output {printable(value.name)!r} has no type: export the model with the types of "
                "its outputs, or add them with onnx.shape_inference.infer_shapes"
            )
    if not graph.output:
        raise ModelError("the graph has no outputs")


def _checked(proto: ModelProto) -> ModelProto:
    """Check the model and infer its shapes. Raises ModelError for models that the ONNX checker refuses.

    The inference does not propagate data: it would expand constants of any size that a file requests.
    """
    _require_known(proto)
    shapeless = [
        value.type.tensor_type
        for value in proto.graph.output
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]
    try:
        for kind in shapeless:  # the checker needs a shape, which inference then finds
            kind.shape.SetInParent()
        onnx.checker.check_model(proto)
        for kind in shapeless:
            kind.ClearField("shape")
        return inferred(proto)
    except _ONNX_FAULTS as fault:
        raise ModelError(f"the model is malformed: {_first_lines(str(fault))}") from fault
    except (RuntimeError, ValueError, TypeError, IndexError, UnicodeError) as fault:
        raise ModelError(f"the model cannot be checked: {_first_lines(str(fault))}") from fault


def _require_known(proto: ModelProto) -> None:
    """Raise ModelError naming all nodes of ONNX's domain whose operators are unknown to ONNX."""
    opset = opset_of(proto)
    local = {(function.domain, function.name) for function in proto.functions}
    problems = tuple(
        Problem(label_of(node, at), printable(node.op_type), f"ONNX has no such operator in opset {opset}")
        for at, node in enumerate(proto.graph.node)
        if node.domain in ONNX_DOMAINS
        and (node.domain, node.op_type) not in local
        and not onnx.defs.has(node.op_type, opset, "")
    )
    if problems:
        raise ModelError.unsupported(problems)


def _first_lines(text: str) -> str:
    line = " ".join(text.strip().splitlines()[:3])[:400]
    return "".join(letter if letter.isprintable() else " " for letter in line) or "no reason given"
