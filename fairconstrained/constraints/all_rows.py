"""Constraints on the decisions of all rows, whatever their groups: coverage and churn."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint, FreeScores
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.utils.registry import FieldParameters
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_between


class _OfAllRows(FieldParameters, Constraint, kw_only=True):
    """A bound on means over all rows, which are one group."""

    kappa: float | None = None
    surrogate: str | Surrogate | None = None

    needs_groups = False
    compares_groups = False
    by_class = False
    bounds_rates = True
    subtracts_kappa = True
    cannot_be_tested = ""

    def groupings(self, data: TrainingData) -> list[TrainingData]:
        """Return the rows with one group for all."""
        return [replace(data, groups=_everyone(len(data.y)))]

    def _checked(self, y: Any, groups: Any, sample_weight: Array) -> tuple[Array, Groups, Array]:
        return super()._checked(y, _everyone(len(sample_weight)), sample_weight)

    def _mean(self, groups: Groups, weight: Array, what: str) -> measures.Measures:
        return measures.means(groups, weight, self._warn, what, compared=False)


def _everyone(n_rows: int) -> Groups:
    return Groups.encode(np.zeros(n_rows, dtype=int))


class Coverage(_OfAllRows):
    r"""Coverage: the share of all rows that is selected is near a given one.

    .. math:: \Big| \frac{\sum_i w_i\, \sigma(s_i)}{\sum_i w_i} - \text{rate} \Big| \le \kappa.

    Parameters
    ----------
    rate : float or None, default=None
        The share, in [0, 1]. None takes the share of positive labels. Measurements of a fitted
        model on other rows are about this share.
    kappa : float or None, default=None
        The largest difference allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        See :class:`DemographicParity`.

    References
    ----------
    G. Goh, A. Cotter, M. Gupta, M. Friedlander, "Satisfying real-world goals with dataset
    constraints", NeurIPS 2016; IPC, section 1.1 (data-driven constraints).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import Coverage
    >>> term = Coverage(0.3).bind(None, np.zeros(4), np.ones(4))
    >>> term.names
    ('excess(selected over 0.3) <= 0.05', 'excess(rejected over 0.7) <= 0.05')
    >>> term.zero_one().gap(np.array([1.0, -1.0, 1.0, 1.0]))
    array([ 0.45, -0.45])
    """

    rate: float | None = None

    gap_title = "difference of the selection rate from the given one"
    needs_labels = property(lambda self: self.rate is None)

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        target = float(np.average(y > 0, weights=weight)) if self.rate is None else self.rate
        check_between("rate", target, 0.0, 1.0, "the share that is selected")
        sides = replace(
            self._mean(groups, weight, "excess"),
            shares=np.ones(2),
            groups=[f"selected over {target:g}", f"rejected over {1.0 - target:g}"],
            numbers=np.array([[1.0], [-1.0], [1.0]]),  # the last is that of all rows
            constant=np.array([-target, target, -target]),
        )
        return measures.each_at_most(sides, self.checked_kappa(), rate=target)


class Churn(_OfAllRows):
    r"""Churn: at most a share of the rows is decided otherwise than by a given model.

    With the decisions :math:`d_i \in \{-1, 1\}` of that model,

    .. math:: \frac{\sum_i w_i\, \sigma(-d_i s_i)}{\sum_i w_i} \le \kappa,

    for symmetric surrogates; for others :math:`1 - \sigma(s_i)` where d is positive.

    Parameters
    ----------
    previous : classifier or None, default=None
        The given model, fitted; its `predict` gets the rows as `fit` of this estimator does. None
        takes the model without constraints.
    kappa : float or None, default=None
        The largest share allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        See :class:`DemographicParity`.

    References
    ----------
    G. Goh, A. Cotter, M. Gupta, M. Friedlander, "Satisfying real-world goals with dataset
    constraints", NeurIPS 2016; IPC, section 1.1 (data-driven constraints).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import Churn
    >>> decisions = np.array([1, -1, 1, -1])  # `bind` takes them in place of labels
    >>> term = Churn(kappa=0.1).bind(decisions, np.zeros(4), np.ones(4))
    >>> term.names, term.zero_one().gap(np.array([1.0, -1.0, -1.0, -1.0]))
    (('share(decided otherwise) <= 0.1',), array([0.25]))
    """

    previous: Any = None

    gap_title = "share of the rows that are decided otherwise than by the given model"
    needs_labels = False

    @property
    def cannot_be_tested(self) -> str:  # type: ignore[override]
        """Why held-out rows cannot test it: the model without constraints is not given."""
        if self.previous is not None:
            return ""
        return "previous=None, the model without constraints, is not kept: pass that model"

    bound_to_training_rows = cannot_be_tested

    def __sklearn_clone__(self) -> Self:
        """Return a copy with the same given model, which stays fitted."""
        return deepcopy(self, {id(self.previous): self.previous})

    def groupings(self, data: TrainingData) -> list[TrainingData]:
        """Return the rows with the given model's decisions as labels."""
        (rows,) = super().groupings(data)
        if self.previous is None:
            return [rows]
        if not hasattr(self.previous, "predict"):
            raise ValueError(f"previous must be a fitted classifier; got {self.previous!r}.")
        decided = np.asarray(self.previous.predict(self._in_memory(data.passed)))
        if data.positions is not None:
            decided = decided[data.positions]
        unknown = np.setdiff1d(decided, data.classes)
        if unknown.size:
            raise ValueError(f"Churn: previous predicts {unknown.tolist()}, which y does not have.")
        return [replace(rows, y=np.where(decided == data.classes[1], 1.0, -1.0))]

    def build_known(
        self, model: Model, data: TrainingData, unconstrained: FreeScores
    ) -> CompositeFunction:
        """Return the constraint on the decisions, which are the labels of the rows."""
        if self.previous is None:
            scores = unconstrained(data, None)[0]
            scores = self._in_memory(scores if len(scores) == len(data.y) else None)
            data = replace(data, y=np.where(scores > 0.0, 1.0, -1.0))
        return super().build_known(model, data, unconstrained)

    def _in_memory(self, rows: Any) -> Any:
        if rows is None:
            raise ValueError(f"{self!r} is for rows in memory: use another constraint with dask.")
        return rows

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        share = replace(self._mean(groups, weight, "share"), groups=["decided otherwise"])
        return measures.each_at_most(measures.errors(y, share), self.checked_kappa())
