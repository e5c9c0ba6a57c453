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
from mcudeploy.extensions.audio.wake_word import (
    PAUSE_ROWS,
    WakeWord,
    detector_files,
    with_own_names,
)

Kind = Literal["platformio", "arduino", "cmake", "zephyr", "esp-idf", "stm32cube", "esphome", "rust"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_RUST_TYPES = {"int8_t": "i8", "int32_t": "i32", "float": "f32"}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Folders of sources and of public headers, and the template of further files; `NAME` is the library."""

    sources: str
    headers: str
    files: Mapping[str, str]


_LAYOUTS: dict[Kind, _Layout] = {
    "platformio": _Layout(
        "src",
        "include",
        {
            "library.json": "library.json",
            "examples/selftest/platformio.ini": "platformio.ini",
            "examples/selftest/src/main.c": "example.c",
        },
    ),
    "arduino": _Layout(
        "src",
        "src",
        {
            "library.properties": "library.properties",
            "keywords.txt": "keywords.txt",
            "examples/NAME_selftest/NAME_selftest.ino": "example.ino",
        },
    ),
    "cmake": _Layout(
        "src",
        "include",
        {
            "CMakeLists.txt": "cmake.txt",
            "examples/selftest/CMakeLists.txt": "cmake_example.txt",
            "examples/selftest/main.c": "example.c",
        },
    ),
    "zephyr": _Layout(
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
    "esp-idf": _Layout(
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
    "stm32cube": _Layout(
        "Src",
        "Inc",
        {
            "CMakeLists.txt": "cube_cmake.txt",
            "Example/NAME_example.c": "example.c",
            "Example/NAME_example.h": "example.h",
        },
    ),
    "esphome": _Layout(
        "components/NAME",
        "components/NAME",
        {
            "example.yaml": "esphome_example.yaml",
            "components/NAME/__init__.py": "esphome_init.py",
            "components/NAME/automation.h": "esphome_automation.h",
            "components/NAME/wake_word.h": "esphome_wake_word.h",
            "components/NAME/wake_word.cpp": "esphome_wake_word.cpp",
        },
    ),
    "rust": _Layout(
        "csrc",
        "csrc/include",
        {
            "Cargo.toml": "Cargo.toml",
            "build.rs": "build.rs",
            "src/lib.rs": "lib.rs",
            "examples/selftest.rs": "selftest.rs",
        },
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


def export_files(
    kind: Kind, members: Sequence[LibraryModel], name: str, board: Board, wake_word: WakeWord | None = None
) -> dict[str, Content]:
    """Return the library `name` by path; that of ESPHome detects `wake_word`.

    Raises UsageError for programs of several cores or compute units: the application would have to run them.
    """
    for member in members:
        if member.program.lanes or ON_UNIT in member.program.kernels:
            raise UsageError(
                f"libraries for {kind} are programs of one core: leave out --parallel and --assign, or --for"
            )
    if kind == "rust" and any(member.program.arena != "own" for member in members):
        raise UsageError(
            "a crate owns its arenas: safe Rust could not keep two users of one apart; leave out --arena, or "
            "--for rust"
        )
    if kind in ("rust", "esphome") and any(member.program.parameters for member in members):
        raise UsageError(
            f"--for {kind} has no functions for parameters: leave out --replaceable, or --for {kind}"
        )
    if (kind == "esphome") != (wake_word is not None):
        raise UsageError("a library for esphome needs the manifest of a wake word, others have none")
    layout = _LAYOUTS[kind]
    folders = {
        part: it.replace("NAME", name) for part, it in (("src", layout.sources), ("include", layout.headers))
    }
    found: dict[str, Content] = {}
    for path, content in c_files(members).items():
        folder, _, file = path.partition("/")
        found[f"{folders[folder]}/{file}"] = content
    sources = sorted(path.removeprefix(f"{folders['src']}/") for path in found if path.endswith(".c"))
    values = example_values(members, name, board) | {
        "kind": kind,
        "upper": name.upper(),
        "toolchain": kind == "cmake" and not board.is_host,
        "sources": sources,
        "rust": _RUST_TYPES,
    }
    files = dict(layout.files)
    if wake_word is not None:
        found = {path: _hidden_from_cpp(path, content, members) for path, content in found.items()}
        found |= {f"{folders['src']}/{file}": text for file, text in detector_files().items()}
        values |= {"word": wake_word, "rows": _rows(members, wake_word), "pause": PAUSE_ROWS}
    found |= layout_files(members)
    found["README.md"] = render_readme(name, members, kind, toolchain=values["toolchain"])
    if values["toolchain"]:
        files[f"cmake/{board.name}.cmake"] = "toolchain.cmake"
    for path, template in files.items():
        found[path.replace("NAME", name)] = render(f"exporters/{template}.j2", **values)
    return finished(found if wake_word is None else with_own_names(found, name))


def example_values(members: Sequence[LibraryModel], name: str, board: Board) -> dict[str, Any]:
    """Return the variables for the templates of examples."""
    return {
        "name": name,
        "board": board,
        "members": [_Exported(it.program, it.selftest is not None) for it in members],
        "file_names": ", ".join(comment_text(it.source.file_name) for it in members),
    }


def _rows(members: Sequence[LibraryModel], wake_word: WakeWord) -> int:
    """Return the rows of a run. Raises UsageError for programs that the component cannot run."""
    if len(members) != 1:
        raise UsageError("--for esphome writes a component of one wake word")
    (program,) = (member.program for member in members)
    if program.streamed or program.arena != "own":
        raise UsageError("--for esphome: leave out --stream-input and --arena")
    return wake_word.rows_of(program)


def _hidden_from_cpp(path: str, content: Content, members: Sequence[LibraryModel]) -> Content:
    """Hide the headers of kernels from C++: ESPHome includes all headers of a component in one C++ file."""
    name = path.rpartition("/")[2]
    public = [f"{it.program.prefix}{end}.h" for it in members for end in ("", "_selftest")]
    if isinstance(content, bytes) or not name.endswith(".h") or name in public:
        return content
    return f"#ifndef __cplusplus /* ESPHome includes every header of a component in C++ */\n{content}#endif\n"
