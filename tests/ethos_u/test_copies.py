"""Concatenations and slices by the unit: the bits of the core, the kernel's words, and the judge."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from bench import machine
from recorder import Rows, made, recording
from units_on_host import rows_of

from mcudeploy.device.tile import Tile, TileTensor
from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import TouchedCopy, copy_fault, touched_copy
from mcudeploy.extensions.ethos_u.unit_offers import reason_against, unit_calls
from mcudeploy.extensions.ethos_u.unit_steps import copy_parts, words_of
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice

OUT_AT = 1 << 14
Case = tuple[Operator, tuple[Tensor, ...], Tensor]


def concat(seed: int) -> Case:
    """Inputs along columns or channels; some of them in the quantisation of the output."""
    rng = np.random.default_rng(seed)
    axis, count, size = 1 + seed % 2, int(rng.integers(1, 4)), [int(it) for it in rng.integers(1, 12, 3)]
    target = Quantization(0.05, int(rng.integers(-128, 128)))
    inputs = []
    for number in range(count):
        shape = [*size]
        shape[axis] = int(rng.integers(1, 40 if axis == 2 else 12))
        own = Quantization(float(np.float32(0.05 * np.exp(rng.uniform(-3, 3)))), int(rng.integers(-128, 128)))
        same = rng.integers(3) == 0
        inputs.append(Tensor(f"x{number}", tuple(shape), DType.INT8, target if same else own))
    op = Concat(axis)
    shape = op.loops(tuple(it.shape for it in inputs)).output_shape()
    names = tuple(it.name for it in inputs)
    return Operator("op", op, names, "y"), tuple(inputs), Tensor("y", shape, DType.INT8, target)


def part(seed: int) -> Case:
    """A slice of rows, columns and channels."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(it) for it in rng.integers(1, 20, 3))
    start = tuple(int(rng.integers(0, size)) for size in shape)
    out = tuple(int(rng.integers(1, size - begin + 1)) for size, begin in zip(shape, start, strict=True))
    x = Tensor("x", shape, DType.INT8, Quantization(0.1, 3))
    return Operator("op", Slice(start, (1, 1, 1), out), ("x",), "y"), (x,), replace(x, name="y", shape=out)


def both(case: Case) -> tuple[KernelCall, KernelCall]:
    core = case[0].op.kernel(*case)
    (own,) = unit_calls(*case, core.variants(Isa.ANY), Isa.U55_128)
    return core, own


def places(case: Case, gap: int) -> list[list[int]]:
    """The offset of each row of the inputs, after every third of which is a gap; and of the output's rows."""
    at, found = 0, []
    for tensor in case[1]:
        pitch = -(-tensor.row_bytes // 4) * 4 if gap else tensor.row_bytes
        found.append([at + row * pitch + row // 3 * gap for row in range(tensor.shape[0])])
        at = -(-(found[-1][-1] + pitch) // 16) * 16
    out = case[2]
    return [*found, [OUT_AT + row * (-(-out.row_bytes // 4) * 4) for row in range(out.shape[0])]]


def results(call: KernelCall, case: Case, data: list[bytes], gap: int) -> bytes:
    _, inputs, y = case
    session, offsets = machine().session, places(case, gap)
    sources = []
    for tensor, rows, values in zip(inputs, offsets, data, strict=False):
        size = tensor.row_bytes
        for row, offset in enumerate(rows):
            session.write(0, offset, values[row * size : (row + 1) * size])
        blocks = BlockRows(1 if gap else tensor.shape[0])
        sources.append(TileTensor(tuple(rows if gap else rows[:1]), size, blocks))
    output = TileTensor(tuple(offsets[-1]), y.row_bytes, BlockRows(1))
    return rows_of(Tile(call, tuple(sources), output, None, y.shape[0], BlockRows(1)))


@pytest.mark.parametrize("of", [concat, part])
@pytest.mark.parametrize("seed", range(20))
def test_copies_have_the_bits_of_the_core(seed: int, of: Callable[[int], Case]) -> None:
    case = of(seed)
    core, own = both(case)
    rng = np.random.default_rng(seed)
    data = [rng.integers(-128, 128, it.shape).astype(np.int8).tobytes() for it in case[1]]
    expected = results(core, case, data, 0)
    for gap in (0, 8):
        assert results(own, case, data, gap) == expected, gap


def test_others_stay_on_the_core() -> None:
    operator, inputs, y = concat(4)
    tied = replace(inputs[0], name="x", quantization=Quantization(0.025, 0))
    cases = {
        "joins rows": (Concat(0), inputs[:1], inputs[0]),
        "by steps": (Slice((0, 0, 0), (2, 1, 1), (1, 1, 1)), inputs[:1], replace(y, shape=(1, 1, 1))),
        "gives the bits": (Concat(1), (tied,), replace(tied, quantization=Quantization(0.05, 0))),
    }
    for reason, (op, read, written) in cases.items():
        found = replace(operator, op=op)
        assert reason in str(reason_against(found, read, written))
        assert unit_calls(found, read, written, (KernelCall("concat"),), Isa.U55_128) == ()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return recording(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("of", [concat, part])
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_makes_these_words(kernels: ctypes.CDLL, seed: int, of: Callable[[int], Case]) -> None:
    case = of(seed)
    call, (_, inputs, y) = both(case)[1], case
    for gap in (0, 16):
        *of_inputs, of_output = places(case, gap)
        sources = tuple(it.__getitem__ for it in of_inputs)
        sizes = tuple(it.row_bytes for it in inputs)
        parts = copy_parts(call, Interval(0, y.shape[0]), sources, sizes)
        expected = [words_of(call, it, sources, of_output.__getitem__) for it in parts]
        rows = [Rows(tensor, offsets) for tensor, offsets in zip(inputs, of_inputs, strict=True)]
        assert made(kernels, call, rows, Rows(y, of_output)) == expected


def streams_of(case: Case) -> Iterator[tuple[list[int], TouchedCopy]]:
    """The words of each copy of a case, and the bytes that it may touch."""
    call, (operator, inputs, y) = both(case)[1], case
    sources = tuple(
        lambda row, at=number * 4096, it=it: at + row * it.row_bytes for number, it in enumerate(inputs)
    )
    loops = operator.op.loops(tuple(it.shape for it in inputs))
    sizes = tuple(it.row_bytes for it in inputs)
    for it in copy_parts(call, Interval(0, y.shape[0]), sources, sizes):
        words = words_of(call, it, sources, lambda row: OUT_AT + row * y.row_bytes)
        read = [sources[it.number](row) for row in range(it.reads.lo, it.reads.hi)]
        reads = tuple(Interval(at, at + sizes[it.number]) for at in read)
        written = [OUT_AT + row * y.row_bytes for row in range(y.shape[0])]
        writes = tuple(Interval(at, at + y.row_bytes) for at in written)
        yield words, touched_copy(loops, it.number, (reads, writes), (inputs, y))


@pytest.mark.parametrize("of", [concat, part])
@pytest.mark.parametrize("seed", range(4))
def test_the_judge_refuses_other_bytes(seed: int, of: Callable[[int], Case]) -> None:
    for words, touched in streams_of(of(seed)):
        assert copy_fault(words, touched) is None
        for name in (
            "IFM_BASE0",
            "OFM_BASE0",
            "OFM_WIDTH_M1",
            "IFM_DEPTH_M1",
            "OFM_STRIDE_X",
            "IFM_STRIDE_Y",
        ):
            stream = Stream()
            for command in decode(words):
                if command.operates:
                    stream.operate(command.name, command.value)
                else:
                    stream.set(**{command.name: command.value ^ (command.name == name)})
            assert copy_fault(stream.words, touched) is not None, name
