"""Chain-memory-aware depth first order: whole chains at a time, those first that need much and leave little.

Method: the published patent on exact, then heuristic, then tuned execution orders. Windows are the maximal
chains between forks and joins; run alone, with the buffers outside that it touches, each has a peak h and a
residue r. Ready windows lie on a stack, those with the larger h - r above; the order in which it empties is
the schedule.
"""

from __future__ import annotations

from mcudeploy.scheduler.problem import Problem


def chain_dfs(problem: Problem) -> tuple[int, ...]:
    """A valid order. Linear but for sorting."""
    windows = _windows(problem)
    window_of = {step: number for number, window in enumerate(windows) for step in window}
    waiting = [len(problem.before[window[0]]) for window in windows]
    worth = [peak - residue for peak, residue in (_memory(problem, window) for window in windows)]

    def urgency(number: int) -> tuple[int, int]:
        return worth[number], -windows[number][0]

    stack = sorted((number for number, count in enumerate(waiting) if not count), key=urgency)
    order: list[int] = []
    while stack:
        window = windows[stack.pop()]
        order += window
        ready = []
        for step in problem.after[window[-1]]:
            waiting[window_of[step]] -= 1
            if not waiting[window_of[step]]:
                ready.append(window_of[step])
        stack += sorted(ready, key=urgency)
    return tuple(order)


def _windows(problem: Problem) -> list[list[int]]:
    """Maximal chains: a step inside one waits for the step before it only, and only it waits for that."""
    windows: list[list[int]] = []
    window_of: dict[int, list[int]] = {}
    for step, needed in enumerate(problem.before):
        if len(needed) == 1 and len(problem.after[needed[0]]) == 1:
            window = window_of[needed[0]]
            window.append(step)
        else:
            window = [step]
            windows.append(window)
        window_of[step] = window
    return windows


def _memory(problem: Problem, window: list[int]) -> tuple[int, int]:
    """The most bytes that a window touches at once, and those that are left of it after it.

    What others touch too is there all the time if they must come first, and stays if they may come later.
    """
    inside = set(window)
    place = {step: at for at, step in enumerate(window)}
    change = [0] * (len(window) + 1)
    residue = 0
    for number in sorted({number for step in window for number in problem.touches[step]}):
        buffer = problem.buffers[number]
        own = [place[step] for step in buffer.touched_by if step in inside]
        others = [step for step in buffer.touched_by if step not in inside]
        first = 0 if buffer.initial or any(step < window[0] for step in others) else min(own)
        stays = buffer.kept or any(step > window[0] for step in others)
        change[first] += buffer.size_bytes
        if stays:
            residue += buffer.size_bytes
        else:
            change[max(own) + 1] -= buffer.size_bytes
    peak = load = 0
    for delta in change[:-1]:
        load += delta
        peak = max(peak, load)
    return peak, residue
