"""Adaptive rounding of a layer's weights: its results, not its weights, stay near those of the float model.

The error over the samples is a quadratic form of the weights, given by second moments of the inputs. Weights
are rounded in turn, and the remaining weights make up for the error (OPTQ: Frantar et al., 2022). Then each
weight takes its best value while that reduces the error (QuantEase: Behdin et al., 2023). The inputs are the
results of the quantised layers before, as in AdaRound (Nagel et al., 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PULLS = (0.1, 1.0, 10.0, math.inf)
"""Strengths, in mean powers of an input, that pull the real targets of rounding to the float weights. With
infinity the targets are these weights. With few samples, a weak pull lets the targets fit noise.
"""
_RIDGES = (0.01, 0.1, 1.0)
"""Strengths, in mean powers of an input, of each weight's own error beside the error of the results."""
_MOST_SWEEPS = 30
_FEW_LEVELS = 16
_SCALES = np.linspace(0.5, 1.1, 25)
"""Factors of the scale to try for int4: a smaller scale is finer, and clips the widest weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Means over `count` rows of samples, for each of g groups of channels.

    `x` [g, n], `y` [g, K]: of inputs and of results. `xx` [g, n, n], `yx` [g, K, n]: of products of two
    inputs, and of result and input, each minus its mean, since squares of a large mean would hide small
    changes.
    """

    count: int
    xx: Array
    yx: Array
    x: Array
    y: Array

    @classmethod
    def of(cls, columns: Array, results: Array) -> Moments:
        """The moments of inputs [g, rows, n] and results [g, rows, K]."""
        x, y = (it.mean(1, dtype=np.float64) for it in (columns, results))
        inputs, outputs = columns - x[:, None], results - y[:, None]
        xx, yx = (it.transpose(0, 2, 1) @ inputs / columns.shape[1] for it in (inputs, outputs))
        return cls(columns.shape[1], xx, yx, x, y)

    def joined(self, other: Moments) -> Moments:
        """The moments over the rows of both."""
        share = self.count / (self.count + other.count)
        x, y = (share * one + (1 - share) * two for one, two in ((self.x, other.x), (self.y, other.y)))
        pairs = zip(self.about(x, y), other.about(x, y), strict=True)
        xx, yx = (share * one + (1 - share) * two for one, two in pairs)
        return Moments(self.count + other.count, xx, yx, x, y)

    def about(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The moments `xx` and `yx` of inputs minus `x` and results minus `y`, instead of minus the means."""
        shift = self.x - x
        return self.xx + _outer(shift, shift), self.yx + _outer(self.y - y, shift)


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """Float weights `real` [g, K, n] of a layer, to be rounded to integers from `low` to `high`.

    `scales` [g, K, 1]: of the integers; for int4 other scales are tried. `has_bias`: a bias can correct the
    mean of the results.
    """

    real: Array
    scales: Array
    low: int
    high: int
    has_bias: bool

    def nearest(self, values: Array) -> Array:
        """Round values in units of the scales."""
        return np.clip(np.rint(values), self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class RoundedWeights:
    """Integers [g, K, n] in units of `scales` [g, K, 1], and the bias [g, K] that gives the results the mean
    that they have in the float model.
    """

    integers: Array
    scales: Array
    bias: Array


def round_weights(weights: LayerWeights, fit: Moments, check: Moments) -> RoundedWeights:
    """Round the weights so that the results differ least from those of the float model.

    Trials with the moments `fit` are judged by the moments `check` of other samples: these choose the
    strengths. The final rounding uses both.
    """
    means = _means(fit, weights)
    trial, judge = _Form(*fit.about(*means)), _Form(*check.about(*means))
    targets = {pull: trial.target(weights, pull) for pull in reversed(_PULLS)}
    pull, target = min(targets.items(), key=lambda it: judge.error(it[1]))
    if weights.high - weights.low < _FEW_LEVELS:
        weights = replace(weights, scales=_best_scales(weights, target, trial.damped(_RIDGES[0])))
    ridge = min(_RIDGES, key=lambda it: judge.error(_integers(weights, trial, target, it) * weights.scales))
    moments = fit.joined(check)
    x, y = _means(moments, weights)
    form = _Form(*moments.about(x, y))
    integers = _integers(weights, form, form.target(weights, pull), ridge)
    return RoundedWeights(integers, weights.scales, y - _product(integers * weights.scales, x))


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """The error of weights [g, K, n], a quadratic form with the moments `xx` [g, n, n] and `yx` [g, K, n]."""

    xx: Array
    yx: Array

    def error(self, values: Array) -> float:
        """The mean square error of the results by these weights, summed over channels, less a constant."""
        return float(np.sum(values @ self.xx * values) - 2 * np.sum(values * self.yx))

    def damped(self, strength: float) -> Array:
        """`xx` with `strength` times the mean power of an input added to its diagonal."""
        size = self.xx.shape[-1]
        power = np.trace(self.xx, axis1=1, axis2=2) / size
        return self.xx + (strength * np.where(power > 0, power, 1))[:, None, None] * np.eye(size)

    def target(self, weights: LayerWeights, pull: float) -> Array:
        """Real weights of the least error, with a penalty of strength `pull` on changes of the weights."""
        if math.isinf(pull):
            return weights.real
        damped = self.damped(pull)
        right = self.yx + weights.real @ (damped - self.xx)
        return np.linalg.solve(damped, right.transpose(0, 2, 1)).transpose(0, 2, 1)


def _best_scales(weights: LayerWeights, target: Array, costs: Array) -> Array:
    """The scales [g, K, 1] with which the integers nearest to `target` have the least error."""
    tried = [(weights.scales * np.float32(it)).astype(np.float32).astype(np.float64) for it in _SCALES]
    changes = [weights.nearest(target / scales) * scales - target for scales in tried]
    errors = [np.sum(it @ costs * it, axis=2, keepdims=True) for it in changes]
    return np.asarray(np.take_along_axis(np.stack(tried), np.argmin(errors, axis=0)[None], axis=0)[0])


def _integers(weights: LayerWeights, form: _Form, target: Array, ridge: float) -> Array:
    """The integers [g, K, n] with the least error from `target`; `ridge`: strength of single errors."""
    scaled_target, costs = target / weights.scales, form.damped(ridge)
    return _descended(weights, scaled_target, costs, _in_turn(weights, scaled_target, costs))


def _in_turn(weights: LayerWeights, target: Array, costs: Array) -> Array:
    """Round the weights of the most powerful inputs first; the remaining weights make up for the error.

    `target`: in units of the scales. `costs` [g, n, n]: the quadratic form of a channel's errors.
    """
    order = np.argsort(-np.diagonal(costs, axis1=1, axis2=2), axis=1, kind="stable")[:, None, :]
    sorted_costs = np.take_along_axis(np.take_along_axis(costs, order, 2), order.transpose(0, 2, 1), 1)
    factors = _factors(sorted_costs)
    left = np.take_along_axis(target, np.broadcast_to(order, target.shape), 2)
    integers = np.empty_like(left)
    for at in range(left.shape[2]):
        integers[:, :, at] = weights.nearest(left[:, :, at])
        errors = (left[:, :, at] - integers[:, :, at]) / factors[:, None, at, at]
        left[:, :, at:] -= errors[:, :, None] * factors[:, None, at, at:]
    result = np.empty_like(integers)
    np.put_along_axis(result, np.broadcast_to(order, target.shape), integers, 2)
    return result


def _factors(costs: Array, more: float = 0.0) -> Array:
    """The upper Cholesky factors [g, n, n] of the inverse of `costs`.

    `more`: the share of their mean power added to the diagonal; it grows until `costs` are definite.
    """
    power = np.trace(costs, axis1=1, axis2=2)[:, None, None] / costs.shape[-1]
    try:
        inverse = np.linalg.inv(costs + more * power * np.eye(costs.shape[-1]))
        return np.linalg.cholesky(inverse).transpose(0, 2, 1)
    except np.linalg.LinAlgError:
        if more > costs.shape[-1]:  # above the largest eigenvalue
            raise
        return _factors(costs, 10 * more or _RIDGES[0])


def _descended(weights: LayerWeights, target: Array, costs: Array, integers: Array) -> Array:
    """Change each of the `integers` to its best value, in place, while that reduces the error from `target`.
    """
    slope = (integers - target) @ costs
    for _ in range(_MOST_SWEEPS):
        moved = False
        for at in range(integers.shape[2]):
            curvature = costs[:, at, at][:, None]
            better = weights.nearest(integers[:, :, at] - slope[:, :, at] / curvature)
            step = better - integers[:, :, at]
            if step.any():
                moved = True
                integers[:, :, at] = better
                slope += step[:, :, None] * costs[:, None, at]
        if not moved:
            break
    return integers


def _means(moments: Moments, weights: LayerWeights) -> tuple[Array, Array]:
    """The means to subtract from inputs and results, which the bias replaces; zeros without a bias."""
    share = float(weights.has_bias)
    return moments.x * share, moments.y * share


def _product(values: Array, x: Array) -> Array:
    """The results [g, K] of weights [g, K, n] for the input [g, n]."""
    return np.asarray(np.einsum("gkn,gn->gk", values, x))


def _outer(one: Array, two: Array) -> Array:
    """The products [g, a, b] of two vectors [g, a] and [g, b]."""
    return one[:, :, None] * two[:, None, :]
