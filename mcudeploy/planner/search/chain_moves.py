"""Changes of the chains that are fused, beside changes of the cuts: one chain more or less at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcudeploy.ops.fused.fused import fused_name
from mcudeploy.planner.search.cuts import Cut, State
from mcudeploy.planner.search.seeds import Chains, CutProblem


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """A graph with some chains fused; `stages`: by place, the places of its stages in the plain order."""

    problem: CutProblem
    stages: tuple[tuple[int, ...], ...]

    def plain(self, state: State) -> State:
        """Return cuts of this form as cuts of the plain order."""
        cuts = []
        for cut in state:
            places = [at for stages in self.stages[cut.first : cut.last + 1] for at in stages]
            cuts.append(replace(cut, first=min(places), last=max(places)))
        return tuple(cuts)

    def cuts(self, plain: State) -> State:
        """Return cuts of the plain order as cuts of this form.

        A fused operator belongs to the first cut that has one of its stages.
        """
        cuts: list[Cut] = []
        for cut in plain:
            inside = range(cut.first, cut.last + 1)
            end = cuts[-1].last if cuts else -1
            places = [
                place
                for place, stages in enumerate(self.stages)
                if place > end and any(at in inside for at in stages)
            ]
            if places:
                cuts.append(replace(cut, first=places[0], last=places[-1]))
        return tuple(cuts)


class Forms:
    """The graphs with some of the chains `every` fused, as problems of their cuts, each made once.

    `problem_of` makes a problem, and counts its effort.
    """

    def __init__(self, every: Chains, problem_of: Callable[[Chains], CutProblem]) -> None:
        self._every, self._problem_of = every, problem_of
        plain = problem_of(())
        self._place = {name: at for at, name in enumerate(_names(plain))}
        self._forms: dict[Chains, _Form] = {(): self._form(plain)}

    def of(self, chains: Chains) -> CutProblem:
        """Return the problem with these chains fused."""
        return self._known(chains).problem

    def moves(self, problem: CutProblem, state: State, place: int) -> Iterator[tuple[CutProblem, State]]:
        """Yield the cuts with one chain more, which may lower the peak, or one less, which saves time.

        The chain lies in the segment of the peak; a chain that it overlaps is not fused any more.
        """
        form, fused = self._known(problem.chains), problem.chains
        plain = form.plain(state)
        sections = ((first, first + len(rows)) for first, rows in problem.space.sections(state))
        first, end = next((it for it in sections if it[0] <= place < it[1]), (place, place + 1))
        inside = {at for stages in form.stages[first:end] for at in stages}
        for chain in self._every:
            if chain in fused:
                kept = [other for other in fused if other != chain]
            elif inside.issuperset(self._place[name] for name in chain):
                kept = [chain, *(other for other in fused if not set(other) & set(chain))]
            else:
                continue
            other = self._known(tuple(it for it in self._every if it in kept))
            yield other.problem, other.cuts(plain)

    def _known(self, chains: Chains) -> _Form:
        if chains not in self._forms:
            self._forms[chains] = self._form(self._problem_of(chains))
        return self._forms[chains]

    def _form(self, problem: CutProblem) -> _Form:
        stages = {fused_name(chain): chain for chain in problem.chains}
        places = (
            tuple(self._place[stage] for stage in stages.get(name, (name,))) for name in _names(problem)
        )
        return _Form(problem, tuple(places))


def _names(problem: CutProblem) -> Sequence[str]:
    """Return the operators of a form in their order."""
    operators = problem.space.flow.graph.operators
    return [operators[position].name for position in problem.space.order]
