"""One problem for every tolerance: bound to the data once where that is enough."""

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


class ProblemFamily:
    """The problems of an estimator for every kappa.

    Most constraints subtract kappa or do not depend on it. These are bound once and shifted. If
    kappa enters a constraint in another way, all of them are bound anew for every kappa; see
    :attr:`Constraint.tolerance_slope`.

    Parameters
    ----------
    prepared : Prepared
        The data and the problem for kappa = 0.
    base : FairLinearClassifier
        The estimator.
    """

    def __init__(self, prepared: Prepared, base: FairLinearClassifier):
        self.prepared, self.base = prepared, base

    def at(self, kappa: float) -> Problem:
        """Return the problem for a kappa.

        Raises
        ------
        ValueError
            If kappa is not in [0, 1].
        """
        kappa = check_kappa(kappa)
        if np.all(np.isfinite(self._slopes)):
            return self.prepared.problem.shifted(kappa * self._slopes)
        return self._bound(kappa)

    @property
    def follows(self) -> Array:
        """Which constraints depend on kappa, shape (n_constraints,)."""
        return self._slopes != 0.0

    @cached_property
    def _slopes(self) -> Array:
        """The tolerance slope of each output, nan where kappa enters in another way."""
        data, unconstrained = self.prepared.data, self.prepared.unconstrained
        declared = [one.tolerance_slope for one in self.base._named_constraints()]
        if len(set(declared)) == 1:  # nothing needs to be counted
            slope = np.nan if declared[0] is None else declared[0]
            return np.full(self.prepared.problem.n_constraints, slope)
        model, slopes = self.prepared.model, [np.zeros(0)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousConstraintWarning)
            for declaration, one in zip(declared, self.base._constraints(data), strict=True):
                parts = one.parts(model, data, unconstrained)
                n_outputs = sum(part.n_outputs for part in parts)
                slope = np.nan if declaration is None else declaration
                slopes.append(np.full(n_outputs, slope))
        return np.concatenate(slopes)

    def _bound(self, kappa: float) -> Problem:
        """Return the problem bound with a kappa; a cell without rows was reported before."""
        estimator = copy(self.base)
        estimator.kappa = kappa
        data, prepared = self.prepared.data, self.prepared
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousConstraintWarning)
            constraints = estimator._constraints(data)
            return constrained(prepared.problem, constraints, data, prepared.unconstrained)
