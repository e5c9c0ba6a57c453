"""Rules for operators of ai.onnx.ml that prepare columns of a table: Imputer, encoders, FeatureVectorizer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from mcudeploy.frontend.decompose.index_rules import as_int64
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_MOST_KEYS = 64


def imputer(make: Maker) -> None:
    """Replace Imputer: constants replace one number, or NaN."""
    make.require_float()
    x, values = make.inputs[0], make.constant(make.attributes.get("imputed_value_floats", ()))
    width = make.sizes(x)[-1]
    if len(make.attributes.get("imputed_value_floats", ())) not in (1, width):
        raise Unsupported(f"its values do not fit {width} columns")
    missing = make.number("replaced_value_float")
    if np.isnan(missing):
        present = make.add("Equal", x, x)
        make.add("Where", present, x, values, out=make.outputs[0])
    else:
        make.add("Where", make.add("Equal", x, make.constant(missing)), values, x, out=make.outputs[0])


def one_hot_encoder(make: Maker) -> None:
    """Replace OneHotEncoder of numbers: 1 at the place of the category; zeros for others."""
    if make.attributes.get("cats_strings"):
        raise Unsupported("its categories are texts: encode them as numbers before the model")
    if not make.integer("zeros", 1):
        raise Unsupported("zeros=0 is not supported: a program has no error for an unknown category")
    x, categories = make.inputs[0], make.attributes.get("cats_int64s", ())
    column = make.reshaped(as_int64(make, x), (*make.sizes(x), 1))
    equal = make.add("Equal", column, make.int64(categories))
    make.add("Cast", equal, out=make.outputs[0], to=TensorProto.FLOAT)


def feature_vectorizer(make: Maker) -> None:
    """Replace FeatureVectorizer: join the rows of all inputs, as float32."""
    widths = make.attributes.get("inputdimensions", ())
    if len(widths) != len(make.inputs):
        raise Unsupported(f"{len(widths)} widths do not fit {len(make.inputs)} inputs")
    parts = []
    for name, width in zip(make.inputs, widths, strict=True):
        shape = make.sizes(name)
        if shape[-1] != width:
            raise Unsupported(
                f"{width} of {shape[-1]} values of a row are selected: only whole rows are supported"
            )
        real = name if make.dtype(name) == "float32" else make.add("Cast", name, to=TensorProto.FLOAT)
        parts.append(real if len(shape) == 2 else make.reshaped(real, (1, width)))
    make.add("Concat", *parts, out=make.outputs[0], axis=1)


def label_encoder(make: Maker) -> None:
    """Replace LabelEncoder from numbers to numbers, by a comparison with each key."""
    keys, values = _numbers(make, "keys"), _numbers(make, "values")
    if keys.size != values.size or not 1 <= keys.size <= _MOST_KEYS:
        raise Unsupported(f"{keys.size} keys and {values.size} values; 1 to {_MOST_KEYS} pairs are supported")
    x, otherwise = make.inputs[0], _default(make, values)
    result = make.constant(np.full([1] * len(make.sizes(x)), otherwise, values.dtype), values.dtype)
    for key, value in reversed(list(zip(keys, values, strict=True))):  # the first of equal keys counts
        same = make.add("Equal", x, make.constant(key, keys.dtype))
        result = make.add("Where", same, make.constant(value, values.dtype), result)
    make.add("Identity", result, out=make.outputs[0])


def _numbers(make: Maker, label: str) -> NDArray[Any]:
    if f"{label}_strings" in make.attributes:
        raise Unsupported(f"its {label} are texts: encode them as numbers before or after the model")
    for kind, dtype in (("floats", np.float32), ("int64s", np.int64)):
        if f"{label}_{kind}" in make.attributes:
            return np.array(make.attributes[f"{label}_{kind}"], dtype)
    tensor = make.attributes.get(f"{label}_tensor")
    if tensor is None or tensor.data_type not in (TensorProto.FLOAT, TensorProto.INT64):
        raise Unsupported(f"its {label} are neither float32 nor int64")
    return np.asarray(numpy_helper.to_array(tensor).reshape(-1))


def _default(make: Maker, values: NDArray[Any]) -> float:
    """The value of numbers that equal no key."""
    tensor = make.attributes.get("default_tensor")
    if tensor is not None:
        return float(numpy_helper.to_array(tensor).reshape(-1)[0])
    if values.dtype == np.float32:
        return make.number("default_float", -0.0)
    return make.integer("default_int64", -1)
