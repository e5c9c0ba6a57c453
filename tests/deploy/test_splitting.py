"""Which plans of a search are packed again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcudeploy.board import load_board
from mcudeploy.splitting import Splitting, could_win

BOARD = load_board("host")


def plan(peak_bytes: int, status: str, **arenas: int) -> Any:
    """As much of a plan as matters."""
    layout = SimpleNamespace(arenas=arenas, arena_bytes=sum(arenas.values()), status=status)
    return SimpleNamespace(layout=layout, estimate=SimpleNamespace(peak_bytes=peak_bytes, traffic={}))


@pytest.mark.parametrize(
    ("peak_bytes", "best", "could"),
    [
        (93, (0, 0, 104), True),
        (97, (0, 0, 104), False),
        (93, (0, 0, 96), False),
        (200, (8, 0, 104), True),  # it may be the one that fits
        (200, (0, 2.5, 104), True),  # or all of it may lie where access costs least
    ],
)
def test_a_plan_could_win_by_its_peak_or_where_the_best_has_other_faults(
    peak_bytes: int, best: tuple[int, float, int], could: bool
) -> None:
    assert could_win(peak_bytes, best) == could


def test_what_is_proven_the_least_is_not_packed_again() -> None:
    splitting = object.__new__(Splitting)  # without a graph, so that nothing can be packed
    splitting._board = BOARD
    one = plan(93, "optimal", **{BOARD.memories[0].name: 104})
    assert splitting._packed(one, seconds=1.0) is one
