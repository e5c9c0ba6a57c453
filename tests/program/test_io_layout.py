"""The order of inputs and outputs in the generated header."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_golden import SOURCE, planned

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import render_model
from mcudeploy.frontend.onnx.values import image_index
from mcudeploy.ir.graph import GraphIO
from mcudeploy.planner.tape.plan_view import PlanView

SAME = np.arange(256, dtype=np.int32)
LAST = np.ascontiguousarray(image_index((8, 8, 4), 4).reshape(-1))


def header(io: GraphIO) -> str:
    program, plan = planned(8)
    graph = replace(plan.graph, outputs=(io,))
    plan = replace(plan, graph=graph)
    calls = {o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output]) for o in graph.operators}
    again = make_program(PlanView(plan, calls), program.prefix, load_board("mps2-an386"))
    return render_model(again, plan, SOURCE)["residual.h"]


@pytest.mark.parametrize(
    ("shape", "dtype", "order", "text"),
    [
        ((1, 256), "int8", SAME, "ONNX sum int8 [1,256] as [8][8][4], in the same order."),
        ((1, 8, 8, 4), "float32", SAME, "ONNX sum float32 [1,8,8,4] as [8][8][4], in the same order."),
        ((1, 4, 8, 8), "int8", LAST, "ONNX sum int8 [1,4,8,8] as [8][8][4], channels last."),
        ((1, 4, 64), "uint8", LAST, "ONNX sum uint8 [1,4,64] as [8][8][4], channels last, less 128."),
    ],
)
def test_layouts(shape: tuple[int, ...], dtype: str, order: np.ndarray, text: str) -> None:
    assert text in header(GraphIO("sum", "sum", shape, dtype, order))


def test_names_end_no_comment() -> None:
    assert "ONNX a_/b_c/_d int8" in header(GraphIO("sum", "a*/b\nc/*d", (1, 256), "int8", SAME))


def test_another_order_is_refused() -> None:
    with pytest.raises(ValueError, match="not in an order"):
        header(GraphIO("sum", "sum", (1, 256), "int8", SAME[::-1].copy()))
