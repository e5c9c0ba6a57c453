"""The shipped costs of kernels: complete and well-formed, and the loop counts of estimates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_params import header_fields

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.codegen.bench import all_kernels, kernels_for
from mcudeploy.common.errors import ConfigError
from mcudeploy.costs import estimate
from mcudeploy.costs.estimate import (
    COSTS,
    CoreCosts,
    board_costs,
    counts_of,
    estimated,
    load_costs,
    read_costs,
)
from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import TWICE, ConstantArray, KernelCall
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_twice import TWINS
from mcudeploy.ops.pool.pool import AveragePoolByRows

COSTS_OF = sorted(path.stem for path in COSTS.glob("*.csv"))
HEAD = "variant,loop,instructions\n"


@pytest.mark.parametrize("board", [board.name for board in list_boards()])
def test_every_board_has_costs_of_every_kernel(board: str) -> None:
    found = load_board(board)
    table = load_costs(found.core).kernels
    kernels = {variant.partition(":")[0] for variant in table}
    needed = {name.removesuffix(TWICE) for name in kernels_for(found.isa)}
    assert needed - {"feed", "conv2d_s8_1x1_sums"} <= kernels  # the latter is part of fused_rows


def test_kernels_with_the_name_of_a_twin_are_one() -> None:
    """Another one would have the costs of the kernel without the ending."""
    names = {name for name in all_kernels() if name.endswith(TWICE)}
    assert names == {name + TWICE for name in TWINS}


def test_a_kernel_has_the_same_loops_on_every_core() -> None:
    """Otherwise a table is older than the kernel."""
    loops: dict[str, set[str]] = {}
    for core in COSTS_OF:
        for variant, costs in load_costs(core).kernels.items():
            assert loops.setdefault(variant, set(costs)) == set(costs), f"{variant} on {core}"


@pytest.mark.parametrize("core", COSTS_OF)
def test_kernels_with_an_int8_activation_have_the_cost_of_clipping(core: str) -> None:
    for variant, loops in load_costs(core).kernels.items():
        kernel = variant.partition(":")[0]
        fields = () if "_s16" in kernel else header_fields(kernel)  # these narrow every result
        if any((it.name, it.type) == ("act.min", "int32_t") for it in fields):
            assert "clipped" in loops, variant


@pytest.mark.parametrize(
    ("board", "flag", "isa"),
    [
        ("mps2-an386", "-mthumb", Isa.DSP),
        ("mps2-an505", "-mthumb", Isa.DSP),
        ("mps2-an505", "-mcpu=cortex-m33+nodsp", Isa.ANY),
        ("mps3-an547", "-mthumb", Isa.MVE),
        ("mps2-an385", "-mthumb", Isa.ANY),
        ("riscv32-virt", "-mthumb", Isa.ANY),
        ("riscv32-virt-v", "-mthumb", Isa.RVV),
    ],
)
def test_core_and_flags_give_the_instructions_of_kernels(board: str, flag: str, isa: Isa) -> None:
    assert load_board(board).model_copy(update={"cpu_flags": (flag,)}).isa is isa


def pointwise_graph(rows: int, cols: int, depth: int) -> Graph:
    return graph_of(Conv2d(depth), (rows, cols, depth), {"weights": np.ones((depth, 1, 1, depth), np.int8)})


def ticks(core: str, graph: Graph, kernel: str, rows: Interval) -> float:
    (operator,) = graph.operators
    output = graph.tensors["y"]
    calls = operator.op.kernel(operator, graph.input_tensors(operator), output).variants(Isa.MVE)
    (call,) = (each for each in calls if each.variant == kernel)
    return estimated(load_costs(core))(graph, ())(operator, call, rows)


def test_vectors_take_fewer_instructions_than_a_core_without_them() -> None:
    graph, rows = pointwise_graph(12, 12, 64), Interval(0, 12)
    with_vectors = ticks("cortex-m55", graph, "conv2d_s8_1x1_mve", rows)
    dsp, plain = (ticks(core, graph, "conv2d_s8_1x1", rows) for core in ("cortex-m4", "cortex-m0"))
    assert 3 * with_vectors < dsp < plain


def flash_waits(board: Board, graph: Graph, rows: Interval) -> float:
    """Return the ticks of the first kernel of a graph that a board's flash adds, over its read cost."""
    (operator,) = graph.operators
    call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    with_flash = estimated(board_costs(board))(graph, ())(operator, call, rows)
    without = estimated(load_costs(board.core, "cycles"))(graph, ())(operator, call, rows)
    return (with_flash - without) / board.flash.read_cost


def test_weights_are_read_from_flash_once_for_each_block_of_pixels() -> None:
    board, graph = load_board("stm32l4r5"), pointwise_graph(30, 12, 64)
    row, all_rows = (flash_waits(board, graph, Interval(0, rows)) for rows in (1, 30))
    assert 64 * 64 * 12 / 4 < row < 64 * 64 * 12
    assert all_rows == pytest.approx(30 * row, rel=0.1)


def test_a_cache_of_the_constants_reads_them_once_in_each_call() -> None:
    board, graph = load_board("stm32u585"), pointwise_graph(30, 12, 64)
    row, all_rows = (flash_waits(board, graph, Interval(0, rows)) for rows in (1, 30))
    assert 64 * 64 < row == all_rows < 64 * 64 + 64 * 16
    small = board.model_copy(update={"flash": board.flash.model_copy(update={"cache_bytes": 1024})})
    assert flash_waits(small, graph, Interval(0, 30)) > 30 * row


def test_without_a_cache_every_read_waits() -> None:
    flash = load_board("nrf52840").flash
    assert flash.stalls(1000, 0) == flash.stalls(1000, 4) == 750
    cached = load_board("stm32u585").flash
    assert cached.stalls(9000, 4000) == 1000
    assert cached.stalls(90_000, 9000) == 22_500


def test_constants_in_ram_wait_for_no_flash() -> None:
    board, graph, rows = load_board("stm32l4r5"), pointwise_graph(30, 12, 64), Interval(0, 30)
    (operator,) = graph.operators
    call = operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])
    in_ram = estimated(board_costs(board), ("op",))(graph, ())(operator, call, rows)
    assert in_ram == estimated(load_costs(board.core, "cycles"))(graph, ())(operator, call, rows)


def test_instructions_and_boards_without_facts_wait_for_no_flash() -> None:
    assert board_costs(load_board("stm32l4r5"), "instructions") == load_costs("cortex-m4")
    assert board_costs(load_board("mps2-an386")) == load_costs("cortex-m4", "cycles")


def test_a_table_without_reads_of_flash_is_named(caplog: pytest.LogCaptureFixture) -> None:
    estimate._flash_bytes.cache_clear()  # which warns once
    board = load_board("mps3-an547")
    slow = board.flash.model_copy(update={"wait_states": 2.0, "line_bytes": 8})
    costs = board_costs(board.model_copy(update={"flash": slow}))
    assert costs.flash_reads is None and "cortex-m55 do not state how often" in caplog.text


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m7", "cortex-m33"])
def test_kernels_with_weights_read_flash(core: str) -> None:
    read = read_costs(COSTS / f"{core}.csv", "flash_bytes")
    assert read.keys() == load_costs(core).kernels.keys()
    in_training = ("trained", "gradient", "update")  # their weights are in RAM
    without = {name for name, loops in read.items() if not any(loops.values())}
    weights = {name for name in read if name.startswith(("conv2d", "dwconv2d", "lstm", "gru"))}
    assert not {name for name in weights & without if not any(word in name for word in in_training)}


def test_a_row_of_one_pixel_costs_more_than_its_share_of_a_block_of_pixels() -> None:
    """One pixel reads all weights alone; three pixels share one pass."""
    narrow, wide = (
        ticks("cortex-m4", pointwise_graph(30, cols, 64), "conv2d_s8_1x1", Interval(10, 11))
        for cols in (1, 3)
    )
    three_rows = ticks("cortex-m4", pointwise_graph(30, 1, 64), "conv2d_s8_1x1", Interval(9, 12))
    assert 1.5 * wide < 3 * narrow
    assert three_rows == pytest.approx(wide, rel=0.02)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("add_s8,rows", "has no costs"),
        ("add_s8,rows,many", "has no costs"),
        ("add_s8,rows,-1", "-1.0 instructions for rows of add_s8"),
        ("add_s8,rows,inf", "inf instructions"),
        ("add_s8,rows,1\nadd_s8,rows,2", "twice"),
    ],
)
def test_a_damaged_table_is_refused(line: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "core.csv").write_text(HEAD + line + "\n")
    with pytest.raises(ConfigError, match=why):
        read_costs(tmp_path / "core.csv")


def test_a_core_without_a_table_is_named_with_those_that_have_one() -> None:
    with pytest.raises(ConfigError, match=r"no costs of kernels on cortex-a53; .*cortex-m4"):
        load_costs("cortex-a53")


def graph_of(
    op: Conv2d | AveragePoolByRows,
    shape: tuple[int, int, int],
    constants: dict[str, ConstantArray] | None = None,
) -> Graph:
    quantization = Quantization(0.1, 0)
    x = Tensor("x", shape, DType.INT8, quantization)
    y = Tensor("y", op.loops((shape,)).output_shape(), DType.INT8, quantization)
    if constants:
        outputs = y.shape[2]
        constants |= {
            "bias": np.zeros(outputs, np.int32),
            "weight_scale": np.full(outputs, 0.001, np.float32),
        }
    operator = Operator("op", op, ("x",), "y", constants or {})
    graph = object.__new__(Graph)  # inputs and outputs do not matter here
    for name, value in (("tensors", {"x": x, "y": y}), ("operators", (operator,))):
        object.__setattr__(graph, name, value)
    return graph


def test_kernels_that_do_not_count_their_loops_cost_by_the_loop_nest() -> None:
    graph = graph_of(Conv2d(16, (3, 3), pads=(1, 1, 1, 1)), (8, 6, 4))
    (operator,) = graph.operators
    windows = {"pixels": 12, "windows": 12 * 36, "outputs": 12 * 16, "iterations": 12 * 36 * 16}
    loops = graph.loops(operator)
    counts = counts_of(graph.tensors, operator, loops, KernelCall("conv2d_s8"), Interval(2, 4))
    assert counts == {"calls": 1, "rows": 2} | windows


def test_results_are_clipped_once_by_an_operator_that_accumulates() -> None:
    graph = graph_of(AveragePoolByRows(), (8, 6, 4))
    (operator,) = graph.operators
    call = KernelCall("some_s8", {"act.min": 0, "act.max": 127})
    loops = graph.loops(operator)
    assert "clipped" not in counts_of(graph.tensors, operator, loops, call, Interval(2, 4))
    assert counts_of(graph.tensors, operator, loops, call, Interval(6, 8))["clipped"] == 4


def test_a_kernel_that_the_table_lacks_is_named() -> None:
    graph = graph_of(AveragePoolByRows(), (8, 6, 4))
    (operator,) = graph.operators
    call = operator.op.kernel(operator, (graph.tensors["x"],), graph.tensors["y"])
    for table, lacking in (({}, ""), ({"avgpool_s8_by_rows": {"outputs": 1.0}}, r" \(calls\)")):
        time = estimated(CoreCosts("cortex-m4", table))(graph, ())
        with pytest.raises(ConfigError, match=rf"m4 lack avgpool_s8_by_rows{lacking}: .*cost_table\.py"):
            time(operator, call, Interval(0, 1))
