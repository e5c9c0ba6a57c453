"""The keyword arguments of `mcudeploy.plan` and others: the table `OPTIONS`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_type_hints

from pydantic import (
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import Alignment
from mcudeploy.common.errors import UsageError
from mcudeploy.common.sizes import parse_constant, parse_limit, parse_shape, parse_size, parse_state
from mcudeploy.planner.plan_options import OPTIONS, Options, OptionSpec

Named = str | Board
"""A board, or the name of one, of a family, or of a board file."""


class Reading(TypedDict, total=False):
    """Options of reading a model. `shapes` and `bind`: by input. `state`: by output, the input that takes it
    in the next run. `int8_cache`: names of such inputs, or patterns.
    """

    shapes: Mapping[str, tuple[PositiveInt, ...]]
    bind: Mapping[str, FiniteFloat]
    state: Mapping[str, str]
    int8_cache: tuple[str, ...]
    float_io: bool
    keep_constant_channels: bool
    stateful: bool
    rounding: Literal["once", "tflite"]
    hop: PositiveInt


class Choices(Reading, total=False):
    """Options of a search. Sizes are bytes or texts such as "20k", `max_overhead` is percent, `time_limit`
    seconds.
    """

    optimize: Literal["speed", "balanced", "size"]
    max_overhead: Annotated[FiniteFloat, Field(ge=0)]
    time_limit: Annotated[FiniteFloat, Field(gt=0)]
    ram_limit: NonNegativeInt | str
    flash_limit: PositiveInt | str
    memory: Mapping[str, NonNegativeInt | str]
    dma_io: bool
    load_constants: Literal["engine", "core", "never"]
    io_align: Alignment
    split: bool
    stream_input: bool
    assign: tuple[str, ...]
    placement: Literal["blocks", "tags"]
    parallel: PositiveInt
    objective: Literal["instructions", "cycles"]
    seed: NonNegativeInt
    replaceable: tuple[str, ...]
    parameters_in: Literal["ram", "flash"]
    fresh: bool
    plan: str | Path
    order: str | Path
    name: str


def options_of(choices: Choices, own: Collection[str] = ()) -> Options:
    """Return the options of a search. `own`: the caller's other keywords, for the hint about a misspelt name.

    Raises TypeError for an unknown name, UsageError for a wrong value.
    """
    for name in choices.keys() - Choices.__annotations__:
        known = [*own, *Choices.__annotations__]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise TypeError(f"no such option: {name}; {hint}")
    kinds = get_type_hints(Choices, include_extras=True)
    valid = {name: checked(name, value, kinds[name] | None) for name, value in choices.items()}
    values = {spec.field: _value(spec, valid[spec.keyword]) for spec in OPTIONS if spec.keyword in valid}
    return Options(**values, name=valid.get("name"))


def _value(spec: OptionSpec, value: Any) -> Any:
    """Return the value of a field of `Options`."""
    if spec.kind is parse_size and value is not None:
        return _size(spec.keyword, value)
    if spec.kind is parse_limit:
        return tuple((name, _size(f"{spec.keyword}[{name!r}]", size)) for name, size in (value or {}).items())
    if spec.kind in (parse_shape, parse_constant):
        return tuple((value or {}).items())
    if spec.kind is parse_state:
        return tuple((name, output) for output, name in (value or {}).items())
    return Path(value) if spec.kind is Path and value is not None else value


def checked(name: str, value: Any, kind: Any) -> Any:
    """Return an argument, converted to the type `kind`. Raises UsageError if that is impossible."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].replace("Input should be", "it must be")
        raise UsageError(f"{name}={value!r:.80}: {reason}") from None


def _size(name: str, size: int | str) -> int:
    """Return the bytes of a size, which is a number or a text; 0 is allowed."""
    if not isinstance(size, str):
        return size
    try:
        return 0 if size.strip() == "0" else parse_size(size)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_keywords(
    function: _Function, kind: type[Mapping[str, Any]] = Choices, known: Mapping[str, Any] = {}
) -> _Function:
    """Show the names and defaults of a function's keywords in its signature, for `help()`.

    `kind`: the type of all keywords; `known`: defaults of keywords that a search does not have.
    """
    defaults = {spec.keyword: getattr(Options(), spec.field) for spec in OPTIONS} | dict(known)
    signature = inspect.signature(function)
    own = [it for it in signature.parameters.values() if it.kind is not it.VAR_KEYWORD]
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=one)
        for name, one in kind.__annotations__.items()
        if name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return function


def board_of(board: Named) -> Board:
    """Return the board of that name. Raises BoardNotFoundError, and UsageError for another type."""
    if not isinstance(board, Named):
        raise UsageError(f"a board is a name or a mcudeploy.Board, not {type(board).__name__}")
    return load_board(board) if isinstance(board, str) else board


def boards_of(boards: Iterable[Named]) -> list[Board]:
    """Return the boards of a list. Raises UsageError if it is not a list, and what `board_of` raises."""
    if isinstance(boards, Named) or not isinstance(boards, Iterable):
        name = boards if isinstance(boards, str) else getattr(boards, "name", "stm32f405")
        raise UsageError(f"boards is a list, such as [{name!r}]")
    return [board_of(board) for board in boards]
