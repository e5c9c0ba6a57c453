"""Rounding of a layer's weights that keeps its results near those of the float model, not the weights.

The error over the samples is a quadratic form of the weights, which second moments of the inputs state.
Weights are rounded in turn, and those that follow make up for the error (OPTQ: Frantar et al., 2022); then
each takes its best value while that reduces the error (QuantEase: Behdin et al., 2023). The inputs are those
that the quantised layers before compute, as in AdaRound (Nagel et al., 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PULLS = (0.1, 1.0, 10.0, math.inf)
"""Strengths, in mean powers of an input, that hold the targets of rounding at the weights; by infinity they
are the weights. Where samples are few, targets that a weak one holds fit their noise.
"""
_RIDGES = (0.01, 0.1, 1.0)
"""Strengths that count each weight's own error beside that of the results."""
_MOST_SWEEPS = 30
_FEW_LEVELS = 16
_SCALES = np.linspace(0.5, 1.1, 25)
"""Fractions of the scale that are tried for few levels: a smaller scale clips the widest weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Means over `count` rows of samples, for each of g groups of channels.

    `x` [g, n] and `y` [g, K]: of inputs and results. `xx` [g, n, n] and `yx` [g, K, n]: of products of
    inputs, of results and inputs, relative to their means: squares of a large mean would hide small changes.
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
        """The moments `xx` and `yx` of inputs and results relative to `x` and `y`."""
        apart = self.x - x
        return self.xx + _outer(apart, apart), self.yx + _outer(self.y - y, apart)


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """Float weights `real` [g, K, n] of a layer, and integers from `low` to `high` for them.

    `scales` [g, K, 1]; of few levels others are tried. `has_bias`: results may move by a constant, which
    their mean decides.
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
    """Integers [g, K, n] in units of `scales` [g, K, 1], and the bias [g, K] with which results have the mean
    of the float model's.
    """

    integers: Array
    scales: Array
    bias: Array


def round_weights(weights: LayerWeights, fit: Moments, check: Moments) -> RoundedWeights:
    """Round so that results differ least. The moments `check` of other samples than `fit` decide how much the
    targets and the errors of single weights count; then all samples are used.
    """
    means = _means(fit, weights)
    trial, judge = _Form(*fit.about(*means)), _Form(*check.about(*means))
    targets = {pull: trial.target(weights, pull) for pull in reversed(_PULLS)}
    pull, target = min(targets.items(), key=lambda it: judge.error(it[1]))
    if weights.high - weights.low < _FEW_LEVELS:
        weights = replace(weights, scales=_best_scales(weights, target, trial.damped(_RIDGES[0])))
    ridge = min(_RIDGES, key=lambda it: judge.error(_integers(weights, trial, target, it) * weights.scales))
    whole = fit.joined(check)
    x, y = _means(whole, weights)
    form = _Form(*whole.about(x, y))
    integers = _integers(weights, form, form.target(weights, pull), ridge)
    return RoundedWeights(integers, weights.scales, y - _product(integers * weights.scales, x))


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """The error of weights [g, K, n] as a quadratic form by `xx` [g, n, n] and `yx` [g, K, n]."""

    xx: Array
    yx: Array

    def error(self, values: Array) -> float:
        """The mean square of the results' error, summed over channels, without the power of the results."""
        return float(np.sum(values @ self.xx * values) - 2 * np.sum(values * self.yx))

    def damped(self, strength: float) -> Array:
        """`xx` with a share of the mean power of an input added to each power."""
        size = self.xx.shape[-1]
        power = np.trace(self.xx, axis1=1, axis2=2) / size
        return self.xx + (strength * np.where(power > 0, power, 1))[:, None, None] * np.eye(size)

    def target(self, weights: LayerWeights, pull: float) -> Array:
        """The real weights of the least error that are held at the float weights by the strength `pull`."""
        if math.isinf(pull):
            return weights.real
        held = self.damped(pull)
        moved = self.yx + weights.real @ (held - self.xx)
        return np.linalg.solve(held, moved.transpose(0, 2, 1)).transpose(0, 2, 1)


def _best_scales(weights: LayerWeights, target: Array, costs: Array) -> Array:
    """The scales [g, K, 1] with which the nearest integers err least."""
    tried = [(weights.scales * np.float32(it)).astype(np.float32).astype(np.float64) for it in _SCALES]
    moved = [weights.nearest(target / scales) * scales - target for scales in tried]
    errors = [np.sum(it @ costs * it, axis=2, keepdims=True) for it in moved]
    return np.asarray(np.take_along_axis(np.stack(tried), np.argmin(errors, axis=0)[None], axis=0)[0])


def _integers(weights: LayerWeights, form: _Form, target: Array, ridge: float) -> Array:
    """The integers [g, K, n] whose weights err least from `target`, with single errors damped by `ridge`."""
    aim, costs = target / weights.scales, form.damped(ridge)
    return _descended(weights, aim, costs, _in_turn(weights, aim, costs))


def _in_turn(weights: LayerWeights, target: Array, costs: Array) -> Array:
    """Round the weights of the most powerful inputs first; those that remain make up for the error.

    `target`: in units of the scales. `costs`: of two errors of a channel, [g, n, n].
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

    `more`: a share of their mean power that is added if rounding left them indefinite.
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
    """Move each of the `integers` to its best one, in place, while that reduces the error from `target`."""
    slope = (integers - target) @ costs
    for _ in range(_MOST_SWEEPS):
        moved = False
        for at in range(integers.shape[2]):
            own = costs[:, at, at][:, None]
            better = weights.nearest(integers[:, :, at] - slope[:, :, at] / own)
            step = better - integers[:, :, at]
            if step.any():
                moved = True
                integers[:, :, at] = better
                slope += step[:, :, None] * costs[:, None, at]
        if not moved:
            break
    return integers


def _means(moments: Moments, weights: LayerWeights) -> tuple[Array, Array]:
    """The means from which inputs and results differ if there is a bias; else zeros."""
    share = float(weights.has_bias)
    return moments.x * share, moments.y * share


def _product(values: Array, x: Array) -> Array:
    """The results [g, K] of weights [g, K, n] for the input [g, n]."""
    return np.asarray(np.einsum("gkn,gn->gk", values, x))


def _outer(one: Array, two: Array) -> Array:
    """The products [g, a, b] of two vectors [g, a] and [g, b]."""
    return one[:, :, None] * two[:, None, :]
