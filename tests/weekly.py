"""Sweeps: `make weekly` runs all their cases, every other run of the tests a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

PROFILE = "weekly"
"""The profile of hypothesis that draws all examples: `pytest -m "" --hypothesis-profile=weekly`."""


def sample(cases: Iterable[object], always: int | Collection[object]) -> list[object]:
    """Return the cases of a parameter; those beyond the first `always`, or not in `always`, run weekly."""
    return [
        case
        if (number < always if isinstance(always, int) else case in always)
        else pytest.param(case, marks=pytest.mark.weekly)
        for number, case in enumerate(cases)
    ]


def examples(few: T, whole: T) -> T:
    """Return `few`, or `whole` in a weekly run: numbers of hypothesis's examples, or cases of one test."""
    return whole if settings.get_current_profile_name() == PROFILE else few
