"""Why a file is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.frontend.load import load


def problems_of(path: Path, **options: Any) -> tuple[Problem, ...]:
    """The problems of a model that is refused."""
    with pytest.raises(ModelError) as caught:
        load(path, **options)
    return caught.value.problems
