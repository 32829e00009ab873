"""Running averages."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained.solvers._tools.averages import (
    ExponentialAverage,
    RunningAverage,
    SuffixAverage,
)


def test_running_average_is_that_of_the_points_since_it_was_cleared(rng) -> None:
    points, weights, average = rng.normal(size=(7, 3)), rng.uniform(0.5, 2.0, 7), RunningAverage()
    average.add(np.full(3, 1e3))
    average.clear()
    for point, weight in zip(points, weights, strict=True):
        average.add(point, weight)
    assert average.mean == pytest.approx(np.average(points, axis=0, weights=weights))
    assert average.total == pytest.approx(weights.sum())


def test_suffix_average_covers_between_half_and_all_of_the_points() -> None:
    average = SuffixAverage()
    for k in range(1, 12):
        average.add(np.array([float(k)]), weight=k)
        first = 2 ** int(np.log2(k))
        later = np.arange(first, k + 1)
        assert average.mean == pytest.approx([np.average(later, weights=later)])


def test_exponential_average_gives_point_k_its_weight(rng) -> None:
    points, average, mean = rng.normal(size=60), ExponentialAverage(memory=10), 0.0
    for k, point in enumerate(points, 1):
        average.add(np.array([point]))
        share = max(0.1, min(4.0 / k, 1.0))
        mean += share * (point - mean)
        assert average.mean == pytest.approx([mean])
