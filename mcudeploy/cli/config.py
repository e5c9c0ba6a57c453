"""Option values from `mcudeploy.toml` and `MCUDEPLOY_*`, named as options and checked when read."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FilePath, ValidationError

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_regular
from mcudeploy.common.sizes import parse_size

FILE_NAME = "mcudeploy.toml"
_MOST_BYTES = 2**20
_PREFIX = "MCUDEPLOY_"
_NOT_OPTIONS = frozenset({"MCUDEPLOY_CACHE_DIR"})
_LISTS = frozenset({"input", "expected", "assign", "memory", "shape"})
_Origin = Callable[[str], str]


def parse_cores(value: object) -> int:
    """Return a number of cores, or 0 for `auto`. Raises ValueError."""
    text = str(value)
    if text == "auto":
        return 0
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**31:
        raise ValueError(f"{text!r} is neither a number of cores nor auto")
    return int(text)


def parse_limit(text: str) -> tuple[str, int]:
    """Return name and bytes of a memory limit such as `sram=64k`; the size may be 0. Raises ValueError."""
    name, equals, size = text.partition("=")
    if not (name.strip() and equals):
        raise ValueError(f"{text!r} is not a limit for a memory: NAME=SIZE, such as sram=64k or psram=0")
    try:
        return name.strip(), 0 if size.strip() == "0" else parse_size(size)
    except ValueError as error:
        raise ValueError(f"{error}; 0 keeps {name.strip()} free of arenas") from error


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return an input and its shape, such as `input=1,3,96,96`. Raises ValueError."""
    name, _, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")]
    if not (name and all(re.fullmatch("[1-9][0-9]{0,8}", part) for part in parts)):
        raise ValueError(f"{text!r} is no shape: NAME=SIZE,SIZE,..., such as input=1,3,96,96")
    return name, tuple(map(int, parts))


def parse_range(text: str) -> tuple[float, float]:
    """Return two different numbers such as `-1..1`. Raises ValueError."""
    low, dots, high = text.partition("..")
    try:
        ends = parse_numbers(low) + parse_numbers(high) if dots else ()
    except ValueError:
        ends = ()
    if len(ends) != 2 or ends[0] == ends[1]:
        raise ValueError(f"{text!r} is no range: LOW..HIGH, such as 0..1 or -1..1")
    return ends[0], ends[1]


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return finite numbers separated by commas, such as `0.485,0.456,0.406`. Raises ValueError."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise ValueError(f"{text!r} is no list of numbers, such as 0.485,0.456,0.406")
    return found


def _listed(value: object) -> object:
    """Return a list; a single string becomes a list of it."""
    return (value,) if isinstance(value, str) else value


def _checked_limit(text: str) -> str:
    parse_limit(text)
    return text


def _checked_shape(text: str) -> str:
    parse_shape(text)
    return text


def _checked_cores(value: object) -> str:
    parse_cores(value)
    return str(value)


def _checked_range(text: str) -> str:
    parse_range(text)
    return text


def _checked_numbers(text: object) -> str:
    parse_numbers(str(text))
    return str(text)


def _option(field: str) -> str:
    return field.removeprefix("as_").replace("_", "-")


class Settings(BaseModel):
    """Every option that a file or variable may set; unset ones are None, so commands use their defaults."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        alias_generator=_option,
    )

    board: str | None = None
    chain: str | None = None
    boards: str | None = None  # old name of chain
    frames: Annotated[int, Field(ge=1)] | None = None
    name: str | None = None
    output: Path | None = None
    plan: FilePath | None = None
    input: Annotated[tuple[FilePath, ...], BeforeValidator(_listed)] | None = None
    expected: Annotated[tuple[FilePath, ...], BeforeValidator(_listed)] | None = None
    pixels: Annotated[str, AfterValidator(_checked_range)] | None = None
    mean: Annotated[str, BeforeValidator(_checked_numbers)] | None = None
    std: Annotated[str, BeforeValidator(_checked_numbers)] | None = None
    resize: Literal["stretch", "crop", "none"] | None = None
    port: str | None = None
    hardware_map: FilePath | None = None
    probe: str | None = None
    flasher: str | None = None
    emulate: bool | None = None
    patience: Annotated[float, Field(ge=1, le=1000)] | None = None
    guards: bool | None = None
    assign: Annotated[tuple[str, ...], BeforeValidator(_listed)] | None = None
    placement: Literal["blocks", "tags"] | None = None
    parallel: Annotated[str, BeforeValidator(_checked_cores)] | None = None
    measurers: Annotated[int, Field(ge=1)] | None = None
    objective: Literal["instructions", "cycles"] | None = None
    timing: Literal["instructions", "cycles-model", "traffic"] | None = None
    float_io: bool | None = None
    keep_constant_channels: bool | None = None
    stateful: bool | None = None
    ram_limit: Annotated[int, BeforeValidator(parse_size)] | None = None
    memory: (
        Annotated[tuple[Annotated[str, AfterValidator(_checked_limit)], ...], BeforeValidator(_listed)] | None
    ) = None
    shape: (
        Annotated[tuple[Annotated[str, AfterValidator(_checked_shape)], ...], BeforeValidator(_listed)] | None
    ) = None
    max_overhead: Annotated[float, Field(ge=0)] | None = None
    time_limit: Annotated[float, Field(gt=0)] | None = None
    dma_io: bool | None = None
    split: bool | None = None
    verify: bool | None = None
    stream_input: bool | None = None
    arena: Literal["own", "shared", "extern", "init"] | None = None
    sbom: bool | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    method: str | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    as_json: bool | None = None


def load_settings(directory: Path, environment: Mapping[str, str]) -> dict[str, object]:
    """Return the values that `mcudeploy.toml` in `directory` and the environment set, by option name.

    The environment wins. An empty variable counts as unset.
    Raises ConfigError that names the file or variable, the key and the fault.
    """
    return {**_from_file(directory / FILE_NAME), **_from_environment(environment)}


def _from_file(path: Path) -> dict[str, object]:
    try:
        table = tomllib.loads(read_regular(path, _MOST_BYTES).decode())
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path.name} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}") from None
    return _validated(table, lambda key: f"{path.name}: key {key!r}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    table: dict[str, object] = {}
    for name, text in environment.items():
        if text and name.startswith(_PREFIX) and name not in _NOT_OPTIONS:
            key = name.removeprefix(_PREFIX).lower().replace("_", "-")
            table[key] = text.split(":") if key in _LISTS else text
    return _validated(table, lambda key: _PREFIX + key.upper().replace("-", "_"))


def _validated(table: Mapping[str, object], origin: _Origin) -> dict[str, object]:
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            key = str(problem["loc"][0])
            reason = problem["msg"].removeprefix("Value error, ")
            lines.append(
                f"{origin(key)}: {_unknown(key) if problem['type'] == 'extra_forbidden' else reason}"
            )
        raise ConfigError("\n".join(lines)) from None
    return {_option(name): getattr(settings, name) for name in settings.model_fields_set}


def _unknown(key: str) -> str:
    known = sorted(map(_option, Settings.model_fields))
    near = difflib.get_close_matches(key, known, n=1)
    return (
        f"no such option; did you mean {near[0]!r}?"
        if near
        else f"no such option; there are {', '.join(known)}"
    )
