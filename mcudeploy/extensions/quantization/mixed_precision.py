"""int8 or int16 for each layer: the least cycles and RAM at most some noise away from the int16 model.

A layer is an operator with the activation and the moves after it; it reads and writes values of its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import GraphProto

from mcudeploy.common.solver import cp_solver
from mcudeploy.costs.estimate import board_costs
from mcudeploy.extensions.quantization.agreement import MOVERS
from mcudeploy.extensions.quantization.ort_quantizer import BOUNDED, Mixture
from mcudeploy.extensions.quantization.value_noise import Powers, Value
from mcudeploy.planner.fit import Fit
from mcudeploy.planner.search.placing import estimated_steps

_UNITS = 1_000_000
"""Integer steps of a budget of noise, and of the cost of the int8 model."""
_EFFORT, _SECONDS = 2.0, 20.0
"""Limits of a choice by the solver: its deterministic measure decides, unless the computer is very slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The layer of each node of a prepared model by name, and the values between layers.

    `int8_cycles` and `int16_cycles`: by layer; `conversion_cycles`: those to convert an element.
    """

    layer: Mapping[str, int]
    values: Sequence[Value]
    int8_cycles: Mapping[int, float]
    int16_cycles: Mapping[int, float]
    conversion_cycles: float

    def mixture(self, wide: Collection[int]) -> Mixture:
        """Return the types of all values if these layers compute in int16."""
        nodes = frozenset(name for name, layer in self.layer.items() if layer in wide)
        return Mixture(nodes, {value.name: value.range for value in self.values})

    def choice(self, budgets: Powers, ram_worth: float) -> frozenset[int]:
        """The layers in int16 with which int8 adds at most the noise `budgets`, at the least cost.

        The cost is the cycles, and `ram_worth` times the bytes at the peak, both relative to those of int8.
        """
        from ortools.sat.python import cp_model

        model, layers = cp_model.CpModel(), sorted(set(self.layer.values()))
        wide = {it: model.new_bool_var(f"layer {it}") for it in layers}
        noise: dict[str, list[Any]] = {name: [] for name in budgets}
        cycles: list[Any] = []
        sizes = []
        least = sum(self.int8_cycles.values()) or 1.0
        for value in self.values:
            is_wide = model.new_bool_var(value.name) if value.producer is None else wide[value.producer]
            differs = model.new_bool_var(value.name)
            for name in budgets:
                noise[name].append(_share(value.noise[name], budgets[name]) * (1 - is_wide))
            for reader in value.readers:
                if value.producer is None:  # in int16 only if all read that
                    model.add_implication(is_wide, wide[reader])
                narrowed = model.new_bool_var(value.name)
                model.add_bool_or(differs, is_wide, ~wide[reader])
                model.add_bool_or(differs, ~is_wide, wide[reader])
                model.add_bool_or(narrowed, ~is_wide, wide[reader])
                for name in budgets:
                    noise[name].append(_share(value.by_reader[reader][name], budgets[name]) * narrowed)
            cycles.append(round(_UNITS * self.conversion_cycles * value.elements / least) * differs)
            sizes.append(model.new_int_var(0, 3 * value.elements, value.name))
            model.add(sizes[-1] >= value.elements + value.elements * is_wide)
            model.add(sizes[-1] >= 3 * value.elements * differs)  # in both types
        for name in budgets:
            model.add(sum(noise[name]) <= _UNITS)
        cycles += [
            round(_UNITS * (self.int16_cycles.get(it, 0) - self.int8_cycles.get(it, 0)) / least) * wide[it]
            for it in layers
        ]
        peak = model.new_int_var(0, 3 * sum(it.elements for it in self.values), "peak")
        for live in self._live():
            model.add(peak >= sum(sizes[it] for it in live))
        in_int8 = max(sum(self.values[it].elements for it in live) for live in self._live())
        model.minimize(sum(cycles) + round(_UNITS * ram_worth / in_int8) * peak)
        solver = cp_solver(_SECONDS, effort=_EFFORT)
        is_solved = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return frozenset(it for it in layers if not is_solved or solver.boolean_value(wide[it]))

    def _live(self) -> set[tuple[int, ...]]:
        """The values that exist together, for each place in the order of nodes."""
        return {
            tuple(at for at, it in enumerate(self.values) if it.steps[0] <= step <= it.steps[1])
            for step in {it.steps[0] for it in self.values}
        }


def fewest_bytes(sizes: Mapping[str, int], noises: Mapping[str, Powers], budgets: Powers) -> tuple[str, ...]:
    """The nodes whose int4 weights, of these sizes and noises, take the fewest bytes within the budgets."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    narrow = {name: model.new_bool_var(name) for name in sizes}
    for output, budget in budgets.items():
        model.add(sum(_share(noises[it][output], budget) * narrow[it] for it in sizes) <= _UNITS)
    model.maximize(sum(size * narrow[name] for name, size in sizes.items()))
    solver = cp_solver(_SECONDS, effort=_EFFORT)
    is_solved = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return tuple(name for name in sizes if is_solved and solver.boolean_value(narrow[name]))


def _share(noise: float, budget: float) -> int:
    """The share of a budget in units, at most twice the budget."""
    return round(_UNITS * min(noise / budget if budget > 0 else 2.0, 2.0)) if noise > 0 else 0


def layers_of(graph: GraphProto) -> dict[str, int]:
    """The layer of each node by name: the place of the node whose result it bounds or moves, else its own."""
    producers = {name: node for node in graph.node for name in node.output}
    readers = Counter(name for node in graph.node for name in node.input)
    layer: dict[str, int] = {}
    for place, node in enumerate(graph.node):
        before = producers.get(node.input[0]) if node.input else None
        bounds = node.op_type in ("Clip", "Relu") and readers[node.input[0]] == 1
        follows = before is not None and (node.op_type in MOVERS or (bounds and before.op_type in BOUNDED))
        layer[node.name] = layer[before.name] if before is not None and follows else place
    return layer


def cycles_of(fit: Fit, layer: Mapping[str, int]) -> dict[int, float]:
    """The cycles of each layer of a quantised model in the unsplit plan, by the costs of the board's core."""
    way, cycles = fit.chosen, dict.fromkeys(layer.values(), 0.0)
    times = estimated_steps(way.plan, way.model, board_costs(fit.board))
    for step, ticks in zip(way.plan.schedule.steps, times, strict=True):
        names = way.plan.graph.operators[step.operator].onnx_nodes
        place = next((layer[name] for name in names if name in layer), None)
        if place is not None:
            cycles[place] += ticks
    return cycles
