"""The flow of `adapt build`: a model up to its features, and a head that learns on the device."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcudeploy.boards.board import Board
from mcudeploy.commands.build import build_models
from mcudeploy.commands.heads import head_bytes
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.frontend.features import write_features_model
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json


def build_adaptable(
    path: Path,
    board: Board,
    options: Options,
    directory: Path,
    *,
    features: str,
    classes: int,
    force: bool = False,
    library_only: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write the library of a model that ends at its features, with prototypes of a number of classes.

    `features` names an operator or a tensor of the file. Returns the object of `build`, and `head`. Raises
    what `build_models` and `with_head` raise.
    """
    if options.plan_file is not None:
        raise UsageError("--plan is a plan of the whole model: leave it out")
    graph = read_model(path, options, isa=board.isa).graph
    outputs = {it.name: it.output for it in graph.operators}
    reference = graph.references.get(outputs.get(features, ""))
    tensor = features if reference is None else reference.name
    with TemporaryDirectory(prefix="mcudeploy-") as folder:
        part = Path(folder, path.name)  # the C library has the model's name
        write_features_model(path, tensor, part)
        built = build_models(
            [part],
            board,
            options,
            directory,
            force=force,
            library_only=library_only,
            classes=classes,
            progress=progress,
        )
        graph = built.models[0].made.plan.graph
        (border,) = graph.own_outputs()
        count = graph.tensors[border.tensor].elements
        sizes = {"classes": classes, "features": count, "bytes": head_bytes(classes, count)}
        return {**as_json(built), "head": {"kind": "prototypes", **sizes}}
