"""Times of a model's operators, shared out among the cores that run it."""

from __future__ import annotations

from mcudeploy.cost.tiles import CallTime, Costs, TileTime, by_calls
from mcudeploy.memory.flow import Flow
from mcudeploy.model.model import Model
from mcudeploy.parallel.parts import Division


def shared_costs(model: Model, flow: Flow, time: CallTime) -> Costs:
    """Times of all operators under any cut, by the kernels of the model."""
    return Costs(flow, by_calls(time, model.calls), share_of(model, flow))


def share_of(model: Model, flow: Flow) -> TileTime | None:
    """The largest part of a tile that a core makes; None where there is one core."""
    return Division.of(flow, model.calls, model.cores).largest_share if model.cores > 1 else None
