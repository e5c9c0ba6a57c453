"""The choice of int8 or int16 for each layer: the least cycles and RAM, within a limit of added noise.

A layer is an operator with the Relu or Clip and the moves after it; its values have one type.
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
"""The solver computes with integers: the budget of noise, and the cost of the int8 model, are this number."""
_EFFORT, _SECONDS = 2.0, 20.0
"""Limits of the solver. The effort, which is deterministic, ends first unless the computer is very slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The layer of each node of a prepared model by name, and the values between layers.

    `int8_cycles`, `int16_cycles`: of each layer; `conversion_cycles`: of one element between both types.
    """

    layer: Mapping[str, int]
    values: Sequence[Value]
    int8_cycles: Mapping[int, float]
    int16_cycles: Mapping[int, float]
    conversion_cycles: float

    def mixture(self, wide: Collection[int]) -> Mixture:
        """The mixture in which the layers `wide` compute in int16."""
        nodes = frozenset(name for name, layer in self.layer.items() if layer in wide)
        return Mixture(nodes, {value.name: value.range for value in self.values})

    def choice(self, budgets: Powers, ram_worth: float) -> frozenset[int]:
        """The layers in int16 at the least cost, if values in int8 may add the noise `budgets`.

        The cost is the cycles relative to int8, plus `ram_worth` times the peak in bytes relative to int8.
        All layers are in int16 if the solver finds no choice.
        """
        from ortools.sat.python import cp_model

        model, layers = cp_model.CpModel(), sorted(set(self.layer.values()))
        wide = {it: model.new_bool_var(f"layer {it}") for it in layers}
        noise: dict[str, list[Any]] = {name: [] for name in budgets}
        cycles: list[Any] = []
        sizes = []
        int8_cycles = sum(self.int8_cycles.values()) or 1.0
        for value in self.values:
            is_wide = model.new_bool_var(value.name) if value.producer is None else wide[value.producer]
            in_both_types = model.new_bool_var(value.name)
            for name in budgets:
                noise[name].append(_share(value.noise[name], budgets[name]) * (1 - is_wide))
            for reader in value.readers:
                if value.producer is None:  # an input is int16 only if all its readers are
                    model.add_implication(is_wide, wide[reader])
                narrowed = model.new_bool_var(value.name)
                model.add_bool_or(in_both_types, is_wide, ~wide[reader])
                model.add_bool_or(in_both_types, ~is_wide, wide[reader])
                model.add_bool_or(narrowed, ~is_wide, wide[reader])
                for name in budgets:
                    noise[name].append(_share(value.by_reader[reader][name], budgets[name]) * narrowed)
            conversion = self.conversion_cycles * value.elements
            cycles.append(round(_UNITS * conversion / int8_cycles) * in_both_types)
            sizes.append(model.new_int_var(0, 3 * value.elements, value.name))
            model.add(sizes[-1] >= value.elements + value.elements * is_wide)
            model.add(sizes[-1] >= 3 * value.elements * in_both_types)
        for name in budgets:
            model.add(sum(noise[name]) <= _UNITS)

        for it in layers:
            more = self.int16_cycles.get(it, 0) - self.int8_cycles.get(it, 0)
            cycles.append(round(_UNITS * more / int8_cycles) * wide[it])
        peak = model.new_int_var(0, 3 * sum(it.elements for it in self.values), "peak")
        for live in self._live():
            model.add(peak >= sum(sizes[it] for it in live))
        int8_peak = max(sum(self.values[it].elements for it in live) for live in self._live())
        model.minimize(sum(cycles) + round(_UNITS * ram_worth / int8_peak) * peak)
        solver = cp_solver(_SECONDS, effort=_EFFORT)
        is_solved = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return frozenset(it for it in layers if not is_solved or solver.boolean_value(wide[it]))

    def _live(self) -> set[tuple[int, ...]]:
        """The sets of values, by number, that exist together at some place in the order of nodes."""
        return {
            tuple(at for at, it in enumerate(self.values) if it.steps[0] <= step <= it.steps[1])
            for step in {it.steps[0] for it in self.values}
        }


def fewest_bytes(sizes: Mapping[str, int], noises: Mapping[str, Powers], budgets: Powers) -> tuple[str, ...]:
    """The nodes to give int4 weights for the fewest bytes in total, within the budgets of noise.

    `sizes`, `noises`: the number of a node's weights, and the noise that it adds if these are int4.
    """
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
    """The noise as a share of a budget, in units, at most twice the budget."""
    return round(_UNITS * min(noise / budget if budget > 0 else 2.0, 2.0)) if noise > 0 else 0


def layers_of(graph: GraphProto) -> dict[str, int]:
    """The layer of each node by name. A layer is numbered by the place of its first node, whose result the
    other nodes bound or move.
    """
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
    plan, cycles = fit.chosen.plan, dict.fromkeys(layer.values(), 0.0)
    times = estimated_steps(plan, fit.chosen.model, board_costs(fit.board))
    for step, ticks in zip(plan.schedule.steps, times, strict=True):
        names = plan.graph.operators[step.operator].onnx_nodes
        place = next((layer[name] for name in names if name in layer), None)
        if place is not None:
            cycles[place] += ticks
    return cycles
