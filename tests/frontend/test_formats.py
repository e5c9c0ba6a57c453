"""Files in other formats are refused with the way in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mcudeploy.common.errors import ModelError
from mcudeploy.common.formats import conversion_hint
from mcudeploy.frontend.load import load
from tests.networks.onnx_files import build, node

CONTENT = build([node("Relu", "x", "y")], {"x": np.ones((1, 2), np.float32)}, ["y"]).SerializeToString()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.pt", b"PK\x03\x04 anything", r"torch\.onnx\.export"),
        ("m.keras", b"PK\x03\x04 anything", "from_keras_model"),
        ("m.h5", b"\x89HDF\r\n", "tf2onnx"),
        ("m.onnx", b"\x89HDF\r\n", "is not an ONNX file. It is a Keras file"),
        ("m.onnx", b"\x93NUMPY", "not an ONNX file, or it is truncated"),
        ("m.tflite", b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        ("m.onnx", b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        ("m.tflite", b"\n<!DOCTYPE html>\n<html>", "is a web page"),
        ("m.onnx", b"\xef\xbb\xbf\n<html>", "is a web page"),
        ("m.onnx", b'\xef\xbb\xbf{"error": "not found"}', "is a JSON text"),
        ("m.tflite", b'[\n  {"name": "conv"}]', "is a JSON text"),
        ("m.onnx", b"\x1f\x8b\x08\0", "is compressed: gunzip unpacks it"),
        ("m.tflite", b"\x1f\x8b\x08\0", "is compressed: gunzip unpacks it"),
        ("m.safetensors", b"\x40\0\0\0\0\0\0\0{}", "holds weights without a network"),
        ("m.onnx", b'\x40\0\0\0\0\0\0\0{"w": {}}', "holds weights without a network"),
        ("m.ort", b"\x20\0\0\0ORTM\0", r"give the \.onnx file"),
        ("m.pte", b"\x20\0\0\0ET12\0", r"torch\.onnx\.export"),
        ("m.espdl", b"EDL2\0", r"ESP-DL: give the \.onnx file"),
        ("model.json", b'{"format": "layers-model", "modelTopology": {}}', "tensorflowjs_converter"),
        ("m.joblib", b"\x80\x04\x95", r"skl2onnx\.to_onnx"),
        ("m.pkl", b"\x80\x04\x95", r"skl2onnx\.to_onnx"),
        ("m.pth", b"\x80\x02", r"torch\.onnx\.export"),
        ("m.tflite", CONTENT, "is an ONNX file, not one of TFLite: give it the ending .onnx"),
    ],
)
def test_the_way_in(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ModelError, match=words):
        load(path)


def test_folders_of_tensorflow(tmp_path: Path) -> None:
    assert conversion_hint(tmp_path) == ""
    (tmp_path / "saved_model.pb").write_bytes(b"")
    assert "TFLiteConverter.from_saved_model" in conversion_hint(tmp_path)
