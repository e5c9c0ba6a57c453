"""Figures of merit against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from mcudeploy.extensions.evaluation import metrics


def test_the_area_under_the_curve_is_a_probability() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=300).round(1)  # with ties
    positive = scores + rng.normal(size=300) > 0
    pairs = [(one > other) + 0.5 * (one == other) for one in scores[positive] for other in scores[~positive]]
    assert metrics.area_under_curve(scores, positive) == pytest.approx(np.mean(pairs))
    assert metrics.area_under_curve(scores, np.ones(300, bool)) is None


def test_classes_of_scores() -> None:
    scores = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [0.5, 0.5, 0.4], [0.1, 0.2, 0.7]])
    quality = metrics.classification(scores, np.array([0, 1, 1, 2]), 2)
    assert quality.accuracy == 0.5 and quality.top_k == 1.0 and quality.auc is None
    assert quality.confusion is not None
    assert quality.confusion.tolist() == [[1, 0, 0], [1, 0, 1], [0, 0, 1]]
    by_class = quality.by_class()
    assert [it.samples for it in by_class] == [1, 2, 1]
    assert [it.recall for it in by_class] == [1.0, 0.0, 1.0]
    assert [it.precision for it in by_class] == [0.5, None, 0.5]


def test_one_score_of_two_classes() -> None:
    quality = metrics.two_classes(np.array([0.1, 0.6, 0.5, 0.4]), np.array([0, 0, 1, 1]), 0.5)
    assert quality.accuracy == 0.5 and quality.auc == 0.5
    assert quality.share == 0.5


def test_agreement_counts_what_is_lost_and_gained() -> None:
    first, second = np.array([[1.0, 0.0], [1, 0], [0, 1]]), np.array([[0.0, 1.0], [1, 0], [1, 0.5]])
    agreement = metrics.agreement(first, second, [first.argmax(1), second.argmax(1)], np.array([0, 0, 0]))
    assert (agreement.flips, agreement.lost, agreement.gained, agreement.equal, agreement.largest) == (
        2,
        1,
        1,
        1,
        1.0,
    )
    assert metrics.agreement(first, first, [], None).flips is None


def test_equal_infinities_agree() -> None:
    values = np.array([[-np.inf, 1.0], [2.0, np.inf]])
    figures = metrics.agreement(values, values, [], None)
    assert (figures.equal, figures.largest) == (2, 0.0)
    assert metrics.agreement(values, -values, [], None).largest == np.inf
