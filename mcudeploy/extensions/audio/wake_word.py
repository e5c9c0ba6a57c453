"""A wake word as ESPHome describes it, and the sources that detect it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mcudeploy.codegen.folder import Content
from mcudeploy.codegen.program import Program
from mcudeploy.common.errors import UsageError
from mcudeploy.common.resources import resource_dir

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
_SHARED_NAME = re.compile(r"\b(mcud|MCUD)_")


@dataclass(frozen=True, slots=True)
class WakeWord:
    """The phrase, and how its probabilities become detections.

    The mean of `window` probabilities must be above `cutoff`, between 0 and 1. Each row of features takes
    `hop` new samples.
    """

    phrase: str
    cutoff: float
    window: int
    hop: int

    def rows_of(self, program: Program) -> int:
        """Return the rows that a run of the program makes. Raises UsageError if samples are no whole rows."""
        (samples,) = program.inputs
        rows, rest = divmod(samples.count, self.hop)
        if rest or not 1 <= rows <= _MOST_ROWS:
            raise UsageError(
                f"the program takes {samples.count} samples in a run, which are no rows of {self.hop}"
            )
        return rows

    @property
    def literal(self) -> str:
        """The phrase as a string in double quotes, for Python and YAML. It is printable text."""
        return json.dumps(self.phrase, ensure_ascii=False)


def require_free_name(name: str) -> None:
    """Raise UsageError if a component, which is also a namespace of C++, cannot have this name."""
    for names, what in (
        (_CPP_KEYWORDS, "a keyword of C++"),
        (_COMPONENTS, "a component of ESPHome"),
        (_SOURCES, "a name that its sources use"),
    ):
        if name in names.split():
            raise UsageError(f"the component cannot be called {name}, which is {what}: choose another --name")


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
