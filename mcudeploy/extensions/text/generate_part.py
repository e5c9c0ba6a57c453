"""`build --tokenizer`: MODEL_generate() in a library, with the tables of a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.licences import licensed
from mcudeploy.codegen.render import render
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.common.resources import resource_dir
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.extensions.text.decoder_io import DecoderChoice, DecoderIo, constants_read_bytes, decoder_io
from mcudeploy.extensions.text.tokenizer_file import Tokenizer
from mcudeploy.extensions.text.tokenizer_tables import render_tokenizer, tokenizer_bytes
from mcudeploy.ir.graph import Graph

_WORD_BYTES = 63
"""The most bytes of a word of the prompt."""
_WORK = 4 * _WORD_BYTES + 4
"""Elements of 32 bits in which such a word is divided."""


@dataclass(frozen=True, slots=True, eq=False)
class GeneratePart(LibraryPart):
    """The loop that generates text, for a library of one model."""

    tokenizer: Tokenizer
    choice: DecoderChoice

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError for several models, and for build systems that lay files out otherwise."""
        if len(request.paths) > 1:
            raise UsageError("--tokenizer is for a library of one model: build the others without it")
        if request.kind is not None:
            raise UsageError(
                f"--tokenizer writes a library for CMake and PlatformIO: leave out --for {request.kind}"
            )

    def deployed(self, deployment: Deployment) -> Deployment:
        """Return the deployment. Raises what `decoder_io` raises."""
        self._io(deployment.plan.graph)
        return deployment

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return the model with the figures of its text among its facts."""
        facts = {
            "tokens": len(self.tokenizer.pieces),
            "positions": self._io(built.deployment.plan.graph).positions,
            "constants_read_bytes": constants_read_bytes(built.deployment.view),
            "table_bytes": tokenizer_bytes(self.tokenizer),
            "ram_bytes": 4 * _WORK,
        }
        return replace(built, facts={**built.facts, "text": facts})

    def files(self, library: Library) -> Mapping[str, Content]:
        """Return the loop, the tables and the functions that both call."""
        (member,) = library.models
        program, io = member.program, self._io(member.deployment.plan.graph)
        source = member.deployment.source
        texts = {it.tensor: it for it in (*program.inputs, *program.outputs)}
        logits = texts[io.logits.tensor]
        values = {
            "prefix": program.prefix,
            "upper": program.prefix.upper(),
            "file_name": comment_text(source.file_name),
            "sha256": source.sha256[:8],
            "work": _WORK,
            "word_bytes": _WORD_BYTES,
            "table_bytes": tokenizer_bytes(self.tokenizer),
            "tokens": len(self.tokenizer.pieces),
            "positions": io.positions,
            "token": texts[io.token.tensor].name,
            "position": io.position and texts[io.position.tensor].name,
            "logits": logits.name,
            "scale": logits.scale if logits.type == "int8_t" else "",
        }
        firmware = resource_dir("firmware") / "text"
        files: dict[str, Content] = {
            f"include/{program.prefix}_generate.h": render("generate.h.j2", **values),
            f"src/{program.prefix}_generate.c": render("generate.c.j2", **values),
            f"src/{program.prefix}_tokenizer.c": render_tokenizer(
                self.tokenizer, f"{program.prefix}_tokenizer"
            ),
        }
        for path in sorted(firmware.iterdir()):
            folder = "src" if path.suffix == ".c" else "include"
            files[f"{folder}/{path.name}"] = path.read_text("utf-8")
        return licensed(files)

    def _io(self, graph: Graph) -> DecoderIo:
        return decoder_io(graph, len(self.tokenizer.pieces), self.choice)
