"""The dossier of a library as a part of its build: what it requires, and the folder of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from mcudeploy.codegen.folder import Content, digests_of, require_ours, require_writable
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart, SeparateFolder
from mcudeploy.extensions.dossier.dossier import dossier_of
from mcudeploy.extensions.dossier.dossier_page import dossier_page


@dataclass(frozen=True, slots=True)
class DossierPart(LibraryPart):
    """The evidence for a library, in the folder `directory`; `command`: the command line on its page."""

    directory: Path
    command: tuple[str, ...]

    samples: ClassVar[int | None] = 20
    leaves_constants: ClassVar[bool] = True
    absent: ClassVar[Mapping[str, Any]] = {"dossier": None}

    def deployed(self, deployment: Deployment) -> Deployment:
        """Return the deployment without joined steps: the second checker replays the steps of the plan."""
        return replace(deployment, joins=False)

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError for a library that a dossier cannot describe, or a folder with other files."""
        if request.options.replaceable:
            raise UsageError("--dossier describes constants in flash that stay: leave out --replaceable")
        if len(request.paths) != 1:
            raise UsageError("--dossier is about one model: build several without it")
        if not request.verify:
            raise UsageError("--dossier states what was verified: leave out --no-verify")
        if request.arena != "own" or request.kind is not None:
            raise UsageError("--dossier describes a library with its own arena: leave out --for and --arena")
        inside, outside = (it.resolve() for it in (self.directory, request.directory))
        if inside == outside or outside in inside.parents or inside in outside.parents:
            raise UsageError(
                f"--dossier {self.directory} and -o {request.directory} are nested: name separate folders"
            )
        if not request.force:
            require_ours(self.directory, {})
        require_writable(self.directory)

    def folder(self, library: Library, progress: Progress) -> SeparateFolder:
        """Return the files of the dossier. Raises what `dossier_of` raises."""
        progress.stage("making the dossier")
        dossier = dossier_of(library.models[0], library.pages)
        files: dict[str, Content] = {**dossier.files, "index.html": dossier_page(dossier, self.command)}
        sums = "".join(f"{digest}  {path}\n" for path, digest in digests_of(files).items())
        return SeparateFolder(self.directory, {**files, "SHA256SUMS": sums})

    def facts(self) -> Mapping[str, Any]:
        """Return the folder."""
        return {"dossier": str(self.directory)}


PARTS = {"dossier": DossierPart}
