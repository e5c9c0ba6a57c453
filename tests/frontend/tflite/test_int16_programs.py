"""Programs of int16 activations: every operator, and a network with the bits of LiteRT."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from against_litert import rounding
from flat_cases import CASES, Of, add, bias, f32, i16, weights, window
from flat_files import RELU, RELU6, SAME, VALID, FlatFile, drawn, litert, translated
from harness import check_graph
from programs import HOST, QUICK

from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.int16.int16 import Bounds
from mcudeploy.extensions.int16.int16_scales import bounds_of
from mcudeploy.frontend.load import load
from mcudeploy.frontend.tflite.contents import Scales, TfliteTensor
from mcudeploy.ir.graph import DType
from mcudeploy.ops.host_io import to_device
from mcudeploy.verify.difference import least_tolerance
from mcudeploy.verify.reference import Reference
from tests import reports
from tests.networks.refusals import problems_of

NAMES = [name for name in CASES if "-int16" in name]


@pytest.mark.parametrize("name", NAMES)
def test_pieces_of_an_operator_have_the_bits_of_the_reference(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    inputs, outputs = CASES[name].make(file)
    path = file.save(tmp_path, inputs, outputs)
    graph = load(path)
    values = {file.tensors[number].name: drawn(file, number) for number in inputs}
    stored = {
        io.tensor: to_device(io, graph.tensors[io.tensor], values[io.name]) for io in graph.own_inputs()
    }
    computed = check_graph(graph, stored)
    wanted = Reference(path, [io.name for io in graph.references.values()]).run(values)
    for tensor, io in graph.references.items():
        expected = to_device(io, graph.tensors[tensor], wanted[io.name])
        np.testing.assert_array_equal(computed[tensor], expected)


def network(f: FlatFile) -> Any:
    """Convolutions with a sum between them, pools, a dense layer and a softmax."""
    x = f.int16(1, 12, 12, 3)
    w = f.weights(8, 3, 3, 3)
    f.operator(
        "CONV_2D", [x, w, f.bias(x, w, 8)], a := f.int16(1, 12, 12, 8, scale=0.003), **window(SAME, 1, RELU)
    )
    w = f.weights(1, 3, 3, 8, axis=3)
    options = {**window(SAME, 1, RELU6), "DepthMultiplier": 1}
    f.operator(
        "DEPTHWISE_CONV_2D", [a, w, f.bias(a, w, 8)], b := f.int16(1, 12, 12, 8, scale=0.002), **options
    )
    w = f.weights(8, 1, 1, 8)
    f.operator(
        "CONV_2D", [b, w, f.bias(b, w, 8)], c := f.int16(1, 12, 12, 8, scale=0.002), **window(VALID, 1)
    )
    f.operator("ADD", [a, c], d := f.int16(1, 12, 12, 8, scale=0.004), PotScaleInt16=False)
    pool = {"Padding": VALID, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    f.operator("MAX_POOL_2D", [d], e := f.int16(1, 6, 6, 8, scale=0.004), **pool)
    f.operator("AVERAGE_POOL_2D", [e], g := f.int16(1, 3, 3, 8, scale=0.004), **pool)
    f.operator("RESHAPE", [g, f.constant([1, 72])], h := f.int16(1, 72, scale=0.004))
    w = f.weights(10, 72)
    f.operator("FULLY_CONNECTED", [h, w, f.bias(h, w, 10)], k := f.int16(1, 10, scale=0.002))
    f.operator("SOFTMAX", [k], y := f.int16(1, 10, scale=2.0**-15), Beta=1.0)
    return [x], [y]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = FlatFile()
    return file.save(tmp_path_factory.mktemp("network"), *network(file))


def test_a_network_has_the_bits_of_litert(path: Path) -> None:
    roundings = rounding(path, 20)
    assert len(roundings.operators) == 8
    assert all(each.worst == 0 for each in roundings.operators.values()), roundings.operators
    assert roundings.outputs.worst == 0


def test_a_network_is_cut_and_verified(path: Path) -> None:
    report = reports.verified(path)
    assert report["mismatches"] == 0
    assert report["splits"] and report["arena_bytes"] < report["unsplit_arena_bytes"]


def test_notes_say_what_the_integers_stand_for(path: Path) -> None:
    notes = load(path).notes
    assert "input 't0' is int16: real = 0.00100000005 * q" in notes
    assert any(note.startswith("output") and note.endswith("real = 3.05175781e-05 * q") for note in notes)


X, KERNEL = i16(1, 8), weights(8, 5, axis=0)
SCALED = f32(1, 8, kind="INT16", scale=(0.1,), zero_point=(3,))
DEPTHWISE = [i16(1, 4, 4, 3), weights(1, 3, 3, 3, axis=3), bias(3, np.int32)]
BATCH = [i16(2, 4, 4, 3), weights(5, 1, 1, 3), bias(5)]
POWER = i16(1, 8, scale=2.0**-12)


@pytest.mark.parametrize(
    ("op", "inputs", "output", "options", "words"),
    [
        ("RELU", [SCALED], X, {}, "tensor 't0' is INT16 with a zero point; TFLite needs 0"),
        ("ADD", [POWER] * 2, POWER, {"PotScaleInt16": True}, "its scales are powers of two"),
        (
            "DEPTHWISE_CONV_2D",
            DEPTHWISE,
            i16(1, 4, 4, 3),
            {**window(SAME, 1), "DepthMultiplier": 1},
            "its bias is INT32; TFLite takes INT64 with int16 activations",
        ),
        (
            "CONV_2D",
            BATCH,
            i16(2, 4, 4, 5),
            window(VALID, 1),
            "the batch is 2; with int16 activations it must be 1",
        ),
        (
            "BATCH_MATMUL",
            [i16(1, 6, 8), i16(1, 8, 5)],
            i16(1, 6, 5, scale=1e-7),
            {},
            "the scale of its result, 1e-07, is too small",
        ),
        (
            "BATCH_MATMUL",
            [i16(1, 6, 8), KERNEL],
            i16(1, 6, 5),
            {},
            "scales along axis 0; channels are axis 1",
        ),
        (
            "BATCH_MATMUL",
            [i16(2, 6, 8), weights(2, 8, 5, axis=None)],
            i16(2, 6, 5),
            {},
            "constant weights [2, 8, 5] are not supported; one matrix is",
        ),
        (
            "MAXIMUM",
            [X, i16(1, 8, scale=0.002)],
            X,
            {},
            "the scales of its operands and its result differ",
        ),
        ("EXP", [i16(1, 8, scale=0.004)], X, {}, "exp of inputs up to 131.068 is beyond float32"),
    ],
)
def test_what_is_refused(
    op: str, inputs: list[Of], output: Of, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    file = FlatFile()
    (problem,) = problems_of(file.save(tmp_path, *add(file, op, inputs, output, **options)))
    assert words in problem.reason


def test_a_scale_that_is_too_small(tmp_path: Path) -> None:
    """The differences times the factor would not fit an int32."""
    f = FlatFile()
    x, y = f.int16(1, 8, scale=1.0), f.int16(1, 8, scale=1e-6)
    f.operator("QUANTIZE", [x], y)
    with pytest.raises(ModelError) as caught:
        reports.run_model(f.save(tmp_path, [x], [y]), HOST, QUICK, inputs=[], expected=[])
    assert "the scale of its result is too small" in caught.value.problems[0].reason


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_a_constant_of_a_product_with_scales_of_channels(kind: str, tmp_path: Path) -> None:
    """LiteRT multiplies by 0, so it is not asked."""
    f = FlatFile()
    w = f.weights(8, 5, axis=1)
    if kind == "int16":
        x, y = f.int16(1, 6, 8), f.int16(1, 6, 5, scale=0.005)
    else:
        x, y = f.int8(1, 6, 8), f.int8(1, 6, 5, scale=0.5)
    f.operator("BATCH_MATMUL", [x, w], y)
    path = f.save(tmp_path, [x], [y])
    report = reports.verified(path)
    assert "multiplies by 0" in str(report["litert"]["not_run"])
    assert any("a scale for each channel" in note for note in load(path).notes)


def test_a_bias_of_int32_whose_type_an_older_file_does_not_state(tmp_path: Path) -> None:
    """LiteRT takes it for int64 then, and is not asked."""
    f = FlatFile()
    x, w, y = f.int16(1, 12), f.weights(7, 12), f.int16(1, 7, scale=0.005)
    f.operator("FULLY_CONNECTED", [x, w, f.bias(x, w, 7, np.int32)], y)
    report = reports.verified(f.save(tmp_path, [x], [y]))
    assert "reads a bias of int32 as int64" in str(report["litert"]["not_run"])


def test_a_product_has_the_shape_that_the_file_states(tmp_path: Path) -> None:
    f = FlatFile()
    a, b, y = f.int16(1, 6, 8), f.int16(1, 8, 5), f.int16(5, 6, scale=0.05)
    f.operator("BATCH_MATMUL", [a, b], y)
    reports.verified(f.save(tmp_path, [a, b], [y]))


def test_no_result_may_be_a_step_off(tmp_path: Path) -> None:
    """The reference has TFLite's integers."""
    f = FlatFile()
    f.operator("ABS", [x := f.int16(1, 8)], y := f.int16(1, 8, scale=0.002))
    graph = load(f.save(tmp_path, [x], [y]))
    (operator,) = graph.operators
    assert least_tolerance(graph.references[operator.output], DType.INT16) < 1


@pytest.mark.parametrize("kind", ["INT8", "INT16"])
def test_zeros_of_scale_0_are_zeros_of_any_scale(kind: str, tmp_path: Path) -> None:
    """The first step of an unrolled LSTM multiplies its state by a gate, and adds the product."""
    f = FlatFile()
    facts = {"kind": kind, "zero_point": (0,)}
    x, gate = (f.add(1, 8, scale=(scale,), **facts) for scale in (0.01, 0.003))
    zeros = f.constant(np.zeros((1, 8)), kind.lower(), scale=(0.0,), zero_point=(0,))
    f.operator("MUL", [gate, zeros], kept := f.add(1, 8, scale=(3.6e-43,), **facts))
    f.operator("ADD", [kept, x], y := f.add(1, 8, scale=(0.012,), **facts), PotScaleInt16=False)
    path = f.save(tmp_path, [x, gate], [y])
    values = [drawn(f, number) for number in (x, gate)]
    (computed,) = translated(path, ["t0", "t1"], [f.tensors[y].name], values)
    (wanted,) = litert(path, values)
    assert np.abs(computed.astype(int) - wanted).max() <= (kind == "INT8")  # TFLite rounds an int8 sum twice


def test_bounds_of_activations_are_stored_integers_with_ties_away_from_zero() -> None:
    result = TfliteTensor(0, "y", (1,), "INT16", None, Scales((0.4,), (0,), 0))
    assert bounds_of((-1.0, 1.0), result) == Bounds(-3, 3)
    assert bounds_of((0.0, inf), result) == Bounds(0, 2**15 - 1)
