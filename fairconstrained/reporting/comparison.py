"""Several models on the same rows, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.collected import Collected, collect
from fairconstrained.inspection.cost import cost_of, overall
from fairconstrained.metrics.intervals import largest_gap, weighted_share
from fairconstrained.utils.typing import ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.validation import check_confidence

_GAPS = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
_MEASURES = {"AUC": "auc", "Brier score": "brier", "selection rate": "selection_rate"}


def compare(
    models: Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    reference: str | None = None,
    groups_missing: str | None = None,
    pos_label: object = None,
) -> pd.DataFrame:
    r"""Return accuracy, fairness and cost of several models on the same rows, a row for each.

    Parameters
    ----------
    models : mapping of str to classifier
        Fitted classifiers by name, of any library, pipelines or searches.
    X, sample_weight, groups_missing
        See :func:`fairness_report`.
    y : array-like of shape (n_samples,)
        The labels.
    sensitive_features : array-like or DataFrame or None, default=None
        The groups, (n_samples,) or (n_samples, n_columns); None reads them from the
        `sensitive_columns` of the last model that has any.
    confidence : float, default=0.95
        The confidence level of each interval.
    reference : str or None, default=None
        The name of the model that `cost` is relative to; None takes the first one.
    pos_label : label or None, default=None
        The favourable class; None takes that of the models. Required with more than two classes:
        the measures are those of this class against all others.

    Returns
    -------
    table : DataFrame
        The columns: `accuracy` (Clopper and Pearson's interval), `auc` of `decision_function` (with
        thresholds by group: of the scores minus the thresholds) or else of the probabilities,
        `brier` (both nan if the model has no scores or probabilities), `selection_rate`, the
        largest differences between two groups `selection_rate_gap`, `true_positive_rate_gap`,
        `false_positive_rate_gap` and `accuracy_gap` (Newcombe's intervals with a Bonferroni
        correction for the pairs of groups), and `cost`, the accuracy of the reference minus that of
        the model (interval of Agresti and Min for the same rows). Intervals are in columns with the
        endings ``_low`` and ``_high``. With marginal groups (`combine`) a gap is the largest one of
        all attributes.

    Raises
    ------
    ValueError
        If a model is not a classifier or has more than two classes without `pos_label`,
        `reference` is not among the models, or no groups are known.

    See Also
    --------
    fairness_report : The same with rates by group, verdicts and pictures.

    References
    ----------
    Clopper, Pearson (1934); Newcombe (1998), method 10; Agresti, Min (2005).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairconstrained import FairThresholds, compare, make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, gap=0.3, random_state=0)
    >>> before = LogisticRegression().fit(X[:2000], y[:2000])
    >>> after = FairThresholds(before, kappa=0.05, per_group=True, cv="prefit")
    >>> after = after.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    >>> table = compare({"before": before, "after": after}, X[2000:], y[2000:], groups[2000:])
    >>> table[["accuracy", "auc", "selection_rate_gap", "cost"]].round(2)
            accuracy   auc  selection_rate_gap  cost
    model
    before      0.79  0.88                0.30  0.00
    after       0.77  0.83                0.03  0.02
    """
    confidence = check_confidence(confidence)
    if not isinstance(models, Mapping):
        raise ValueError(
            "models must be a mapping from names to fitted classifiers, such as "
            f"{{'before': a, 'after': b}}; got {models!r}."
        )
    if y is None:
        raise ValueError("y is None: a comparison measures accuracy and needs the labels.")
    names = [str(name) for name in models]
    first = names[0] if reference is None and names else reference
    if names and first not in names:
        raise ValueError(f"reference={reference!r} is not the name of a model: {names}.")
    every = collect(models, X, y, sensitive_features, sample_weight, groups_missing=groups_missing)
    collected = every.against_rest(pos_label)
    rows = {name: _row(collected, name, str(first), confidence) for name in names}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def _row(collected: Collected, name: str, first: str, confidence: float) -> dict[str, float]:
    """Return the measures of a model."""
    measured = overall(collected, collected.outputs[name])
    right = collected.right(collected.outputs[name])
    row = _with_limits("accuracy", weighted_share(right, collected.weight, confidence))
    row |= {column: measured.get(key, np.nan) for key, column in _MEASURES.items()}
    for rate in _GAPS:
        cells = [one.cells(rate) for one in collected.predictions(name)]
        row |= _with_limits(f"{rate}_gap", largest_gap(cells, confidence))
    if name == first:
        return row | _with_limits("cost", (0.0, 0.0, 0.0))
    cost = cost_of(collected, first, name, confidence)
    return row | _with_limits("cost", (0.0 - cost.accuracy, -cost.high, -cost.low))


def _with_limits(column: str, interval: Sequence[Any]) -> dict[str, float]:
    """Return the columns of a value and its interval."""
    endings = ("", "_low", "_high")
    return {f"{column}{end}": float(x) for end, x in zip(endings, interval, strict=True)}
