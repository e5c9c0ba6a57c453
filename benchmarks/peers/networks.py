"""The networks of the league: their files, one sample each, and outputs as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from mcudeploy.frontend.parsing import is_tflite, with_data
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]
_SEED = 0
_INTEGERS = {"QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"}
_CONVOLUTIONS = {"Conv", "QLinearConv", "ConvInteger"}


@dataclass(frozen=True)
class Network:
    """A network: its file in the form that mcudeploy reads, and the forms that other tools read.

    `tflite`: the file that TensorFlow Lite Micro reads: `path` itself, or the origin of the ONNX model.
    """

    name: str
    path: Path
    tflite: Path | None
    float_twin: Path | None

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The ONNX model; translated, if the file is TFLite."""
        return with_data(self.path) if is_tflite(self.path) else onnx.load(self.path)

    @property
    def files(self) -> list[Path]:
        """All files whose content decides about figures."""
        samples = sorted(self.path.parent.glob("input_?.npy")) if self.path.name == "model.onnx" else []
        return [*dict.fromkeys((self.path, *filter(None, (self.tflite, self.float_twin)))), *samples]

    @property
    def twin(self) -> Network:
        """The same network in float32."""
        if self.float_twin is None:
            raise ValueError(f"{self.name} has no float twin")
        return Network(self.float_twin.parent.name, self.float_twin, None, None)

    @property
    def is_int8(self) -> bool:
        return any(node.op_type in _INTEGERS for node in self.model.graph.node)

    @property
    def is_convolutional(self) -> bool:
        return any(node.op_type in _CONVOLUTIONS for node in self.model.graph.node)

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """The sample beside the model; drawn from a seed, if there is none."""
        constants = {it.name for it in self.model.graph.initializer}
        ios = [it for it in self.model.graph.input if it.name not in constants]
        rng = np.random.default_rng(_SEED)
        files = [self.path.with_name(f"input_{number}.npy") for number in range(len(ios))]
        return {
            io.name: np.load(file) if file.is_file() else _drawn(io, rng)
            for io, file in zip(ios, files, strict=True)
        }

    @property
    def output_names(self) -> list[str]:
        return [it.name for it in self.model.graph.output]

    def outputs(self, names: Sequence[str]) -> list[Array]:
        """Return tensors of the ONNX model for the sample, by ONNX Runtime without graph optimisations."""
        values = Reference(self.path, names).run(self.inputs)
        return [values[name] for name in names]


def networks_in(root: Path) -> list[Network]:
    """Return the networks of a collection.

    They are <group>/<name>/model.onnx with samples input_<k>.npy beside it, and files <name>.tflite, which
    round otherwise than an ONNX model of the same name. <name>_fp32 is the float twin of <name>_int8.
    """
    folders = {it.parent.name: it for it in sorted(root.glob("**/model.onnx"))}
    flat = {it.stem: it for it in sorted(root.glob("**/*.tflite"))}
    models = [Network(name, path, flat.get(name), _twin(name, folders)) for name, path in folders.items()]
    originals = [Network(it.name, it, it, _twin(name, folders)) for name, it in flat.items()]
    return sorted([*models, *originals], key=lambda it: it.name)


def _twin(name: str, folders: dict[str, Path]) -> Path | None:
    base, _, kind = name.rpartition("_int8")
    return folders.get(f"{base}_fp32") if base and kind in ("", "io") else None


def _drawn(io: onnx.ValueInfoProto, rng: np.random.Generator) -> Array:
    kind = io.type.tensor_type
    shape = [it.dim_value or 1 for it in kind.shape.dim]
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (0, 1)
    return rng.integers(low, high, shape, dtype, endpoint=True)
