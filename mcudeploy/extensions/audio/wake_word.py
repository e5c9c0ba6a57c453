"""A wake word as ESPHome describes it, and the sources that detect it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mcudeploy.codegen.exporters import Kind, LibraryLayout, example_values
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.library import finished
from mcudeploy.codegen.model_names import model_name
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import LibraryModel, render_readme
from mcudeploy.common.errors import UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart

PAUSE_ROWS = 100
"""Rows of features with low probabilities that ESPHome awaits before each detection."""
_MOST_ROWS = 255
_CPP_KEYWORDS = """
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit
    export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public reinterpret_cast requires static_assert static_cast template this thread_local throw
    true try typeid typename using virtual wchar_t xor xor_eq
"""
_COMPONENTS = "esp32 esphome external_components i2s_audio logger microphone"
"""Components of ESPHome that the example uses."""
_SOURCES = "automation mic std wake_word"
"""Names of the component's own sources, of its example, and of the library of C++."""
_LAYOUT = LibraryLayout(
    "esphome",
    "components/NAME",
    "components/NAME",
    {
        "example.yaml": "esphome_example.yaml",
        "components/NAME/__init__.py": "esphome_init.py",
        "components/NAME/automation.h": "esphome_automation.h",
        "components/NAME/wake_word.h": "esphome_wake_word.h",
        "components/NAME/wake_word.cpp": "esphome_wake_word.cpp",
    },
    has_parameters=False,
)
_SHARED_NAME = re.compile(r"\b(mcud|MCUD)_")


@dataclass(frozen=True, slots=True)
class WakeWord(LibraryPart):
    """The phrase, and how its probabilities become detections: its library is a component of ESPHome.

    The mean of `window` probabilities must be above `cutoff`, between 0 and 1. Each row of features takes
    `hop` new samples.
    """

    phrase: str
    cutoff: float
    window: int
    hop: int

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError for another build system, and if a component cannot have the name of the model."""
        if request.kind != _LAYOUT.kind:
            raise UsageError("a wake word is a library for esphome")
        require_free_name(model_name(request.options.name, request.paths[0].stem))

    def exported(self, library: Library, kind: Kind) -> Mapping[str, Content] | None:
        """Return the component; None for other build systems. Raises UsageError for programs that the
        component cannot run.
        """
        if kind != _LAYOUT.kind:
            return None
        _LAYOUT.require(library.members)
        if len(library.members) != 1:
            raise UsageError("--for esphome writes a component of one wake word")
        (member,) = library.members
        if member.program.streamed or member.program.arena != "own":
            raise UsageError("--for esphome: leave out --stream-input and --arena")
        name = library.name
        values = example_values([member], name, library.board) | {
            "upper": name.upper(),
            "word": self,
            "rows": self.rows_of(member.program),
            "pause": PAUSE_ROWS,
        }
        files = {
            path: _hidden_from_cpp(path, content, member)
            for path, content in _LAYOUT.placed([member], name).items()
        }
        files |= {f"components/{name}/{file}": text for file, text in detector_files().items()}
        files |= {"README.md": render_readme(name, [member], kind)} | _LAYOUT.rendered(name, values)
        return with_own_names(finished(files), name)

    def rows_of(self, program: Program) -> int:
        """Return the rows that a run of the program makes. Raises UsageError for samples of part of a row."""
        (samples,) = program.inputs
        rows, rest = divmod(samples.count, self.hop)
        if rest or not 1 <= rows <= _MOST_ROWS:
            raise UsageError(
                f"the program takes {samples.count} samples in a run, which are not rows of {self.hop}"
            )
        return rows

    @property
    def literal(self) -> str:
        """The phrase as a string in double quotes, for Python and YAML. It is printable text."""
        return json.dumps(self.phrase, ensure_ascii=False)


def require_free_name(name: str) -> None:
    """Raise UsageError if a component, which is also a namespace of C++, cannot have this name."""
    for names, label in (
        (_CPP_KEYWORDS, "a keyword of C++"),
        (_COMPONENTS, "a component of ESPHome"),
        (_SOURCES, "a name that its sources use"),
    ):
        if name in names.split():
            raise UsageError(
                f"the component cannot be called {name}, which is {label}: choose another --name"
            )


def detector_files() -> dict[str, str]:
    """Return the C of the detector by file name."""
    folder = resource_dir("firmware") / "audio"
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.[ch]"))}


def with_own_names(files: Mapping[str, Content], name: str) -> dict[str, Content]:
    """Put the component's name before the names that kernels have in all libraries, also in those of files.

    One firmware may then contain several components.
    """

    def own(text: str) -> str:
        return _SHARED_NAME.sub(lambda it: f"{name if it[1].islower() else name.upper()}_{it[0]}", text)

    return {
        own(path): content if isinstance(content, bytes) else own(content) for path, content in files.items()
    }


def _hidden_from_cpp(path: str, content: Content, member: LibraryModel) -> Content:
    """Hide the headers of kernels from C++: ESPHome includes all headers of a component in one C++ file."""
    name = path.rpartition("/")[2]
    public = [f"{member.program.prefix}{end}.h" for end in ("", "_selftest")]
    if isinstance(content, bytes) or not name.endswith(".h") or name in public:
        return content
    return f"#ifndef __cplusplus /* ESPHome includes every header of a component in C++ */\n{content}#endif\n"
