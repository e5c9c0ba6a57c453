"""Files of scikit-learn as skl2onnx writes them: labels are texts, probabilities maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import ModelError
from mcudeploy.device.target import Target
from mcudeploy.frontend.load import load
from mcudeploy.frontend.reader import read
from mcudeploy.planner.plan_options import Options
from tests import reports

NAMES = ["red wine", "white", "rosé"]
WIDTH = 4
ML = {"domain": "ai.onnx.ml"}


def saved(folder: Path, nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> Path:
    maps = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
    graph = helper.make_graph(
        nodes,
        "wines",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, WIDTH])],
        [
            helper.make_tensor_value_info("label", TensorProto.STRING, [None]),
            helper.make_value_info("chances", helper.make_sequence_type_proto(maps)),
        ],
        constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    path = folder / "wines.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def zip_map() -> onnx.NodeProto:
    return helper.make_node("ZipMap", ["scores"], ["chances"], classlabels_strings=NAMES, **ML)


def classifier(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["text", "scores"],
        classlabels_strings=NAMES,
        coefficients=rng.normal(size=3 * WIDTH).tolist(),
        intercepts=rng.normal(size=3).tolist(),
        post_transform="SOFTMAX",
        **ML,
    )
    cast = helper.make_node("Cast", ["text"], ["label"], to=TensorProto.STRING)
    return saved(folder, [node, cast, zip_map()], [])


def table(folder: Path) -> Path:
    """The label is an element of a table of texts."""
    weights = np.random.default_rng(1).normal(size=(WIDTH, 3)).astype(np.float32)
    shape = np.array([-1], np.int64)
    nodes = [
        helper.make_node("MatMul", ["x", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
        helper.make_node("ArgMax", ["scores"], ["place"], axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "place"], ["chosen"], **ML),
        helper.make_node("Reshape", ["chosen", "shape"], ["label"]),
        zip_map(),
    ]
    classes = helper.make_tensor("classes", TensorProto.STRING, [3], [name.encode() for name in NAMES])
    constants = [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(shape, "shape")]
    return saved(folder, nodes, [classes, *constants])


@pytest.mark.parametrize("make", [classifier, table])
def test_labels_are_indices_and_maps_are_rows(make: Any, tmp_path: Path) -> None:
    path = make(tmp_path)
    x = np.random.default_rng(2).normal(size=(8, 1, WIDTH)).astype(np.float32)
    session = onnxruntime.InferenceSession(path)
    outputs = [session.run(None, {"x": row}) for row in x]
    labels = np.array([[NAMES.index(label[0])] for label, _ in outputs])
    chances = np.array([[[row[0][name] for name in NAMES]] for _, row in outputs], np.float32)
    assert len(np.unique(labels)) > 1
    files = [tmp_path / name for name in ("x.npy", "labels.npy", "chances.npy")]
    for file, values in zip(files, (x, labels, chances), strict=True):
        np.save(file, values)
    host = Target(load_board("host"))
    report = reports.run_model(path, host, Options(time_limit=0.5), inputs=files[:1], expected=files[1:])
    assert report["verified"], report["reason"]
    assert len(report["outputs"]) == 2 * len(x)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_integers_are_converted(kind: int, tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    model.graph.input[0].type.tensor_type.elem_type = kind
    onnx.save(model, tmp_path / "integers.onnx")
    host = Target(load_board("host"))
    report = reports.run_model(
        tmp_path / "integers.onnx", host, Options(time_limit=0.5), inputs=[], expected=[]
    )
    assert report["verified"], report["reason"]


def test_a_note_states_the_order(tmp_path: Path) -> None:
    notes = read(classifier(tmp_path)).notes
    assert "classes are in the order of the file: 0 red wine, 1 white, 2 rosé" in notes


def test_hostile_names_are_printable(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    for node in model.graph.node:
        for item in node.attribute:
            if item.name == "classlabels_strings":
                item.strings[0] = b"\x1b[31mred\n\xff"
    onnx.save(model, tmp_path / "hostile.onnx")
    (note,) = (it for it in read(tmp_path / "hostile.onnx").notes if "classes" in it)
    assert note.isprintable()


def without_output(model: onnx.ModelProto) -> None:
    del model.graph.node[-1].output[:]


def with_a_number_for_names(model: onnx.ModelProto) -> None:
    model.graph.node[-1].attribute[0].CopyFrom(helper.make_attribute("classlabels_strings", 3))


def with_too_few_classes(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = 5


@pytest.mark.parametrize("damage", [without_output, with_a_number_for_names, with_too_few_classes])
def test_damaged_files_are_refused(damage: Any, tmp_path: Path) -> None:
    model = onnx.load(table(tmp_path))
    damage(model)
    onnx.save(model, tmp_path / "damaged.onnx")
    with pytest.raises(ModelError):
        read(tmp_path / "damaged.onnx")


def test_other_numbers_as_texts_are_refused(tmp_path: Path) -> None:
    model = onnx.load(table(tmp_path))
    model.graph.node.append(helper.make_node("Cast", ["scores"], ["texts"], to=TensorProto.STRING))
    model.graph.output.append(helper.make_tensor_value_info("texts", TensorProto.STRING, [None, 3]))
    onnx.save(model, tmp_path / "texts.onnx")
    with pytest.raises(ModelError):
        load(tmp_path / "texts.onnx")
