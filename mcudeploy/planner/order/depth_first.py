"""Depth-first orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def depth_first(begins: Iterable[int], needs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the time of the steps `begins` and all steps that they depend on, in the order of time.

    `needs` lists each step's direct dependences in the order in which to visit them.
    """
    time: dict[int, int] = {}
    for begin in begins:
        if begin in time:
            continue
        path, pending = [begin], [iter(needs[begin])]
        while path:
            for step in pending[-1]:
                if step not in time:
                    path.append(step)
                    pending.append(iter(needs[step]))
                    break
            else:
                pending.pop()
                time[path.pop()] = len(time)
    return time
