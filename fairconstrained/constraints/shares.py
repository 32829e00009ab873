"""Constraints on shares of the decisions: those selected, those changed, the minority's."""

from copy import deepcopy
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint, FreeScores
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.models.linear import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import Ratios
from fairconstrained.utils.arguments import brief, check_between
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike


class _OfAllRows(Constraint, kw_only=True):
    """A bound on means over all rows, which are one group."""

    kappa: float | None = None

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
        return measures.means(groups, weight, self._warn, what, event=None)


def _everyone(n_rows: int) -> Groups:
    return Groups.encode(np.zeros(n_rows, dtype=int))


class Coverage(_OfAllRows):
    r"""Coverage: the selection rate of all rows is near a given rate.

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
        bound = self.checked_kappa(), *measures.ALONE
        return measures.of_groups(sides, *bound, chosen={"rate": target})


class Churn(_OfAllRows):
    r"""Churn: at most a given share of the predictions differs from those of a given model.

    With the decisions :math:`d_i \in \{-1, 1\}` of that model,

    .. math:: \frac{\sum_i w_i\, \sigma(-d_i s_i)}{\sum_i w_i} \le \kappa,

    for symmetric surrogates; for others :math:`1 - \sigma(s_i)` where d is positive.

    Parameters
    ----------
    previous : classifier or None, default=None
        The given model, fitted; its `predict` gets the rows as `fit` of this estimator does. None
        takes the model without constraints: for `FairThresholds` the classifier, for boosted trees
        the same trees with leaf values that are fitted without constraints.
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

    gap_title = "share of the rows whose prediction differs from that of the given model"
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
            raise ValueError(f"previous must be a fitted classifier; got {brief(self.previous)}.")
        decided = np.asarray(self.previous.predict(self._in_memory(data.passed)))
        if data.positions is not None:
            decided = decided[data.positions]
        unknown = np.setdiff1d(decided, data.classes)
        if unknown.size:
            raise ValueError(f"Churn: previous predicts {unknown.tolist()}, which y does not have.")
        return [replace(rows, y=np.where(decided == data.classes[1], 1.0, -1.0))]

    def build_known(self, model: Model, data: TrainingData, free: FreeScores) -> CompositeFunction:
        """Return the constraint on the decisions, which are the labels of the rows."""
        if self.previous is None:
            scores = free(data, None)[0]
            scores = self._in_memory(scores if len(scores) == len(data.y) else None)
            data = replace(data, y=np.where(scores > 0.0, 1.0, -1.0))
        return super().build_known(model, data, free)

    def _in_memory(self, rows: Any) -> Any:
        if rows is None:
            raise ValueError(f"{self!r} is for rows in memory: use another constraint with dask.")
        return rows

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        share = replace(self._mean(groups, weight, "share"), groups=["decided otherwise"])
        bound = self.checked_kappa(), *measures.ALONE
        return measures.of_groups(measures.errors(y, share), *bound)


class MinorityRate(Constraint):
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
        the training rows, or the `constraint_data` of `fit`.
        Reference rows have no sample weights.
    reference_groups : array-like or None, default=None
        The groups of the reference rows, like `sensitive_features` in `fit`, or booleans that are
        True for the minority (with ``minority=True``). None takes them from the estimator's
        `sensitive_columns`.
    surrogate
        See :class:`DemographicParity`.

    References
    ----------
    IPC, section 5 (there not divided by the number of rows).

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

    kappa: ClassVar = 0.0  # type: ignore[misc]  # no tolerance: that of an estimator does not apply
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
        return measures.of_groups(rate, 0.0, (-1.0, c), text, kind=Ratios, chosen=chosen)

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
