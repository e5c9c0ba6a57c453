"""Operators before opset 13: what onnx converts, and what has another meaning since."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from evaluate import assert_same
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.decompose.old_opsets import LOWERED_FROM, modern
from mcudeploy.frontend.reader import read_proto
from mcudeploy.verify.reference import Reference
from tests.networks.onnx_files import build, save

Array = NDArray[Any]
DRAW = np.random.default_rng(0)


def real(*shape: int) -> Array:
    return DRAW.normal(size=shape).astype(np.float32)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def whole(*values: int) -> Array:
    return np.array(values, np.int64)


X, IMAGE, ABOVE = real(2, 3, 4, 5), real(1, 3, 8, 9), np.abs(real(4, 3, 4, 5)) + 0.1
PER_CHANNEL = (*real(3, 3), ABOVE[0, :, 0, 0])
PER_ELEMENT = (*real(3, 3, 4, 5), ABOVE[0])

Case = tuple[int, Array, tuple[Array, ...], dict[str, Any]]

CHANGED: dict[str, list[Case]] = {
    "AveragePool": [
        (opset, IMAGE, (), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": pad})
        for opset in (7, 10)
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ],
    "BatchNormalization": [
        (7, X, PER_CHANNEL, {}),
        (8, X, PER_CHANNEL, {"spatial": 1}),
        (7, X, PER_ELEMENT, {"spatial": 0, "epsilon": 1e-3}),
        (8, real(2, 3), PER_CHANNEL, {"spatial": 0}),
    ],
    "Clip": [
        (7, X, (), {"min": -0.5, "max": 0.4}),
        (7, X, (), {"max": 0.4}),
        (11, X, floats(-0.1, 0.5), {}),
    ],
    "ConvTranspose": [
        (10, IMAGE, (real(3, 2, 3, 3),), {"strides": [2, 2], "auto_pad": pad})
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ],
    "Dropout": [(7, X, (), {"ratio": 0.3}), (10, X, (), {}), (12, X, (np.float32(0.3),), {})],
    "Hardmax": [
        *((opset, X, (), {"axis": axis}) for opset in (7, 12) for axis in range(4)),
        *((12, X, (), {"axis": axis}) for axis in (-1, -2, -3)),
        *((7, given, (), {}) for given in (X, real(2, 5))),
    ],
    "LogSoftmax": [(7, X, (), {}), (12, X, (), {"axis": 2}), (12, X, (), {"axis": -2})],
    "Softmax": [(7, X, (), {}), (12, X, (), {"axis": 2}), (12, X, (), {"axis": -2})],
    "MeanVarianceNormalization": [(9, X[:1], (), {}), (9, X[:1], (), {"axes": [2, 3]})],
    "OneHot": [(opset, whole(0, 2, -1, 5), (whole(3), floats(0, 1)), {"axis": 0}) for opset in (9, 11)],
    "Pad": [
        (opset, IMAGE, (), {"mode": mode, "pads": [0, 0, start, 2, 0, 0, 2, 1], "value": 3.5})
        for opset in (7, 10)
        for mode, start in (("constant", 1), ("reflect", 1), ("edge", 1), ("constant", -1))
    ],
    "ReduceSum": [
        (7, X, (), {"axes": [2, 3]}),
        (11, X, (), {"axes": [-1], "keepdims": 0}),
        (12, X, (), {}),
    ],
    "Resize": [
        (10, IMAGE, (floats(1, 1, *scales),), {"mode": mode})
        for mode in ("nearest", "linear")
        for scales in ((2, 2), (2, 1.5), (0.5, 0.6), (1.3, 0.7), (0.6, 1))
    ],
    "Scatter": [(opset, real(3, 3), (np.array([[1, 0, 2]]), real(1, 3)), {}) for opset in (9, 10)],
    "Slice": [
        (7, IMAGE, (), {"starts": [1, 2], "ends": [7, -1], "axes": [2, 3]}),
        (9, IMAGE, (), {"starts": [0, -2], "ends": [1, 2**31 - 1]}),
    ],
    "Split": [(7, IMAGE, (), {"axis": 3, "split": [4, 5]}), (12, IMAGE, (), {"axis": 2})],
    "Squeeze": [(7, IMAGE, (), {}), (11, IMAGE, (), {"axes": [-4]})],
    "TopK": [
        (7, X, (), {"k": 2}),
        (9, X, (), {"k": 2, "axis": 1}),
        (10, X, (whole(2),), {}),
    ],
    "Unsqueeze": [(7, X, (), {"axes": [0]}), (11, X, (), {"axes": [-1]})],
    "Upsample": [
        *((7, IMAGE, (), {"mode": mode, "scales": [1.0, 1, 2, 3]}) for mode in ("nearest", "linear")),
        *((9, IMAGE, (floats(1, 1, 2, 1.5),), {"mode": mode}) for mode in ("nearest", "linear")),
    ],
}
"""Operators with another form, other defaults or another meaning: opset, input, constants, attributes."""

ALIKE = """
Abs Add ArgMax ArgMin Cast Ceil Compress Concat Constant Conv DepthToSpace DequantizeLinear Div Equal Erf
Exp Expand Flatten Floor Gather GatherElements GatherND Gemm Greater Identity If IsNaN LRN Less Log Loop
LpPool MatMul Max MaxPool MaxUnpool Mean Min Mod Mul Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero
PRelu Pow QuantizeLinear Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
ReduceMin ReduceProd ReduceSumSquare Relu Reshape ScatterElements ScatterND Shape Sigmoid Sign Size
SoftmaxCrossEntropyLoss SpaceToDepth Sqrt Sub Sum Tanh Tile Transpose
"""
"""Operators that only gained types, inputs that may be left out, or attributes with a neutral default."""

REFUSED = {"Scan"}
"""Scan of opset 8 has a batch axis."""


def model_of(op: str, case: Case) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node, and its input."""
    opset, x, constants, attributes = case
    names = [f"c{number}" for number in range(len(constants))]
    outputs = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    node = helper.make_node(op, ["x", *names], outputs, **attributes)
    model = build(
        [node], {"x": x}, {"y": (np.float32, None)}, dict(zip(names, constants, strict=True)), opset
    )
    model.ir_version = 6
    return model, {"x": x}


def run(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of ONNX Runtime."""
    for node in model.graph.node:
        node.name = ""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, dict(inputs))]


CASES = [(op, case) for op, cases in CHANGED.items() for case in cases]


@pytest.mark.parametrize(("op", "case"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_converted_operator_computes_what_the_old_one_did(op: str, case: Case, tmp_path: Path) -> None:
    model, inputs = model_of(op, case)
    wanted = run(model, inputs)
    converted, _ = read_proto(save(model, tmp_path))
    assert converted.opset_import[0].version == LOWERED_FROM
    for value, want in zip(run(converted, inputs), wanted, strict=True):
        assert value.shape == want.shape
        assert np.allclose(value, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "case"),
    [(op, case) for op in ("BatchNormalization", "Resize") for case in CHANGED[op]],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_old_operator_is_lowered(op: str, case: Case, tmp_path: Path) -> None:
    model, inputs = model_of(op, case)
    assert_same(save(model, tmp_path), inputs)


@pytest.mark.parametrize("case", CHANGED["MeanVarianceNormalization"])
def test_what_is_written_for_the_reference_has_one_opset(case: Case, tmp_path: Path) -> None:
    """Its limits of a slice are inputs, which they are not before opset 10."""
    model, inputs = model_of("MeanVarianceNormalization", case)
    (wanted,) = run(model, inputs)
    computed = Reference(save(model, tmp_path), ["y"]).run(inputs)["y"]
    assert np.allclose(computed, wanted, rtol=1e-5, atol=1e-6)


def test_the_changelog_has_no_further_operators() -> None:
    """Whoever adds one decides whether its meaning has changed."""
    versions: dict[str, set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain and schema.since_version <= LOWERED_FROM:
            versions.setdefault(schema.name, set()).add(schema.since_version)
    changed = {name for name, found in versions.items() if len(found) > 1 and max(found) > 7}
    assert changed == CHANGED.keys() | set(ALIKE.split()) | REFUSED


def test_a_newer_model_is_not_converted() -> None:
    model, _ = model_of("Softmax", (LOWERED_FROM, X, (), {}))
    assert modern(model) is model


def test_a_conversion_that_would_change_the_meaning_is_refused(tmp_path: Path) -> None:
    """LayerNormalization before opset 17 needs one, and onnx's changes Hardmax."""
    model, _ = model_of("Hardmax", (12, X, (), {"axis": 2}))
    model.graph.node[0].output[0] = "h"
    model.graph.node.append(helper.make_node("LayerNormalization", ["h", "s"], ["y"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(5, np.float32), "s"))
    with pytest.raises(ModelError) as caught:
        read_proto(save(model, tmp_path))
    (problem,) = caught.value.problems
    assert (problem.op, problem.reason) == ("LayerNormalization", "ONNX has no such operator in opset 12")


def test_the_mask_of_a_dropout_may_not_be_read(tmp_path: Path) -> None:
    model, _ = model_of("Dropout", (7, X, (), {}))
    model.graph.node[0].output.append("mask")
    model.graph.output.append(helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, X.shape))
    with pytest.raises(ModelError) as caught:
        read_proto(save(model, tmp_path))
    (problem,) = caught.value.problems
    assert problem.reason.startswith("its mask is read")
