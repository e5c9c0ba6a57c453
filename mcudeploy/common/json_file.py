"""JSON files of users, in the shape of a pydantic model."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_limited

_MOST_BYTES = 16 * 2**20
_Content = TypeVar("_Content", bound=BaseModel)


def read_json(path: Path, kind: type[_Content], what: str) -> _Content:
    """Return the content of a file of at most 16 MiB. Raises ConfigError with the first fault of a file that
    is not `what`.
    """
    try:
        text = read_limited(path, _MOST_BYTES).removeprefix(codecs.BOM_UTF8)
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{path} is not {what}: {place}: {' '.join(first['msg'].split())}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
