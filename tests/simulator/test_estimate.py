"""The shipped costs of kernels: complete, well formed, and what estimates are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcudeploy.board import list_boards, load_board
from mcudeploy.codegen.bench import all_kernels
from mcudeploy.errors import ConfigError
from mcudeploy.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.interval import Interval
from mcudeploy.ops.conv import Conv2d
from mcudeploy.ops.pool import AveragePoolByRows
from mcudeploy.simulator.estimate import CoreCosts, Work, estimated, load_costs, read_costs, work_of

HEAD = "variant,calls,rows,pixels,windows,outputs,iterations\n"


@pytest.mark.parametrize("board", [board.name for board in list_boards()])
def test_every_board_has_costs_of_every_kernel(board: str) -> None:
    found = load_board(board)
    table = load_costs(found.core).kernels
    kernels = {variant.partition(":")[0] for variant in table}
    needed = {name for name in all_kernels() if found.vectors or not name.endswith("_mve")} - {"feed"}
    assert needed <= kernels


def test_vectors_take_fewer_instructions_than_a_core_without_them() -> None:
    pixels = Work(1, 12, 144, 144 * 64, 144 * 64, 144 * 64 * 64)
    with_vectors = pixels.times(load_costs("cortex-m55").of("conv2d_s8_1x1_mve"))
    dsp, plain = (pixels.times(load_costs(core).of("conv2d_s8_1x1")) for core in ("cortex-m4", "cortex-m0"))
    assert 3 * with_vectors < dsp < plain


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("add_s8,1,2,3,4,5", "has no costs"),
        ("add_s8,1,2,3,4,5,many", "has no costs"),
        ("add_s8,1,2,3,4,5,-1", "no positive numbers"),
        ("add_s8,1,2,3,4,5,inf", "no positive numbers"),
        ("add_s8,0,0,0,0,0,0", "no positive numbers"),
        ("add_s8,1,2,3,4,5,6\nadd_s8,1,2,3,4,5,6", "twice"),
    ],
)
def test_a_damaged_table_is_refused(line: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "core.csv").write_text(HEAD + line + "\n")
    with pytest.raises(ConfigError, match=why):
        read_costs(tmp_path / "core.csv")


def test_a_core_without_a_table_is_named_with_those_that_have_one() -> None:
    with pytest.raises(ConfigError, match=r"no costs of kernels on cortex-a53; .*cortex-m4"):
        load_costs("cortex-a53")


def graph_of(op: Conv2d | AveragePoolByRows, shape: tuple[int, int, int]) -> Graph:
    quantization = Quantization(0.1, 0)
    x = Tensor("x", shape, DType.INT8, quantization)
    y = Tensor("y", op.loops((shape,)).output_shape(), DType.INT8, quantization)
    graph = object.__new__(Graph)  # its borders do not matter here
    for name, value in (("tensors", {"x": x, "y": y}), ("operators", (Operator("op", op, ("x",), "y"),))):
        object.__setattr__(graph, name, value)
    return graph


def test_work_is_counted_by_rows_of_the_output_or_of_the_input_that_is_taken_in() -> None:
    conv = graph_of(Conv2d(16, (3, 3), pads=(1, 1, 1, 1)), (8, 6, 4))
    (operator,) = conv.operators
    assert work_of(conv, operator, conv.loops(operator), Interval(2, 4)) == Work(
        1, 2, 12, 12 * 36, 12 * 16, 12 * 36 * 16
    )
    mean = graph_of(AveragePoolByRows(), (8, 6, 4))
    (operator,) = mean.operators
    assert work_of(mean, operator, mean.loops(operator), Interval(2, 4)) == Work(1, 2, 12, 12, 4, 48)


def test_a_kernel_that_the_table_lacks_is_named() -> None:
    graph = graph_of(AveragePoolByRows(), (8, 6, 4))
    (operator,) = graph.operators
    call = operator.op.kernel(operator, (graph.tensors["x"],), graph.tensors["y"])
    time = estimated(CoreCosts("cortex-m4", {}))(graph, ())
    with pytest.raises(ConfigError, match=r"cortex-m4 lack avgpool_s8_by_rows: .*cost_table\.py"):
        time(operator, call, Interval(0, 1))
