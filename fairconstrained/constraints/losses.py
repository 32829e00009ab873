"""Constraints on the mean loss of groups."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.measures import (
    ALL_ROWS,
    EACH_GROUP,
    Compared,
    at_most,
    compared_term,
    means,
)
from fairconstrained.constraints.rates import error_rates
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, reweighted
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_between


@dataclass(frozen=True, eq=False)
class LossMeans(CellMeans):
    r"""Affine functions of mean losses; what decisions show of a loss is whether they are wrong.

    `signs` are the labels. `zero_one` has the error rate in place of every mean loss: with A, split
    by label, :math:`A\, 1\{\text{error}\} = A^- 1\{s > 0\} + A^+ (1 - 1\{s > 0\})`.
    """

    @classmethod
    def of(cls, term: CellMeans) -> LossMeans:
        """Return the same term, as one of losses."""
        return cls(**{field.name: getattr(term, field.name) for field in fields(CellMeans)})

    def zero_one(self) -> CellMeans:
        """Return the term with error rates in place of losses."""
        assert self.signs is not None
        positive = (self.signs > 0).astype(float)
        by_label = [reweighted(self.cells, keep) for keep in (1.0 - positive, positive)]
        combination = as_csr(self.combination)
        return CellMeans(
            cells=sp.vstack([one.tocsc() for one in by_label], format="csc"),
            function=Indicator(),
            combination=sp.csr_array(sp.hstack([combination, -combination])),
            offset=self.offset,
            names=self.names,
            constant=self.constant + combination @ (self.cells @ positive),
        )


AnyTerm = TypeVar("AnyTerm", bound=Term | None)


def measured_from(term: AnyTerm, threshold: float) -> AnyTerm:
    """Return a term for scores that are measured from a threshold.

    Terms of decisions compare such scores with 0 and are unchanged. Mean losses are functions of
    the scores themselves.

    Parameters
    ----------
    term : Term or None
        The term of a constraint.
    threshold : float
        What was subtracted from the scores.
    """
    return replace(term, shift=threshold) if isinstance(term, LossMeans) else term


class BoundedGroupLoss(Constraint):
    r"""Bounded group loss: the mean loss of every group is at most a bound.

    .. math::
        \frac{\sum_{i \in k} w_i\, \ell(y_i s_i)}{\sum_{i \in k} w_i} \le \text{bound}
        \quad \text{for every group } k.

    The constraint is convex if the loss is. The gap of the predictions is the largest error rate of
    a group. At the default decision threshold the hinge loss, and the logistic loss divided by log
    2, are upper bounds of the error, so that a bound on them also holds for the error rates.

    Parameters
    ----------
    bound : float or None, default=None
        The largest mean loss allowed, >= 0. The logistic loss is in nats. None takes `kappa` of the
        estimator, or 0.5.
    loss : {"logistic", "truncated_logistic", "hinge", "quadratic"}, Loss or None, default=None
        The loss. None takes that of the estimator, or the logistic loss.

    References
    ----------
    A. Agarwal, M. Dudik, Z. S. Wu, "Fair regression: quantitative definitions and reduction-based
    algorithms", ICML 2019; fairlearn's ``BoundedGroupLoss``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import BoundedGroupLoss
    >>> term = BoundedGroupLoss(bound=0.6).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names
    ('loss(a) <= 0.6', 'loss(b) <= 0.6')
    >>> term.value(np.zeros(4)).round(3)  # log 2 - 0.6
    array([0.093, 0.093])
    """

    by_class: ClassVar[bool] = False
    subtracts_kappa = True
    cannot_be_tested = ""
    tolerance = "bound"
    gap_title = "largest error rate of a group"
    scores_title = "losses"
    bounds_rates = False

    def __init__(self, bound: float | None = None, *, loss: str | Loss | None = None):
        self.bound = bound
        self.loss = loss

    @property
    def kappa(self) -> float | None:  # type: ignore[override]
        """The bound: None where the estimator's kappa is it."""
        return self.bound

    def checked_kappa(self) -> float:
        """Return the bound, a number >= 0; 0.5 for None."""
        bound = 0.5 if self.bound is None else self.bound
        return check_between("bound", bound, 0.0, np.finfo(float).max, "a mean loss")

    def with_defaults(self, **defaults: object) -> Self:
        """Return a copy with the values given here where it has none; kappa becomes the bound."""
        return super().with_defaults(**{"bound": defaults.get("kappa"), **defaults})

    def _compared(self, y: Array, groups: Groups, weight: Array) -> Compared:
        """Return the error rates of the groups, which held-out rows can test."""
        errors = error_rates(y, groups, weight, "loss", type(self).__name__)
        return Compared([errors], EACH_GROUP, at_most(self.checked_kappa()))

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> CellMeans:
        """Return the term with one output per group.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If the bound or the loss is not valid.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows.
        """
        groups = check_groups(groups, len(y))
        bound = self.checked_kappa()
        loss = self._loss_of_rows()
        weight = np.asarray(sample_weight, dtype=float)
        losses = means(groups.codes, weight, groups, "loss", ALL_ROWS, type(self).__name__)
        labels = np.asarray(y, dtype=float)
        compared = Compared([losses], EACH_GROUP, at_most(bound))
        return LossMeans.of(compared_term(compared, loss, signs=labels))

    def _loss_of_rows(self) -> Loss:
        """Return the loss; raise an error if it is not a mean over rows, but one over pairs."""
        try:
            return resolve("loss", self.loss or "logistic", LOSSES, Loss)
        except (ValueError, TypeError) as error:
            raise type(error)(
                f"BoundedGroupLoss needs a loss that is a mean over rows: {error} Pass "
                "for instance BoundedGroupLoss(loss='logistic')."
            ) from None
