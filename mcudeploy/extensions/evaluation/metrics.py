"""Figures of merit over a test set: accuracy, confusion, area under the curve, errors, agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Numbers = NDArray[np.int64]
_MOST_CLASSES = 2048
"""The most classes of a confusion matrix, which then takes 32 MiB."""


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """The number of samples of a class, and shares of them; None where no sample could count."""

    samples: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """Figures of one model over a test set; None for those that its task does not have."""

    accuracy: float | None = None
    """Share of samples with the right class."""
    top_k: float | None = None
    """Share with the right class among the k with the highest scores."""
    auc: float | None = None
    """Area under the receiver operating curve of two classes."""
    confusion: Numbers | None = None
    """Number of samples by right class (row) and computed class (column)."""
    mse: float | None = None
    """Mean squared error."""
    mae: float | None = None
    """Mean absolute error."""

    @property
    def share(self) -> float | None:
        """The figure that limits hold for: the accuracy, or else the area under the curve."""
        return self.auc if self.accuracy is None else self.accuracy

    @property
    def percent(self) -> float | None:
        """`share` in percent, rounded: 100 * 0.29 is below 29 in floating point."""
        return None if self.share is None else round(100 * self.share, 9)

    def by_class(self) -> list[ClassFigures]:
        """Return the figures of every class of the confusion matrix."""
        if self.confusion is None:
            return []
        right = np.diag(self.confusion)
        wanted, computed = self.confusion.sum(1), self.confusion.sum(0)
        return [
            ClassFigures(
                int(wanted[at]),
                _share(right[at], computed[at]),
                _share(right[at], wanted[at]),
                _share(2 * right[at], wanted[at] + computed[at]),
            )
            for at in range(len(self.confusion))
        ]


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """Two sets of results over the same samples. `flips`: samples whose class differs, None without classes;
    of these, `lost` were right in the first set only, and `gained` in the second only, None without labels.
    `equal`: samples whose outputs are equal; `largest`: the largest difference of an element.
    """

    samples: int
    flips: int | None
    lost: int | None
    gained: int | None
    equal: int
    largest: float


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def classification(scores: Array, labels: Numbers, k: int) -> Quality:
    """Return the figures of scores [samples, classes]. Of equal scores, that of the lowest class counts."""
    classes = scores.shape[1]
    computed = scores.argmax(1)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Quality(
        accuracy=float(np.mean(computed == labels)),
        top_k=float(np.mean((best == labels[:, None]).any(1))) if k < classes else None,
        auc=area_under_curve(scores[:, 1] - scores[:, 0], labels == 1) if classes == 2 else None,
        confusion=_confusion(computed, labels, classes),
    )


def class_numbers_alone(computed: Numbers, labels: Numbers, classes: int) -> Quality:
    """Return the figures of computed class numbers without scores; there are at least `classes` classes."""
    classes = max(classes, int(computed.max()) + 1)
    confusion = None if computed.min() < 0 else _confusion(computed, labels, classes)
    return Quality(accuracy=float(np.mean(computed == labels)), confusion=confusion)


def _confusion(computed: Numbers, labels: Numbers, classes: int) -> Numbers | None:
    """The number of samples by right and computed class; None if the matrix would be too large."""
    if classes > _MOST_CLASSES:
        return None
    confusion = np.zeros((classes, classes), np.int64)
    np.add.at(confusion, (labels, computed), 1)
    return confusion


def two_classes(scores: Array, labels: Numbers, threshold: float) -> Quality:
    """Return the figures of one score per sample: class 1 from the threshold on."""
    quality = class_numbers_alone((scores >= threshold).astype(np.int64), labels, 2)
    return Quality(
        accuracy=quality.accuracy, auc=area_under_curve(scores, labels == 1), confusion=quality.confusion
    )


def regression(values: Array, wanted: Array) -> Quality:
    """Return the errors of values against the wanted values, both [samples, elements]."""
    error = values.astype(np.float64) - wanted
    return Quality(mse=float(np.mean(error * error)), mae=float(np.mean(np.abs(error))))


def area_under_curve(scores: Array, positive: NDArray[np.bool_]) -> float | None:
    """Return the probability that a positive sample has a higher score than a negative one; ties count half.

    None if either kind is missing. The method is the sum of ranks of Mann and Whitney.
    """
    ones = int(positive.sum())
    zeros = positive.size - ones
    if not ones or not zeros:
        return None
    order, counts = np.unique(scores, return_inverse=True, return_counts=True)[1:]
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[order.reshape(-1)]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def agreement(
    first: Array, second: Array, classes: Sequence[Numbers], labels: Numbers | None
) -> AgreementFigures:
    """Compare two sets of results [samples, elements]. `classes`: those of both sets, or empty."""
    with np.errstate(invalid="ignore"):
        difference = np.where(first == second, 0.0, np.abs(first.astype(np.float64) - second))
    flips = lost = gained = None
    if classes:
        differs = classes[0] != classes[1]
        flips = int(differs.sum())
        if labels is not None:
            lost = int((differs & (classes[0] == labels)).sum())
            gained = int((differs & (classes[1] == labels)).sum())
    equal = int((difference == 0).all(1).sum())
    return AgreementFigures(len(first), flips, lost, gained, equal, float(difference.max(initial=0.0)))
