"""Losses of several classes with surrogates, as in 3S-Econ."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained.functions.surrogates import Sigmoid, Stretched
from fairconstrained.terms.class_losses import class_losses

RNG = np.random.RandomState(0)


@pytest.mark.parametrize("classes", [[0], [1, 2, 3]])
def test_classes_that_are_left_out_do_not_enter_the_sums(classes) -> None:
    """3S-Econ, equation (3): class 1 is compared with 2..K, class k >= 2 with 2..K without k."""
    labels = np.arange(40) % 4
    scores = RNG.standard_normal((40, 4))
    losses = class_losses(
        Stretched(Sigmoid()), labels, np.ones(40), classes, [0.0] * len(classes), left_out=[0]
    )

    def phi(t):
        return 1.0 / (1.0 + np.exp(t))

    for value, k in zip(losses.value(scores), classes, strict=True):
        rows = scores[labels == k]
        expected = sum(phi(rows[:, k] - rows[:, j]).mean() for j in range(1, 4) if j != k)
        assert value == pytest.approx(expected)
    v, d = RNG.standard_normal(len(classes)), RNG.standard_normal(scores.shape)
    slope = (losses.vjp(scores, v)[0] * d).sum()
    change = losses.value(scores + 1e-6 * d) - losses.value(scores - 1e-6 * d)
    assert slope == pytest.approx(v @ change / 2e-6, rel=1e-6)
    majorant = losses.convexify(scores)
    assert majorant.value(scores) == pytest.approx(losses.value(scores))
    assert np.all(majorant.value(scores + d) >= losses.value(scores + d))


def test_zero_weights_are_strictly_feasible_with_kappa_four_and_a_half() -> None:
    labels = np.arange(30) % 10
    bounds = class_losses(
        Stretched(Sigmoid()), labels, np.ones(30), range(1, 10), [4.5] * 9, left_out=[0]
    )
    assert bounds.value(np.zeros((30, 10))) == pytest.approx(np.full(9, -0.5))
