"""The dossier of a library: its files, the second checker with what it needs, and what was verified."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.library import library_files, with_sbom
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.codegen.sbom import SBOM_NAME
from mcudeploy.common.errors import BuildError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.execution.results import BuiltModel
from mcudeploy.extensions.dossier.flash_constants import TracedConstant, traced_constants
from mcudeploy.extensions.dossier.plan_facts import board_text, network_text
from mcudeploy.extensions.dossier.static_analysis import StaticAnalysis, analyse
from mcudeploy.planner.files.planfile import plan_text
from mcudeploy.toolchain.firmware_build import compiler_version
from mcudeploy.toolchain.tools import run_tool

CHECKER = "check_plan.py"
_CHECK_S = 600


@dataclass(frozen=True, slots=True, eq=False)
class Dossier:
    """The files of a dossier, and the results of the checks that ran for it.

    `files`: all files by path, without the page itself. `checked`: the last line of the second checker.
    `compiler`: the version of the board's compiler, "" if it is not on this computer.
    """

    built: BuiltModel
    files: Mapping[str, Content]
    checked: str
    constants: tuple[TracedConstant, ...]
    analysis: StaticAnalysis
    compiler: str


def dossier_of(built: BuiltModel, pages: Mapping[str, Content]) -> Dossier:
    """Return the dossier of a built and verified model, whose plan has passed the second checker.

    `pages`: further files of the library, by name. Raises BuildError if the checker refuses the plan, and
    UsageError for a plan that the checker does not read.
    """
    deployment = built.deployment
    if deployment.plan.lanes:
        raise UsageError("--dossier: its checker does not read the tapes of several cores (--parallel)")
    if deployment.plan.layout.constants:
        raise UsageError("--dossier: this plan loads constants ahead of use; add --load-constants never")
    member = LibraryModel(built.program, deployment.plan, deployment.source, built.selftest)
    library = with_sbom(library_files([member], deployment.prefix), [member], deployment.prefix)
    files: dict[str, Content] = {
        "plan.json": plan_text(deployment.plan, deployment.model.sha256),
        "network.json": network_text(deployment.plan, deployment.model, built.program),
        "board.json": board_text(deployment.board),
        CHECKER: (resource_dir("templates") / "dossier" / CHECKER).read_text("utf-8"),
        SBOM_NAME: library.pop(SBOM_NAME),
        **{f"lib/{name}": content for name, content in (library | dict(pages)).items()},
    }
    if built.firmware is not None:
        files["firmware.elf"] = built.firmware.elf.read_bytes()
    with tempfile.TemporaryDirectory(prefix="mcudeploy-") as name:
        folder = Path(name)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
        ended = run_tool([sys.executable, "-I", CHECKER, "plan.json", "lib"], _CHECK_S, folder=folder)
        if ended.status != 0:
            raise BuildError(f"the second checker refuses the plan: {ended.output.strip()}")
        analysis = analyse(folder / "lib", deployment.board, deployment.prefix)
    elf = None if built.firmware is None else built.firmware.elf
    constants = tuple(traced_constants(deployment, elf))
    return Dossier(
        built, files, ended.output.strip(), constants, analysis, compiler_version(deployment.board)
    )
