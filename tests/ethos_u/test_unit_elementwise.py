"""Sums, differences and products by the unit: the bits of the core, the kernel's words, and the judge."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from bench import machine
from pair_cases import (
    ALONE,
    CASES,
    OTHERS,
    OUT_AT,
    SHAPE,
    STARTS,
    Case,
    affine,
    binary,
    binary_int16,
    both,
    clip,
    curve,
    touched_by,
)
from recorder import Rows, made, recording
from units_on_host import rows_of

from mcudeploy.device.tile import Tile, TileTensor
from mcudeploy.extensions.ethos_u import unit_affine
from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import Touched, elementwise_fault, fault_of
from mcudeploy.extensions.ethos_u.unit_int16 import LOGISTIC, TANGENT
from mcudeploy.extensions.ethos_u.unit_offers import reason_against, unit_calls
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, elementwise_parts, words_of
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import Quantization
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.scalar.elementwise import Binary


def results(call: KernelCall, case: Case, data: list[bytes], out: int | None, gap: int) -> bytes:
    """The output of an operation, in the place of input `out` if that is one; rows lie `gap` bytes apart."""
    _, inputs, y = case
    session, at = machine().session, 0
    places: list[TileTensor] = []
    for tensor, values in zip(inputs, data, strict=True):
        pitch, size = -(-tensor.row_bytes // 4) * 4 + gap, tensor.row_bytes
        offsets = tuple(at + row * pitch for row in range(tensor.shape[0]))
        for row, offset in enumerate(offsets):
            session.write(0, offset, values[row * size : (row + 1) * size])
        places.append(TileTensor(offsets, size, BlockRows(1)))
        at = offsets[-1] + pitch + 16
    offsets = tuple(at + row * (y.row_bytes + gap) for row in range(SHAPE[0]))
    output = places[out] if out is not None else TileTensor(offsets, y.row_bytes, BlockRows(1))
    return rows_of(Tile(call, tuple(places), output, None, SHAPE[0], BlockRows(1)))


def check(case: Case, seed: int, isa: Isa) -> None:
    core, own = both(case, isa)
    rng = np.random.default_rng(seed)
    data = [rng.integers(0, 256, it.size_bytes).astype(np.uint8).tobytes() for it in case[1]]
    expected = results(core, case, data, None, 0)
    whole = [number for number, it in enumerate(case[1]) if it.shape == SHAPE]
    for out, gap in ((None, 0), (None, 8), (whole[0], 0), (whole[-1], 8)):
        assert results(own, case, data, out, gap) == expected, (out, gap)


@pytest.mark.parametrize("seed", range(24))
def test_two_tensors_have_the_bits_of_the_core(seed: int) -> None:
    check(binary(seed), seed, (Isa.U55_64, Isa.U55_128, Isa.U55_256)[seed // 3 % 3])


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("other", list(OTHERS))
@pytest.mark.parametrize("seed", range(0, 12, 3))
def test_operands_that_are_repeated_or_constant_have_the_bits_of_the_core(
    seed: int, other: str, constant: bool
) -> None:
    for number, function in enumerate(("add", "sub", "mul")):
        check(binary(seed + number, other, constant=constant, function=function), seed, Isa.U55_128)


@pytest.mark.parametrize("seed", range(6))
def test_scaled_channels_have_the_bits_of_the_core(seed: int) -> None:
    check(affine(seed), seed, (Isa.U55_128, Isa.U55_256)[seed % 2])


@pytest.mark.parametrize("seed", range(6))
def test_clips_have_the_bits_of_the_core(seed: int) -> None:
    check(clip(seed), seed, (Isa.U55_64, Isa.U55_128, Isa.U55_256)[seed % 3])


@pytest.mark.parametrize("seed", range(12))
def test_16_bit_values_have_the_bits_of_the_core(seed: int) -> None:
    isa = (Isa.U55_64, Isa.U55_128, Isa.U55_256)[seed % 3]
    other = list(OTHERS)[seed // 3]
    check(binary_int16(seed, other), seed, isa)
    check(binary_int16(seed, other, constant=True), seed, isa)
    check(curve(seed), seed, isa)


def test_tables_that_no_scale_gives_stay_on_the_core() -> None:
    operator, inputs, y = clip(0)
    curve = replace(operator, constants={"table": operator.constants["table"][::-1].copy()})
    assert "looks up a table" in str(reason_against(curve, inputs, y))
    assert unit_calls(curve, inputs, y, (KernelCall("lut_s8"),), Isa.U55_128) == ()


def test_channels_that_no_weights_reach_stay_on_the_core() -> None:
    """The result of a value is halfway within 2^-22, and the offset is no multiple of any scale."""
    records = np.array([8903774, -102660500, 23], np.int32)
    call = KernelCall("affine_s8", {"records": records, "act.min": -128, "act.max": 127})
    assert unit_affine._channels(call) is None


def test_others_stay_on_the_core() -> None:
    operator, (x, z), y = binary(0)
    equal = replace(y, quantization=Quantization(1.0, 0))
    narrow = replace(z, shape=(1, 1, 24))
    cases = {
        "does not compute div": (Binary("div"), (x, z), y),
        "of the result's shape": (Binary("sub"), (narrow, x), y),
        "the bits of the core": (
            Binary("add"),
            (replace(equal, name="x"), replace(equal, name="z")),
            replace(y, quantization=Quantization(2.0, 0)),
        ),
    }
    for reason, (op, inputs, output) in cases.items():
        found = replace(operator, op=op)
        assert reason in str(reason_against(found, inputs, output))
        assert unit_calls(found, inputs, output, (KernelCall("add_s8"),), Isa.U55_128) == ()


@pytest.mark.parametrize("other", ["whole", "channels", "value"])
@pytest.mark.parametrize("seed", [7, 8, 9, 11, 19, 20])
def test_vela_sets_the_same_registers(seed: int, other: str) -> None:
    """For sums as TFLite rounds them, and products."""
    api = pytest.importorskip("ethosu.vela.api", reason="Vela is not installed")
    case = binary(seed, other)
    if case[0].op.rounding != "tflite" and case[0].op.function != "mul":
        case = replace(case[0], op=replace(case[0].op, rounding="tflite")), *case[1:]
    own = {it.name: it.value for it in decode([*both(case)[1].params["commands"].tolist(), 0xFFFF0000])}  # type: ignore[union-attr]
    operation = api.NpuElementWiseOperation(getattr(api.NpuElementWiseOp, case[0].op.stem.upper()))
    twice = case[0].op.rounding == "tflite"
    operation.rounding_mode = api.NpuRoundingMode.TFL if twice else api.NpuRoundingMode.NATURAL
    first = next(it for it in case[1] if it.shape == SHAPE)
    second = case[1][1 - case[1].index(first)]
    maps = []
    for tensor, region in ((first, 1), (second, 4), (case[2], 2)):
        each = api.NpuFeatureMap()
        each.data_type, each.region, each.shape = api.NpuDataType.INT8, region, api.NpuShape3D(*tensor.shape)
        each.tiles = api.NpuTileBox(tensor.shape[0], tensor.shape[0], tensor.shape[1], [0, 0, 0, 0])
        each.quantization = api.NpuQuantization(tensor.quantization.scale, tensor.quantization.zero_point)
        each.layout = api.NpuLayout.NHWC
        maps.append(each)
    operation.ifm, operation.ifm2, operation.ofm = maps
    sides = (own[f"OFM_BLK_{it}_M1"] + 1 for it in ("HEIGHT", "WIDTH", "DEPTH"))
    operation.block_config = api.NpuShape3D(*sides)
    words = api.npu_generate_register_command_stream([operation], api.NpuAccelerator.Ethos_U55_128)
    vela = {it.name: it.value for it in decode(words)}
    of_rows = {"HEIGHT1_M1", "HEIGHT0_M1", "BASE0", "HEIGHT_M1"}
    apart = {f"{name}_{it}" for name in ("IFM", "IFM2", "OFM") for it in of_rows}
    apart |= {"ACTIVATION_MIN", "ACTIVATION_MAX", "ELEMENTWISE", "STOP"}
    if case[0].op.function == "mul":  # Vela multiplies scales as float32
        assert own.pop("OFM_SCALE") == pytest.approx(vela.pop("OFM_SCALE"), rel=1e-6)
    assert {name: it for name, it in own.items() if name not in apart} == {
        name: it for name, it in vela.items() if name not in apart
    }


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return recording(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("name", list(CASES))
def test_the_kernel_makes_these_words(kernels: ctypes.CDLL, name: str) -> None:
    case = CASES[name]()
    call, (_, inputs, y), rng = both(case)[1], case, np.random.default_rng(0)
    for out in (OUT_AT, STARTS[0], STARTS[-1 if len(inputs) > 1 else 0], STARTS[0] - 100):
        of_inputs = []
        for start, tensor in zip(STARTS, inputs, strict=False):
            gaps = np.cumsum((rng.random(tensor.shape[0]) < 0.4) * 16) * (out == OUT_AT)
            of_inputs.append([start + row * tensor.row_bytes + int(gap) for row, gap in enumerate(gaps)])
        of_output = [out + row * y.row_bytes for row in range(SHAPE[0])]
        sources = tuple(it.__getitem__ for it in of_inputs)
        parts = list(elementwise_parts(call, Interval(0, SHAPE[0]), sources, of_output.__getitem__))
        expected: list[int | list[int]] = [part for part in parts if isinstance(part, int)]
        streams = [part for part in parts if isinstance(part, UnitRows)]
        expected += [words_of(call, it, sources, of_output.__getitem__) for it in streams]
        places = [Rows(tensor, offsets) for tensor, offsets in zip(inputs, of_inputs, strict=True)]
        assert made(kernels, call, places, Rows(y, of_output)) == expected


@pytest.mark.parametrize("name", [name for name in CASES if name not in ALONE])
def test_the_judge_refuses_other_rows(name: str) -> None:
    case = CASES[name]()
    words, touched = touched_by(case, both(case)[1])
    assert elementwise_fault(words, touched) is None
    harmless = ("ZERO_POINT", "ACTIVATION_M", "_BLK_", "IB_", "AB_", "ACC_", "BLOCKDEP", "STRIDE_C", "SCALE")
    harmless = (*harmless, "BASE1", "BASE2", "BASE3", "HEIGHT1", "SCALAR")
    for number, changed in enumerate(decode(words)):
        spared = any(it in changed.name for it in harmless)
        if changed.operates or spared:
            continue
        for bit in (0, 1, 5):
            stream = Stream()
            for at, it in enumerate(decode(words)):
                if it.operates:
                    stream.operate(it.name, it.value)
                else:
                    stream.set(**{it.name: it.value ^ (1 << bit) if at == number else it.value})
            assert elementwise_fault(stream.words, touched) is not None, (changed, bit)


def test_the_judge_knows_the_bytes_of_scaled_channels() -> None:
    case = affine(0)
    call = both(case)[1]
    words, rows = touched_by(case, call)
    size = int(call.params["constant_bytes"])  # type: ignore[arg-type]
    assert fault_of(words, Touched(rows.reads, SHAPE[1], rows.writes, size, 32), SHAPE, SHAPE) is None
    shorter = Touched(rows.reads, SHAPE[1], rows.writes, size - 16, 32)
    assert "are not its constants" in str(fault_of(words, shorter, SHAPE, SHAPE))


@pytest.mark.parametrize("name", ["clip", "curve"])
def test_the_judge_knows_the_bytes_of_clips_and_curves(name: str) -> None:
    case = CASES[name]()
    words, rows = touched_by(case, both(case)[1])
    touched = Touched(rows.reads, SHAPE[1], rows.writes, 0, 32, operation="POOL")
    if name == "curve":
        touched = replace(touched, value_bytes=2, curve=LOGISTIC)
    assert fault_of(words, touched, SHAPE, SHAPE) is None
    for changed in ({"writes": rows.reads}, {"value_bytes": 3 - touched.value_bytes}, {"curve": TANGENT}):
        assert fault_of(words, replace(touched, **changed), SHAPE, SHAPE) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("far", [0, 1])
def test_operands_whose_scales_are_far_apart_stay_on_the_core(far: int) -> None:
    operator, inputs, y = binary(0)
    operator = replace(operator, op=replace(operator.op, rounding="once"))
    small = replace(inputs[far], quantization=Quantization(5e-9, 0))
    both_inputs = (small, inputs[1]) if far == 0 else (inputs[0], small)
    assert "no scales of the unit" in str(reason_against(operator, both_inputs, y))


def test_rows_whose_result_crosses_an_operand_are_the_cores() -> None:
    case = binary(1)
    size = case[2].row_bytes
    parts = elementwise_parts(
        both(case)[1],
        Interval(0, 3),
        (lambda row: row * size, lambda row: 10 * size + row * size),
        lambda row: row * size - 5,
    )
    assert list(parts) == [0, 1, 2]
