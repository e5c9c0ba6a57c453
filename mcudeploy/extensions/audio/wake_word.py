"""Wake words as ESPHome describes them, and the ESPHome component of their models after one front end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mcudeploy.boards.board import Board
from mcudeploy.codegen.arenas import shared_arenas
from mcudeploy.codegen.exporters import Kind, LibraryLayout, example_values
from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.library import finished
from mcudeploy.codegen.model_names import model_name
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import LibraryModel, render, render_readme
from mcudeploy.common.errors import UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart

CHANNELS = 40
"""Features of a row."""
PAUSE_ROWS = 100
"""Number of rows with low probabilities for which ESPHome waits before each detection."""
_MOST_ROWS = 255
_CPP_KEYWORDS = """
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit
    export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public reinterpret_cast requires static_assert static_cast template this thread_local throw
    true try typeid typename using virtual wchar_t xor xor_eq
"""
_COMPONENTS = """
    alarm_control_panel api audio audio_adc audio_dac binary_sensor button camera captive_portal climate
    cover datetime deep_sleep display esp32 esphome event external_components fan globals homeassistant
    http_request i2c i2s_audio image improv_serial infrared interval json light lock logger lvgl md5 mdns
    media_player microphone mqtt network number one_wire ota output packages packet_transport preferences
    psram ring_buffer safe_mode script select sensor socket speaker spi status_led stepper substitutions
    sun switch template text text_sensor time touchscreen uart update usb_host valve voice_assistant
    watchdog water_heater web_server wifi
"""
"""ESPHome's components in configurations of voice devices, and its kinds of entities. A new component of such
a name would replace them. micro_wake_word may replace ESPHome's, so it is not in the list.
"""
_LAYOUT = LibraryLayout(
    "esphome",
    "components/NAME",
    "components/NAME",
    {
        "example.yaml": "esphome_example.yaml",
        "components/NAME/__init__.py": "esphome_init.py",
        "components/NAME/automation.h": "esphome_automation.h",
        "components/NAME/micro_wake_word.h": "esphome_micro_wake_word.h",
        "components/NAME/micro_wake_word.cpp": "esphome_micro_wake_word.cpp",
    },
    has_parameters=False,
)
Role = Literal["word", "stop", "vad"]
_SHARED_NAME = re.compile(r"\b(mcud|MCUD)_")


@dataclass(frozen=True, slots=True)
class WakeWord:
    """A phrase, and how its probabilities become detections.

    The mean of `window` probabilities must be above `cutoff`, between 0 and 1. Each row of features takes
    `hop` new samples. `role`: a word; a stop word, which is heard only while the application enables it; or
    the voice activity detector. `model`: the file that the manifest names, "" if none.
    """

    phrase: str
    cutoff: float
    window: int
    hop: int
    languages: tuple[str, ...] = ()
    role: Role = "word"
    model: str = ""

    @property
    def literal(self) -> str:
        """The phrase as a string in double quotes, for Python. It is printable text."""
        return json.dumps(self.phrase, ensure_ascii=False)

    @property
    def languages_literal(self) -> str:
        """The languages as a list of strings, for Python."""
        return json.dumps(self.languages, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _WordModel:
    """The model of a wake word for templates. `name`: in YAML; `rows`: of features that a run takes."""

    p: Program
    name: str
    word: WakeWord
    rows: int


@dataclass(frozen=True, slots=True)
class WakeWords(LibraryPart):
    """Wake words after one front end: the library of their models is the component `name` of ESPHome.

    The models are the front end, then those of `words`, of which a voice activity detector is the last.
    """

    name: str
    words: tuple[WakeWord, ...]

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError for a build system other than ESPHome, and for a name that is not free."""
        if request.kind != _LAYOUT.kind:
            raise UsageError("wake words are a library for esphome")
        require_free_name(self.name)
        for path in request.paths:
            if model_name(None, path.stem) == "arena":  # the header of the shared arena is NAME_arena.h
                raise UsageError(f"a source of the component has the name of {path.name}: rename the model")

    def deployed(self, deployment: Deployment) -> Deployment:
        """Return the deployment with the component's name in its prefix, since other components of a firmware
        may have the same model.
        """
        return replace(deployment, prefix=f"{self.name}_{deployment.prefix}")

    def exported(self, library: Library, kind: Kind) -> Mapping[str, Content] | None:
        """Return the component; None for other build systems. Raises UsageError for programs that the
        component cannot run.
        """
        if kind != _LAYOUT.kind:
            return None
        _LAYOUT.require(library.members)
        if any(it.program.streamed for it in library.members):
            raise UsageError("--for esphome: leave out --stream-input")
        name, members = library.name, library.members
        values = example_values(members, name, library.board) | self._values(members)
        values["chip"] = _chip(library.board)
        cpp_headers = [f"{it.program.prefix}{end}.h" for it in members for end in ("", "_selftest")]
        cpp_headers.append(f"{members[0].program.arena_owner}_arena.h")
        files = {
            path: content if path.rpartition("/")[2] in cpp_headers else _hidden_from_cpp(path, content)
            for path, content in _LAYOUT.placed(members, name).items()
        }
        files |= {f"components/{name}/{file}": text for file, text in detector_files().items()}
        readme = render_readme(name, members, about=render("exporters/esphome_readme.md.j2", **values))
        files |= {"README.md": readme} | _LAYOUT.rendered(name, values)
        return with_own_names(finished(files), name)

    def _values(self, members: Sequence[LibraryModel]) -> dict[str, Any]:
        """Return the variables for the templates of the component, in addition to those of examples."""
        front, *models = (member.program for member in members)
        word_models = [
            _WordModel(it, it.prefix.removeprefix(f"{self.name}_"), word, _rows_of(it))
            for it, word in zip(models, self.words, strict=True)
        ]
        arenas = shared_arenas([member.program for member in members])
        return {
            "front": front,
            "models": word_models,
            "words": [it for it in word_models if it.word.role != "vad"],
            "vad": next((it for it in word_models if it.word.role == "vad"), None),
            "channels": CHANNELS,
            "rows_bytes": max(it.rows for it in word_models) * CHANNELS,
            "windows_bytes": sum(it.window for it in self.words),
            "arenas": ", ".join(f"{it.size_bytes:,} bytes in {it.memory}" for it in arenas),
            "pause": PAUSE_ROWS,
        }


def _chip(board: Board) -> str | None:
    """Return the option of ESPHome's `esp32` that states the board; None for chips of other families."""
    if board.family.startswith("esp32"):
        return f"variant: {board.family}"
    framework = board.framework
    if framework is None or "espressif32" not in framework.platform:
        return None
    return f"board: {framework.board}"


def _rows_of(program: Program) -> int:
    """Return the number of rows that a run of the program takes. Raises UsageError for none, or too many."""
    rows = program.inputs[0].count // CHANNELS
    if not 1 <= rows <= _MOST_ROWS:
        raise UsageError(
            f"{program.prefix} takes {rows} rows of features in a run: 1 to {_MOST_ROWS} are possible"
        )
    return rows


def require_free_name(name: str) -> None:
    """Raise UsageError for a name that a component, which is also a C++ namespace, cannot have."""
    for names, label in (
        (_CPP_KEYWORDS, "a keyword of C++"),
        (_COMPONENTS, "a component of ESPHome"),
        ("mic std", "a name that its sources use"),
    ):
        if name in names.split():
            raise UsageError(
                f"the component cannot be called {name}, which is {label}: choose another --name"
            )


def detector_files() -> dict[str, str]:
    """Return the C sources of the detector, by file name."""
    folder = resource_dir("firmware") / "audio"
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.[ch]"))}


def with_own_names(files: Mapping[str, Content], name: str) -> dict[str, Content]:
    """Put the component's name before the names that all libraries share, in the contents and names of files.

    One firmware may then contain several components.
    """

    def prefixed(text: str) -> str:
        return _SHARED_NAME.sub(lambda it: f"{name if it[1].islower() else name.upper()}_{it[0]}", text)

    return {
        prefixed(path): content if isinstance(content, bytes) else prefixed(content)
        for path, content in files.items()
    }


def _hidden_from_cpp(path: str, content: Content) -> Content:
    """Hide the headers of kernels from C++: ESPHome includes all headers of a component in one C++ file."""
    if isinstance(content, bytes) or not path.endswith(".h"):
        return content
    return f"#ifndef __cplusplus /* ESPHome includes every header of a component in C++ */\n{content}#endif\n"
