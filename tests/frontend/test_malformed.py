"""Whatever a file holds: a ModelError that names the cause, quickly, and nothing else."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import QuantizedModel, build, node, save
from tests.networks.refusals import problems_of

X = np.zeros((1, 3, 6, 6), np.float32)


def valid() -> onnx.ModelProto:
    m = QuantizedModel()
    c = m.add("Conv", f"{m.quantize('x', 0.05, 5)} {m.weights('w', (3, 3, 3, 3))}", "c", pads=[1, 1, 1, 1])
    p = m.add("MaxPool", m.quantize(m.add("Relu", c, "r"), 0.05, -128), "p", kernel_shape=[2, 2])
    m.constants["s"] = np.array([1, -1])
    f = m.add("Reshape", f"{p} s", "f")
    y = m.quantize(m.add("Gemm", f"{f} {m.weights('g', (75, 4), axis=1)}", "d"), 0.1, 0)
    return build(m.nodes, {"x": X}, [y], m.constants)


VALID = valid().SerializeToString()


def refused(model: onnx.ModelProto, folder: Path, words: str) -> ModelError:
    with pytest.raises(ModelError, match=words) as caught:
        load(save(model, folder))
    assert str(caught.value).isprintable() or caught.value.problems
    return caught.value


def test_the_model_of_these_tests_is_valid(tmp_path: Path) -> None:
    assert load(save(valid(), tmp_path)).operators


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(VALID[: data.draw(st.integers(0, len(VALID)), label="length")])
    for _ in range(data.draw(st.integers(0, 4), label="flips")):
        if content:
            position = data.draw(st.integers(0, len(content) - 1))
            content[position] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "damaged.onnx"
    path.write_bytes(bytes(content))
    _loads_or_refuses(path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
@example(content=b"")
@example(content=b"\x3a\x00")
@example(content=b"not a model at all")
def test_random_bytes(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "random.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        load(path)


def _loads_or_refuses(path: Path) -> None:
    try:
        load(path)
    except ModelError as refusal:
        assert str(refusal)


_TYPES = [TensorProto.FLOAT16, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT4, 99]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_altered_models(data: st.DataObject, tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        data.draw(st.sampled_from(_ALTERATIONS))(model, data)
    _loads_or_refuses(save(model, tmp_path))


def _wrong_type(model: onnx.ModelProto, data: st.DataObject) -> None:
    data.draw(st.sampled_from(list(model.graph.initializer))).data_type = data.draw(st.sampled_from(_TYPES))


def _wrong_shape(model: onnx.ModelProto, data: st.DataObject) -> None:
    tensor = data.draw(st.sampled_from(list(model.graph.initializer)))
    del tensor.dims[:]
    tensor.dims.extend(data.draw(st.lists(st.integers(-1, 2**40), max_size=5)))


def _wrong_values(model: onnx.ModelProto, data: st.DataObject) -> None:
    tensor = data.draw(st.sampled_from(list(model.graph.initializer)))
    try:
        array = numpy_helper.to_array(tensor).copy()
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):
        return
    if array.size and array.dtype.kind in "if":
        value = data.draw(st.sampled_from([0, -1, 1e30, -1e30, np.nan, np.inf, 2**31]))
        with np.errstate(all="ignore"):
            array.reshape(-1)[: data.draw(st.integers(1, 3))] = np.array(value).astype(array.dtype)
        tensor.raw_data = array.tobytes()


def _wrong_wire(model: onnx.ModelProto, data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(list(model.graph.node)))
    names = [name for item in model.graph.node for name in (*item.input, *item.output)]
    if changed.input:
        changed.input[data.draw(st.integers(0, len(changed.input) - 1))] = data.draw(st.sampled_from(names))


def _wrong_op(model: onnx.ModelProto, data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(list(model.graph.node)))
    changed.op_type = data.draw(
        st.sampled_from(
            ["Add", "MatMul", "Softmax", "Concat", "Transpose", "Squeeze", "Pad", "Split", "Slice", "If"]
        )
    )


def _wrong_attribute(model: onnx.ModelProto, data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(list(model.graph.node)))
    name = data.draw(
        st.sampled_from(["kernel_shape", "pads", "strides", "dilations", "group", "axis", "perm"])
    )
    value = data.draw(
        st.one_of(
            st.integers(-(2**62), 2**62),
            st.lists(st.integers(-3, 2**62), min_size=1, max_size=4),
            st.just("text"),
        )
    )
    kept = [attribute for attribute in changed.attribute if attribute.name != name]
    del changed.attribute[:]
    changed.attribute.extend([*kept, helper.make_attribute(name, value)])


def _wrong_input(model: onnx.ModelProto, data: st.DataObject) -> None:
    kind = model.graph.input[0].type.tensor_type
    kind.elem_type = data.draw(st.sampled_from([1, 2, 3, 7, 10, 11]))
    for dimension in kind.shape.dim:
        dimension.dim_value = data.draw(st.sampled_from([1, 3, 6, 0, -1, 2**33]))


_ALTERATIONS: list[Callable[[onnx.ModelProto, st.DataObject], None]] = [
    _wrong_type,
    _wrong_shape,
    _wrong_values,
    _wrong_wire,
    _wrong_op,
    _wrong_attribute,
    _wrong_input,
]


def test_missing_file_folder_and_empty_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ModelError, match=r"cannot be read|is not a file"):
            load(path)
    empty = tmp_path / "empty.onnx"
    empty.touch()
    with pytest.raises(ModelError, match="is empty"):
        load(empty)


def test_a_file_of_one_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    path.touch()
    os.truncate(path, 2**30)
    with pytest.raises(ModelError, match="1024 MiB; the limit is 512 MiB"):
        load(path)


def test_cycle_and_order(tmp_path: Path) -> None:
    model = valid()
    model.graph.node[2].input[0] = model.graph.node[-1].output[0]
    refused(model, tmp_path, "form a cycle or are out of order")
    model = valid()
    model.graph.node[2].input[0] = "nowhere"
    refused(model, tmp_path, "'nowhere', which nothing makes")


def test_duplicate_names(tmp_path: Path) -> None:
    model = valid()
    model.graph.node[3].output[0] = model.graph.node[0].output[0]
    refused(model, tmp_path, "exists already")


def test_ir_version_of_the_future(tmp_path: Path) -> None:
    model = valid()
    model.ir_version = onnx.IR_VERSION + 1
    refused(model, tmp_path, f"IR version {onnx.IR_VERSION + 1}; up to {onnx.IR_VERSION} is read. Export")


def test_open_dimension(tmp_path: Path) -> None:
    model = valid()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    refused(model, tmp_path, r"input 'x' has an open dimension 2 \(height\)")


def test_negative_dimension(tmp_path: Path) -> None:
    model = valid()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -3
    refused(model, tmp_path, r"input 'x' has an open dimension 2 \(\?\).*--shape x=")


@pytest.mark.parametrize(
    ("op", "constants"),
    [
        ("ConstantOfShape", {"a": np.array([1 << 20, 1 << 20])}),
        ("Expand", {"v": np.ones(1, np.float32), "a": np.array([1 << 40])}),
        ("Tile", {"v": np.ones(3, np.float32), "a": np.array([1 << 33])}),
        ("Range", {"a": np.array(0), "v": np.array(2**40), "d": np.array(1)}),
    ],
)
def test_absurd_constants_take_no_memory(op: str, constants: dict[str, np.ndarray], tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    order = {"Range": "a v d", "ConstantOfShape": "a"}.get(op, "v a")
    nodes = [node(op, order, "big"), node("ReduceSum", "big", "sum", keepdims=0)]
    if op == "Range":
        nodes.append(node("Cast", "sum", "number", to=1))
    nodes.append(node("Add", "x number" if op == "Range" else "x sum", "y"))
    model = build(nodes, {"x": X}, ["y"], constants)
    refused(model, tmp_path, "the limit is")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_absurd_activation(tmp_path: Path) -> None:
    model = valid()
    for axis in (2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = 2**20
    del model.graph.value_info[:]
    refused(model, tmp_path, r"the limit is|malformed")


def test_more_dimensions_than_arrays_have(tmp_path: Path) -> None:
    model = build([node("Relu", "x", "y")], {"x": np.ones((1,) * 60, np.float32)}, ["y"])
    refused(model, tmp_path, "60 dimensions; the limit is 32")
    model = valid()
    model.graph.initializer[0].dims[:] = [1] * 300
    refused(model, tmp_path, "has 300 dimensions; the limit is 32")


def test_the_elements_of_a_file_count_without_those_of_its_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LogSoftmax becomes eight operators, each of its size."""
    path = save(build([node("LogSoftmax", "x", "y")], {"x": np.ones((1, 40), np.float32)}, ["y"]), tmp_path)
    monkeypatch.setattr("mcudeploy.frontend.onnx.convert.MAX_TOTAL_ELEMENTS", 80)
    monkeypatch.setattr("mcudeploy.frontend.lower.builder.MAX_MADE_ELEMENTS", 400)
    assert sum(tensor.elements for tensor in load(path).tensors.values()) > 80
    monkeypatch.setattr("mcudeploy.frontend.onnx.convert.MAX_TOTAL_ELEMENTS", 79)
    with pytest.raises(
        ModelError, match=r"80 elements; the limit is 79.* largest, 'x', has the shape \[1, 40\]"
    ):
        load(path)
    monkeypatch.undo()
    monkeypatch.setattr("mcudeploy.frontend.lower.builder.MAX_MADE_ELEMENTS", 80)
    assert "a limit of mcudeploy" in problems_of(path)[0].reason


def test_data_that_does_not_fit_its_shape(tmp_path: Path) -> None:
    model = valid()
    tensor = next(item for item in model.graph.initializer if item.name == "w_i")
    tensor.raw_data = tensor.raw_data[:-1]
    refused(model, tmp_path, "'w_i' has 80 bytes of data")


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/passwd", "missing.bin", ""])
def test_external_data_stays_in_the_folder(location: str, tmp_path: Path) -> None:
    (tmp_path / "outside.bin").write_bytes(bytes(81))
    folder = tmp_path / "model"
    folder.mkdir()
    refused(_external(location), folder, "not a file in the model's folder")


@pytest.mark.parametrize("shape", [[1, 3, 18], [54], [-2, -2, 27], [-1, -1, 3], [5, -1], [2**62, 4, -1]])
def test_a_reshape_to_another_number_of_elements(shape: list[int], tmp_path: Path) -> None:
    nodes = [node("Reshape", "x s", "r"), node("Relu", "r", "y")]
    model = build(nodes, {"x": X}, ["y"], {"s": np.array([1, 3, 36])})
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(np.array(shape), tensor.name))
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.shape.ClearField("dim")
        output.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
    refused(model, tmp_path, "not supported|malformed")


def test_external_data_is_read(tmp_path: Path) -> None:
    model = valid()
    content = next(item for item in model.graph.initializer if item.name == "w_i").raw_data
    (tmp_path / "data.bin").write_bytes(content)
    assert load(save(_external("data.bin"), tmp_path)).operators
    (tmp_path / "data.bin").write_bytes(content[:10])
    refused(_external("data.bin"), tmp_path, "ends early: 10 of 81 bytes")


def _external(location: str) -> onnx.ModelProto:
    model = valid()
    tensor = next(item for item in model.graph.initializer if item.name == "w_i")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    return model


@pytest.mark.parametrize("scale", [0.0, -0.1, np.nan, np.inf])
def test_bad_scales(scale: float, tmp_path: Path) -> None:
    model = valid()
    for tensor in model.graph.initializer:
        if tensor.name.startswith("x_0") and tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(np.array(scale, np.float32), tensor.name))
    refused(model, tmp_path, "scale")


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    weights = np.full((3, 3, 1, 1), np.nan, np.float32)
    refused(build([node("Conv", "x w", "y")], {"x": X}, ["y"], {"w": weights}), tmp_path, "hold NaN")


def test_names_are_not_trusted(tmp_path: Path) -> None:
    evil = '*/ system("x");\n\x1b[31m' + "a" * 500
    model = build([node("Conv", "x w", "y")], {"x": X}, ["y"], {"w": np.ones((3, 3, 1, 1), np.float32)})
    model.graph.node[0].name = evil
    model.graph.input[0].name = model.graph.node[0].input[0] = evil
    graph = load(save(model, tmp_path))
    for name in (*graph.tensors, *(operator.name for operator in graph.operators)):
        assert name.isidentifier()
        assert name == name.lower()
    assert graph.inputs[0].name == evil
    model.graph.node[0].op_type = "Bernoulli"
    del model.graph.node[0].input[1]
    error = refused(model, tmp_path, "not supported")
    assert "\x1b" not in str(error)


def test_operators_that_onnx_does_not_know_are_all_named(tmp_path: Path) -> None:
    model = valid()
    kinds = ["Frobnicate", "Gnarl"]
    model.graph.node.extend(helper.make_node(kind, ["x"], [f"of_{kind}"], name=kind) for kind in kinds)
    error = refused(model, tmp_path, "2 nodes are not supported")
    assert [problem.op for problem in error.problems] == kinds
