"""Mixtures of int8 and int16 layers at given distances from the int16 model, judged by the planner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from mcudeploy.boards.board import Board
from mcudeploy.costs.estimate import board_costs
from mcudeploy.extensions.quantization import ort_quantizer as library
from mcudeploy.extensions.quantization.agreement import Agreement
from mcudeploy.extensions.quantization.mixed_precision import Network, cycles_of, layers_of
from mcudeploy.extensions.quantization.ort_quantizer import Integers, Mixture
from mcudeploy.extensions.quantization.value_noise import Int8Model, NoiseMeter, with_float_weights
from mcudeploy.planner.fit import Fit, unsplit_fit
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options

_DISTANCES = (1.0, 3.0, 6.0, 10.0, 15.0)
"""Decibels below the int16 model at which further mixtures are reported, beside the wanted one."""
_RAM_WORTHS = (0.0, 0.3, 1.0)
"""Worths of the peak in bytes relative to the cycles. The planner judges the mixtures of all three."""
_TIGHTER, _TRIALS = 0.7, 8
"""A mixture with too much noise is chosen again with the allowed noise times 0.7, at most 8 times."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedModel:
    """A quantised model whose operators `int16_nodes` compute in int16. `fit`: of its unsplit plan.

    `within`: the allowed distance in decibels below the int16 model; None for int8 alone.
    """

    within: float | None
    int16_nodes: tuple[str, ...]
    mixture: Mixture
    proto: ModelProto
    fit: Fit

    @property
    def cost(self) -> float:
        """Cycles times arena bytes: one percent of either is worth the same."""
        assert self.fit.latency is not None
        return self.fit.latency.ticks * self.fit.chosen.plan.layout.arena_bytes


@dataclass(frozen=True, slots=True, eq=False)
class MixtureSource:
    """A prepared model, the board, and the nodes that stay float.

    `ranges`: of the model's values, by each calibration method; the first ranges are for int16.
    """

    prepared: Path
    ranges: Sequence[Any]
    in_float: Sequence[str]
    board: Board

    def inserted(self, mixture: Mixture) -> ModelProto:
        """The model quantised to a mixture of types."""
        return library.insert(self.prepared, self.ranges[0], self.in_float, Integers(mixture=mixture))[0]

    def int8_models(self) -> list[Int8Model]:
        """The model quantised to int8, by each method."""
        known = [library.value_ranges(self.prepared, it) for it in self.ranges]
        return [Int8Model(self.inserted(Mixture((), it)), it) for it in known]

    def fit(self, proto: ModelProto, path: Path) -> Fit:
        """The fit of the unsplit plan of a quantised model, which is written to `path`."""
        onnx.save(proto, path)
        return unsplit_fit(load_model(path, isa=self.board.isa), self.board, Options())


@dataclass(frozen=True, slots=True, eq=False)
class Mixer:
    """Makes mixtures. `reference`: the int16 model, with the requested weights and rounding, compared with
    the float model; `nearest`: the int16 model with weights rounded to the nearest int8.
    """

    source: MixtureSource
    meter: NoiseMeter
    reference: Agreement
    nearest: Agreement
    network: Network

    @classmethod
    def of(
        cls,
        source: MixtureSource,
        meter: NoiseMeter,
        reference: Agreement,
        advance: Callable[[int, int], None],
    ) -> Mixer:
        """Measure the noise of values and the cycles of layers."""
        layer, models = layers_of(meter.prepared.graph), source.int8_models()
        values = meter.values(layer, models, advance)
        int16 = source.inserted(Mixture(layer, models[0].ranges))
        int8_cycles, int16_cycles = (
            cycles_of(source.fit(it, meter.path), layer) for it in (models[0].proto, int16)
        )
        conversion = board_costs(source.board).ticks("rescale_s16", {"iterations": 1.0})
        network = Network(layer, values, int8_cycles, int16_cycles, conversion)
        return cls(source, meter, reference, meter.agreement(int16), network)

    def mixtures(self, within: float) -> tuple[MixedModel, Sequence[MixedModel]]:
        """The mixture at the distance `within`; and all distinct mixtures, from int8 to int16."""
        by_distance = {it: self._cheapest(it) for it in sorted({*_DISTANCES, within}, reverse=True)}
        int8, int16 = self._mixed(None, ()), self._mixed(0.0, self.network.layer.values())
        distinct = {it.int16_nodes: it for it in (int8, *by_distance.values(), int16)}
        return by_distance[within], list(distinct.values())

    def _cheapest(self, within: float) -> MixedModel:
        """The mixture of the least cost whose outputs are at most `within` decibels below the int16 model's.

        Two noises must keep the limit: of activations alone, and of activations with nearest int8 weights.
        """
        budgets = self.meter.budgets(self.reference, within)
        budgets_nearest = self.meter.budgets(self.nearest, within)
        allowed = budgets
        for _ in range(_TRIALS):
            choices = dict.fromkeys(self.network.choice(allowed, worth) for worth in _RAM_WORTHS)
            best = min((self._mixed(within, it) for it in choices), key=lambda it: it.cost)
            activations = self.meter.agreement(with_float_weights(best.proto, self.meter.prepared)).outputs
            mixed, int16 = self.meter.agreement(best.proto).outputs, self.nearest.outputs
            if all(
                activations[name].noise <= budgets[name]
                and mixed[name].noise <= int16[name].noise + budgets_nearest[name]
                for name in budgets
            ):
                return best
            allowed = {name: _TIGHTER * it for name, it in allowed.items()}
        return self._mixed(within, self.network.layer.values())

    def _mixed(self, within: float | None, layers: Collection[int]) -> MixedModel:
        """The model with these layers in int16, and its fit."""
        mixture = self.network.mixture(layers)
        proto = self.source.inserted(mixture)
        firsts = [it.name for place, it in enumerate(self.meter.prepared.graph.node) if place in layers]
        int16_nodes = tuple(name for name in firsts if name not in self.source.in_float)
        return MixedModel(within, int16_nodes, mixture, proto, self.source.fit(proto, self.meter.path))
