"""ROC parity: equal rates at every threshold, not only at the decision threshold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.base import Constraint, HasScores
from fairconstrained.constraints.claims import Claim
from fairconstrained.constraints.measures import (
    COMPARISONS,
    Compared,
    difference,
    group_rates,
    rates_of,
)
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import SURROGATES, Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.head import as_csr
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.registry import check_option, resolve
from fairconstrained.utils.typing import Array, ArrayLike
from fairconstrained.utils.validation import check_count, check_numbers


@dataclass(eq=False, repr=False)
class ROCParity(Constraint):
    r"""ROC (strong demographic) parity: the rates above every threshold of a grid are equal.

    .. math::
        \Big| \frac{\sum_{i \in a} w_i\, \sigma(s_i - \theta)}{\sum_{i \in a} w_i}
        - \frac{\sum_{i \in b} w_i\, \sigma(s_i - \theta)}{\sum_{i \in b} w_i} \Big| \le \kappa
        \quad \text{for all } \theta \text{ of a grid and all groups } a, b,

    two one-sided constraints for each. In an estimator the grid is `n_thresholds` equally spaced
    points from lo - (hi - lo) / 2 to hi + (hi - lo) / 2, where lo and hi are the smallest and the
    largest score of a training row under the model without constraints. All thresholds together
    cost a few times as much as one (see :mod:`fairconstrained.terms.threshold_rates`).

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function :math:`\sigma` that replaces the indicator. None takes that of the estimator,
        or the sigmoid.
    thresholds : array-like of shape (n_thresholds,) or None, default=None
        The grid, of scores minus the decision threshold. None takes the grid above.
    n_thresholds : int, default=400
        The number of thresholds of that grid.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the rate of all rows.

    References
    ----------
    3S-Econ, section 5 (Problem 1).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import ROCParity
    >>> term = ROCParity(kappa=0.1, thresholds=[-1.0, 1.0]).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[:2]
    ('rate(a, s > -1) - rate(b, s > -1) <= 0.1', 'rate(a, s > 1) - rate(b, s > 1) <= 0.1')
    >>> term.zero_one().gap(np.array([0.0, 2.0, -2.0, 0.0]))
    array([ 0.5,  0.5, -0.5, -0.5])
    """

    kappa: float | None = None
    _: KW_ONLY
    surrogate: str | Surrogate | None = None
    thresholds: ArrayLike | None = None
    n_thresholds: int = 400
    against: str = "pairs"

    subtracts_kappa = True
    gap_title = "largest difference of two groups' selection rates at any of the thresholds"
    scores_title = "sigmoids of scores minus thresholds"
    bounds_rates = False
    cannot_be_tested = ""

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: the grid may come from the training rows."""
        return (
            "" if self.thresholds is not None else "its thresholds were chosen on the training rows"
        )

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> ThresholdRates:
        """Return the term with one output per ordered pair of groups and threshold.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1; ignored.
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If kappa, the surrogate's name, `against` or the thresholds are not valid, no thresholds
            are given, or groups are missing.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows, or there are fewer than two groups.
        """
        thresholds = _check_thresholds(self.thresholds)
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SURROGATES, Surrogate)
        groups = check_groups(groups, len(y))
        (measures,), comparison, requirement = self._compared(y, groups, np.asarray(sample_weight))
        differences = as_csr(comparison.pairs([measures], 1.0, -1.0))
        grid = sp.eye_array(len(thresholds), format="csr")
        combination = sp.csr_array(sp.kron(differences, grid, format="csr"))
        marks = [f", s > {theta:g})" for theta in thresholds]
        names = tuple(
            requirement.text.format(first=a[:-1] + mark, second=b[:-1] + mark)
            for _, _, a, b in comparison.named(measures)
            for mark in marks
        )
        offset = np.full(combination.shape[0], requirement.bound)
        rates = rates_of(measures, surrogate)
        return ThresholdRates(rates, thresholds, combination, offset, names=names)

    def _compared(self, y: Array, groups: Groups, weight: Array) -> Compared:
        requirement = difference(self.checked_kappa())
        against = check_option("against", self.against, COMPARISONS)
        return Compared([group_rates(groups, weight, type(self).__name__)], against, requirement)

    def claims(self, y: Array, groups: Groups | Array, sample_weight: Array) -> list[Claim]:
        """Return a claim for every ordered pair of groups, for all thresholds.

        Parameters
        ----------
        y, groups, sample_weight
            See :meth:`Constraint.claims`.
        """
        grid = np.zeros(0) if self.thresholds is None else _check_thresholds(self.thresholds)
        return [
            replace(one, thresholds=grid, one_output=False, name=f"{one.name}, all thresholds")
            for one in super().claims(y, groups, sample_weight)
        ]

    def chosen(self, term: Term) -> dict[str, Any]:
        """Return the thresholds of the term."""
        assert isinstance(term, ThresholdRates)
        return {"thresholds": term.thresholds}

    def build(
        self, model: Model, data: TrainingData, unconstrained: HasScores
    ) -> CompositeFunction:
        """Return the term with a grid made of the scores of the model without constraints.

        Parameters
        ----------
        model, data, unconstrained
            See :meth:`Constraint.build`.
        """
        if self.thresholds is not None:
            return super().build(model, data, unconstrained)
        count = check_count("n_thresholds", self.n_thresholds)
        scores, _ = unconstrained.weighted_scores(data)
        low, high = scores.min(), scores.max()
        half = 0.5 * (high - low)
        grid = np.unique(np.linspace(low - half, high + half, count))
        return self.with_defaults(thresholds=grid).build(model, data, unconstrained)


def _check_thresholds(thresholds: object) -> Array:
    if thresholds is None:
        raise ValueError(
            "ROCParity: thresholds=None takes its grid from the scores of the model without "
            "constraints, which bind does not have; give thresholds, or use it in an estimator."
        )
    return check_numbers("thresholds", thresholds, -np.inf, np.inf)
