"""`mcudeploy.load`: a model from a file or from memory, to be planned for boards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MethodType
from typing import Any, Protocol, Unpack, cast

from mcudeploy.commands import python
from mcudeploy.commands.keywords import Choices, Named, Reading, options_of, with_keywords
from mcudeploy.common.c_arrays import model_file
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.extension import added
from mcudeploy.ir.graph import GraphIO
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.model.model import Model, read_model

_TFLITE = b"TFL3"
"""Bytes 4 to 7 of a .tflite file."""


class Serializable(Protocol):
    """An `onnx.ModelProto`."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The bytes of its file."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoadedModel:
    """A model that can be deployed. `choices`: the options of its reading, which its plans keep."""

    path: Path
    model: Model
    choices: Choices
    folder: TemporaryDirectory[str] | None = None
    """The folder of the file if the model came from memory; it is removed with the last plan of the model."""

    def __repr__(self) -> str:
        """One line."""
        graph = self.model.graph
        sizes = f"{len(graph.operators)} operators, {self.model.macs:,} MACs"
        return f"<model {self.path.name}: {sizes}, inputs {_shapes(graph.own_inputs())}>"

    @with_keywords
    def check(self, board: Named | None = None, **choices: Unpack[Choices]) -> python.Report:
        """Return the sizes of the model; with a board, whether it fits."""
        return python.check(self.path, board, **self._with(choices))

    @with_keywords
    def fit(self, boards: Iterable[Named], **choices: Unpack[Choices]) -> python.Report:
        """Return how the model suits each of these boards, the smallest that fits first."""
        return python.fit(self.path, boards, **self._with(choices))

    @with_keywords
    def plan(self, board: Named, **choices: Unpack[Choices]) -> python.PlanResult:
        """Order and place all tensors on a board. Raises FitError if there is no room."""
        return replace(python.plan(self.path, board, **self._with(choices)), source=self.folder)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method that an extension adds."""
        if name.startswith("_") or name not in (methods := _methods()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return MethodType(methods[name], self)

    def __dir__(self) -> list[str]:
        """List the attributes, for completion in a notebook."""
        return sorted({*object.__dir__(self), *_methods()})

    def _with(self, choices: Choices) -> Choices:
        return {**self.choices, **choices}


def _methods() -> dict[str, Callable[..., Any]]:
    """Return what extensions add to loaded models, by name."""
    return {name: method for methods in added("methods") for name, method in methods.items()}


def load(model: str | Path | bytes | Serializable, **reading: Unpack[Reading]) -> LoadedModel:
    """Read a model: the path of an .onnx or .tflite file, the bytes of one, or an `onnx.ModelProto`.

    Raises ModelError, which lists all unsupported nodes.
    """
    return load_for(model, Isa.ANY, cast("Choices", reading))


def load_for(model: str | Path | bytes | Serializable, isa: Isa, choices: Choices) -> LoadedModel:
    """Read a model as `load` does, with the kernels of a core."""
    path, folder = _file(model)
    try:
        return LoadedModel(path, read_model(path, options_of(choices), isa=isa), choices, folder)
    except ModelError as error:
        if folder is not None:  # its file is not the caller's
            folder.cleanup()
            error.args = (str(error).replace(str(path), "the model"),)
        raise


def _file(model: str | Path | bytes | Serializable) -> tuple[Path, TemporaryDirectory[str] | None]:
    """Return the file of a model, and the temporary folder that was made for it, if one was."""
    if isinstance(model, str | Path):
        return model_file(Path(model)), None
    if not isinstance(model, bytes) and not hasattr(model, "SerializeToString"):
        raise UsageError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    content = model if isinstance(model, bytes) else model.SerializeToString()
    folder = TemporaryDirectory(prefix="mcudeploy-")
    path = Path(folder.name, "model.tflite" if content[4:8] == _TFLITE else "model.onnx")
    path.write_bytes(content)
    return path, folder


def _shapes(ios: Iterable[GraphIO]) -> str:
    return ", ".join(f"{it.name} {list(it.shape)}" for it in ios)
