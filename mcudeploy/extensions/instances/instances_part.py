"""Instances of a model: the place of their states in its arenas, and what a library states about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcudeploy.codegen.program import Program
from mcudeploy.codegen.texts import ArenaText, InstancesText
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.place.states_first import require_states_stay


@dataclass(frozen=True, slots=True)
class InstancesPart(LibraryPart):
    """`count` instances of each model of a library.

    The states of the first instance lie where the plan puts them, those of the others after the plan's arena.
    """

    count: int

    def require(self, request: BuildRequest) -> None:
        """Raise UsageError for a library that cannot have several instances."""
        if request.kind == "esphome":
            raise UsageError("a component of ESPHome hears one microphone: leave out --instances")
        if request.arena == "shared":
            raise UsageError("instances have separate arenas: leave out --instances, or --arena shared")
        if any("dossier" in part.absent for part in request.parts):
            raise UsageError("--dossier describes a library of one instance: leave out --instances")

    def deployed(self, deployment: Deployment) -> Deployment:
        """Return the deployment whose program has the instances.

        Raises UsageError for a model without states, or whose states leave their place during a run, and
        FitError if the states have no room.
        """
        name = deployment.model.path.name
        if not deployment.plan.graph.states:
            raise UsageError(
                f"--instances: {name} keeps no states between runs, so one instance serves all callers, one "
                "run at a time. Leave out --instances, or make it keep some: --stateful, --state, --hop"
            )
        require_states_stay(deployment.plan, "--instances")
        changed = replace(deployment, change=lambda program: with_instances(program, deployment, self.count))
        _require_room(changed)
        return changed

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return the model with the RAM of all instances among its facts."""
        instances = built.program.instances
        assert instances is not None
        arenas = {it.memory: it.size_bytes for it in built.program.arenas}
        facts = {"count": instances.count, "state_bytes": instances.size_bytes, "arenas": arenas}
        return replace(built, facts={**built.facts, "instances": facts})


def _require_room(deployment: Deployment) -> None:
    plan, board, instances = deployment.plan, deployment.board, deployment.program.instances
    assert instances is not None
    board = board.with_more_stack(plan.form.stack_bytes).reserving(plan.parameters.ram_bytes)
    for arena in deployment.program.arenas:
        room, one = board.room(board.memory(arena.memory)), plan.layout.arenas[arena.memory]
        if arena.size_bytes > room:
            raise FitError(
                f"{instances.count} instances of {deployment.prefix} need {arena.size_bytes:,} bytes, "
                f"{arena.memory} of {board.name} has room for {room:,}: {arena.size_bytes - room:,} too "
                f"many. One needs {one:,}, each further one {instances.sizes[arena.memory]:,} for states. "
                f"Take fewer instances, or a --ram-limit below {one:,} for {arena.memory}."
            )


@dataclass(frozen=True, slots=True)
class _StatePlace:
    """The place of a state: in the arena of the plan, for the first instance; among the states of another."""

    memory: str
    offset: int
    """Bytes from the start of the arena."""
    in_states: int
    """Bytes from the start of another instance's states."""


def _places(deployment: Deployment, arenas: list[ArenaText]) -> tuple[dict[str, _StatePlace], dict[str, int]]:
    """Return the place of each state by the tensors that own it, and the bytes of an instance by memory."""
    graph, blocks = deployment.plan.graph, deployment.plan.layout.blocks
    alignments = {it.memory: it.alignment for it in arenas}
    places: dict[str, _StatePlace] = {}
    sizes = dict.fromkeys(alignments, 0)
    for state in graph.states:
        ((first, *_),) = blocks[state.tensor]
        place = _StatePlace(first.memory, first.offset, sizes[first.memory])
        places |= dict.fromkeys(state.chain, place)
        sizes[first.memory] += align_up(graph.tensors[state.tensor].size_bytes, alignments[first.memory])
    return places, sizes


def with_instances(program: Program, deployment: Deployment, count: int) -> Program:
    """Return a program whose arenas have the states of `count` instances.

    In C, `away(first, each)` returns how far the states of the running instance are from those of the first.
    """
    places, sizes = _places(deployment, program.arenas)
    ends = {it.memory: align_up(it.size_bytes, it.alignment) for it in program.arenas}
    distances = {
        name: f"away({ends[place.memory] + place.in_states - place.offset}u, {sizes[place.memory]}u)"
        for name, root in deployment.view.tiled.flow.roots.items()
        if (place := places.get(root)) is not None
    }
    ios = [*program.inputs, *program.outputs, *(state.io for state in program.states)]
    instances = InstancesText(
        count,
        sizes,
        {it.symbol: distances[it.state] for it in program.all_tensors if it.state in distances},
        {io.name: distances[io.tensor] for io in ios if io.tensor in distances},
    )
    arenas = [
        replace(it, size_bytes=ends[it.memory] + (count - 1) * sizes[it.memory]) if sizes[it.memory] else it
        for it in program.arenas
    ]
    return replace(program, arenas=arenas, instances=instances)
