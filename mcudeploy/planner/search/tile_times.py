"""Times of a model's operators, distributed over the cores that run it."""

from __future__ import annotations

from mcudeploy.cost.tiles import CallTime, Costs, TileShare, by_calls
from mcudeploy.planner.cores.parts import WorkSharing
from mcudeploy.planner.model.model import Model
from mcudeploy.tiling.dataflow import Dataflow


def shared_costs(model: Model, flow: Dataflow, time: CallTime) -> Costs:
    """Return the times of all operators under any cut, by the kernels of the model."""
    return Costs(flow, by_calls(time, model.calls), _share_of(model, flow))


def _share_of(model: Model, flow: Dataflow) -> TileShare | None:
    """Return the largest fraction of a tile that one core computes; None if there is one core."""
    return WorkSharing.of(flow, model.calls, model.cores).largest_share if model.cores > 1 else None
