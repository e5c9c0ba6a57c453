"""Random problems and their best order by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from hypothesis import strategies as st

from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer


def random_problem(steps: int, seed: int) -> OrderProblem:
    """Random dependences, buffers and in-place candidates.

    Buffers resemble those of graphs, or are touched at random; some are initial or kept. Some order can use
    most candidates.
    """
    random = Random(seed)
    before = tuple(
        tuple(sorted({random.randrange(step) for _ in range(random.randint(0, 2))} if step else ()))
        for step in range(steps)
    )
    buffers: list[StepBuffer] = []
    if random.random() < 0.5:
        for step in range(steps):
            readers = (later for later in range(steps) if step in before[later])
            buffers.append(StepBuffer(random.randint(0, 9), (step, *readers), kept=random.random() < 0.2))
    for _ in range(random.randint(1, 6)):
        touched = random.sample(range(steps), random.randint(0, min(steps, 4)))
        initial, kept = random.random() < 0.2, random.random() < 0.2
        buffers.append(StepBuffer(random.randint(0, 9), tuple(sorted(touched)), initial, kept))
    numbers = range(len(buffers))
    anything = [InPlace(step, one, other) for step in range(steps) for one in numbers for other in numbers]
    likely = [chance for chance in anything if OrderProblem(before, tuple(buffers), (chance,)).chances]
    chances = random.choices(likely or anything, k=random.randint(0, 4)) + random.sample(anything, 1)
    random.shuffle(chances)
    return OrderProblem(before, tuple(buffers), tuple(chances))


def problems(most_steps: int = 6) -> st.SearchStrategy[OrderProblem]:
    """Small problems of all kinds. Only a seed is drawn: drawing every part takes a hundred times as long."""
    return st.builds(random_problem, st.integers(1, most_steps), st.integers(0, 2**32))


def any_order(problem: OrderProblem, random: Random) -> list[int]:
    """A random valid order."""
    left = [len(needed) for needed in problem.before]
    ready = [step for step, count in enumerate(left) if count == 0]
    order = []
    while ready:
        step = ready.pop(random.randrange(len(ready)))
        order.append(step)
        for other in problem.after[step]:
            left[other] -= 1
            if left[other] == 0:
                ready.append(other)
    return order


def all_orders(problem: OrderProblem) -> Iterator[tuple[int, ...]]:
    """Every valid order."""

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == problem.steps:
            yield order
        for step in range(problem.steps):
            if step not in order and all(other in order for other in problem.before[step]):
                yield from extend((*order, step))

    return extend(())


def loads_by_lives(problem: OrderProblem, order: Sequence[int]) -> list[int]:
    """Bytes during each step of an order, by the first and last place of every buffer."""
    place = {step: at for at, step in enumerate(order)}
    last_place = len(order) - 1
    lives = []
    for buffer in problem.buffers:
        touched = [place[step] for step in buffer.touched_by]
        first = 0 if buffer.initial else min(touched, default=0)
        last = last_place if buffer.kept else max(touched, default=0 if buffer.initial else -1)
        lives.append(range(first, last + 1))
    loads = []
    for at, step in enumerate(order):
        load = sum(b.size_bytes for b, life in zip(problem.buffers, lives, strict=True) if at in life)
        taken = (
            problem.saving(chance)
            for chance in problem.chances
            if chance.step == step and lives[chance.input][-1] == at == lives[chance.output][0]
        )
        loads.append(load - next(taken, 0))
    return loads


def least_peak(problem: OrderProblem) -> int:
    """The peak of the best order."""
    return min(map(problem.peak, all_orders(problem)))


def without_chances(problem: OrderProblem) -> OrderProblem:
    """Whether no in-place candidate applies, and no initial buffer ends with the first step."""
    return OrderProblem(problem.before, tuple(b for b in problem.buffers if b.touched_by or b.kept))
