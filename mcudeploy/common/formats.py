"""Files and folders of models in unsupported formats, and how to convert them."""

from __future__ import annotations

import re
from pathlib import Path

_PYTORCH = "It is a PyTorch file: torch.onnx.export(model, (example,), 'model.onnx') makes an ONNX file of it"
_KERAS = (
    "It is a Keras file: tf.lite.TFLiteConverter.from_keras_model(model) makes a .tflite file of it, "
    "tf2onnx.convert.from_keras an ONNX file"
)
_TENSORFLOW = (
    "It is a model of TensorFlow: tf.lite.TFLiteConverter.from_saved_model(FOLDER) makes a .tflite file of "
    "it, python -m tf2onnx.convert --saved-model FOLDER --output model.onnx an ONNX file"
)
_PICKLED = (
    "It is a pickled Python object: skl2onnx.to_onnx(model, X[:1]) makes an ONNX file of a model of "
    "scikit-learn, onnxmltools of other libraries"
)
_RUNTIME = "It is in ONNX Runtime's own format: give the .onnx file that it was made of"
_EXECUTORCH = (
    "It is a program for ExecuTorch: torch.onnx.export(model, (example,), 'model.onnx') makes an ONNX file "
    "of the PyTorch model"
)
_ESP_DL = "It is a model for ESP-DL: give the .onnx file that it was made of"
_BROWSER = (
    "It is a model of TensorFlow.js: tensorflowjs_converter --input_format tfjs_layers_model "
    "--output_format keras model.json model.h5 makes a Keras file of it; then convert that to .tflite"
)
_POINTER = "It is a pointer of Git LFS, not the file itself: git lfs pull fetches the file"
_PAGE = "It is a web page, not the file itself: download the raw file"
_GZIP = "It is compressed: gunzip unpacks it"
_JSON = "It is a JSON text, not a model with weights: export the model as .onnx or .tflite"
_WEIGHTS = (
    "It is a safetensors file, which holds weights without a network: load it into the model that it "
    "belongs to; torch.onnx.export(model, (example,), 'model.onnx') makes an ONNX file of that"
)
_BOM = b"\xef\xbb\xbf"
"""The mark with which some editors begin a text."""
_ENDINGS = {
    **dict.fromkeys((".ckpt", ".pt", ".pt2", ".pth"), _PYTORCH),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS),
    **dict.fromkeys((".joblib", ".pickle", ".pkl"), _PICKLED),
    ".espdl": _ESP_DL,
    ".ort": _RUNTIME,
    ".pb": _TENSORFLOW,
    ".pte": _EXECUTORCH,
    ".safetensors": _WEIGHTS,
}
_CONTENTS = (
    (rb"version https://git-lfs\.", _POINTER),
    (rb"(?i)\s*<(!doctype html|html)", _PAGE),
    (rb'\s*\{[^\0]*"(modelTopology|weightsManifest)"', _BROWSER),
    (rb'\s*[{[]\s*(["{}[\]]|-?\d)', _JSON),
    (rb"\x1f\x8b", _GZIP),
    (rb'(?s).{8}\{\s*"', _WEIGHTS),
    (rb"\x89HDF", _KERAS),
    (rb"(?s).{4}ORTM", _RUNTIME),
    (rb"(?s).{4}ET\d\d", _EXECUTORCH),
    (rb"[EP]DL\d", _ESP_DL),
)
_HEAD_BYTES = 4096


def conversion_hint(path: Path) -> str:
    """Return how to convert a model in another format, as a sentence after ". "; "" if it is unknown."""
    if path.is_dir():
        return f". {_TENSORFLOW}" if (path / "saved_model.pb").is_file() else ""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES).removeprefix(_BOM)
    by_content = next((way for pattern, way in _CONTENTS if re.match(pattern, head)), "")
    kind = by_content or _ENDINGS.get(path.suffix.lower(), "")
    return f". {kind}" if kind else ""
