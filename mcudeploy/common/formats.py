"""Files and folders of models in unsupported formats, and the way in."""

from __future__ import annotations

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
_ENDINGS = {
    **dict.fromkeys((".ckpt", ".pt", ".pt2", ".pth", ".safetensors"), _PYTORCH),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _KERAS),
    ".pb": _TENSORFLOW,
}


def way_in(path: Path) -> str:
    """Return the conversion of a model in another format, with a leading separator; "" if it is unknown."""
    if path.is_dir():
        return f". {_TENSORFLOW}" if (path / "saved_model.pb").is_file() else ""
    found = _ENDINGS.get(path.suffix.lower(), "")
    return f". {found}" if found else ""
