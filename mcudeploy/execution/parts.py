"""Requests of `build` and `run`, and what features add to both: parts of libraries, analyses of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from mcudeploy.boards.board import Board
from mcudeploy.codegen.arenas import ArenaKind
from mcudeploy.codegen.exporters import Kind
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.common.progress import Progress
from mcudeploy.execution.counted import Timing
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.results import BuiltModel
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.preprocessing import AS_USUAL, Preprocessing
from mcudeploy.verify.samples import Sample, ValueSource


@dataclass(frozen=True, slots=True, eq=False)
class BuildRequest:
    """The models of one C library, its board and its folder.

    `verify`: run each program on this computer before anything is written. `force`: overwrite files that
    mcudeploy did not write. `library_only`: build no firmware. `kind`: the build system of the library,
    without firmware. `arena` names the owner of the arenas. `sbom`: add a bill of materials.
    """

    paths: Sequence[Path]
    board: Board
    options: Options
    directory: Path
    verify: bool = True
    force: bool = False
    library_only: bool = False
    kind: Kind | None = None
    arena: ArenaKind = "own"
    sbom: bool = False
    parts: Sequence[LibraryPart] = ()

    @property
    def bare(self) -> bool:
        """Whether the library comes without firmware."""
        return self.library_only or self.board.facts_only or self.kind is not None

    @property
    def with_possible_loads(self) -> BuildRequest:
        """The request without loads of constants, if a part or arenas outside of the program exclude them."""
        if self.arena == "own" and not any(part.leaves_constants for part in self.parts):
            return self
        return replace(self, options=replace(self.options, load_constants="never"))


@dataclass(frozen=True, slots=True, eq=False)
class RunRequest:
    """The samples of a run, and what is asked about it.

    `inputs` and `expected`: one for each input or output and sample; drawn and computed without any.
    `steps`: the number of runs, with the first inputs or drawn ones. `classes`: a file with the class names,
    one a line. `reference`: if it is tflm, outputs must also have the bits of TensorFlow Lite Micro.
    `analyses` state further facts about the program.
    """

    inputs: Sequence[ValueSource] = ()
    expected: Sequence[ValueSource] = ()
    reading: Preprocessing = AS_USUAL
    steps: int | None = None
    classes: Path | None = None
    reference: Literal["onnxruntime", "tflm"] = "onnxruntime"
    timing: Timing = "instructions"
    analyses: Sequence[Analysis] = ()


ONE_DRAWN_RUN = RunRequest()
"""One run with drawn inputs, or several in sequence for a model with states."""


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A library before it is written. `pages`: the files that parts have added, by path."""

    name: str
    models: Sequence[BuiltModel]
    members: Sequence[LibraryModel]
    board: Board
    pages: Mapping[str, Content]


@dataclass(frozen=True, slots=True, eq=False)
class SeparateFolder:
    """Files by path that a part writes into a folder outside of the library."""

    directory: Path
    files: Mapping[str, Content]


class LibraryPart:
    """The base class of what a feature adds to a library; its own methods add nothing."""

    samples: ClassVar[int | None] = None
    """Drawn samples that a library with this part is verified on; None: as many as usual."""
    leaves_constants: ClassVar[bool] = False
    """Whether the part needs programs that read all constants in flash."""
    absent: ClassVar[Mapping[str, Any]] = {}
    """The values of `facts` for a library without this part."""

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError or ConfigError if the library cannot have the part: before plans are searched."""

    def deployed(self, deployment: Deployment) -> Deployment:
        """Return the deployment, before its program is made, with what the part changes in it."""
        return deployment

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return a model, whose program has its final arenas, with what the part adds to it."""
        return built

    def exported(self, library: Library, kind: Kind) -> Mapping[str, Content] | None:
        """Return the sources of the library for a build system that this part knows; None for others."""
        return None

    def files(self, library: Library) -> Mapping[str, Content]:
        """Return further files of the library, by path."""
        return {}

    def folder(self, library: Library, progress: Progress) -> SeparateFolder | None:
        """Return the files outside of the library, which are written after it."""
        return None

    def facts(self) -> Mapping[str, Any]:
        """Return what the report of the library states, by key."""
        return {}


class Analysis(Protocol):
    """Facts about a program that a feature adds to a run."""

    def require(self, board: Board) -> None:
        """Raise ConfigError if the programs of a board cannot be analysed."""

    def facts(self, deployment: Deployment, sample: Sample, progress: Progress) -> Mapping[str, Any]:
        """Return what the report of the run states, by key."""
