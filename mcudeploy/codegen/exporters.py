"""Libraries in the layout of a build system: paths, metadata, and a self-checking example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mcudeploy.boards.board import Board
from mcudeploy.codegen.ctext import comment_text
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.kernelfiles import ON_UNIT
from mcudeploy.codegen.library import c_files, finished, layout_files
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import LibraryModel, render, render_readme
from mcudeploy.common.errors import UsageError

Kind = Literal["platformio", "arduino", "cmake", "zephyr", "esp-idf", "stm32cube", "esphome", "rust"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_RUST_TYPES = {"int8_t": "i8", "int32_t": "i32", "float": "f32"}


@dataclass(frozen=True, slots=True)
class LibraryLayout:
    """Folders of sources and of public headers, and the template of further files; `NAME` is the library.

    `has_parameters`: whether its libraries have functions that replace parameters.
    """

    kind: Kind
    sources: str
    headers: str
    files: Mapping[str, str]
    has_parameters: bool = True

    def require(self, members: Sequence[LibraryModel]) -> None:
        """Raise UsageError for programs of several cores or compute units, which the application would have
        to run, and for replaceable parameters where they have no functions.
        """
        for member in members:
            if member.program.lanes or ON_UNIT in member.program.kernels:
                raise UsageError(
                    f"libraries for {self.kind} are programs of one core: leave out --parallel and --assign, "
                    "or --for"
                )
            if member.program.parameters and not self.has_parameters:
                raise UsageError(
                    f"--for {self.kind} has no functions for parameters: leave out --replaceable, or --for "
                    f"{self.kind}"
                )

    def placed(self, members: Sequence[LibraryModel], name: str) -> dict[str, Content]:
        """Return the sources of the library `name` by path."""
        folders = {"src": self.sources.replace("NAME", name), "include": self.headers.replace("NAME", name)}
        placed: dict[str, Content] = {}
        for path, content in c_files(members).items():
            folder, _, file = path.partition("/")
            placed[f"{folders[folder]}/{file}"] = content
        return placed

    def rendered(self, name: str, values: Mapping[str, Any]) -> dict[str, Content]:
        """Return the further files of the library `name` by path."""
        return {
            path.replace("NAME", name): render(f"exporters/{template}.j2", **values)
            for path, template in self.files.items()
        }


_LAYOUTS: dict[Kind, LibraryLayout] = {
    "platformio": LibraryLayout(
        "platformio",
        "src",
        "include",
        {
            "library.json": "library.json",
            "examples/selftest/platformio.ini": "platformio.ini",
            "examples/selftest/src/main.c": "example.c",
        },
    ),
    "arduino": LibraryLayout(
        "arduino",
        "src",
        "src",
        {
            "library.properties": "library.properties",
            "keywords.txt": "keywords.txt",
            "examples/NAME_selftest/NAME_selftest.ino": "example.ino",
        },
    ),
    "cmake": LibraryLayout(
        "cmake",
        "src",
        "include",
        {
            "CMakeLists.txt": "cmake.txt",
            "examples/selftest/CMakeLists.txt": "cmake_example.txt",
            "examples/selftest/main.c": "example.c",
        },
    ),
    "zephyr": LibraryLayout(
        "zephyr",
        "src",
        "include",
        {
            "zephyr/module.yml": "zephyr_module.yml",
            "zephyr/Kconfig": "zephyr_kconfig",
            "zephyr/CMakeLists.txt": "zephyr_cmake.txt",
            "samples/selftest/CMakeLists.txt": "zephyr_sample.txt",
            "samples/selftest/prj.conf": "prj.conf",
            "samples/selftest/sample.yaml": "sample.yaml",
            "samples/selftest/src/main.c": "example.c",
        },
    ),
    "esp-idf": LibraryLayout(
        "esp-idf",
        "src",
        "include",
        {
            "CMakeLists.txt": "idf_cmake.txt",
            "idf_component.yml": "idf_component.yml",
            "examples/selftest/CMakeLists.txt": "idf_example.txt",
            "examples/selftest/main/CMakeLists.txt": "idf_main.txt",
            "examples/selftest/main/main.c": "example.c",
        },
    ),
    "stm32cube": LibraryLayout(
        "stm32cube",
        "Src",
        "Inc",
        {
            "CMakeLists.txt": "cube_cmake.txt",
            "Example/NAME_example.c": "example.c",
            "Example/NAME_example.h": "example.h",
        },
    ),
    "rust": LibraryLayout(
        "rust",
        "csrc",
        "csrc/include",
        {
            "Cargo.toml": "Cargo.toml",
            "build.rs": "build.rs",
            "src/lib.rs": "lib.rs",
            "examples/selftest.rs": "selftest.rs",
        },
        has_parameters=False,
    ),
}


@dataclass(frozen=True, slots=True)
class _Exported:
    """A model as the templates see it."""

    p: Program
    selftest: bool

    @property
    def upper(self) -> str:
        return self.p.prefix.upper()

    @property
    def camel(self) -> str:
        """The name of its type in Rust, which is never a keyword."""
        return "".join(part.capitalize() for part in self.p.prefix.split("_")) + "Model"


def export_files(kind: Kind, members: Sequence[LibraryModel], name: str, board: Board) -> dict[str, Content]:
    """Return the library `name` by path. Raises UsageError for what the build system cannot have."""
    layout = _LAYOUTS.get(kind)
    if layout is None:
        raise UsageError(
            f"libraries for {kind} come from an extension: use the command line, with the extension installed"
        )
    layout.require(members)
    if kind == "rust" and any(member.program.arena != "own" for member in members):
        raise UsageError(
            "a crate owns its arenas: safe Rust could not keep two users of one apart; leave out --arena, or "
            "--for rust"
        )
    files = layout.placed(members, name)
    folder = f"{layout.sources.replace('NAME', name)}/"
    values = example_values(members, name, board) | {
        "kind": kind,
        "upper": name.upper(),
        "sources": sorted(path.removeprefix(folder) for path in files if path.endswith(".c")),
        "rust": _RUST_TYPES,
    }
    toolchain = kind == "cmake" and not board.is_host
    files |= layout_files(members)
    files["README.md"] = render_readme(name, members, kind, toolchain=toolchain)
    files |= layout.rendered(name, values | {"toolchain": toolchain})
    if toolchain:
        files[f"cmake/{board.name}.cmake"] = render("exporters/toolchain.cmake.j2", **values)
    return finished(files)


def example_values(members: Sequence[LibraryModel], name: str, board: Board) -> dict[str, Any]:
    """Return the variables for the templates of examples."""
    return {
        "name": name,
        "board": board,
        "members": [_Exported(it.program, it.selftest is not None) for it in members],
        "file_names": ", ".join(comment_text(it.source.file_name) for it in members),
    }
