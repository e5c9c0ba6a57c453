"""Models cut into stretches: every cut gives the same outputs, and the cuts chosen are the best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzzing.generate import draw
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import DeployError, FitError, ModelError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target
from mcudeploy.extensions.several_boards.board_cuts import board_partition, costs_on_board
from mcudeploy.extensions.several_boards.chain_firmware import built, planned
from mcudeploy.extensions.several_boards.link import UartLink, parse_link
from mcudeploy.extensions.several_boards.run import ChainRequest, run_chain
from mcudeploy.extensions.several_boards.stages import operators_without_views, stages_of
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
HOST = Target(load_board("host"))
LINE = parse_link("uart:2M")
QUICK = Options(time_limit=0.5)


def _write(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def _two_branches() -> onnx.ModelProto:
    """Return two convolutions in turn, two beside them, and their sum: a small value between each two."""
    rng = np.random.default_rng(1)
    shapes = {"wa": (8, 4, 4, 4), "wb": (8, 8, 5, 5), "wc": (8, 4, 4, 4), "wd": (8, 8, 5, 5)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "wa"], ["a"], strides=[4, 4]),
        helper.make_node("Conv", ["a", "wb"], ["b"], pads=[2, 2, 2, 2]),
        helper.make_node("Conv", ["x", "wc"], ["c"], strides=[4, 4]),
        helper.make_node("Conv", ["c", "wd"], ["d"], pads=[2, 2, 2, 2]),
        helper.make_node("Add", ["b", "d"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 32, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])
    graph = helper.make_graph(nodes, "branches", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("seed", range(40, 42))
def test_random_graphs_on_three_boards_are_verified(seed: int, tmp_path: Path) -> None:
    path = _write(draw(seed).model, tmp_path)
    try:
        model = load_model(path)
    except ModelError:
        pytest.skip("refused by name")
    boards = min(3, len(operators_without_views(model.graph)))
    if boards < 2:
        pytest.skip("one operator")
    request = ChainRequest((HOST,) * boards, LINE, 2)
    device_run = run_chain(path, request, QUICK, inputs=[], expected=[], progress=SILENT)
    assert not device_run.verdict.reasons, device_run.verdict.reasons


def test_payloads_hold_what_later_boards_read() -> None:
    model = load_model(EXAMPLE)
    count = len(operators_without_views(model.graph))
    stages = stages_of(model, [range(5), range(5, 6), range(6, count)], [HOST.board] * 3)
    assert [tensor.name for tensor in stages[0].received.tensors] == [model.graph.inputs[0].tensor]
    for one, other in pairwise(stages):
        assert one.sent == other.received
    deployment = [operator.name for stage in stages for operator in stage.model.graph.operators]
    assert len(set(deployment)) == len(deployment)
    assert len({stage.model.sha256 for stage in stages}) == 3


def test_parts_have_the_kernels_of_their_boards() -> None:
    boards = [load_board("mps3-an547"), load_board("mps2-an386")]
    model = load_model(EXAMPLE)
    by_vectors, others = stages_of(model, _halves(model), boards)
    assert all(call.isa is Isa.MVE for call in by_vectors.model.calls.values())
    assert not any(call.isa is Isa.MVE for call in others.model.calls.values())


def _halves(model: Model) -> list[range]:
    return [range(3), range(3, len(operators_without_views(model.graph)))]


class _Costs:
    """Expected seconds of stretches, from estimates, payloads, and what lines take of the cores."""

    def __init__(self, model: Model, boards: list[Board], line: UartLink) -> None:
        self.parts = [costs_on_board(model, board, 5.0) for board in boards]
        self.boards, self.line, self.model = boards, line, model
        self.count = len(self.parts[0].graph.names)

    def longest(self, parts: Sequence[Sequence[int]]) -> float:
        stages = stages_of(self.model, parts, self.boards)
        payloads = [stage.sent.size_bytes for stage in stages[:-1]]
        work = [
            sum(costs.ticks(operator, 1) for operator in part) / board.clock_hz
            + self.line.core_seconds(board, *ends)
            for part, costs, board, ends in zip(
                parts, self.parts, self.boards, pairwise((0, *payloads, 0)), strict=True
            )
        ]
        return max(*work, *(size / self.line.bytes_per_second for size in payloads))

    def least(self) -> float:
        """The least longest time of all cuts, by trying them."""
        cuts = combinations(range(1, self.count), len(self.boards) - 1)
        every = (pairwise((0, *cut, self.count)) for cut in cuts)
        return min(self.longest([range(*bound) for bound in bounds]) for bounds in every)


@pytest.mark.parametrize("link", ["uart:115200", "uart:2M", "uart:10M"])
def test_the_longest_stage_or_transfer_is_as_short_as_can_be(link: str) -> None:
    model, line = load_model(EXAMPLE), parse_link(link)
    boards = [load_board(name) for name in ("stm32f405", "mps2-an505", "stm32f405")]
    partition, costs = board_partition(model, boards, line, 5.0), _Costs(model, boards, line)
    assert sorted(it for part in partition.operators for it in part) == list(range(costs.count))
    assert partition.frame_seconds == pytest.approx(costs.longest(partition.operators))
    assert partition.frame_seconds == pytest.approx(costs.least())


def test_regions_of_groups_by_depth_run_where_branches_are_written_in_turn(tmp_path: Path) -> None:
    """Two branches, one written after the other: by depth, a stretch of the file cannot be a region."""
    path = _write(_two_branches(), tmp_path)
    model = load_model(path)
    boards = [HOST.board] * 2
    partition = board_partition(model, boards, parse_link("uart:10M"), 5.0)
    count = len(operators_without_views(model.graph))
    first = set(partition.operators[0])
    assert first != set(range(len(first))) and len(first) < count
    asked = ChainRequest((HOST, HOST), parse_link("uart:10M"), 2)
    found = run_chain(path, asked, QUICK, inputs=[], expected=[], progress=SILENT)
    assert not found.verdict.reasons, found.verdict.reasons


def test_weights_that_fit_no_stretches_are_an_error() -> None:
    model = load_model(EXAMPLE)
    small = load_board("stm32f405")
    small = small.model_copy(update={"flash": small.flash.model_copy(update={"bytes": 46 * 1024})})
    with pytest.raises(FitError, match="do not fit the flash of these boards"):
        board_partition(model, [small, small], LINE, 5.0)
    boards = [small, load_board("stm32f405")]
    partition, costs = board_partition(model, boards, LINE, 5.0), _Costs(model, boards, LINE)
    assert 0 < sum(costs.parts[0].needs.weights[it] for it in partition.operators[0]) <= 14 * 1024


def test_fewer_operators_than_boards_are_an_error() -> None:
    model = load_model(EXAMPLE)
    count = len(operators_without_views(model.graph))
    with pytest.raises(FitError, match=f"{count} operators cannot be cut for {count + 1} boards"):
        board_partition(model, [HOST.board] * (count + 1), LINE, 5.0)


def test_payloads_larger_than_memory_are_an_error() -> None:
    model = load_model(EXAMPLE)
    board = load_board("stm32f405")
    memories = tuple(it.model_copy(update={"bytes": 16 * 1024}) for it in board.memories)
    target = Target(board.model_copy(update={"memories": memories}), emulate=True)
    stage = stages_of(model, _halves(model), [HOST.board] * 2)[0]
    needed = r"board 1 \(stm32f405\): no fast memory has room for payloads of [\d,]+ bytes"
    with pytest.raises(FitError, match=needed):
        planned(0, stage, target, QUICK, SILENT)


def test_payloads_take_room_from_the_arena() -> None:
    """The linker agrees: what the planner allows fits, with the link's own memory."""
    model = load_model(EXAMPLE)
    target = Target(load_board("stm32f405"), emulate=True)
    stages = stages_of(model, _halves(model), [HOST.board] * 2)
    member = planned(0, stages[0], target, QUICK, SILENT)
    firmware = built(member, 2, LINE)
    arenas = member.deployment.plan.layout.arena_bytes
    assert member.home == "ccm"
    own = firmware.sizes.static_ram_bytes - arenas - member.buffer_bytes
    assert own <= 656 + 2048


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uart", "write uart and a rate"),
        ("uart:2G", "write uart and a rate"),
        ("spi:8M", "no driver for spi"),
        ("uart:300", "a rate is from"),
        ("uart:1000M", "a rate is from"),
    ],
)
def test_links_that_cannot_be_are_usage_errors(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_link(text)


def test_links_are_read() -> None:
    assert [parse_link(text).baud for text in ("uart:921600", "uart:2M", "uart:1.5M", "uart:115.2k")] == [
        921_600, 2_000_000, 1_500_000, 115_200,
    ]  # fmt: skip


def test_boards_without_ports_are_refused() -> None:
    model = load_model(EXAMPLE)
    stage = stages_of(model, _halves(model), [HOST.board] * 2)[0]
    member = planned(0, stage, Target(load_board("riscv32-virt")), QUICK, SILENT)
    with pytest.raises(DeployError, match="cannot be one of a chain"):
        built(member, 2, LINE)
