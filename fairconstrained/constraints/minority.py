"""The minority's share of the positive decisions."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import Ratios
from fairconstrained.utils.registry import FieldParameters
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike
from fairconstrained.utils.validation import check_between


class MinorityRate(FieldParameters, Constraint):
    r"""Minority rate: at least a share c of the positive predictions belongs to the minority.

    .. math::
        \frac{c \sum_{i \in S} \sigma(s_i) - \sum_{i \in S_{\min}} \sigma(s_i)}{|S|} \le 0,

    for the rows S: the training rows, or reference rows without labels, for example the people
    about whom decisions will be made. The gap of the predictions is the share of positive
    predictions that do not belong to the minority, to be compared with 1 - c.

    Parameters
    ----------
    c : float or None, default=None
        The smallest share allowed, in [0, 1]. None takes the share of the minority among the rows
        S, so that its selection rate must be at least the overall one.
    minority : group or None, default=None
        The group that is the minority; a tuple if there are several attributes, "attribute=value"
        with ``combine="marginal"``. None takes the smallest group of the rows S. Measurements of a
        fitted model on other rows are about this group and this c.
    reference : array-like, DataFrame, sparse matrix or None, default=None
        The rows S, with the columns that X has in `fit`, including the sensitive ones. None takes
        the training rows, or the `constraint_data` of `fit`, which all constraints can be on.
        Reference rows have no sample weights.
    reference_groups : array-like or None, default=None
        The groups of the reference rows, like `sensitive_features` in `fit`, or booleans that are
        True for the minority (with ``minority=True``). None takes them from the estimator's
        `sensitive_columns`.
    surrogate
        See :class:`DemographicParity`.

    References
    ----------
    IPC, equation (5) (there not divided by the number of rows).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import MinorityRate
    >>> groups = np.array(["a", "b", "b", "b"])
    >>> term = MinorityRate(c=0.2, minority="a").bind(None, groups, np.ones(4))
    >>> term.names
    ('0.2 * rate(all) - 0.25 * rate(a) <= 0',)
    >>> term.value(np.zeros(4)).round(3)  # (0.2 * 4 - 1) / 2 / 4
    array([-0.025])
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(1000, gap=0.4, random_state=0)
    >>> seen, later = slice(0, 600), slice(600, None)
    >>> rule = MinorityRate(0.4, minority=0, reference=X[later], reference_groups=groups[later])
    >>> clf = FairLogisticClassifier(rule).fit(X[seen], y[seen])
    >>> probabilities = clf.predict_proba(X[later])[:, 1]
    >>> print(f"{probabilities[groups[later] == 0].sum() / probabilities.sum():.3f}")
    0.400
    """

    c: float | None = None
    _: KW_ONLY
    minority: object = None
    reference: MatrixLike | None = None
    reference_groups: ArrayLike | None = None
    surrogate: str | Surrogate | None = None

    kappa = 0.0  # no tolerance: that of an estimator does not apply
    tolerance = "c"
    bounds_rates = True
    gap_title = "share of the positive predictions that are not of the minority"
    cannot_be_tested = "the minority's share of the population is not known"
    needs_labels = False
    joins_attributes = True  # the minority is a group of one of the attributes
    _in_training_rows = False  # whether the minority is known to be a group of the training rows

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: it may have reference rows of its own."""
        return "" if self.reference is None else "it bounds its own reference rows"

    needs_groups = property(lambda self: self.reference is None)  # those have their own

    def build(self, model: Model, data: TrainingData) -> CompositeFunction:
        """Return the constraint on the reference rows, or on the training rows."""
        if self.reference is None:
            if self.reference_groups is not None:
                raise ValueError("MinorityRate: reference_groups are given without reference.")
            return super().build(model, data)
        given, names = (self.reference, None, self.reference_groups), ("reference", "y")
        rows = data.of_constraint(*given, *names, "reference_groups")
        if rows.groups is None:
            raise ValueError(
                "MinorityRate: the reference rows have no groups: pass reference_groups, or name "
                "columns of X in the estimator's sensitive_columns."
            )
        rows = rows.take(np.flatnonzero(self.known_rows(rows.groups)))
        return super().build(model.on(rows.X), rows)

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        minority, name, members = self._members(groups, weight)
        share = float(weight[members].sum() / weight.sum())
        c = share if self.c is None else self.c
        c = check_between("c", c, 0.0, 1.0, "the least share of the positive decisions")
        names, numbers = [str(name)], np.array([[0.0, share], [1.0 - share, share]])
        if members.all() or not members.any():
            empty = f"groups other than {name}" if members.any() else f"group {name}"
            self._warn(f"the cell '{empty}' has no rows; nothing is asked.")
            names, numbers = [], numbers[1:]
        what, text = f"{share:.4g} * rate", f"{c:.4g} * rate(all) - {{first}} <= 0"
        rate = measures.Measures(members.astype(int), weight, numbers[-1, 1:], what, names, numbers)
        chosen = {"c": c, "minority": minority}
        bound = measures.Requirement((-1.0, c), 0.0, text, kind=Ratios, chosen=chosen)
        return measures.Compared([rate], measures.each_group, bound)

    def as_bound(self, term: Term) -> Self:
        """Return the constraint with the share and the minority of the term.

        Other rows may lack the minority: nothing is asked of them then.
        """
        bound = super().as_bound(term)
        bound._in_training_rows = True
        return bound

    def known_rows(self, groups: Groups) -> Array:
        """Return which rows the constraint is on: those with a known value of its attribute."""
        return self._attribute(groups).known

    def _attribute(self, groups: Groups) -> Groups:
        """Return the groups of the attribute that the minority is of."""
        return next((g for g in groups.separate if self.minority in g.names.tolist()), groups)

    def _members(self, groups: Groups, weight: Array) -> tuple[object, object, Array]:
        """Return the minority, what it is called, and which rows are of it."""
        if self.minority is None and not groups.marginal:
            k = int(np.argmin(np.bincount(groups.codes, weight, minlength=len(groups))))
            return groups.names.tolist()[k], groups.labels[k], groups.codes == k
        attribute = self._attribute(groups)
        for k, name in enumerate(attribute.names.tolist()):
            if self.minority in (name, attribute.labels[k]):
                return name, attribute.labels[k], attribute.codes == k
        if self._in_training_rows:
            return self.minority, self.minority, np.zeros(len(weight), dtype=bool)
        raise ValueError(
            f"minority={self.minority!r} is not one of the groups {groups.listed.tolist()}: pass "
            "one of them."
        )
