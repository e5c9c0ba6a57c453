"""JSON files of users, in the shape of a pydantic model."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited

_MOST_BYTES = 16 * 2**20
_Content = TypeVar("_Content", bound=BaseModel)
_KINDS = ("dict[", "list[", "tuple[")
"""Beginnings of the names by which pydantic tells apart the kinds that a value may have."""


def read_json(path: Path, kind: type[_Content], what: str) -> _Content:
    """Return the content of a file of at most 16 MiB. Raises ConfigError with the first fault of a file that
    is not `what`.
    """
    try:
        text = read_limited(path, _MOST_BYTES).removeprefix(codecs.BOM_UTF8)
        return kind.model_validate_json(text)
    except ValidationError as error:
        fault = _deepest(error)
        names = (str(it) for it in fault["loc"] if not str(it).startswith(_KINDS))
        place = ".".join(names) or "the file"
        raise ConfigError(f"{path} is not {what}: {place}: {' '.join(fault['msg'].split())}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _deepest(error: ValidationError) -> ErrorDetails:
    """Return the first fault; of a value that may be of several kinds, the fault that lies deepest."""
    first, *others = error.errors()
    *where, kind = first["loc"] or ("",)
    if not str(kind).startswith(_KINDS):
        return first
    same = (it for it in others if list(it["loc"][: len(where)]) == where)
    return max((first, *same), key=lambda it: len(it["loc"]))
