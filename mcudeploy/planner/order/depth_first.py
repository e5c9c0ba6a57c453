"""Depth-first orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence


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


def without_delay(
    time: Mapping[int, int], needs: Mapping[int, Sequence[int]], prompt: Callable[[int], bool]
) -> dict[int, int]:
    """Return the times of an order in which each `prompt` step follows the last step that it depends on."""
    after: dict[int, int] = {}
    for step, at in time.items():
        after[step] = max((after[other] for other in needs[step]), default=at) if prompt(step) else at
    return {step: at for at, step in enumerate(sorted(time, key=lambda step: (after[step], time[step])))}
