"""From a file to a checked Model. Every fault of the file ends in a ModelError that names its cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, shape_inference

from mcudeploy.common.errors import ModelError, Problem, UsageError
from mcudeploy.frontend.constants import Constant
from mcudeploy.frontend.decompose import expand, inlined, require_finite
from mcudeploy.frontend.element_types import Typed, typed
from mcudeploy.frontend.model import MAX_TENSOR_ELEMENTS, MAX_TOTAL_ELEMENTS, Attribute, Info, Model, Node
from mcudeploy.frontend.names import printable
from mcudeploy.frontend.parsing import is_tflite, parse
from mcudeploy.frontend.shapes import NO_SHAPES, Shapes, fix_inputs
from mcudeploy.frontend.sparse import write_out
from mcudeploy.frontend.tensors import array_of, load_external, require_consistent, tensors_of
from mcudeploy.frontend.versions import modern, require_versions

_ONNX_FAULTS = (onnx.checker.ValidationError, shape_inference.InferenceError)
_ONNX_DOMAINS = ("", "ai.onnx")


def read(path: Path, shapes: Shapes = NO_SHAPES) -> Model:
    """The checked model in the file, its inputs of the given `shapes`. Raises ModelError naming what is wrong
    with it, and UsageError for shapes that are not the model's.
    """
    parsed = parse(path)
    proto, notes = _sound(parsed.proto, path, shapes)
    own = _values(parsed.proto.graph)
    found = _typed(_inlined(_modern(proto)))
    plain = _expanded(found.proto)
    return replace(
        _model(plain, (*notes, *found.notes)),
        refusals=parsed.refusals,
        made=frozenset(_values(plain.graph) - own),
        file_types=found.types,
    )


def read_proto(path: Path, shapes: Shapes = NO_SHAPES) -> tuple[ModelProto, tuple[str, ...]]:
    """The checked model in the file, in an operator set that is lowered, all tensors inside, with inferred
    shapes; and notes.

    Raises ModelError naming what is wrong with the file, and UsageError for `shapes` that are not the
    model's.
    """
    parsed = parse(path)
    if parsed.refusals:
        nodes = {node.name: node.op_type for node in parsed.proto.graph.node}
        raise ModelError.unsupported(
            tuple(Problem(label, nodes[label], why) for label, why in parsed.refusals.items())
        )
    proto, notes = _sound(parsed.proto, path, shapes)
    return _modern(proto), notes


def _values(graph: GraphProto) -> set[str]:
    """The names of all values that nodes make."""
    return {name for node in graph.node for name in node.output}


def _sound(proto: ModelProto, path: Path, shapes: Shapes) -> tuple[ModelProto, tuple[str, ...]]:
    _require_text(proto)
    for number, node in enumerate(proto.graph.node):
        node.name = node.name or f"#{number}"
    require_versions(proto)
    try:
        require_finite(proto)
    except ValueError as fault:
        raise ModelError(f"the model is malformed: {printable(str(fault))}") from fault
    for tensor in tensors_of(proto.graph):
        load_external(tensor, path)
        require_consistent(tensor)
    write_out(proto.graph)
    _require_order(proto.graph)
    if shapes and is_tflite(path):
        raise UsageError(f"--shape is for ONNX files: {path.name} has fixed shapes, convert it anew")
    notes = fix_inputs(proto.graph, shapes)
    try:
        return _checked(proto), notes
    except ModelError as fault:
        if not shapes:
            raise
        raise ModelError(f"{fault} (with the shapes of --shape)", fault.problems) from fault


def _modern(proto: ModelProto) -> ModelProto:
    """The checked model in an operator set that is lowered."""
    converted = modern(proto)
    if converted is proto:
        return proto
    try:
        return _checked(converted)
    except ModelError as fault:
        found = f"the model uses opset {opset_of(proto)}, which could not be converted"
        raise ModelError(f"{found}: {fault}") from fault


def _inlined(proto: ModelProto) -> ModelProto:
    """The model without functions of its own."""
    try:
        plain = inlined(proto)
        return plain if plain is proto else _checked(plain)
    except (RuntimeError, ValueError, TypeError, *_ONNX_FAULTS) as fault:
        raise ModelError(f"a function of the model is malformed: {_first_lines(str(fault))}") from fault


def _typed(proto: ModelProto) -> Typed:
    """The model in element types that are computed."""
    found = typed(proto)
    if found.proto is proto:
        return found
    try:
        return replace(found, proto=_checked(found.proto))
    except ModelError as fault:
        raise ModelError(f"the model cannot be computed in float32: {fault}") from fault


def _expanded(plain: ModelProto) -> ModelProto:
    """The model without operators that are made of others."""
    values = (*plain.graph.value_info, *plain.graph.input, *plain.graph.output)
    infos = {value.name: info_of(value) for value in values}
    _require_bounded(infos)
    expanded = expand(plain, opset_of(plain), infos)
    return plain if expanded is plain else _checked(expanded)


def _require_bounded(infos: Mapping[str, Info]) -> None:
    """Raises ModelError for a tensor that no microcontroller holds."""
    for info in infos.values():
        if info.shape is not None and prod(info.shape) > MAX_TENSOR_ELEMENTS:
            raise ModelError(
                f"tensor {printable(info.name)!r} has the shape {list(info.shape)}; "
                f"the limit is {MAX_TENSOR_ELEMENTS} elements"
            )


def _require_text(proto: ModelProto) -> None:
    """Every name is text: protobuf hands out what is not UTF-8 as bytes."""
    graph = proto.graph
    names: list[object] = [graph.name, *(entry.domain for entry in proto.opset_import)]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    names += [tensor.name for tensor in tensors_of(graph)]
    for value in (*graph.input, *graph.output, *graph.value_info):
        names += [value.name, *(size.dim_param for size in value.type.tensor_type.shape.dim)]
    if not all(isinstance(name, str) for name in names):
        raise ModelError("a name in the model is not UTF-8 text: the file is damaged")


def _require_order(graph: GraphProto) -> None:
    """Every value has one producer that comes before its readers."""
    made: set[str] = {value.name for value in graph.input}
    if len(made) != len(graph.input):
        raise ModelError("two graph inputs have the same name")
    initializers = {tensor.name for tensor in graph.initializer}
    if len(initializers) != len(graph.initializer):
        raise ModelError("two initializers have the same name")
    made |= initializers
    ever = made | {name for node in graph.node for name in node.output}
    for position, node in enumerate(graph.node):
        for name in node.input:
            if name and name not in made:
                why = "is made only later: the nodes form a cycle or are out of order"
                raise ModelError(
                    f"node {_label(node, position)} ({printable(node.op_type)}) reads {printable(name)!r}, "
                    f"which {why if name in ever else 'nothing makes: an input or initializer is missing'}"
                )
        for name in node.output:
            if name and name in made:
                raise ModelError(
                    f"node {_label(node, position)} makes {printable(name)!r}, which exists already"
                )
            if name:
                made.add(name)
    for value in graph.output:
        if value.name not in made:
            raise ModelError(f"graph output {printable(value.name)!r} is never made")
        if value.type.WhichOneof("value") is None:
            raise ModelError(
                f"graph output {printable(value.name)!r} has no type: export the model with the types of "
                "its outputs, or add them with onnx.shape_inference.infer_shapes"
            )
    if not graph.output:
        raise ModelError("the graph has no outputs")


def _checked(proto: ModelProto) -> ModelProto:
    """The model with inferred shapes. Raises ModelError for what the ONNX checker refuses.

    Without data propagation: it would write out every element of a constant that a file asks for.
    """
    _require_known(proto)
    shapeless = [
        value.type.tensor_type
        for value in proto.graph.output
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]
    try:
        for kind in shapeless:  # the checker wants a shape, inference finds it
            kind.shape.SetInParent()
        onnx.checker.check_model(proto)
        for kind in shapeless:
            kind.ClearField("shape")
        inferred = shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, shape_inference.InferenceError) as fault:
        raise ModelError(f"the model is malformed: {_first_lines(str(fault))}") from fault
    except (RuntimeError, ValueError, TypeError, IndexError, UnicodeError) as fault:
        raise ModelError(f"the model cannot be checked: {_first_lines(str(fault))}") from fault
    return inferred


def _require_known(proto: ModelProto) -> None:
    """Raises ModelError naming all nodes of ONNX's own domain with an operator that ONNX does not know."""
    opset = opset_of(proto)
    local = {(function.domain, function.name) for function in proto.functions}
    problems = tuple(
        Problem(_label(node, at), printable(node.op_type), f"ONNX has no such operator in opset {opset}")
        for at, node in enumerate(proto.graph.node)
        if node.domain in _ONNX_DOMAINS
        and (node.domain, node.op_type) not in local
        and not onnx.defs.has(node.op_type, opset, "")
    )
    if problems:
        raise ModelError.unsupported(problems)


def _first_lines(text: str) -> str:
    line = " ".join(text.strip().splitlines()[:3])[:400]
    return "".join(letter if letter.isprintable() else " " for letter in line) or "no reason given"


def _label(node: NodeProto, position: int) -> str:
    """What messages call a node."""
    return printable(node.name) or f"#{position}"


def _model(proto: ModelProto, notes: tuple[str, ...]) -> Model:
    graph = proto.graph
    constants = {tensor.name: Constant(array_of(tensor)) for tensor in graph.initializer}
    infos = {value.name: info_of(value) for value in (*graph.value_info, *graph.input, *graph.output)}
    elements = 0
    _require_bounded(infos)
    for info in infos.values():
        size = prod(info.shape) if info.shape is not None else 0
        elements += size if info.name not in constants else 0
    if elements > MAX_TOTAL_ELEMENTS:
        raise ModelError(
            f"the activations have {elements} elements; the limit is {MAX_TOTAL_ELEMENTS}: "
            "no microcontroller runs such a model"
        )
    for value in graph.input:
        shape = infos[value.name].shape
        if shape is not None and value.name not in constants and any(size < 1 for size in shape):
            raise ModelError(f"input {printable(value.name)!r} has the shape {list(shape)}: no elements")
    return Model(
        name=graph.name,
        opset=opset_of(proto),
        nodes=tuple(_node(node, position) for position, node in enumerate(graph.node)),
        constants=constants,
        inputs=tuple(infos[value.name] for value in graph.input if value.name not in constants),
        outputs=tuple(infos[value.name] for value in graph.output),
        infos=infos,
        notes=notes,
    )


def opset_of(proto: ModelProto) -> int:
    """The version of ONNX's own operators that the model uses."""
    return max((entry.version for entry in proto.opset_import if entry.domain in _ONNX_DOMAINS), default=1)


def info_of(value: onnx.ValueInfoProto) -> Info:
    """Shape (None where any dimension is open) and element type. Raises ModelError for an unknown type."""
    kind = value.type.tensor_type
    shape: tuple[int, ...] | None = None
    if value.type.HasField("tensor_type") and kind.HasField("shape"):
        sizes = [item.dim_value if item.HasField("dim_value") else -1 for item in kind.shape.dim]
        shape = tuple(sizes) if min(sizes, default=0) >= 0 else None
    try:
        dtype = TensorProto.DataType.Name(kind.elem_type).lower()
    except ValueError as fault:
        raise ModelError(f"{printable(value.name)!r} has an unknown element type") from fault
    return Info(value.name, shape, {"float": "float32", "double": "float64"}.get(dtype, dtype))


def _node(node: NodeProto, position: int) -> Node:
    domain = "" if node.domain == "ai.onnx" else node.domain
    attributes = {item.name: _attribute(item) for item in node.attribute}
    label = node.name or f"#{position}"
    outputs = tuple(node.output)
    if not outputs:
        raise ModelError(f"node {_label(node, position)} ({printable(node.op_type)}) has no outputs")
    return Node(label, node.op_type, domain, tuple(node.input), outputs, attributes, node)


def _attribute(item: AttributeProto) -> Attribute:
    match item.type:
        case AttributeProto.INT:
            return int(item.i)
        case AttributeProto.FLOAT:
            return float(item.f)
        case AttributeProto.STRING:
            return bytes(item.s).decode("utf-8", "replace")
        case AttributeProto.INTS:
            return tuple(int(value) for value in item.ints)
        case AttributeProto.FLOATS:
            return tuple(float(value) for value in item.floats)
        case AttributeProto.STRINGS:
            return tuple(bytes(value).decode("utf-8", "replace") for value in item.strings)
        case AttributeProto.TENSOR:
            return array_of(item.t)
        case _:
            return None
