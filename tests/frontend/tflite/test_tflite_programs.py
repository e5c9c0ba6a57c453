"""Whole files: programs that are verified, beside LiteRT, and their inputs and outputs as files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from against_litert import LiteRt, rounding
from flat_cases import CASES, FUNCTIONS, ROOTS, network
from flat_files import SAME, FlatFile, FlatTensor, drawn
from harness import check_against_onnx
from programs import HOST, QUICK

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.parameters import parameter_count
from mcudeploy.frontend.parsing import parse
from mcudeploy.ir.graph import DType
from tests import reports
from tests.networks.refusals import problems_of


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = FlatFile()
    return file.save(tmp_path_factory.mktemp("network"), *network(file))


def test_a_network_is_verified_operator_by_operator(path: Path) -> None:
    report = reports.verified(path)
    assert report["model_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(report["operators"]) == 6  # padding is the convolution's own, activations are fused


def test_every_operator_is_litert_s_but_for_its_second_rounding(path: Path) -> None:
    roundings = rounding(path, 10)
    assert set(roundings.kinds.values()) <= {
        "Conv2d", "Binary", "AveragePool", "AveragePoolByRows", "Conv2dByRows", "Conv2dToRows", "Reduce",
        "Softmax",
    }  # fmt: skip
    for name, each in roundings.operators.items():
        assert each.worst <= 1, name
        assert each.mismatches <= 0.02 * each.elements + 1, name
    assert roundings.outputs.worst <= 4


def test_operators_that_no_output_needs_are_not_run(tmp_path: Path) -> None:
    f = FlatFile()
    f.operator("SHAPE", [x := f.int8(1, 4, 4, 3)], shape := f.add(4, kind="INT32"))
    f.operator("RESHAPE", [x, shape], y := f.int8(1, 48))
    f.operator("LSTM", [y], f.int8(1, 48))
    f.operator("RELU", [y], z := f.int8(1, 48))
    path = f.save(tmp_path, [x], [z])
    assert reports.run_model(path, HOST, QUICK, inputs=[], expected=[])["verified"]


def test_what_follows_from_a_shape_is_constant(tmp_path: Path) -> None:
    """The size for RESIZE_NEAREST_NEIGHBOR is twice that of the image: SHAPE, STRIDED_SLICE, MUL."""
    f = FlatFile()
    x, y = f.int8(1, 4, 3, 2), f.int8(1, 8, 6, 2)
    f.operator("SHAPE", [x], shape := f.add(4, kind="INT32"), OutType=2)
    limits = [f.constant([at]) for at in (1, 3, 1)]
    f.operator("STRIDED_SLICE", [shape, *limits], size := f.add(2, kind="INT32"), BeginMask=0)
    f.operator("MUL", [size, f.constant([2, 2])], twice := f.add(2, kind="INT32"))
    f.operator("RESIZE_NEAREST_NEIGHBOR", [x, twice], y)
    roundings = rounding(f.save(tmp_path, [x], [y]), 2)
    assert list(roundings.kinds.values()) == ["Resize"] and roundings.outputs.mismatches == 0


@pytest.mark.parametrize(
    "name",
    [name for name, it in CASES.items() if it.lsb == 0 and "float" not in name and "int16" not in name],
)
def test_what_tflite_rounds_in_one_way_has_its_bits(name: str, tmp_path: Path) -> None:
    """And nothing of it is computed in float."""
    file = FlatFile()
    path = file.save(tmp_path, *CASES[name].make(file))
    assert {tensor.dtype for tensor in load(path).tensors.values()} == {DType.INT8}
    roundings = rounding(path, 3)
    assert roundings.outputs.mismatches == 0


@pytest.mark.parametrize("shape", [(1, 24, 20, 3), (1, 32, 16, 3)])
def test_inputs_may_be_given_other_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    """All later values have the shapes of a file that was written for them."""
    given, reshaped = FlatFile(), FlatFile()
    path = given.save(tmp_path, *network(given))
    options = replace(QUICK, shapes=(("t0", shape),))
    reports.verified(path, options=options)
    graph = load(path, choices=InputChoices({"t0": shape}))
    assert graph.inputs[0].shape == shape and graph.outputs[0].shape == (shape[0], 10)
    (tmp_path / "made").mkdir()
    original = network(reshaped)
    for number, tensor in enumerate(reshaped.tensors):
        reshaped.tensors[number] = _resized(tensor, shape)
    own = load(reshaped.save(tmp_path / "made", *original))
    assert {name: it.shape for name, it in own.tensors.items()} == {
        name: it.shape for name, it in graph.tensors.items()
    }


def _resized(tensor: FlatTensor, shape: tuple[int, ...]) -> FlatTensor:
    """An activation of the network as it is with an image of another shape."""
    if tensor.data is not None:
        return tensor
    if len(tensor.shape) == 2:
        return replace(tensor, shape=(shape[0], tensor.shape[1]))
    side = tensor.shape[1]
    rows, cols = (size + 1 if side == 17 else size * side // 16 for size in shape[1:3])
    return replace(tensor, shape=(shape[0], rows, cols, tensor.shape[3]))


def test_a_reshape_to_fixed_sizes_is_refused_with_the_way_out(tmp_path: Path) -> None:
    f = FlatFile()
    f.operator("RESHAPE", [x := f.int8(1, 4, 3), f.constant([1, 12])], y := f.int8(1, 12))
    path = f.save(tmp_path, [x], [y])
    assert (
        "with an input signature of that shape"
        in problems_of(path, choices=InputChoices({"t0": (1, 5, 3)}))[0].reason
    )
    with pytest.raises(UsageError, match="has no input 'x'"):
        load(path, choices=InputChoices({"x": (1, 5, 3)}))


def test_open_dimensions_are_given(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.int8(1, 1, 3, signature=(1, -1, 3)), f.int8(1, 3)
    f.operator("RESHAPE", [x, f.constant([-1, 3])], y)
    path = f.save(tmp_path, [x], [y])
    with pytest.raises(ModelError, match="Give its shape with --shape"):
        load(path)
    report = reports.run_model(
        path, HOST, replace(QUICK, shapes=(("t0", (1, 5, 3)),)), inputs=[], expected=[]
    )
    assert report["verified"] and load(path, choices=InputChoices({"t0": (1, 5, 3)})).outputs[0].shape == (
        5,
        3,
    )


def test_a_decoder_is_verified_and_stays_int8(tmp_path: Path) -> None:
    f = FlatFile()
    x, w, v = f.int8(1, 6, 6, 8), f.weights(4, 3, 3, 8), f.weights(2, 4, 4, 4)
    options = {"Padding": SAME, "StrideH": 2, "StrideW": 2}
    up, bent, y = f.int8(1, 12, 12, 4, scale=0.3), f.int8(1, 12, 12, 4, scale=0.2), f.int8(1, 24, 24, 2)
    f.operator("TRANSPOSE_CONV", [f.constant([1, 12, 12, 4]), w, x, f.bias(x, w, 4)], up, **options)
    slopes = f.constant(f.random.integers(0, 128, (1, 1, 4)), np.int8, scale=[0.004], zero_point=[0])
    f.operator("PRELU", [up, slopes], bent)
    f.operator("TRANSPOSE_CONV", [f.constant([1, 24, 24, 2]), v, bent, f.bias(bent, v, 2)], y, **options)
    path = f.save(tmp_path, [x], [y])
    assert {tensor.dtype for tensor in load(path).tensors.values()} == {DType.INT8}
    reports.verified(path)
    roundings = rounding(path, 5)
    assert all(each.worst <= 2 for each in roundings.operators.values())  # one of PRELU, one of its input


def test_files_of_inputs_and_outputs_lie_as_in_the_model(path: Path, tmp_path: Path) -> None:
    image = np.random.default_rng(5).integers(-128, 128, (1, 16, 16, 3)).astype(np.int8)
    values = LiteRt(path).run({"t0": image})
    np.save(tmp_path / "in.npy", image)
    np.save(tmp_path / "turned.npy", image.transpose(0, 3, 1, 2))
    softmax = [value for value in values.values() if value.shape == (1, 10)][-1]
    np.save(tmp_path / "out.npy", softmax)
    files = {"inputs": [tmp_path / "in.npy"], "expected": [tmp_path / "out.npy"]}
    report = reports.run_model(path, HOST, QUICK, **files)
    assert report["verified"], report["reason"]
    with pytest.raises(UsageError, match="has the shape"):
        reports.run_model(path, HOST, QUICK, inputs=[tmp_path / "turned.npy"], expected=[])


def test_kernels_of_functions_are_right(tmp_path: Path) -> None:
    f = FlatFile()
    x, e = f.add(1, 4, 8, 8), f.add(1, 4, 8, 8)
    results = [f.add(1, 4, 8, 8) for _ in (*FUNCTIONS, *ROOTS)]
    f.operator("EXP", [x], e)
    for op, y in zip((*FUNCTIONS, *ROOTS), results, strict=True):
        f.operator(op, [e if op in ROOTS else x], y)
    f.operator("PRELU", [x, f.constant(np.full((1, 1, 8), 0.3), np.float32)], p := f.add(1, 4, 8, 8))
    f.operator("MAXIMUM", [x, e], m := f.add(1, 4, 8, 8))
    f.operator("SUM", [x, f.constant([1, 2])], s := f.add(1, 8), KeepDims=False)
    path = f.save(tmp_path, [x], [*results, p, m, s])
    graph = check_against_onnx(parse(path).proto, {"t0": drawn(f, x)}, pieces=False)
    assert len(graph.operators) == len(results) + 5


def test_a_float_network_is_verified_and_is_litert_s(tmp_path: Path) -> None:
    f = FlatFile()
    x = f.add(1, 8, 8, 3)
    w, b = (f.constant(f.random.normal(0, 0.5, shape), np.float32) for shape in ((4, 3, 3, 3), (4,)))
    options = {"Padding": 0, "StrideH": 2, "StrideW": 2, "DilationHFactor": 1, "DilationWFactor": 1}
    f.operator("CONV_2D", [x, w, b], y := f.add(1, 4, 4, 4), FusedActivationFunction=3, **options)
    f.operator("MEAN", [y, f.constant([1, 2])], m := f.add(1, 4), KeepDims=False)
    f.operator("SOFTMAX", [m], p := f.add(1, 4), Beta=1.0)
    path = f.save(tmp_path, [x], [p])
    reports.verified(path)
    assert rounding(path, 3).outputs.worst < 1e-5


def test_weights_of_a_file_are_counted_once(tmp_path: Path) -> None:
    f = FlatFile()
    x, w, y, z = f.int8(1, 6, 6, 4), f.weights(4, 3, 3, 4), f.int8(1, 6, 6, 4), f.int8(1, 6, 6, 4)
    options = {"Padding": SAME, "StrideH": 1, "StrideW": 1}
    bias = f.bias(x, w, 4)
    f.operator("CONV_2D", [x, w, bias], y, **options)
    f.operator("CONV_2D", [y, w, bias], z, **options)
    assert parameter_count(f.save(tmp_path, [x], [z])) == 4 * 3 * 3 * 4 + 4
