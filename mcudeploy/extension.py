"""Extensions: what a feature, or a package or file of a user, adds to the core, which asks for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mcudeploy.common.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INSTALLED = "mcudeploy.extensions.installed:EXTENSIONS"
_GROUP = "mcudeploy"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_SEVERAL = frozenset({"commands", "functions"})
"""Fields with several texts."""
_NO_ADDITIONS = ("name", "domains", "home")
_FOLDERS = ("kernels", "costs")
"""Fields that name a folder."""
_BY_DOMAIN = ("rules", "lowerings", "references", "layouts", "translations")
"""Fields whose values are tables by domain and operator."""


@dataclass(frozen=True, slots=True)
class Extension:
    """The additions of a feature. A text is `module:NAME`, a value that is imported at its first use, or "".

    `:NAME` is a value of the module or file that defines the extension, folders are relative to it. An
    operator of the core stays that of the core.
    """

    name: str
    readers: str = ""
    """Functions that change a parsed model in place, and return notes."""
    states: str = ""
    """Functions that return the states of a parsed model, and hide in place what declares them."""
    rules: str = ""
    """By domain and operator, functions that replace an ONNX node by others."""
    lowerings: str = ""
    """By domain and operator, functions that emit the operators of an ONNX node."""
    references: str = ""
    """By domain and operator, numpy functions that compute a node which ONNX Runtime lacks: from its inputs,
    and its attributes as keywords, to its output or the tuple of them.
    """
    layouts: str = ""
    """By domain and operator, the `Layout` that an ONNX node requires."""
    translations: str = ""
    """By "INT16" or "CUSTOM", and operator, functions that translate a .tflite operator."""
    domains: tuple[str, ...] = ()
    """The domains of the five tables above, which are imported for models with one of them; none: for all."""
    passes: str = ""
    """Functions from a checked model, whose activations are joined, to the same or one with other nodes."""
    integer_forms: str = ""
    """Functions from a model and the same in float32 to a model on stored integers, or None."""
    ways_out: str = ""
    """By domain, what to do about operators that are not supported."""
    unit: str = ""
    """The `UnitSupport` of a unit beside the core."""
    factors: str = ""
    """A function from a board to its `KernelFactors`, or None."""
    proposals: str = ""
    """Functions of a model, a board and options that return proposals to make the model fit."""
    parts: str = ""
    """By name, the `LibraryPart`s that need nothing else."""
    commands: tuple[str, ...] = ()
    """Texts of click commands and groups, which the command line has by their names."""
    options: str = ""
    """By command of the core, decorators that add options to it."""
    section: str = ""
    """A `ReportSection` of the reports of `build` and `run`."""
    functions: tuple[str, ...] = ()
    """Texts of functions and classes that `import mcudeploy` has by their names."""
    methods: str = ""
    """By name, functions of a loaded model, which `mcudeploy.load(...)` has as methods."""
    cases: str = ""
    """Functions without parameters that yield graphs of one operator each, to measure and test it."""
    kernels: str = ""
    """A folder of C files; `name.c` defines the kernel `mcud_name`, `name.h` its parameters."""
    costs: str = ""
    """A folder of tables `core.csv` in the format of mcudeploy/costs/tables."""
    home: str = ""
    """The file that defines it, set when it is loaded; "" for one that comes with mcudeploy."""

    @property
    def additions(self) -> tuple[str, ...]:
        """The names of the fields that it fills."""
        names = (field.name for field in fields(self) if field.name not in _NO_ADDITIONS)
        return tuple(name for name in names if getattr(self, name))

    def fault(self) -> UsageError | None:
        """Return why one of its texts or files cannot be used, None if all can."""
        try:
            for field in self.additions:
                value = getattr(self, field)
                for text in () if field in _FOLDERS else value if field in _SEVERAL else (value,):
                    value_of(text)
            _ = self.files
        except UsageError as fault:
            return fault
        return None

    @property
    def kernel_files(self) -> tuple[Path, ...]:
        """The C files and headers, by name. Raises UsageError for one that cannot be used."""
        if not self.kernels:
            return ()
        from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

        return code.files_below(Path(self.kernels), (".c", ".h"))

    @property
    def files(self) -> tuple[Path, ...]:
        """Its Python file or the files of its package, its C files and its tables. Raises UsageError."""
        from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

        home = Path(self.home)
        beside = sorted(home.parent.rglob("*.py")) if (home.parent / "__init__.py").exists() else [home]
        tables = code.files_below(Path(self.costs), (".csv",)) if self.costs else ()
        return (*beside, *self.kernel_files, *tables)


@dataclass(slots=True)
class _Files:
    """The extensions of files that are in use."""

    extensions: tuple[Extension, ...] = ()


_FILES = _Files()


def extensions() -> tuple[Extension, ...]:
    """Return the built-in extensions, those of installed packages by name, then those of files in use.

    Raises UsageError for a package whose extension cannot be imported, and for two of one name.
    """
    return (*_installed(), *_FILES.extensions)


def foreign_extensions() -> tuple[Extension, ...]:
    """Return the extensions that do not come with mcudeploy. Raises UsageError as `extensions`."""
    return tuple(it for it in extensions() if it.home)


@cache
def _installed() -> tuple[Extension, ...]:
    return _distinct((*built_in_extensions(), *map(_packaged, _entry_points())))


def built_in_extensions() -> tuple[Extension, ...]:
    """Return the extensions that come with mcudeploy: none in a copy without their folder."""
    if find_spec(_INSTALLED.partition(".installed")[0]) is None:
        return ()
    built_in: tuple[Extension, ...] = value_of(_INSTALLED)
    return built_in


def foreign_candidates() -> Iterator[tuple[str, Extension | UsageError]]:
    """Yield pairs of an origin and its extension: of each installed package, and of each file in use.

    The origin is the entry point of the package, or the file. An error in place of the extension says why it
    cannot be used.
    """
    for point in _entry_points():
        try:
            yield point.value, _packaged(point)
        except UsageError as fault:
            yield point.value, fault
    yield from ((it.home, it) for it in _FILES.extensions)


def disagreement() -> UsageError | None:
    """Return why the extensions cannot be used together, None if they can, or if one cannot be imported."""
    foreign = [it for _, it in foreign_candidates()]
    if not foreign or any(isinstance(it, UsageError) or it.fault() for it in foreign):
        return None
    try:
        for field in _BY_DOMAIN:
            for domain in {domain for table in added(field) for domain in table}:
                added_for(field, domain)
    except UsageError as fault:
        return fault
    return None


@contextmanager
def extension_files(*paths: str | Path, trust: bool = False) -> Iterator[None]:
    """Use the extensions of Python files while the block runs; each defines `EXTENSION`.

    With `trust` the user allows the files, and the C files and tables that they name, until any of them
    changes. Raises ConfigError for a file that is not trusted, UsageError for one that has no extension.
    """
    before = _FILES.extensions
    named = tuple(_of_file(Path(path).absolute(), trust=trust) for path in paths)
    _distinct((*_installed(), *before, *named))
    _FILES.extensions = (*before, *named)
    try:
        yield
    finally:
        _FILES.extensions = before


def added(field: str) -> Iterator[Any]:
    """Yield what each extension adds to a field. Raises UsageError for a value that cannot be imported."""
    for extension in extensions():
        text: str = getattr(extension, field)
        if text:
            yield value_of(text)


def added_for(field: str, domain: str) -> Mapping[str, Any]:
    """Return the tables of a field for a domain, joined. Raises UsageError for an operator that two add."""
    return _joined(field, domain, extensions())


@cache
def _joined(field: str, domain: str, among: Sequence[Extension]) -> Mapping[str, Any]:
    joined: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for extension in among:
        text: str = getattr(extension, field)
        if not text or (extension.domains and domain not in extension.domains):
            continue
        for operator, value in value_of(text).get(domain, {}).items():
            if operator in joined:
                raise UsageError(
                    f"two extensions add {field} of {domain or 'ai.onnx'}::{operator}, {owners[operator]} "
                    f"and {extension.name}: use one of them"
                )
            owners[operator], joined[operator] = extension.name, value
    return joined


def foreign_kernels() -> frozenset[str]:
    """Return names (without `mcud_`) of the kernels of extensions that do not come with mcudeploy."""
    files = [path for it in foreign_extensions() for path in it.kernel_files if path.suffix == ".c"]
    if not files:
        return frozenset()
    from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

    texts = (code.content_of(path).decode("utf-8", "replace") for path in files)
    return frozenset(name for text in texts for name in code.kernels_in(text))


def foreign_digest() -> str:
    """Return the hash of all files of the extensions that do not come with mcudeploy; "" without any."""
    foreign = foreign_extensions()
    if not foreign:
        return ""
    from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

    return code.digest_of(path for it in foreign for path in it.files)


def _entry_points() -> list[EntryPoint]:
    """Return the entry points of our group by name.

    Importing `importlib.metadata` takes a fifth of `--help`: it waits until a package may have some.
    """
    if not any(_may_have_entry_points(Path(path)) for path in sys.path):
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415

    return sorted(entry_points(group=_GROUP), key=lambda point: point.name)


def _may_have_entry_points(path: Path) -> bool:
    """Whether packages in a folder of `sys.path` name our group, or it is an archive."""
    if not path.is_dir():
        return path.is_file()
    packages = (each for each in path.iterdir() if each.name.endswith((".dist-info", ".egg-info")))
    texts = (each / "entry_points.txt" for each in packages)
    return any(f"[{_GROUP}]" in text.read_text("utf-8") for text in texts if text.is_file())


def _packaged(point: EntryPoint) -> Extension:
    extension = value_of(point.value)
    if not isinstance(extension, Extension):
        raise UsageError(f"entry point {point.name!r} is {point.value}, which is not an Extension")
    return _placed(extension, import_module(point.value.partition(":")[0]))


def _of_file(path: Path, *, trust: bool) -> Extension:
    """Return the extension of a file. What the file names is known once it has run, so both are allowed."""
    from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

    content = code.content_of(path)
    if trust:
        code.TRUSTED.add(code.digest_of([path]), path.name)
    elif code.digest_of([path]) not in code.TRUSTED:
        raise ConfigError(
            f"{path} is Python code that mcudeploy would run. Read it, and the C files that it names; "
            "--trust-extension allows it once, until any of it changes."
        )
    module = code.module_of(path, content)
    extension = getattr(module, "EXTENSION", None)
    if not isinstance(extension, Extension):
        raise UsageError(f"{path} has no extension: write EXTENSION = Extension(...) in it")
    if extension.commands:
        raise UsageError(f"{path}: a file adds no commands; install it as a package with an entry point")
    extension = _placed(extension, module)
    if trust:
        code.TRUSTED.add(code.digest_of(extension.files), extension.name)
    elif code.digest_of(extension.files) not in code.TRUSTED:
        raise ConfigError(
            f"at least one of the files that {path} names has changed: "
            f"{', '.join(it.name for it in extension.files[1:])}. "
            "Read them; --trust-extension allows them once, until any of them changes."
        )
    return extension


def _placed(extension: Extension, module: ModuleType) -> Extension:
    """Return a foreign extension with absolute texts and folders. Raises UsageError."""
    from mcudeploy.common import extension_code as code  # noqa: PLC0415 - commands start without it

    if not isinstance(extension.name, str) or not _NAME.fullmatch(extension.name):
        raise UsageError(
            f"{extension.name!r} is not a name for an extension: use letters, digits, _, . and -, at most 64"
        )
    home = Path(str(module.__file__))
    values: dict[str, Any] = {}
    for field in extension.additions:
        value, label = getattr(extension, field), f"{field} of extension {extension.name}"
        texts = value if field in _SEVERAL else (value,)
        if not isinstance(texts, tuple) or not all(isinstance(it, str) for it in texts):
            raise UsageError(f"{label} is not a text, such as ':{field.upper()}'")
        absolute = tuple(f"{module.__name__}{it}" if it.startswith(":") else it for it in texts)
        if field in _FOLDERS:
            values[field] = str(code.folder_beside(home, value, label))
        else:
            values[field] = absolute if field in _SEVERAL else absolute[0]
    placed = replace(extension, home=str(home), **values)
    _ = placed.files  # raises for a link out of its folders
    return placed


def _distinct(among: tuple[Extension, ...]) -> tuple[Extension, ...]:
    """Return the extensions. Raises UsageError for two of one name."""
    names: set[str] = set()
    for it in among:
        if it.name in names:
            raise UsageError(f"two extensions are called {it.name}: use one of them{_at(it)}")
        names.add(it.name)
    return among


def _at(extension: Extension) -> str:
    return f" ({extension.home})" if extension.home else ""


def value_of(text: str) -> Any:
    """Return the value of a text. Raises UsageError if it cannot be imported."""
    module, _, name = text.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as fault:  # the code of others raises anything
        raise UsageError(f"{text} of an extension cannot be imported: {fault}") from fault
