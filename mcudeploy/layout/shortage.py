"""Why a plan does not fit: which memory is too small, by how much, and at which step."""

from __future__ import annotations

from mcudeploy.board import Board
from mcudeploy.plan import Plan
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import Buffer, WorkBytes, buffers, peak


def shortages(plan: Plan, work: WorkBytes, board: Board) -> list[str]:
    """A sentence for every memory whose arena is too large for it, then one for those that hold theirs."""
    arenas = plan.layout.arenas
    rooms = {memory.name: board.room(memory) for memory in board.memories}
    short = [name for name, size in arenas.items() if size > rooms[name]]
    if not short:
        return []
    tiled = TiledGraph(Flow.of(plan.graph), plan.block_rows)
    items = buffers(tiled, plan.schedule.steps, work)
    told = []
    for name in short:
        _, step = peak(item for item in items if _memory(plan, item) == name)
        told.append(
            f"arena needs {arenas[name]:,} bytes, {name} of {board.name} has room for {rooms[name]:,}: "
            f"{arenas[name] - rooms[name]:,} too many; the peak is at {step_text(plan, step)}."
        )
    others = [f"{name} has {arenas.get(name, 0):,} of {rooms[name]:,}" for name in rooms if name not in short]
    return [*told, f"Of the other memories {', '.join(others)}."] if others else told


def step_text(plan: Plan, step: int) -> str:
    """A step with its operator."""
    if step >= len(plan.schedule.steps):
        return f"step {step}"
    return f"step {step} ({plan.graph.operators[plan.schedule.steps[step].operator].name})"


def _memory(plan: Plan, item: Buffer) -> str:
    if item.scratch_of is not None:
        return plan.layout.scratch[item.scratch_of[0]].memory
    return plan.layout.tensors[item.members[0][0]].memory
