"""Sums of two tensors by the unit: the bits of the core's kernel, Vela's registers, and the judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench import machine

from mcudeploy.device.tile import Tile, TileTensor, pack
from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import sum_fault
from mcudeploy.extensions.ethos_u.unit_offers import reason_against, unit_calls
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, sum_parts, words_of
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.scalar.elementwise import Binary

IMAGE_AT = 1 << 20
SHAPE = (5, 16, 24)
"""Enough values for every pair of most bytes."""


def sum_of(seed: int) -> tuple[Operator, tuple[Tensor, Tensor], Tensor]:
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.uniform(-3, 3, 3)) if seed % 3 else np.full(3, 0.05)
    points = [int(it) for it in rng.integers(-128, 128, 3)]
    made = [
        Tensor(name, SHAPE, DType.INT8, Quantization(float(np.float32(scale)), point))
        for name, scale, point in zip("aby", scales, points, strict=True)
    ]
    function = "sub" if seed % 2 else "add"
    clip = {"low": -1.0, "high": 2.0} if seed % 5 == 0 else {}
    op = Binary(function, rounding="tflite", **clip)
    return Operator("sum", op, ("a", "b"), "y"), (made[0], made[1]), made[2]


def both(seed: int, isa: Isa = Isa.U55_128) -> tuple[KernelCall, KernelCall, Tensor]:
    operator, inputs, y = sum_of(seed)
    core = operator.op.kernel(operator, inputs, y)
    (own,) = unit_calls(operator, inputs, y, core.variants(Isa.ANY), isa)
    return core, own, y


def results(call: KernelCall, y: Tensor, data: list[bytes], out: str, gap: int) -> bytes:
    """The output of a sum whose rows of operands lie `gap` bytes apart, and the output where `out` says."""
    session, pitch = machine().session, y.row_bytes + gap
    starts = [0, SHAPE[0] * pitch + 16]
    places = []
    for start, values in zip(starts, data, strict=True):
        offsets = [start + row * pitch for row in range(SHAPE[0])]
        for row, offset in enumerate(offsets):
            session.write(0, offset, values[row * y.row_bytes : (row + 1) * y.row_bytes])
        places.append(TileTensor(tuple(offsets), y.row_bytes, BlockRows(1)))
    at = {"apart": 2 * starts[1], "first": 0, "second": starts[1]}[out]
    step = pitch if out != "apart" else y.row_bytes
    rows = BlockRows(1) if out != "apart" or gap else BlockRows(SHAPE[0])
    offsets = tuple(at + step * row for row in range(SHAPE[0])) if rows.rows == 1 else (at,)
    output = TileTensor(offsets, y.row_bytes, rows)
    tile = Tile(call, tuple(places), output, None, SHAPE[0], rows)
    image = pack(tile, machine().kernels(call.kernel), session.info, at=IMAGE_AT)
    session.write(image.memory, image.at, image.data)
    found = b""
    for block, offset in enumerate(offsets):
        part = rows.interval(block, SHAPE[0])
        session.call(image.memory, image.op_offset, part.lo, part.hi)
        found += session.read(0, offset, len(part) * y.row_bytes)
    return found


@pytest.mark.parametrize("seed", range(24))
def test_sums_have_the_bits_of_the_core(seed: int) -> None:
    core, own, y = both(seed, (Isa.U55_128, Isa.U55_256)[seed // 3 % 2])
    rng = np.random.default_rng(seed)
    data = [rng.integers(-128, 128, SHAPE).astype(np.int8).tobytes() for _ in range(2)]
    expected = results(core, y, data, "apart", 0)
    for out, gap in (("apart", 0), ("apart", 8), ("first", 0), ("second", 8)):
        assert results(own, y, data, out, gap) == expected, (out, gap)


def test_other_sums_stay_on_the_core() -> None:
    operator, inputs, y = sum_of(0)
    cases = {
        "rounded once": (Binary("add"), inputs),
        "does not compute mul": (Binary("mul", rounding="tflite"), inputs),
        "of one shape": (operator.op, (inputs[0], replace(inputs[1], shape=(1, 1, 24)))),
    }
    for reason, (op, given) in cases.items():
        found = Operator("sum", op, ("a", "b"), "y")
        assert reason in str(reason_against(found, given, y))
        assert unit_calls(found, given, y, (KernelCall("add_s8"),), Isa.U55_128) == ()


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7, 8])
def test_vela_sets_the_same_registers_for_a_sum(seed: int) -> None:
    api = pytest.importorskip("ethosu.vela.api", reason="Vela is not installed")
    operator, inputs, y = sum_of(seed)
    _, call, _ = both(seed)
    own = {it.name: it.value for it in decode([*call.params["commands"].tolist(), 0xFFFF0000])}  # type: ignore[union-attr]
    operation = api.NpuElementWiseOperation(getattr(api.NpuElementWiseOp, operator.op.stem.upper()))
    maps = []
    for tensor, region in ((inputs[0], 1), (inputs[1], 4), (y, 2)):
        made = api.NpuFeatureMap()
        made.data_type, made.region, made.shape = api.NpuDataType.INT8, region, api.NpuShape3D(*SHAPE)
        made.tiles = api.NpuTileBox(SHAPE[0], SHAPE[0], SHAPE[1], [0, 0, 0, 0])
        made.quantization = api.NpuQuantization(tensor.quantization.scale, tensor.quantization.zero_point)
        made.layout = api.NpuLayout.NHWC
        maps.append(made)
    operation.ifm, operation.ifm2, operation.ofm = maps
    sides = (own[f"OFM_BLK_{it}_M1"] + 1 for it in ("HEIGHT", "WIDTH", "DEPTH"))
    operation.block_config = api.NpuShape3D(*sides)
    words = api.npu_generate_register_command_stream([operation], api.NpuAccelerator.Ethos_U55_128)
    vela = {it.name: it.value for it in decode(words)}
    of_rows = {"HEIGHT1_M1", "HEIGHT0_M1", "BASE0", "HEIGHT_M1"}
    apart = {f"{name}_{it}" for name in ("IFM", "IFM2", "OFM") for it in of_rows}
    apart |= {"ACTIVATION_MIN", "ACTIVATION_MAX", "ELEMENTWISE", "STOP"}
    assert {name: it for name, it in own.items() if name not in apart} == {
        name: it for name, it in vela.items() if name not in apart
    }


def test_the_judge_refuses_a_sum_of_other_rows() -> None:
    _, call, y = both(1)
    starts = (64, 4096, 64)
    places = tuple(lambda row, start=start: start + row * y.row_bytes for start in starts)
    (part,) = sum_parts(Interval(0, SHAPE[0]), places[:2], places[2], y.row_bytes)
    assert isinstance(part, UnitRows)
    rows = [[Interval(place(row), place(row + 1)) for row in range(SHAPE[0])] for place in places]
    words = words_of(call, part, places[:2], places[2])
    assert sum_fault(words, rows, SHAPE) is None
    harmless = ("ZERO_POINT", "ACTIVATION_M", "_BLK_", "IB_", "AB_", "ACC_", "BLOCKDEP", "STRIDE_C", "SCALE")
    harmless = (*harmless, "BASE1", "BASE2", "BASE3", "HEIGHT1")
    for number, changed in enumerate(decode(words)):
        if changed.operates or any(it in changed.name for it in harmless):
            continue
        for bit in (0, 1, 5):
            stream = Stream()
            for at, it in enumerate(decode(words)):
                if it.operates:
                    stream.operate(it.name, it.value)
                else:
                    stream.set(**{it.name: it.value ^ (1 << bit) if at == number else it.value})
            assert sum_fault(stream.words, rows, SHAPE) is not None, (changed, bit)


def test_rows_whose_result_crosses_an_operand_are_the_cores() -> None:
    size = 10
    parts = sum_parts(
        Interval(0, 3),
        (lambda row: row * size, lambda row: 100 + row * size),
        lambda row: row * size - 5,
        size,
    )
    assert list(parts) == [0, 1, 2]
