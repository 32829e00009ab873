"""One problem for every tolerance: bound to the data once where that is enough."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fairconstrained.constraints import resolve_constraints
from fairconstrained.estimators.fit import Fit
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.problem.evaluation import Evaluation
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
    fit : Fit
        The fit with kappa = 0.
    """

    def __init__(self, fit: Fit):
        self.fit = fit

    @cached_property
    def free(self) -> Evaluation:
        """The problem with kappa = 0 at the unconstrained model."""
        return self.fit.problem.at(self.fit.start().w)

    def at(self, kappa: float) -> Problem:
        """Return the problem for a kappa.

        Raises
        ------
        ValueError
            If kappa is not in [0, 1].
        """
        kappa = check_kappa(kappa)
        if np.all(np.isfinite(self._slopes)):
            return self.fit.problem.shifted(kappa * self._slopes)
        return self.fit.with_kappa(kappa).problem

    def split_at(self, kappa: float) -> tuple[Problem, Problem] | None:
        """Return the problems for a kappa on the rows to train on and on those that choose.

        They are bound anew: these rows may lack cells that all rows together have.
        """
        return None if self.fit.split is None else self.fit.with_kappa(kappa).split_problems

    @property
    def follows(self) -> Array:
        """Which constraints depend on kappa, shape (n_constraints,)."""
        return self._slopes != 0.0

    @cached_property
    def _slopes(self) -> Array:
        """The tolerance slope of each output, nan where kappa enters in another way."""
        fit = self.fit
        declared = [
            np.nan if one.tolerance_slope is None else one.tolerance_slope
            for one in resolve_constraints(fit.estimator.constraint)
        ]
        if len(set(declared)) == 1:  # the number of outputs of each constraint does not matter
            return np.full(fit.problem.n_constraints, declared[0])
        slopes = [np.zeros(0)]
        with without_vacuous_warnings():
            for slope, one in zip(declared, fit.constraints, strict=True):
                parts = one.parts(fit.model, fit.data, fit.unconstrained)
                slopes.append(np.full(sum(part.n_outputs for part in parts), slope))
        return np.concatenate(slopes)
