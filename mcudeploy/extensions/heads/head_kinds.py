"""The kinds of heads: their tables in RAM, and references that compute what they learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.texts import HeadMember
from mcudeploy.ir.parameter_table import TABLE_GRAIN_BYTES

MOST_FEATURES = 4096
MOST_EXAMPLES = 65_535
"""Limit of the examples of a `ridge` head: its labels and counts have 16 bits."""
EXAMPLES_PER_CLASS = 5
_PROTOTYPES_MOST = 127
"""MCUD_PROTOTYPES_MOST of mcud_prototypes.h."""
_LEAST_COLUMNS = 7
"""The fewest columns of the sums of mcud_prototypes.h."""
_RIDGE_PENALTY = 0.1
"""MCUD_RIDGE_PENALTY of mcud_ridge.h."""

Features = NDArray[np.int8]
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeadSize:
    """The size of a head. `capacity`: the number of examples that it stores; 0 if its kind stores none."""

    classes: int
    features: int
    capacity: int


class HeadReference(Protocol):
    """The reference of a head after some examples, computed exactly or in float64."""

    @property
    def tolerance(self) -> float:
        """The largest error of the head's scores: absolute for scores up to 1, relative for larger ones."""
        ...

    def has_room(self, label: int) -> bool:
        """Whether the head takes a further example of a class."""
        ...

    def enrol(self, features: Features, label: int) -> Self:
        """Return the reference with one more example of a class."""
        ...

    def scores(self, features: Features) -> Scores:
        """Return the score of each class: -inf without examples."""
        ...

    def is_label(self, features: Features, label: int) -> bool:
        """Whether the head may return this label."""
        ...


@dataclass(frozen=True, slots=True)
class Prototypes:
    """The reference of mcud_prototypes.c: the examples of each class."""

    classes: tuple[tuple[Features, ...], ...]
    tolerance: float = 1e-6

    def has_room(self, label: int) -> bool:
        """Whether a class has fewer than 127 examples."""
        return len(self.classes[label]) < _PROTOTYPES_MOST

    def enrol(self, features: Features, label: int) -> Prototypes:
        """Return the prototypes with one more example of a class."""
        classes = list(self.classes)
        classes[label] = (*classes[label], features)
        return replace(self, classes=tuple(classes))

    def classify(self, features: Features) -> int:
        """Return the first label whose mean is nearest; the number of classes if all are empty."""
        distances = [(_squared_distance(features, it), label) for label, it in enumerate(self.classes) if it]
        return min(distances)[1] if distances else len(self.classes)

    def scores(self, features: Features) -> Scores:
        """Return the negative squared distances."""
        return np.array([-float(_squared_distance(features, it)) if it else -np.inf for it in self.classes])

    def is_label(self, features: Features, label: int) -> bool:
        """Whether the label is that of `classify`."""
        return label == self.classify(features)


def _squared_distance(features: Features, examples: Sequence[Features]) -> Fraction:
    """Return the square of the distance to the mean of examples, exactly."""
    total = np.sum(np.stack(examples), axis=0, dtype=np.int64)
    count = len(examples)
    difference = count * features.astype(np.int64) - total
    return Fraction(sum(int(each) ** 2 for each in difference), count**2)


@dataclass(frozen=True, slots=True)
class Ridge:
    """The reference of mcud_ridge.c: all examples with their labels, solved in closed form in float64."""

    size: HeadSize
    examples: tuple[Features, ...] = ()
    labels: tuple[int, ...] = ()
    tolerance: float = 1e-3

    def has_room(self, label: int) -> bool:
        """Whether the head has room for a further example, of any class."""
        del label
        return len(self.examples) < self.size.capacity

    def enrol(self, features: Features, label: int) -> Ridge:
        """Return the head with one more example of a class."""
        return replace(self, examples=(*self.examples, features), labels=(*self.labels, label))

    def scores(self, features: Features) -> Scores:
        """Return the linear score of each class."""
        if not self.examples:
            return np.full(self.size.classes, -np.inf)
        examples = np.stack(self.examples).astype(np.float64)
        targets = np.eye(self.size.classes)[list(self.labels)]
        mean, shares = examples.mean(axis=0), targets.mean(axis=0)
        centred = examples - mean
        gram = centred @ centred.T
        penalty = _RIDGE_PENALTY * np.trace(gram) / len(examples)
        if penalty == 0:  # the examples do not differ
            return np.where(shares > 0, shares, -np.inf)
        weights = centred.T @ np.linalg.solve(gram + penalty * np.eye(len(examples)), targets - shares)
        scores = (features - mean) @ weights + shares
        return np.where(shares > 0, scores, -np.inf)

    def is_label(self, features: Features, label: int) -> bool:
        """Whether no class is ahead of this one by more than twice the tolerance."""
        scores = self.scores(features)
        if label >= self.size.classes or not self.examples:
            return label == self.size.classes and not self.examples
        return bool(scores[label] >= scores.max() - 2 * self.tolerance)


@dataclass(frozen=True, slots=True)
class HeadKind:
    """A kind of head, computed by firmware/heads/mcud_<name>.c.

    `members` are the arrays of its table, those of the widest type first; `numbers` the other fields of its
    record; `scratch_count` the words that it uses between runs. `stores` examples up to a capacity.
    """

    members: Callable[[HeadSize], list[HeadMember]]
    numbers: Callable[[HeadSize], dict[str, int]]
    scratch_count: Callable[[HeadSize], int]
    reference: Callable[[HeadSize], HeadReference]
    stores: bool = False


def table_bytes(members: Sequence[HeadMember]) -> int:
    """Return the bytes of a table with these arrays, rounded up to units of a blob."""
    return -(-sum(it.size_bytes for it in members) // TABLE_GRAIN_BYTES) * TABLE_GRAIN_BYTES


def _columns(size: HeadSize) -> int:
    return max(size.features, _LEAST_COLUMNS)


def _ridge_scratch_count(size: HeadSize) -> int:
    """Return the words of the vectors of mcud_ridge.c; the last vector has elements of 16 bits."""
    return 4 * size.features + 2 * size.capacity + (max(size.features, size.capacity) + 1) // 2


HEADS: Mapping[str, HeadKind] = {
    "prototypes": HeadKind(
        members=lambda size: [HeadMember("sums", "int16_t", 2, size.classes * _columns(size))],
        numbers=lambda size: {
            "classes": size.classes,
            "features": size.features,
            "columns": _columns(size),
        },
        scratch_count=lambda size: 0,
        reference=lambda size: Prototypes(((),) * size.classes),
    ),
    "ridge": HeadKind(
        members=lambda size: [
            HeadMember("steps", "float", 4, size.classes),
            HeadMember("biases", "float", 4, size.classes),
            HeadMember("weights", "int16_t", 2, size.classes * size.features),
            HeadMember("counts", "uint16_t", 2, 2, size.capacity),
            HeadMember("labels", "uint16_t", 2, size.capacity, size.classes - 1),
            HeadMember("examples", "int8_t", 1, size.capacity * size.features),
        ],
        numbers=lambda size: {
            "classes": size.classes,
            "features": size.features,
            "capacity": size.capacity,
        },
        scratch_count=_ridge_scratch_count,
        reference=Ridge,
        stores=True,
    ),
}
