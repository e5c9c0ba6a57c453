"""Depth-first orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def depth_first(begins: Iterable[int], needs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The time of every step that the steps `begins` wait for, and of these, in the order of time.

    `needs` has for each step those it waits for directly, to be brought about in this order.
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
