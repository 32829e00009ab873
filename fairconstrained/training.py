"""From what a user passes to `fit` to the problem that is solved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data
from threadpoolctl import threadpool_limits

from fairconstrained.cells import average
from fairconstrained.constraints.base import Constraint
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.groups import Groups, check_groups
from fairconstrained.losses import Loss
from fairconstrained.models import LinearModel, spread
from fairconstrained.penalties import L2, Penalty
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.problem import Part, Problem
from fairconstrained.registry import check_option
from fairconstrained.scalar import Array
from fairconstrained.solvers import Result, automatic

_NUMERIC = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
_ENFORCE = {"score": "the surrogate of the decision"}
_SMALL = 1 << 24  # below this many multiplications starting threads costs more than it gains


def check_options(estimator: Any) -> None:
    """Check the options of an estimator that nothing else looks at.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what is valid.
    """
    if estimator.enforce == "decision":
        raise ValueError(
            "enforce='decision' is not available in this version; use enforce='score', look at "
            "decision_gap_, and lower kappa until it is small enough."
        )
    check_option("enforce", estimator.enforce, _ENFORCE)
    max_iter, tol = estimator.max_iter, estimator.tol
    if max_iter is not None and not (_is_number(max_iter, Integral) and max_iter >= 1):
        raise ValueError(f"max_iter must be an integer >= 1 or None; got {max_iter!r}.")
    if not (_is_number(tol, Real) and 0.0 < tol < np.inf):
        raise ValueError(f"tol must be a number > 0; got {tol!r}.")
    for name in ("fit_intercept", "use_sensitive", "warm_start"):
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {value!r}.")
    if not isinstance(estimator.verbose, bool | Integral):
        raise ValueError(f"verbose must be an integer, 0 for silence; got {estimator.verbose!r}.")


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def penalty_of(alpha: Any) -> Penalty:
    """Return the L2 penalty of strength `alpha`, or `alpha` itself if it is a penalty.

    Raises
    ------
    ValueError
        If it is neither a number >= 0 nor a penalty.
    """
    if isinstance(alpha, Penalty):
        return alpha
    if not (_is_number(alpha, Real) and 0.0 <= alpha < np.inf):
        raise ValueError(
            f"alpha must be a number >= 0 or a penalty such as SCAD(0.02); got {alpha!r}."
        )
    return L2(float(alpha))


def domain_of(domain: Any) -> Domain:
    """Return the whole space for None, else the domain.

    Raises
    ------
    TypeError
        If it is not an instance of Domain, for instance a class.
    """
    if domain is None:
        return WholeSpace()
    if not isinstance(domain, Domain):
        raise TypeError(
            "domain must be None (the whole space) or an instance of Domain, such as L1Ball(20.0), "
            f"L2Ball(5.0) or Box(-1.0, 1.0); got {domain!r}"
            + (" (a class: add parentheses)." if isinstance(domain, type) else ".")
        )
    return domain


def threads_that_pay(X: Any) -> AbstractContextManager[Any]:
    """Return a context with one BLAS thread unless X is dense and large."""
    dense = isinstance(X, np.ndarray)
    return threadpool_limits(limits=None if dense and X.size > _SMALL else 1, user_api="blas")


@dataclass(frozen=True)
class SensitiveColumns:
    """Which columns of X hold the sensitive attributes, and which ones the model may see.

    Parameters
    ----------
    columns : list, str, int, callable or None
        Names or positions of columns, or a function of X that returns the groups.
    use_sensitive : bool
        Whether these columns are features as well.
    """

    columns: Any
    use_sensitive: bool

    def positions(self, estimator: Any) -> list[int]:
        """Return the positions of the columns.

        Raises
        ------
        ValueError
            If X has no such column; the message lists the ones it has.
        """
        if self.columns is None or callable(self.columns):
            return []
        names = list(getattr(estimator, "feature_names_in_", []))
        return [_position(column, names, estimator.n_features_in_) for column in self._wanted()]

    def _wanted(self) -> list[Any]:
        """Return the names and positions as a list."""
        one = isinstance(self.columns, str | Real)
        try:
            wanted = [self.columns] if one else list(self.columns)
        except TypeError:
            wanted = [self.columns]
        for column in wanted:
            if not isinstance(column, str) and not _is_number(column, Integral):
                raise ValueError(
                    "sensitive_columns must be names or positions of columns of X, a function of "
                    f"X, or None; found {column!r}."
                )
        return wanted

    def table(self, estimator: Any, X: Any) -> Any:
        """Return X as something that has columns: a frame as it is, else an ndarray or CSR."""
        if self.columns is None or hasattr(X, "columns"):
            return X
        return check_array(
            X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=estimator
        )

    def groups(self, estimator: Any, X: Any) -> Any:
        """Return the values of the sensitive attributes, None without columns."""
        if callable(self.columns):
            return self.columns(X)
        positions = self.positions(estimator)
        return _safe_indexing(X, positions, axis=1) if positions else None

    def kept(self, estimator: Any) -> Array:
        """Return the positions of the model's features."""
        left_out = [] if self.use_sensitive else self.positions(estimator)
        return np.setdiff1d(np.arange(estimator.n_features_in_), left_out)

    def features(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return what the model sees of X as a float ndarray or CSR.

        Columns that it may not see need not be numeric. With `reset` the estimator's
        n_features_in_ and feature_names_in_ are set, else X is compared with them.
        """
        if self.columns is None or callable(self.columns) or self.use_sensitive:
            return validate_data(estimator, X, reset=reset, **_NUMERIC)
        X = self.table(estimator, X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        kept = self.kept(estimator)
        if kept.size == 0:
            raise ValueError(
                f"sensitive_columns={self.columns!r} are all the columns of X, and with "
                "use_sensitive=False the model may not see them: no features are left."
            )
        return check_array(_safe_indexing(X, kept, axis=1), estimator=estimator, **_NUMERIC)


def _position(column: Any, names: list[Any], n_features: int) -> int:
    """Return the position of a column given by name or (perhaps negative) position."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if not isinstance(column, str) and -n_features <= column < n_features:
        return int(column) % n_features
    has = f"the columns {names}" if names else f"{n_features} columns without names"
    raise ValueError(f"sensitive_columns: X has no column {column!r}; it has {has}.")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked data: rows of weight zero are left out, labels are -1 and +1.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_model_features)
        The features that the model sees.
    y : ndarray of shape (n_rows,)
        The labels, -1 or +1.
    classes : ndarray of shape (2,)
        What the labels were called.
    groups : Groups or None
        The groups, if any were given.
    sample_weight : ndarray of shape (n_rows,)
        The weights, > 0.
    """

    X: Any
    y: Array
    classes: Array
    groups: Groups | None
    sample_weight: Array

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        columns: SensitiveColumns,
    ) -> TrainingData:
        """Check what was passed to `fit`; sets n_features_in_ and feature_names_in_.

        Raises
        ------
        ValueError
            With the argument's name, what was found and what to do.
        """
        if y is None:
            raise ValueError(
                f"{type(estimator).__name__} requires y to be passed, but the target y is None."
            )
        if sensitive_features is not None and columns.columns is not None:
            raise ValueError(
                "Groups are given twice: by sensitive_features in fit and by sensitive_columns in "
                "the constructor. Give one of them."
            )
        X = columns.table(estimator, X)
        features = columns.features(estimator, X, reset=True)
        n_rows = features.shape[0]
        y = column_or_1d(y, warn=True)
        if len(y) != n_rows:
            raise ValueError(f"y has {len(y)} rows, X has {n_rows}: give one label per row of X.")
        values, source = sensitive_features, "sensitive_features"
        if values is None:
            values, source = columns.groups(estimator, X), "sensitive_columns"
        groups = None if values is None else check_groups(values, n_rows, name=source)
        classes, labels = _binary_labels(y)
        weight = _check_sample_weight(
            sample_weight, features, dtype=np.float64, ensure_non_negative=True
        )
        counted = np.flatnonzero(weight)
        if len(counted) < len(weight):
            features, labels, weight = features[counted], labels[counted], weight[counted]
            groups = None if groups is None else groups.take(counted)
        if len(np.unique(labels)) < 2:
            raise ValueError(
                "y must have two classes; in the rows with positive weight there is one class: "
                f"{classes.tolist()[int(labels.max(initial=0) > 0)]!r}."
            )
        return cls(features, labels, classes, groups, weight)


def _binary_labels(y: Array) -> tuple[Array, Array]:
    """Return the classes and the labels -1 and +1."""
    check_classification_targets(y)
    if type_of_target(y) == "multiclass":
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(np.unique(y))} classes."
        )
    classes, positions = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have two classes; there is one class: {classes.tolist()[0]!r}.")
    return classes, 2.0 * positions - 1.0


def build_problem(
    data: TrainingData,
    constraints: list[Constraint],
    *,
    loss: Loss,
    penalty: Penalty,
    domain: Domain,
    fit_intercept: bool,
) -> Problem:
    r"""Return the problem of a linear classifier.

    Where the domain is the whole space the features are put on one scale first (see
    :func:`~fairconstrained.models.spread`): the penalty then counts coefficients per spread, and
    nothing depends on the units of the features.

    Parameters
    ----------
    data : TrainingData
        The data.
    constraints : list of Constraint
        All must hold.
    loss : Loss
        Averaged over the rows.
    penalty : Penalty
        On the coefficients; the intercept is free.
    domain : Domain
        Of the coefficients; the intercept is free.
    fit_intercept : bool
        Whether there is an intercept.
    """
    model = _linear_model(data, domain, fit_intercept)
    n = model.n_coefficients
    objective = average(loss, data.y, data.sample_weight)
    plain = Problem(
        Part(model, objective, LeadingPenalty(penalty, n)), domain=LeadingDomain(domain, n)
    )
    unconstrained = Unconstrained(plain)
    parts = [one.place(model, data, unconstrained) for one in constraints]
    parts = list(_with_variables(parts, model.n_parameters))
    return replace(plain, constraints=tuple(parts), n_variables=0)


class Unconstrained:
    """The model without constraints, solved when it is first asked for.

    Parameters
    ----------
    problem : Problem
        The problem without its constraints.
    """

    def __init__(self, problem: Problem):
        self.problem = problem.unmetered()

    @cached_property
    def result(self) -> Result:
        """The solution."""
        return automatic(self.problem).minimize(self.problem)

    @cached_property
    def scores(self) -> Array:
        """Its scores of the training rows."""
        scores = self.problem.at(self.result.w).scores_of(self.problem.objective)
        assert scores is not None
        return scores


def _with_variables(parts: list[Part], start: int) -> Iterator[Part]:
    """Yield the parts, the variables that their terms own laid out one after the other."""
    for part in parts:
        end = start + (0 if part.term is None else part.term.n_auxiliary)
        yield replace(part, auxiliary=slice(start, end)) if end > start else part
        start = end


def _linear_model(data: TrainingData, domain: Domain, fit_intercept: bool) -> LinearModel:
    """Return the model, its features centred and scaled where the domain allows it."""
    known = spread(data.X, data.sample_weight)
    shift = known.mean if domain.whole_space and fit_intercept else None
    scale = known.scale if domain.whole_space else None
    squares = known.variance if shift is not None else known.variance + known.mean**2
    if scale is not None:
        squares = squares / scale**2
    return LinearModel(
        data.X, fit_intercept=fit_intercept, shift=shift, scale=scale, mean_squares=squares
    )
