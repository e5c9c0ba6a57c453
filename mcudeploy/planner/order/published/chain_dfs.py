"""Chain-memory-aware depth-first order: whole chains, first those of large peak and small residue.

Source: the published patent on exact, then heuristic, then tuned execution orders, second stage.

1. Windows are the maximal chains between forks and joins.
2. Run alone, with the outside buffers that it touches, each has a peak h and a residue r.
3. Ready windows lie on a stack, those with the larger h - r above.
4. The order in which the stack empties is the schedule.
"""

from __future__ import annotations

from mcudeploy.planner.order.order_problem import OrderProblem


def chain_dfs(problem: OrderProblem) -> tuple[int, ...]:
    """Return a valid order. Linear except for sorting."""
    windows = _windows(problem)
    window_of = {step: number for number, window in enumerate(windows) for step in window}
    waiting = [len(problem.before[window[0]]) for window in windows]
    worth = [_worth(problem, window) for window in windows]

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


def _windows(problem: OrderProblem) -> list[list[int]]:
    """Return maximal chains: consecutive steps have no other direct predecessor or successor."""
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


def _worth(problem: OrderProblem, window: list[int]) -> int:
    """Return peak less residue of a window that runs after all steps with lower numbers."""
    done = (1 << window[0]) - 1
    live = peak = 0
    for step in window:
        rise, net = problem.change(step, done)
        peak = max(peak, live + rise)
        live += net
        done |= 1 << step
    return peak - live
