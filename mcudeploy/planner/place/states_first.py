"""Plans with their states at the start of each arena: programs that run in turn share all above them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.common.errors import UsageError
from mcudeploy.common.text import count_text
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import Plan, Residence, Residences
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.solve import base_alignments
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import WorkBytes


def state_tensors(graph: Graph) -> frozenset[str]:
    """Return the tensors that contain a state during a run, and views of them."""
    roots = Dataflow.of(graph).roots
    owners = {roots[name] for state in graph.states for name in state.chain}
    return frozenset(name for name, root in roots.items() if root in owners)


def require_states_stay(plan: Plan, option: str) -> None:
    """Raise UsageError if states leave their place during a run, which an option does not allow."""
    moved = state_tensors(plan.graph) & {transfer.tensor for transfer in plan.layout.transfers}
    if moved:
        raise UsageError(
            f"{option}: {count_text(len(moved), 'state')} of {plan.graph.name} would leave the fast memory "
            "during a run, for lack of room: leave the option out, or take a board or --memory with more"
        )


def with_states_first(plan: Plan, work: WorkBytes, board: Board) -> Plan:
    """Return the plan with all states below all else, checked. An arena grows by their alignment at most.

    `work`: the bytes of scratch and state of each operator. Raises UsageError if states leave their place.
    """
    require_states_stay(plan, "--arena shared")
    tiled, layout, states = TiledGraph.of(plan), plan.layout, state_tensors(plan.graph)
    if not states:
        return plan
    spans: dict[str, set[tuple[int, int]]] = {memory: set() for memory in layout.arenas}
    others: dict[str, set[int]] = {memory: set() for memory in layout.arenas}
    for name, residences in (*layout.blocks.items(), *layout.scratch.items()):
        for it in (it for block in residences for it in block):
            if name in states:
                spans[it.memory].add((it.offset, it.offset + tiled.block_bytes(name, 0)))
            else:
                others[it.memory].add(it.offset)
    for constants in layout.constants.values():
        others[constants.place.memory].add(constants.place.offset)
    alignments = base_alignments(plan, board)
    maps = {memory: _Map.of(sorted(spans[memory]), others[memory], alignments[memory]) for memory in spans}

    def placed(residences: Residences, *, states: bool = False) -> Residences:
        return tuple(tuple(maps[it.memory].moved(it, states=states) for it in block) for block in residences)

    moved = replace(
        layout,
        blocks={name: placed(of, states=name in states) for name, of in layout.blocks.items()},
        scratch={name: placed(of) for name, of in layout.scratch.items()},
        constants={
            name: replace(it, place=maps[it.place.memory].moved(it.place, states=False))
            for name, it in layout.constants.items()
        },
        arenas={memory: maps[memory].size(size) for memory, size in layout.arenas.items()},
    )
    plan = replace(plan, layout=moved)
    check_plan(plan, work, board)
    return plan


@dataclass(frozen=True, slots=True)
class _Map:
    """Where the bytes of an arena go. `shifts`: of states, by their offsets. `above`: the first byte above
    all states. `cuts`: for the ends of states, the bytes that all else above them moves down.
    """

    shifts: Mapping[int, int]
    above: int
    cuts: Mapping[int, int]

    @classmethod
    def of(cls, spans: Sequence[tuple[int, int]], others: Collection[int], alignment: int) -> _Map:
        """Return the map that packs states, the `spans`, and keeps offsets as aligned as they are.

        States without an offset of others between them are cut out as one.
        """
        shifts: dict[int, int] = {}
        cuts: dict[int, int] = {}
        at, begin, last = 0, -1, -1
        for first, end in spans:
            if begin < 0 or any(last <= other < first for other in others):
                begin = first
            else:
                del cuts[last]
            cuts[end] = (end - begin) // alignment * alignment
            at += (first - at) % alignment
            shifts[first] = at - first
            at, last = at + end - first, end
        return cls(shifts, align_up(at, alignment), cuts)

    def moved(self, residence: Residence, *, states: bool) -> Residence:
        """Return a residence at its new place."""
        at = residence.offset
        return replace(residence, offset=at + self.shifts[at] if states else self._above(at))

    def size(self, arena: int) -> int:
        """Return the new size of an arena."""
        return align_up(self._above(arena), ARENA_GRAIN_BYTES)

    def _above(self, at: int) -> int:
        return self.above + at - sum(cut for end, cut in self.cuts.items() if end <= at)
