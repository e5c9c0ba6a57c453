"""Streams of a plan: the words of the C kernel, and a judge that refuses any other byte."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from models import quantised_convolutions
from recorder import Rows, made, recording
from test_unit_calls import Case, convolution, convolution_int16, core_and_unit, maximum, mean, reduced

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.extensions.ethos_u.registers import CODE_BITS, LONG, OPERATIONS, SHORT, Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import Touched, check_streams, columns_read, fault_of
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, block_of, unit_steps, window_parts, words_of
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans

pytest.importorskip("ethosu", reason="Vela is not installed: pip install mcudeploy[ethosu]")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return recording(tmp_path_factory.mktemp("kernel"))


@pytest.mark.parametrize("seed", range(24))
def test_the_kernel_makes_these_words(kernel: ctypes.CDLL, seed: int) -> None:
    operator, x, y = convolution(seed)
    call, rng = core_and_unit(operator, x, y)[-1], np.random.default_rng(seed)
    for chance, mixed in ((0.0, False), (0.2, False), (0.6, False), (0.3, True), (1.0, True)):
        gaps = np.cumsum((rng.random(x.shape[0]) < chance) * 16) + 64
        offsets = [int(gap) + row * x.row_bytes for row, gap in enumerate(gaps)]
        if mixed:
            rng.shuffle(offsets)
        expected: list[int | list[int]] = []
        parts = list(window_parts(call, Interval(0, y.shape[0]), offsets.__getitem__, x.row_bytes))
        expected += [part for part in parts if isinstance(part, int)]
        streams = [part for part in parts if isinstance(part, UnitRows)]
        expected += [
            words_of(call, it, (offsets.__getitem__,), lambda row: row * y.row_bytes) for it in streams
        ]
        output = Rows(y, [row * y.row_bytes for row in range(y.shape[0])])
        assert made(kernel, call, [Rows(x, offsets)], output) == expected


def stream_of(
    seed: int, of: Callable[[int], Case] = convolution
) -> tuple[list[int], Touched, Tensor, Tensor]:
    operator, x, y = of(seed)
    call = core_and_unit(operator, x, y)[1]
    (part,) = window_parts(call, Interval(0, y.shape[0]), lambda row: 64 + row * x.row_bytes, x.row_bytes)
    assert isinstance(part, UnitRows)
    at = 1 << 14
    words = words_of(call, part, (lambda row: 64 + row * x.row_bytes,), lambda row: at + row * y.row_bytes)
    reads = tuple(
        Interval(64 + row * x.row_bytes, 64 + (row + 1) * x.row_bytes)
        for row in range(part.reads.lo, part.reads.hi)
    )
    writes = tuple(
        Interval(at + row * y.row_bytes, at + (row + 1) * y.row_bytes) for row in range(y.shape[0])
    )
    columns = columns_read(operator.op.loops((x.shape,)), x.shape)
    constant_bytes, (most, _) = int(call.params["constant_bytes"]), block_of(call, y.shape[0])  # type: ignore[arg-type]
    dilation = getattr(operator.op, "dilation", (1, 1))
    operation = OPERATIONS[int(call.params["operation"]) & CODE_BITS]  # type: ignore[arg-type]
    touched = Touched(reads, columns, writes, constant_bytes, most, dilation, operation)
    return words, replace(touched, value_bytes=y.dtype.size_bytes), x, y


HARMLESS = frozenset({
    *("IFM_ZERO_POINT", "OFM_ZERO_POINT", "OFM_SCALE", "ACTIVATION_MIN", "ACTIVATION_MAX"),  # no bytes
    *("OFM_BLK_HEIGHT_M1", "OFM_BLK_WIDTH_M1", "OFM_BLK_DEPTH_M1", "IFM_IB_END", "AB_START", "ACC_FORMAT"),
    *("BLOCKDEP", "IFM_STRIDE_C", "OFM_STRIDE_C"),  # one operation; channels last
    *("IFM_BASE1", "IFM_BASE3", "OFM_BASE1", "OFM_BASE3", "IFM_HEIGHT1_M1", "OFM_HEIGHT1_M1"),  # of no column
    "IFM_BASE2",  # of a map with one run
})  # fmt: skip
"""Registers whose change moves no byte of this operation."""


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("of", [convolution, maximum, mean, reduced, convolution_int16])
def test_a_changed_register_that_moves_a_byte_is_refused(seed: int, of: Callable[[int], Case]) -> None:
    words, touched, x, y = stream_of(seed, of)
    assert fault_of(words, touched, x.shape, y.shape) is None
    rng, changed = np.random.default_rng(seed), 0
    for number, command in enumerate(decode(words)):
        if command.operates or command.name in HARMLESS:
            continue
        bits = range(6) if command.name == "KERNEL_STRIDE" else rng.integers(0, 12, 4)
        for bit in bits:
            stream = Stream()
            for at, it in enumerate(decode(words)):
                value = it.value ^ (1 << int(bit)) if at == number else it.value
                if it.operates:
                    stream.operate(it.name, it.value)
                else:
                    stream.set(**{it.name: value})
            if _is_manner(command.name, int(bit)) or _is_single(command.name, int(bit), y):
                continue
            if command.name == "IFM_STRIDE_Y" and len(touched.reads) == 1:
                continue
            changed += 1
            assert fault_of(stream.words, touched, x.shape, y.shape) is not None, (command, bit)
    assert changed > 40


def test_three_rows_in_any_order_are_the_units() -> None:
    """Two runs have one distance from row to row, which is positive if that is possible."""
    call = core_and_unit(*three_rows())[1]
    size, top = 40, int(call.params["pad_top"])  # type: ignore[call-overload]
    for order in permutations(range(3)):
        places = [5 * size * order[row % 3] + row // 3 for row in range(100)]
        (part,) = window_parts(call, Interval(top, top + 1), places.__getitem__, size)
        assert isinstance(part, UnitRows) and len(part.reads) == 3 and part.step
        assert (part.step > 0) == (order != (2, 1, 0))


def three_rows() -> tuple[Operator, Tensor, Tensor]:
    """A convolution whose windows have three rows, next to each other."""
    drawn = map(convolution, range(500))
    fitting = (it for it in drawn if it[0].op.kernel_shape[0] == 3 and it[0].op.dilation[0] == 1)
    return next(it for it in fitting if it[0].op.stride[0] == 1)


def _is_manner(name: str, bit: int) -> bool:
    """Whether a bit says how results are rounded, or in which order weights are read."""
    return (name == "OFM_PRECISION" and bit >= 14) or (name == "KERNEL_STRIDE" and bit == 2)


def _is_single(name: str, bit: int, y: Tensor) -> bool:
    """Whether a stride has no effect, since one row or column is computed."""
    return name == "KERNEL_STRIDE" and bit < 2 and y.shape[1 - bit] == 1


@pytest.mark.parametrize("name", [*SHORT.values(), *LONG.values()])
def test_a_stream_without_a_register_that_counts_is_refused(name: str) -> None:
    words, touched, x, y = stream_of(0)
    stream = Stream()
    names = [it.name for it in decode(words)]
    for it in decode(words):
        if it.operates:
            stream.operate(it.name, it.value)
        elif it.name != name:
            stream.set(**{it.name: it.value})
    kept = name not in names or name in HARMLESS - {"OFM_BLK_HEIGHT_M1"}
    assert (fault_of(stream.words, touched, x.shape, y.shape) is None) == kept


def test_a_block_that_does_not_fit_the_unit_is_refused() -> None:
    words, touched, x, y = stream_of(0)
    lower = replace(touched, block_rows=1)
    assert "fit the unit" in str(fault_of(words, lower, x.shape, y.shape))


def test_plans_are_judged_and_settled(tmp_path: Path) -> None:
    board = load_board("mps3-an547-u55")
    model = load_model(quantised_convolutions(tmp_path / "small.onnx"), isa=board.isa)
    planned = find_plans(model, board, Options(time_limit=0.5, max_overhead=300.0))
    for plan in planned.choices:
        chosen = planned.model_of(plan)
        check_streams(plan, chosen)
        for step in unit_steps(plan, chosen.calls):
            assert step.needs_core <= (step.call.params["core"] is not None)
    plan, chosen = planned.baseline, planned.model_of(planned.baseline)
    name, call = next((name, it) for name, it in chosen.calls.items() if it.isa.unit)
    wrong = replace(call, params={**call.params, "constant_bytes": int(call.params["constant_bytes"]) + 16})  # type: ignore[arg-type]
    with pytest.raises(PlanFaultError, match=f"the stream of {name}, .* not its constants"):
        check_streams(plan, chosen.with_calls({name: wrong}))
