"""Selection with scikit-learn's own tools: scorers of fairness, and a rule for refit."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from fairconstrained.data.validation import SensitiveColumns
from fairconstrained.utils.typing import Array


class FairnessScorer:
    """A scorer of a measure of fairness: what :func:`make_fairness_scorer` returns.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, *, sensitive_features=...)``.
    response_method : str or sequence of str, default="predict"
        What `y_pred` is.
    greater_is_better : bool, default=False
        Whether a large value is good; if not, the score is its negative.
    sensitive_columns : list, str, int, callable or None, default=None
        Where the groups are in X.
    requested : str, default="sensitive_features"
        What the groups are called where they are passed.
    options : mapping or None, default=None
        Further arguments of the metric.
    """

    def __init__(
        self,
        metric: Callable[..., float],
        *,
        response_method: Any = "predict",
        greater_is_better: bool = False,
        sensitive_columns: Any = None,
        requested: str = "sensitive_features",
        options: Mapping[str, Any] | None = None,
    ):
        self.metric = metric
        self.response_method = response_method
        self.greater_is_better = greater_is_better
        self.sensitive_columns = sensitive_columns
        self.requested = requested
        self.options = options

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the score of an estimator, its sign such that more is better.

        Raises
        ------
        ValueError
            If there are no groups, or they are given twice.
        """
        groups = self._groups(X, sensitive_features)
        options = dict(self.options or {})
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        scorer = make_scorer(
            self.metric,
            response_method=self.response_method,
            greater_is_better=self.greater_is_better,
            sensitive_features=groups,
            **options,
        )
        return float(scorer(estimator, X, y_true))

    def _groups(self, X: Any, passed: Any) -> Any:
        """Return the groups of the rows."""
        if self.sensitive_columns is None:
            if passed is None:
                raise ValueError(
                    f"the scorer of {_name(self.metric)} has no groups: enable metadata routing "
                    "(sklearn.set_config(enable_metadata_routing=True)) and pass "
                    f"{self.requested} to the search, or name columns of X in "
                    "make_fairness_scorer(..., sensitive_columns=...)."
                )
            return passed
        if passed is not None:
            raise ValueError(
                "groups are given twice: by sensitive_features and by the scorer's "
                "sensitive_columns. Give one of them."
            )
        columns = SensitiveColumns(self.sensitive_columns, use_sensitive=True)
        X = columns.table(None, X)
        shape = SimpleNamespace(n_features_in_=X.shape[1])
        if hasattr(X, "columns"):
            shape.feature_names_in_ = np.asarray(X.columns, dtype=object)
        groups = columns.groups(shape, X)
        many = getattr(groups, "ndim", 1) == 2 and groups.shape[1] > 1
        return groups if many or getattr(groups, "ndim", 1) == 1 else _first_column(groups)

    def get_metadata_routing(self) -> Any:
        """Return what the scorer asks for by scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        if self.sensitive_columns is None:
            alias = True if self.requested == "sensitive_features" else self.requested
            request.score.add_request(param="sensitive_features", alias=alias)
        if self._accept_sample_weight():
            request.score.add_request(param="sample_weight", alias=None)
        return get_routing_for_object(request)

    def _accept_sample_weight(self) -> bool:
        return "sample_weight" in inspect.signature(self.metric).parameters

    def __repr__(self) -> str:
        """Return how the scorer was made."""
        where = (
            ""
            if self.sensitive_columns is None
            else (f", sensitive_columns={self.sensitive_columns!r}")
        )
        return f"make_fairness_scorer({_name(self.metric)}{where})"


def _name(metric: Any) -> str:
    return getattr(metric, "__name__", repr(metric))


def _first_column(table: Any) -> Any:
    """Return the only column of a frame, an array or a sparse matrix."""
    if hasattr(table, "iloc"):
        return table.iloc[:, 0]
    dense = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
    return dense[:, 0]


def make_fairness_scorer(
    metric: Callable[..., float],
    *,
    response_method: Any = "predict",
    greater_is_better: bool = False,
    sensitive_columns: Any = None,
    requested: str = "sensitive_features",
    **options: Any,
) -> FairnessScorer:
    """Make a scorer for GridSearchCV and cross_validate of a measure of fairness.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, *, sensitive_features=...)``: fairlearn's, the ones of
        `fairconstrained.metrics`, or your own.
    response_method : {"predict", "decision_function", "predict_proba"} or tuple, default="predict"
        What `y_pred` is: decisions, or scores, or the first of several that the estimator has.
    greater_is_better : bool, default=False
        Whether a large value is good. Gaps are not: the score is then their negative.
    sensitive_columns : list of str or int, str, int, callable or None, default=None
        The columns of X that hold the groups, or a function of X that returns them. None asks for
        `sensitive_features` by metadata routing, which must be enabled.
    requested : str, default="sensitive_features"
        What the groups are called where they are passed, if that is something else.
    **options
        Further arguments of the metric, such as ``method="to_overall"``.

    Returns
    -------
    scorer : FairnessScorer
        Called as ``scorer(estimator, X, y)``.

    Raises
    ------
    TypeError
        If the metric does not take `sensitive_features`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained import make_fairness_scorer
    >>> def rate_gap(y_true, y_pred, *, sensitive_features):
    ...     rates = [y_pred[sensitive_features == g].mean() for g in np.unique(sensitive_features)]
    ...     return max(rates) - min(rates)
    >>> X, y, groups = make_biased_classification(2000, gap=0.3, random_state=0)
    >>> with_groups = np.column_stack([X, groups])
    >>> clf = FairLogisticClassifier(kappa=0.02, sensitive_columns=[-1]).fit(with_groups, y)
    >>> scorer = make_fairness_scorer(rate_gap, sensitive_columns=[-1])
    >>> bool(-0.2 < scorer(clf, with_groups, y) < 0.0)
    True
    """
    parameters = inspect.signature(metric).parameters.values()
    takes = {one.name for one in parameters}
    if "sensitive_features" not in takes and all(p.kind is not p.VAR_KEYWORD for p in parameters):
        raise TypeError(
            f"metric must take sensitive_features, as metric(y_true, y_pred, *, sensitive_features)"
            f"; {_name(metric)} takes {sorted(takes)}."
        )
    return FairnessScorer(
        metric,
        response_method=response_method,
        greater_is_better=greater_is_better,
        sensitive_columns=sensitive_columns,
        requested=requested,
        options=options,
    )


def within(gaps: Array, limit: float, worth: Array, what: str) -> int:
    """Return the position of the greatest worth among gaps within the limit, else of the least gap.

    Parameters
    ----------
    gaps : ndarray of shape (n_candidates,)
        Smaller is better; nan never qualifies.
    limit : float
        The largest gap allowed.
    worth : ndarray of shape (n_candidates,)
        Larger is better.
    what : str
        What the gaps are, for the message.

    Raises
    ------
    ValueError
        If all gaps are nan.

    Warns
    -----
    UserWarning
        If no gap is within the limit; the fairest candidate is taken.
    """
    if np.all(np.isnan(gaps)):
        raise ValueError(f"{what} is nan for all candidates: there is nothing to choose by.")
    allowed = np.flatnonzero(gaps <= limit)
    if allowed.size:
        order = np.lexsort((gaps[allowed], -np.nan_to_num(worth[allowed], nan=-np.inf)))
        return int(allowed[order[0]])
    best = int(np.nanargmin(gaps))
    warnings.warn(
        f"no candidate has a mean {what} of at most {limit:g}; the fairest one is taken, "
        f"with {gaps[best]:.3g}.",
        UserWarning,
        stacklevel=3,
    )
    return best


class BestScoreWithin:
    """A rule for GridSearchCV's `refit`: what :func:`best_score_within` returns."""

    def __init__(self, gap: str, limit: float, score: str):
        self.gap = gap
        self.limit = limit
        self.score = score

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the best candidate."""
        gaps = np.abs(self._column(cv_results, self.gap))  # scorers of gaps are negated
        worth = self._column(cv_results, self.score)
        return within(gaps, self.limit, worth, self.gap)

    @staticmethod
    def _column(cv_results: Mapping[str, Any], name: str) -> Array:
        key = f"mean_test_{name}"
        if key not in cv_results:
            has = sorted(k.removeprefix("mean_test_") for k in cv_results if k[:10] == "mean_test_")
            raise ValueError(f"cv_results_ has no score {name!r}; it has {has}: see scoring=.")
        return np.asarray(cv_results[key], dtype=float)

    def __repr__(self) -> str:
        """Return how the rule was made."""
        return f"best_score_within({self.gap!r}, {self.limit!r}, score={self.score!r})"


def best_score_within(gap: str, limit: float, *, score: str = "accuracy") -> BestScoreWithin:
    """Return a rule for ``GridSearchCV(refit=...)``: the best score whose gap is small enough.

    Parameters
    ----------
    gap : str
        The name in `scoring` of the measure that is bounded, by its absolute value: it does not
        matter whether the scorer negates it.
    limit : float
        The largest mean over the folds that is allowed, >= 0.
    score : str, default="accuracy"
        The name in `scoring` of what is to be best.

    Returns
    -------
    rule : callable
        From `cv_results_` to the position of the candidate. Where no candidate is within the limit
        it warns and takes the fairest.

    Raises
    ------
    ValueError
        If the limit is not a number >= 0.

    Examples
    --------
    >>> from fairconstrained import best_score_within
    >>> rule = best_score_within("gap", 0.05)
    >>> rule({"mean_test_accuracy": [0.9, 0.8, 0.7], "mean_test_gap": [-0.2, -0.04, -0.01]})
    1
    """
    if not (isinstance(limit, int | float) and limit >= 0.0):
        raise ValueError(f"limit must be a number >= 0; got {limit!r}.")
    return BestScoreWithin(gap, limit, score)
