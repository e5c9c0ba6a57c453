"""Random problems, their best order by brute force, and what every order must stand."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from mcudeploy.scheduler.problem import Buffer, InPlace, Problem


@st.composite
def problems(draw: st.DrawFn, most_steps: int = 7) -> Problem:
    """Steps with random predecessors; buffers of any kind, made and read as graphs do or touched anyhow."""
    steps = draw(st.integers(1, most_steps))
    before = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, step - 1), max_size=2)))) if step else ()
        for step in range(steps)
    )
    sizes = st.integers(0, 8).map(lambda units: 4 * units)
    buffers = [
        Buffer(draw(sizes), (step, *(other for other in range(steps) if step in before[other])), kept=kept)
        for step, kept in enumerate(draw(st.lists(st.booleans(), min_size=steps, max_size=steps)))
    ]
    for _ in range(draw(st.integers(0, 3))):
        touched = tuple(sorted(draw(st.sets(st.integers(0, steps - 1), max_size=3))))
        buffers.append(Buffer(draw(sizes), touched, draw(st.booleans()), draw(st.booleans())))
    chances = [
        InPlace(step, other, step) for step in range(steps) for other in before[step] if draw(st.booleans())
    ]
    return Problem(before, tuple(buffers), tuple(chances))


def all_orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every valid order."""

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == problem.steps:
            yield order
        for step in range(problem.steps):
            if step not in order and all(other in order for other in problem.before[step]):
                yield from extend((*order, step))

    return extend(())


def least_peak(problem: Problem) -> int:
    """The peak of the best order."""
    return min(map(problem.peak, all_orders(problem)))
