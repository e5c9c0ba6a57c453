"""NonMaxSuppression with a fixed number of rows: those that ONNX returns, then rows of -1, and their count.

The reference runs the node as a function of ONNX operators, the program as the nodes of its rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.frontend.onnx.names import printable
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, unused_name
from mcudeploy.frontend.onnx.rounding import DOMAIN

SUPPRESSION = "NonMaxSuppression"
_NO_LIMITS = 0, 0.0, -np.inf
"""Number of boxes, shared part and score of inputs that are left out."""


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """The value of the rows that a node returns, and the output of their number."""

    rows: str
    count: str

    @property
    def note(self) -> str:
        """The note to the user."""
        return (
            f"{printable(self.rows)!r} of NonMaxSuppression has as many rows as it can have; the output "
            f"{printable(self.count)!r} is the number of those that it has, the others are -1"
        )


def bound_suppressions(proto: ModelProto) -> tuple[BoundedRows, ...]:
    """Replace the nodes of the main graph in place, and add an output for the count of each."""
    graph = proto.graph
    nodes, bounded = list[NodeProto](), list[BoundedRows]()
    for node in graph.node:
        nodes.append(NodeProto.FromString(node.SerializeToString()))
        if node.op_type != SUPPRESSION or node.domain not in ONNX_DOMAINS or not 2 <= len(node.input) <= 5:
            continue
        _state_limits(graph, nodes[-1])
        nodes[-1].domain = DOMAIN
        rows, count = node.output[0], unused_name(graph, f"{node.output[0]}_count")
        nodes += _counting(graph, rows, count)
        graph.output.append(helper.make_tensor_value_info(count, TensorProto.INT64, [1]))
        bounded.append(BoundedRows(rows, count))
    if not bounded:
        return ()
    del graph.node[:]
    graph.node.extend(nodes)
    if all(entry.domain != DOMAIN for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return tuple(bounded)


def counts_of(proto: ModelProto) -> dict[str, str]:
    """The outputs that bound_suppressions adds, by the value whose rows they count."""
    copy = ModelProto()
    copy.CopyFrom(proto)
    return {it.rows: it.count for it in bound_suppressions(copy)}


def _state_limits(graph: GraphProto, node: NodeProto) -> None:
    """Give the node the inputs that it leaves out."""
    node.input.extend([""] * (5 - len(node.input)))
    for at, value in enumerate(_NO_LIMITS, 2):
        if not node.input[at]:
            node.input[at] = _constant(graph, node.output[0], np.array([value]))


def _constant(graph: GraphProto, of: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    name = unused_name(graph, f"{of}_limit")
    kind = np.int64 if value.dtype.kind == "i" else np.float32
    graph.initializer.append(numpy_helper.from_array(value.astype(kind), name))
    return name


def _counting(graph: GraphProto, rows: str, count: str) -> list[NodeProto]:
    """The number of rows whose box is none of -1: with 1 added, all of them are positive."""
    last, one, sizes = (_constant(graph, rows, np.array(value)) for value in ([2], [1], [-1]))
    boxes, above, least, flags, total = (f"{count}/{at}" for at in range(5))
    return [
        helper.make_node("Gather", [rows, last], [boxes], f"{count}/boxes", axis=1),
        helper.make_node("Add", [boxes, one], [above], f"{count}/above"),
        helper.make_node("Cast", [above], [least], f"{count}/bool", to=TensorProto.BOOL),
        helper.make_node("Cast", [least], [flags], f"{count}/flags", to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", [flags], [total], f"{count}/sum", keepdims=1),
        helper.make_node("Cast", [total], [f"{count}/5"], f"{count}/cast", to=TensorProto.INT64),
        helper.make_node("Reshape", [f"{count}/5", sizes], [count], f"{count}/vector"),
    ]


def suppression_function(opset: int) -> FunctionProto:
    """The node as ONNX operators, for the reference; of any opset that has it."""

    def constant(name: str, value: int | list[int]) -> NodeProto:
        tensor = numpy_helper.from_array(np.array(value, np.int64), name)
        return helper.make_node("Constant", [], [name], value=tensor)

    filling = numpy_helper.from_array(np.array([-1], np.int64), "filling")
    nodes = [
        *(constant(name, [at]) for at, name in enumerate(("first", "second", "third"))),
        constant("columns", [3]),
        constant("vector", [1]),
        helper.make_node(SUPPRESSION, ["boxes", "scores", "most", "overlap", "least"], ["triples"]),
        helper.make_node("Shape", ["scores"], ["sizes"]),
        *(
            helper.make_node("Gather", ["sizes", at], [name], axis=0)
            for at, name in (("first", "images"), ("second", "classes"), ("third", "count"))
        ),
        helper.make_node("Reshape", ["most", "vector"], ["wanted"]),
        helper.make_node("Less", ["wanted", "count"], ["is_fewer"]),
        helper.make_node("Where", ["is_fewer", "wanted", "count"], ["each"]),
        helper.make_node("Mul", ["images", "classes"], ["groups"]),
        helper.make_node("Mul", ["groups", "each"], ["rows"]),
        helper.make_node("Concat", ["rows", "columns"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["none"], value=filling),
        helper.make_node("Concat", ["triples", "none"], ["all"], axis=0),
        helper.make_node("Slice", ["all", "first", "rows", "first"], ["y"]),
    ]
    centred = nodes[5].attribute.add(name="center_point_box", ref_attr_name="center_point_box")
    centred.type = centred.INT
    inputs = ["boxes", "scores", "most", "overlap", "least"]
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_function(DOMAIN, SUPPRESSION, inputs, ["y"], nodes, opsets, ["center_point_box"])
