"""Scorers of fairness for scikit-learn's searches and cross-validation."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import _num_samples

from fairconstrained.data.groups import check_groups
from fairconstrained.data.inputs import check_labels, check_same_rows, check_weight, known_labels
from fairconstrained.data.sensitive_columns import Columns, SensitiveColumns
from fairconstrained.inspection.outputs import Outputs, check_predicts, output_of
from fairconstrained.metrics.inputs import GroupedRows
from fairconstrained.utils.arrays import ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.meta_estimators import classes_of, favourable_label, final_estimator
from fairconstrained.utils.parameter_constraints import Text, checked

# How names of metrics end of which large values are good, and of which small ones are.
_LARGE_IS_GOOD = "_ndcg", "_ratio", "_score_group_min"
_SMALL_IS_GOOD = "_difference", "_error", "_loss_group_max", "_error_group_max"
_OURS = "fairconstrained.metrics"
_METHODS = {"predict", "predict_proba", "predict_log_proba", "decision_function"}


@dataclass(eq=False, repr=False)
class FairnessScorer:
    """A scorer of a measure of fairness: what :func:`make_fairness_scorer` returns.

    Parameters
    ----------
    metric, response_method, greater_is_better, sensitive_columns, requested, options
        See :func:`make_fairness_scorer`.
    """

    metric: Callable[..., float]
    response_method: str | Sequence[str]
    greater_is_better: bool
    sensitive_columns: Columns
    requested: str
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Ask for what the metric takes; ``**options`` stand for groups and weights."""
        parameters = inspect.signature(self.metric).parameters
        self.taken = set(parameters)
        if "query" not in parameters:
            self.taken.add("sensitive_features")
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            self.taken.add("sample_weight")
        asked = [name for name in ("query", "sample_weight") if name in self.taken]
        self.requests: dict[str, Any] = dict.fromkeys(asked, True)
        if self.sensitive_columns is None and "sensitive_features" in self.taken:
            named = self.requested != "sensitive_features"
            self.requests["sensitive_features"] = self.requested if named else True

    def __call__(
        self,
        estimator: Classifier,
        X: MatrixLike,
        y_true: ArrayLike,
        *,
        sensitive_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        query: ArrayLike | None = None,
    ) -> float:
        """Return the score of an estimator, its sign such that more is better.

        The metric sees labels 0 and 1 where the estimator has two classes, whatever they are
        called: 1 stands for the favourable one, the second of `classes_` unless `pos_label` says
        otherwise. Scores are those of that class.

        Parameters
        ----------
        estimator : classifier
            The fitted classifier.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y_true : array-like of shape (n_samples,)
            Their labels.
        sensitive_features : array-like, DataFrame or None, default=None
            Their groups; None with the scorer's own `sensitive_columns`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.
        query : array-like of shape (n_samples,) or None, default=None
            The query of each row, for metrics of rankers.

        Raises
        ------
        ValueError
            If there are no groups, they are given twice, labels or predictions are not among the
            estimator's classes, or queries are missing or of no use.
        TypeError
            If the metric returns no number.
        """
        check_same_rows(
            X=X, y=y_true, sensitive_features=sensitive_features,
            sample_weight=sample_weight, query=query
        )  # fmt: skip
        options = dict(self.options)
        if "sensitive_features" in self.taken:
            options["sensitive_features"] = self._groups(X, sensitive_features)
        if "query" in self.taken:
            if query is None:
                raise ValueError(self._missing("queries", "query"))
            options["query"] = query
        if _is_ranker(estimator) and _library(self.metric) == "fairlearn":
            raise ValueError(
                f"{_name(self.metric)} compares predicted labels, and {type(estimator).__name__} "
                "predicts scores: use a metric of scores, such as query_parity_difference."
            )
        if sample_weight is not None:
            options["sample_weight"] = check_weight("sample_weight", sample_weight, _num_samples(X))
        value = self._measured(estimator, X, y_true, options)
        value = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
        if not isinstance(value, Real):
            raise TypeError(
                f"{_name(self.metric)} returned {value!r}: the metric of a scorer must return one "
                "number."
            )
        return float(value) if self.greater_is_better else -float(value)

    def _measured(self, estimator: Classifier, X: Any, y_true: ArrayLike, options: Any) -> object:
        """Return the value of the metric, of labels 0 and 1 where there are two classes."""
        check_predicts(estimator)
        method, classes = self._method(estimator), classes_of(estimator)
        groups = options.get("sensitive_features")
        if classes is None:  # of a model without them, two labels of the rows are
            classes = np.unique(check_labels("y", y_true, _num_samples(X))).tolist()
        favourable = options.get("pos_label")
        if len(classes) == 2:
            favourable = favourable_label(estimator, classes)
        elif "pos_label" in self.taken or favourable not in classes:
            if len(classes) > 2 and 1 not in classes and _counts_ones(self.metric):
                raise ValueError(
                    f"{_name(self.metric)} is about the rate of the label 1, and the classes are "
                    f"{classes}: pass pos_label to make_fairness_scorer, the class that is to be "
                    "compared with all others."
                )
            return self._value(estimator, y_true, output_of(estimator, method, X, groups), options)
        labels = check_labels("y_true", y_true, np.size(y_true), rows="y_true")
        labels = (known_labels("y_true", labels, classes) == favourable).astype(int)
        positive = options.get("pos_label")
        named = {name: options[name] for name in ("pos_label", "priority") if name in options}
        options |= {k: int(label == favourable) for k, label in named.items() if label in classes}
        if "pos_label" not in self.taken:  # it was for the scores
            options.pop("pos_label", None)
        if _is_ranker(estimator):
            return self._value(estimator, labels, output_of(estimator, method, X, groups), options)
        output = Outputs.of(estimator, X, groups, classes=classes, methods=[method])
        output = output.of_class(favourable)
        if method == "predict":
            return self._value(estimator, labels, output.decided.astype(int), options)
        output = output.of_class(positive) if positive in classes else output
        return self._value(estimator, labels, output.response(method)[0], options)

    def _value(self, estimator: Classifier, y_true: Any, y_pred: Any, options: Any) -> Any:
        """Return the value of the metric; fairlearn knows no strata and no probabilities.

        Missing groups are treated as the estimator's `groups_missing` says.
        """
        if (groups := options.get("sensitive_features")) is None or not _library(self.metric):
            return self.metric(y_true, y_pred, **options)
        labels = check_labels("y_true", y_true, _num_samples(y_true), rows="y_true")
        missing = getattr(final_estimator(estimator), "groups_missing", "raise")
        checks: Any = {"missing": missing, "probable": "query" not in options, "rows": "y_true"}
        groups = check_groups(groups, len(labels), compared=True, **checks)
        if _library(self.metric) == _OURS:
            return self.metric(y_true, y_pred, **options | {"sensitive_features": groups})
        weight = options.get("sample_weight", np.ones(len(labels)))
        some, groups, weight = groups.surveyed(weight)
        rows, values = GroupedRows(labels[some], np.asarray(y_pred)[some], groups, weight), []
        for part in rows.take(np.flatnonzero(groups.known & (weight > 0.0))).strata:
            names = np.array(part.groups.labels, dtype=str)
            given: dict[str, Any] = {"sensitive_features": names[part.groups.codes]}
            if "sample_weight" in options or groups.original is not None:
                given["sample_weight"] = part.total_weight
            values.append(self.metric(part.labels, part.values, **options | given))
        return min(values) if self.greater_is_better else max(values)

    def _method(self, estimator: Classifier) -> str:
        given = self.response_method
        methods = [given] if isinstance(given, str) else given
        for method in methods:
            if hasattr(estimator, method):
                return method
        raise ValueError(
            f"{type(estimator).__name__} lacks the method {' or '.join(methods)}, whose output "
            f"{_name(self.metric)} measures."
        )

    def _missing(self, what: str, name: str, otherwise: str = "") -> str:
        return (
            f"the scorer of {_name(self.metric)} has no {what}: enable metadata routing (sklearn."
            f"set_config(enable_metadata_routing=True)) and pass {name} to the search{otherwise}."
        )

    def _groups(self, X: Any, passed: Any) -> Any:
        if self.sensitive_columns is None:
            if passed is None:
                by_name = "name columns of X in make_fairness_scorer(..., sensitive_columns=...)"
                raise ValueError(self._missing("groups", self.requested, f", or {by_name}"))
            return passed
        if passed is not None:
            raise ValueError(
                "groups are given twice: by sensitive_features and by the scorer's "
                "sensitive_columns. Give one of them."
            )
        shape = SimpleNamespace(sensitive_columns=self.sensitive_columns)
        columns = SensitiveColumns(shape)
        X = columns.table(X)
        shape.n_features_in_ = X.shape[1]
        if hasattr(X, "columns"):
            shape.feature_names_in_ = np.asarray(X.columns, dtype=object)
        groups = columns.groups(X)
        if isinstance(groups, pd.DataFrame):  # fairlearn takes no other names than strings
            groups = groups.rename(columns=str)
        if getattr(groups, "ndim", 1) == 1 or groups.shape[1] > 1:
            return groups
        return _safe_indexing(getattr(groups, "toarray", lambda: groups)(), 0, axis=1)

    def get_metadata_routing(self) -> Any:
        """Return what the scorer asks for by scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        for name, alias in self.requests.items():
            request.score.add_request(param=name, alias=alias)
        return get_routing_for_object(request)

    def set_score_request(self, **requests: bool | str | None) -> "FairnessScorer":
        """Set what the scorer asks for by scikit-learn's metadata routing.

        Parameters
        ----------
        **requests : bool, str or None
            For `sensitive_features`, `sample_weight` and `query`: True asks for it, as by default
            where the metric takes it; a string asks for it under that name; False ignores what is
            passed; with None it is an error to pass it. What is not named stays as it is.

        Returns
        -------
        self : FairnessScorer

        Raises
        ------
        ValueError
            If the scorer cannot use what it should ask for.
        """
        for name in (name for name, asked in requests.items() if asked):
            if name not in self.requests:
                why, columns = f"{_name(self.metric)} takes no {name}", self.sensitive_columns
                if name == "sensitive_features" and columns is not None:
                    why = f"the scorer has groups of its own, sensitive_columns={columns!r}"
                raise ValueError(f"{why}: do not request {name}.")
        self.requests |= {name: asked for name, asked in requests.items() if name in self.requests}
        return self

    def __repr__(self) -> str:
        """Return how the scorer was made."""
        columns = self.sensitive_columns
        where = "" if columns is None else f", sensitive_columns={columns!r}"
        return f"make_fairness_scorer({_name(self.metric)}{where})"


def _is_ranker(estimator: object) -> bool:
    return bool(getattr(final_estimator(estimator), "needs_queries", False))


def _library(metric: Callable[..., float]) -> str:
    module = getattr(_inner(metric), "__module__", None) or ""
    return next((name for name in ("fairlearn", _OURS) if module.startswith(f"{name}.")), "")


def _counts_ones(metric: Callable[..., float]) -> bool:
    """Return whether a metric is a rate of the label 1, so that other labels give a gap of 0."""
    rates = ("demographic_parity_", "selection_rate_")
    return _library(metric) == "fairlearn" and _name(metric).startswith(rates)


def _greater_is_better(metric: Callable[..., float]) -> bool:
    """Return whether a large value of a metric is good, by its name."""
    name = _name(metric)
    if _library(metric) and name.endswith(_LARGE_IS_GOOD + _SMALL_IS_GOOD):
        return name.endswith(_LARGE_IS_GOOD)
    raise ValueError(
        f"greater_is_better must be given for {name}: pass False if small values are good (a gap), "
        "True if large ones are (a ratio). Only the metrics of fairlearn and of "
        "fairconstrained.metrics show it by their names."
    )


def _name(metric: Any) -> str:
    metric = _inner(metric)
    return getattr(metric, "__name__", repr(metric))


def _inner(metric: Any) -> Any:
    return _inner(metric.func) if isinstance(metric, partial) else metric


@checked
def make_fairness_scorer(
    metric: Callable[..., float],
    *,
    response_method: str | Sequence[str] = "predict",
    greater_is_better: bool | None = None,
    sensitive_columns: Columns = None,
    requested: Text = "sensitive_features",
    **options: Any,
) -> FairnessScorer:
    """Make a scorer from a fairness metric, for GridSearchCV and cross_validate.

    Parameters
    ----------
    metric : callable
        A function ``metric(y_true, y_pred, *, sensitive_features=...)``: a metric of fairlearn, of
        `fairconstrained.metrics`, or your own. A metric of rankers takes `query` as well, or in its
        place; the scorer then asks for `query` by metadata routing. If the estimator has two
        classes, the metric is called with labels 0 and 1, where 1 is the favourable label (see
        `pos_label` of the classifiers). An option `pos_label` or `priority` that names a class is
        converted as well. With several classes, a metric without `pos_label` gets labels 0 and 1
        if this option names a class, which is 1; else it gets the labels as they are.
    response_method : {"predict", "decision_function", "predict_proba"} or tuple, default="predict"
        The method that returns `y_pred`; of several, the first one that the estimator has.
    greater_is_better : bool or None, default=None
        Whether large values are good; if not, the score is the negative of the metric. None infers
        it for the metrics of fairlearn and of `fairconstrained.metrics`: differences and errors
        should be small, ratios large. For other functions it must be given.
    sensitive_columns : list of str or int, str, int, callable or None, default=None
        The columns of X that hold the groups, or a function of X that returns them. None asks for
        `sensitive_features` by metadata routing, which must be enabled. With metrics of fairlearn
        the worst value of all strata is taken (:func:`with_strata`), and rows count in each group
        by its probability (:func:`GroupProbabilities`). A model that needs the groups to predict,
        such as `FairThresholds` with ``per_group=True``, gets them as well.
    requested : str, default="sensitive_features"
        The name of the metadata that holds the groups.
    **options
        Additional arguments of the metric, such as ``method="to_overall"``.

    Returns
    -------
    scorer : FairnessScorer
        Called as ``scorer(estimator, X, y)``.

    Raises
    ------
    TypeError
        If the metric takes neither `sensitive_features` nor `query`.
    ValueError
        If `greater_is_better` is None and the metric is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained import make_fairness_scorer
    >>> def rate_gap(y_true, y_pred, *, sensitive_features):
    ...     rates = [y_pred[sensitive_features == g].mean() for g in np.unique(sensitive_features)]
    ...     return max(rates) - min(rates)
    >>> X, y, groups = make_biased_classification(2000, gap=0.1, random_state=0)
    >>> with_groups = np.column_stack([X, groups])
    >>> clf = FairLogisticClassifier(kappa=0.02, sensitive_columns=[-1]).fit(with_groups, y)
    >>> scorer = make_fairness_scorer(rate_gap, greater_is_better=False, sensitive_columns=[-1])
    >>> bool(-0.2 < scorer(clf, with_groups, y) < 0.0)
    True
    """
    parameters = inspect.signature(metric).parameters
    taken = {"sensitive_features", "query"} & set(parameters)
    if not taken and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        raise TypeError(
            "metric must take sensitive_features, as metric(y_true, y_pred, *, sensitive_features)"
            f", or query; {_name(metric)} takes {sorted(parameters)}."
        )
    methods = [response_method] if isinstance(response_method, str) else response_method
    if not (isinstance(methods, Sequence) and methods and set(map(str, methods)) <= _METHODS):
        raise ValueError(
            f"response_method must be one of {sorted(_METHODS)}, or a sequence of them; got "
            f"{response_method!r}."
        )
    better = _greater_is_better(metric) if greater_is_better is None else bool(greater_is_better)
    return FairnessScorer(metric, response_method, better, sensitive_columns, requested, options)
