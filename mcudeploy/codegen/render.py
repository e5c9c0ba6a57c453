"""The files of a program: its templates, with the values of the program and its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy import __version__
from mcudeploy.codegen.arenas import shared_arenas
from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.selftest import SelfTest
from mcudeploy.codegen.templates import fill
from mcudeploy.common.text import plain
from mcudeploy.ir.plan import Plan


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model came from: shown in the generated files."""

    file_name: str
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class LibraryModel:
    """One model of a library. `parameter_layout`: the file that states its parameters, if it has any."""

    program: Program
    plan: Plan
    source: Source
    selftest: SelfTest | None = None
    parameter_layout: str | None = None


@dataclass(frozen=True, slots=True)
class Types:
    """The content of mcud_config.h: the integer types of tables, and how the core does products."""

    alignment: int
    offset_bits: int
    code_bits: int
    fuses_products: bool = True
    pairs_loads: bool = False


def render_model(program: Program, plan: Plan, source: Source) -> dict[str, str]:
    """Return the generated C of a model: texts by file name. The same plan gives the same text."""
    names = {
        "model.h.j2": f"{program.prefix}.h",
        "model.c.j2": f"{program.prefix}.c",
        "weights.h.j2": f"{program.prefix}_weights.h",
        "weights.c.j2": f"{program.prefix}_weights.c",
    }
    if program.head is not None:
        names |= {f"head.{kind}.j2": f"{program.prefix}_head.{kind}" for kind in ("h", "c")}
    files = {file_name: _render(template, program, plan, source) for template, file_name in names.items()}
    return files | {"mcud_config.h": render("config.h.j2", config=program)}


def render_selftest(member: LibraryModel) -> dict[str, str]:
    """Return the check of a model on one input: texts by file name; empty if the model has none."""
    if member.selftest is None:
        return {}
    known = member.selftest.texts(member.program.inputs, member.program.outputs)
    name = f"{member.program.prefix}_selftest"
    return {
        f"{name}.{kind}": _render(f"selftest.{kind}.j2", member.program, member.plan, member.source, **known)
        for kind in ("h", "c")
    }


def render_arena(owner: str, programs: Sequence[Program]) -> dict[str, str]:
    """Return the files of the arenas that programs share: texts by path."""
    known = {
        "name": owner,
        "upper": owner.upper(),
        "arenas": shared_arenas(programs),
        "users": [program.prefix for program in programs],
        "keepers": [program.prefix for program in programs if program.states],
    }
    folders = {"h": "include", "c": "src"}
    return {
        f"{folder}/{owner}_arena.{kind}": render(f"arena.{kind}.j2", **known)
        for kind, folder in folders.items()
    }


def render_firmware(program: Program, plan: Plan, source: Source) -> dict[str, str]:
    """Return the model's C, and the file that names the deployed model and its kernels to the measurer.

    The sources are called model.c and weights.c: by these names the linker tells tables from weights.
    """
    usual = {f"{program.prefix}.c": "model.c", f"{program.prefix}_weights.c": "weights.c"}
    files = {usual.get(name, name): text for name, text in render_model(program, plan, source).items()}
    return files | {"deployed.c": _render("deployed.c.j2", program, plan, source)}


def render_head_check(program: Program, plan: Plan, source: Source) -> dict[str, str]:
    """Return the model's C with its head, and a main() that runs both on this computer."""
    files = render_model(program, plan, source)
    return files | {"head_check.c": _render("head_check.c.j2", program, plan, source)}


def render_package(name: str, members: Sequence[LibraryModel]) -> dict[str, str]:
    """Return the files beside the C of a library: build scripts, a README, and an example for each model."""
    prefixes = [member.program.prefix for member in members]
    examples = [
        (prefix, "examples/main.c" if len(members) == 1 else f"examples/{prefix}.c") for prefix in prefixes
    ]
    texts = {
        file: _render("main.c.j2", member.program, member.plan, member.source)
        for (_, file), member in zip(examples, members, strict=True)
    }
    file_names = ", ".join(comment_text(member.source.file_name) for member in members)
    known = {"examples": examples, "threads": any(member.program.lanes for member in members)}
    for template in ("CMakeLists.txt", "library.json"):
        texts[template] = render(
            f"{template}.j2", name=name, upper=name.upper(), file_names=file_names, **known
        )
    return texts | {"README.md": render_readme(name, members)}


def render_readme(
    name: str, members: Sequence[LibraryModel], kind: str = "", *, toolchain: bool = False, about: str = ""
) -> str:
    """Return the README of a library: its origin, and its use in its build system, or in the usual ones.

    `about` states the use in a build system of an extension.
    """
    return render(
        "exporters/README.md.j2",
        name=name,
        upper=name.upper(),
        members=members,
        kind=kind,
        about=about,
        board=members[0].plan.board,
        toolchain=toolchain,
        notes=list(dict.fromkeys(plain(note) for it in members for note in it.plan.graph.notes)),
        kernels=sorted({kernel for member in members for kernel in member.program.sources}),
    )


def render(template: str, **values: object) -> str:
    """Return a filled template, which may show the version."""
    return fill(template, version=__version__, **values)


def _render(template: str, program: Program, plan: Plan, source: Source, **more: object) -> str:
    return render(
        template,
        **more,
        p=program,
        plan=plan,
        upper=program.prefix.upper(),
        file_name=comment_text(source.file_name),
        sha256=source.sha256[:8],
    )
