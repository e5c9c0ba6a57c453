"""Whole sweeps, which `make weekly` runs, and of which every run of the tests has a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

PROFILE = "weekly"
"""The profile of hypothesis that draws all examples: `pytest -m "" --hypothesis-profile=weekly`."""


def sample(cases: Iterable[object], kept: int | Collection[object]) -> list[object]:
    """Return the cases of a parameter: the first `kept`, or those that `kept` has, run always, the others
    once a week.
    """
    return [
        case
        if (number < kept if isinstance(kept, int) else case in kept)
        else pytest.param(case, marks=pytest.mark.weekly)
        for number, case in enumerate(cases)
    ]


def examples(kept: T, whole: T) -> T:
    """Return `kept`, or `whole` once a week: numbers of hypothesis's examples, or cases of one test."""
    return whole if settings.get_current_profile_name() == PROFILE else kept
