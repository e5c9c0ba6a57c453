"""The files that `build` writes: a self-contained C library of one or more models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.kernelfiles import ON_UNIT, PARAMETERS, RUN_CORES, START, kernel_files, source_index
from mcudeploy.codegen.licences import foreign_text, licence_text, licensed
from mcudeploy.codegen.render import LibraryModel, render_arena, render_model, render_package, render_selftest
from mcudeploy.codegen.sbom import SBOM_NAME, bill_of_materials
from mcudeploy.common.errors import UsageError
from mcudeploy.planner.files.parameter_layout import LAYOUT_SUFFIX

_TAPE = ("mcud.h", "mcud_compiler.h", "mcud_config.h")
_INTERFACES = {
    ON_UNIT: ("mcud_unit.h", *_TAPE),
    RUN_CORES: ("mcud_cores.h", *_TAPE),
    START: ("mcud_dma.h",),
    PARAMETERS: ("mcud_parameters.h",),
    "mcud_prototypes": ("mcud_head.h",),
    "mcud_ridge": ("mcud_head.h",),
}
"""By kernel: headers that the application's sources include, with functions that it defines or calls."""


def with_sbom(files: Mapping[str, Content], members: Sequence[LibraryModel], name: str) -> dict[str, Content]:
    """Return the files, and their bill of materials."""
    return {**files, SBOM_NAME: bill_of_materials(members, name, files)}


def library_files(members: Sequence[LibraryModel], name: str) -> dict[str, Content]:
    """Return the sources by path, and the files around them. Raises what `c_files` raises."""
    return finished(c_files(members) | render_package(name, members) | layout_files(members))


def finished(files: Mapping[str, Content]) -> dict[str, Content]:
    """Return the files of a library with their licences."""
    index = source_index()
    sources = ((path, index.get(path.rpartition("/")[2])) for path in files)
    of_extensions = [path for path, source in sources if source is not None and source.is_foreign]
    return licensed(files) | {"LICENSE": licence_text(of_extensions)}


def layout_files(members: Sequence[LibraryModel]) -> dict[str, Content]:
    """Return the files that state the parameters of the models, for `parameters make`."""
    return {
        f"{member.program.prefix}{LAYOUT_SUFFIX}": member.parameter_layout
        for member in members
        if member.parameter_layout is not None
    }


def c_files(members: Sequence[LibraryModel]) -> dict[str, Content]:
    """Return the sources below src and include.

    Kernels are shared, and the types of mcud_config.h fit the tables of all models.

    Raises UsageError if two models would have a file of the same name.
    """
    programs = [member.program for member in members]
    owners = {program.arena_owner for program in programs if program.arena == "shared"}
    offset_bits = max(program.offset_bits for program in programs)
    code_bits = max(program.code_bits for program in programs)
    kernels = sorted({kernel for program in programs for kernel in program.sources})
    texts: dict[str, Content] = {
        f"src/{it.name}": foreign_text(it.text) if it.is_foreign else it.text for it in kernel_files(kernels)
    }
    rendered: list[tuple[str, str]] = []
    for member in members:
        program = replace(member.program, offset_bits=offset_bits, code_bits=code_bits)
        own = [f"{program.prefix}{end}.h" for end in ("", "_selftest", "_head")]
        sources = render_model(program, member.plan, member.source) | render_selftest(member)
        rendered += [(f"include/{it}" if it in own else f"src/{it}", text) for it, text in sources.items()]
    for owner in owners:
        rendered += render_arena(owner, programs).items()
    for path, text in rendered:
        if texts.setdefault(path, text) != text:
            raise UsageError(f"two files of the library would be called {path}: rename a model")
    interfaces = (file for kernel, files in _INTERFACES.items() if kernel in kernels for file in files)
    streams = ["mcud_npu.h"] if any(program.has_streams for program in programs) else []
    public = dict.fromkeys(("mcud_owner.h", *interfaces, *streams))
    texts |= {f"include/{file}": texts.pop(f"src/{file}") for file in public}
    return texts
