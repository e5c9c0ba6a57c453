"""NonMaxSuppression with a fixed number of rows, and an output that counts the rows that ONNX returns.

Rows of -1 follow those that ONNX returns. The reference runs the node as a function of ONNX operators, the
program as the nodes of its rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import (
    ONNX_DOMAINS,
    copy_of,
    function_of,
    import_domain,
    refill,
    unused_name,
)
from mcudeploy.frontend.onnx.rounding import DOMAIN

SUPPRESSION = "NonMaxSuppression"
_DEFAULT_LIMITS = 0, 0.0, -np.inf
"""Number of boxes, overlap and score if the node leaves these inputs out."""


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """The value that has the rows of a node, and the added output that counts them."""

    rows: str
    count: str

    @property
    def note(self) -> str:
        """The note to the user."""
        return (
            f"{printable(self.rows)!r} of NonMaxSuppression has the largest possible number of rows; the "
            f"output {printable(self.count)!r} counts the rows with boxes, the others are -1"
        )


def bound_suppressions(proto: ModelProto) -> tuple[BoundedRows, ...]:
    """Replace the NonMaxSuppression nodes of the main graph in place, and add an output for each count."""
    graph = proto.graph
    nodes, bounded = list[NodeProto](), list[BoundedRows]()
    for node in graph.node:
        nodes.append(copy_of(node))
        if node.op_type != SUPPRESSION or node.domain not in ONNX_DOMAINS or not 2 <= len(node.input) <= 5:
            continue
        _fill_in_limits(graph, nodes[-1])
        nodes[-1].domain = DOMAIN
        rows, count = node.output[0], unused_name(graph, f"{node.output[0]}_count")
        nodes += _counting(graph, rows, count)
        graph.output.append(helper.make_tensor_value_info(count, TensorProto.INT64, [1]))
        bounded.append(BoundedRows(rows, count))
    if not bounded:
        return ()
    refill(graph.node, nodes)
    import_domain(proto, DOMAIN)
    return tuple(bounded)


def counts_of(proto: ModelProto) -> dict[str, str]:
    """The outputs that bound_suppressions adds, by the value whose rows they count."""
    return {it.rows: it.count for it in bound_suppressions(copy_of(proto))}


def _fill_in_limits(graph: GraphProto, node: NodeProto) -> None:
    """Give the node the inputs that it leaves out."""
    node.input.extend([""] * (5 - len(node.input)))
    for at, value in enumerate(_DEFAULT_LIMITS, 2):
        if not node.input[at]:
            node.input[at] = _constant(graph, node.output[0], np.array([value]))


def _constant(graph: GraphProto, of: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    name = unused_name(graph, f"{of}_limit")
    kind = np.int64 if value.dtype.kind == "i" else np.float32
    graph.initializer.append(numpy_helper.from_array(value.astype(kind), name))
    return name


def _counting(graph: GraphProto, rows: str, count: str) -> list[NodeProto]:
    """The nodes that count the rows whose box is not -1: with 1 added, its number is positive."""
    last, one, sizes = (_constant(graph, rows, np.array(value)) for value in ([2], [1], [-1]))
    boxes, above, is_box, flags, total = (f"{count}/{at}" for at in range(5))
    return [
        helper.make_node("Gather", [rows, last], [boxes], f"{count}/boxes", axis=1),
        helper.make_node("Add", [boxes, one], [above], f"{count}/above"),
        helper.make_node("Cast", [above], [is_box], f"{count}/bool", to=TensorProto.BOOL),
        helper.make_node("Cast", [is_box], [flags], f"{count}/flags", to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", [flags], [total], f"{count}/sum", keepdims=1),
        helper.make_node("Cast", [total], [f"{count}/5"], f"{count}/cast", to=TensorProto.INT64),
        helper.make_node("Reshape", [f"{count}/5", sizes], [count], f"{count}/vector"),
    ]


def suppression_function(opset: int) -> FunctionProto:
    """NonMaxSuppression with bounded rows as ONNX operators of any opset that has it, for the reference."""
    text = f"""
    {SUPPRESSION} <center_point_box> (boxes, scores, most, overlap, least) => (y) {{
      first = Constant <value = int64[1] first {{0}}> ()
      second = Constant <value = int64[1] second {{1}}> ()
      third = Constant <value = int64[1] third {{2}}> ()
      columns = Constant <value = int64[1] columns {{3}}> ()
      vector = Constant <value = int64[1] vector {{1}}> ()
      triples = {SUPPRESSION} <center_point_box: int = @center_point_box> (
        boxes, scores, most, overlap, least
      )
      sizes = Shape (scores)
      images = Gather <axis = 0> (sizes, first)
      classes = Gather <axis = 0> (sizes, second)
      count = Gather <axis = 0> (sizes, third)
      wanted = Reshape (most, vector)
      is_fewer = Less (wanted, count)
      each = Where (is_fewer, wanted, count)
      groups = Mul (images, classes)
      rows = Mul (groups, each)
      shape = Concat <axis = 0> (rows, columns)
      none = ConstantOfShape <value = int64[1] filling {{-1}}> (shape)
      all = Concat <axis = 0> (triples, none)
      y = Slice (all, first, rows, first)
    }}
    """
    return function_of(text, DOMAIN, opset)
