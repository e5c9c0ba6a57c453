"""Bounds of instructions and cycles: in the header and on a page of a library, and in the report of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mcudeploy.boards.board import Board
from mcudeploy.codegen.program import CallBounds
from mcudeploy.common.progress import Progress
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.extensions.bounds.bounding import bounds_of
from mcudeploy.extensions.bounds.bounds_report import bounds_page, bounds_report
from mcudeploy.extensions.bounds.twin import require_twin
from mcudeploy.verify.samples import Sample, drawn_samples


class BoundsPart(LibraryPart):
    """The most instructions and cycles of a call, in each header and on a page."""

    leaves_constants: ClassVar[bool] = True

    def require(self, request: BuildRequest) -> None:
        """Raise ConfigError if no emulated board has the core."""
        require_twin(request.board)

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return a model with the bounds of its calls. Raises what `bounds_of` raises."""
        deployment = built.deployment
        progress.stage(f"counting the instructions of {deployment.model.path.name} for all inputs")
        bounds = bounds_of(deployment, drawn_samples(deployment.model.graph, request.options.seed)[0])
        calls = CallBounds(
            bounds.run_instructions,
            bounds.run_cycles,
            bounds.step_instructions,
            bounds.step_cycles,
            bounds.compiler,
            deployment.board.core,
        )
        facts = {**built.facts, "bounds": bounds_report(bounds)}
        return replace(built, program=replace(built.program, bounds=calls), facts=facts)

    def files(self, library: Library) -> Mapping[str, str]:
        """Return the page of each model."""
        return {
            f"{prefix}_bounds.md": bounds_page(prefix, each.facts["bounds"])
            for each in library.models
            for prefix in (each.program.prefix,)
        }


class BoundsAnalysis:
    """The most instructions and cycles of each operator of a run, over all inputs."""

    def require(self, board: Board) -> None:
        """Raise ConfigError if no emulated board has the core."""
        require_twin(board)

    def facts(self, deployment: Deployment, sample: Sample, progress: Progress) -> Mapping[str, Any]:
        """Return the bounds. Raises what `bounds_of` raises."""
        progress.stage("counting instructions for all inputs")
        return {"bounds": bounds_report(bounds_of(deployment, sample))}


PARTS = {"bounds": BoundsPart}
