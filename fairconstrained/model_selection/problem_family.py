"""One problem with many tolerances: bound to the data once where that is enough."""

from __future__ import annotations

import warnings
from copy import copy
from functools import cached_property

import numpy as np

from fairconstrained.estimators.fit import Prepared, constrained
from fairconstrained.estimators.linear.base import FairLinearClassifier
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa


class AnyTolerance:
    """The problem of an estimator with any kappa.

    Most constraints subtract a multiple of kappa, or do without. These are bound once; what kappa
    changes in other ways is bound anew for every kappa.

    Parameters
    ----------
    prepared : Prepared
        What the data have become, with the problem for kappa = 0.
    base : FairLinearClassifier
        The estimator.
    w : ndarray of shape (n_variables,)
        A point other than the problem's start, to see what kappa changes.
    """

    def __init__(self, prepared: Prepared, base: FairLinearClassifier, w: Array):
        self.prepared, self.base = prepared, base
        self.points = (prepared.problem.start(), w)

    def at(self, kappa: float) -> Problem:
        """Return the problem with a kappa.

        Raises
        ------
        ValueError
            If kappa is not in [0, 1].
        """
        kappa = check_kappa(kappa)
        if self._subtracts:
            return self.prepared.problem.shifted(-kappa * self._slopes[0])
        return self._bound(kappa)

    @property
    def follows(self) -> Array:
        """Which constraints change with kappa, shape (n_constraints,)."""
        return np.any(self._slopes != 0.0, axis=0)

    @cached_property
    def _slopes(self) -> Array:
        """How much the constraints fall per kappa, a row for each point."""
        return 2.0 * (self._outputs(self.prepared.problem) - self._outputs(self._bound(0.5)))

    @cached_property
    def _subtracts(self) -> bool:
        """Whether they fall by the same everywhere, and in proportion to kappa."""
        slopes = 4.0 * (self._outputs(self.prepared.problem) - self._outputs(self._bound(0.25)))
        return all(
            np.allclose(one, self._slopes[0], rtol=1e-9, atol=1e-12)
            for one in (*self._slopes, *slopes)
        )

    def _outputs(self, problem: Problem) -> Array:
        problem = problem.uncounted()
        return np.stack([problem.at(w).constraints for w in self.points])

    def _bound(self, kappa: float) -> Problem:
        """Return the problem bound with a kappa; a cell without rows was reported before."""
        estimator = copy(self.base)
        estimator.kappa = kappa
        data, prepared = self.prepared.data, self.prepared
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousConstraintWarning)
            constraints = estimator._constraints(data)
            return constrained(prepared.problem, constraints, data, prepared.unconstrained)
