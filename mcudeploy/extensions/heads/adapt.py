"""The flow of `adapt build`: a model up to its features, and a head that learns on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnx.shape_inference
from onnx.utils import Extractor

from mcudeploy.boards.board import Board
from mcudeploy.commands.build import build_models
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.extensions.evaluation.dataset import DataRequest
from mcudeploy.extensions.heads.head_statistics import training_statistics
from mcudeploy.extensions.heads.heads import HeadPart, head_bytes, require_features
from mcudeploy.frontend.parsing import is_tflite
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json


@dataclass(frozen=True, slots=True)
class AdaptRequest:
    """A library that learns: its folder, the head, and the tensor that the head reads.

    `features` names an operator or a tensor of the file. `statistics`: training data, to whose statistics the
    head maps the features of the device. `force`: overwrite files that mcudeploy did not write.
    """

    directory: Path
    features: str
    head: HeadPart
    statistics: DataRequest | None = None
    force: bool = False


def build_adaptable(
    path: Path,
    board: Board,
    options: Options,
    request: AdaptRequest,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write the library of a model that ends at its features, with a head on them.

    Returns the object of `build`, and `head`. Raises what `build_models` and `with_head` raise.
    """
    head, statistics = request.head, request.statistics
    with TemporaryDirectory(prefix="mcudeploy-") as folder:
        part = features_model(path, board, options, request.features, Path(folder))
        require_features(read_model(part, options, isa=board.isa).graph)
        if statistics is not None:
            head = replace(head, statistics=training_statistics(part, options, statistics, progress))
        library = BuildRequest(
            *([part], board, options, request.directory),
            force=request.force,
            library_only=True,
            parts=[head],
        )
        built = build_models(library, progress)
        built_head = built.models[0].program.head
        assert built_head is not None
        facts = {
            "kind": built_head.kind,
            "classes": built_head.classes,
            "features": built_head.features,
            "examples": built_head.numbers.get("capacity"),
            "statistics": built_head.statistics is not None,
            "bytes": head_bytes(built_head),
        }
        return {**as_json(built), "head": facts}


def features_model(path: Path, board: Board, options: Options, features: str, folder: Path) -> Path:
    """Write the model up to an operator, a node or a tensor of its file into a folder; return the new file.

    Raises UsageError for other names, and for a plan of the whole model.
    """
    if options.states_plan:
        raise UsageError("--plan and --order are of the whole model: leave them out")
    graph = read_model(path, options, isa=board.isa).graph
    outputs = {node: it.output for it in graph.operators for node in it.onnx_nodes}
    outputs |= {it.name: it.output for it in graph.operators}
    reference = graph.references.get(outputs.get(features, ""))
    part = folder / path.name
    _write_part(path, features if reference is None else reference.name, part)
    return part


def _write_part(path: Path, tensor: str, destination: Path) -> None:
    """Write the part of an ONNX model that computes a tensor, which becomes its output.

    Raises UsageError for a .tflite file and for a tensor that the model does not have.
    """
    if is_tflite(path):
        raise UsageError(f"{path.name}: a head needs an ONNX file")
    model = onnx.load(path)
    produced = [name for node in model.graph.node for name in node.output]
    if tensor not in produced:
        last = ", ".join(produced[-8:])
        raise UsageError(
            f"--features {tensor}: {path.name} has no such operator or tensor; its last tensors are {last}"
        )
    initializers = {it.name for it in model.graph.initializer}
    inputs = [it.name for it in model.graph.input if it.name not in initializers]
    try:
        part = Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(inputs, [tensor])
    except (ValueError, KeyError) as error:
        raise ModelError(f"{path.name} cannot end at {tensor}: {error}") from error
    onnx.save(part, destination)
