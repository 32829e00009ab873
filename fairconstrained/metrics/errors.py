"""Error rates by class, the quantities of Neyman-Pearson classification."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairconstrained.metrics.inputs import check_rows
from fairconstrained.utils.typing import ArrayLike, MatrixLike


def class_error_rates(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> pd.Series | pd.DataFrame:
    r"""Return the error rate of each class, over all rows or by group.

    :math:`e_k = \Pr(\hat y \ne k \mid y = k)`. Neyman-Pearson problems bound these rates.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels. There may be any number of classes.
    y_pred : array-like of shape (n_samples,)
        The predicted labels.
    sensitive_features : array-like or DataFrame or None, default=None
        The groups; with None the rates are over all rows.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.

    Returns
    -------
    rates : Series or DataFrame
        Indexed by class. With groups, a DataFrame with a column for each group; nan where a group
        has no rows of a class.

    References
    ----------
    IPC, section 1.1.

    Examples
    --------
    >>> from fairconstrained.metrics import class_error_rates
    >>> class_error_rates([0, 0, 1, 2], [0, 1, 1, 0]).to_dict()
    {0: 0.5, 1: 0.0, 2: 1.0}
    """
    labels, predicted, groups, weight = check_rows(
        y_true, y_pred, sensitive_features, sample_weight, optional="sensitive_features"
    )
    classes, codes = np.unique(labels, return_inverse=True)
    cell, n_cells = codes * len(groups) + groups.codes, len(classes) * len(groups)
    wrong = np.bincount(cell, weight * (labels != predicted), minlength=n_cells)
    total = np.bincount(cell, weight, minlength=n_cells)
    rates = np.divide(wrong, total, out=np.full(n_cells, np.nan), where=total > 0)
    table = pd.DataFrame(
        rates.reshape(len(classes), -1),
        index=pd.Index(classes, name="class"),
        columns=pd.Index(groups.labels, name="group", tupleize_cols=False),
    )
    return table.iloc[:, 0].rename("error") if sensitive_features is None else table


def neyman_pearson_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    priority: object = None,
    sensitive_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the largest error rate of all classes except the priority class.

    :math:`\max_{k \ne \text{priority}} \Pr(\hat y \ne k \mid y = k)`, with groups also the maximum
    over the groups. A Neyman-Pearson classifier bounds this quantity and minimizes the error of the
    priority class. Without groups, the metric can be passed to
    :class:`fairlearn.metrics.MetricFrame`.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight
        See :func:`class_error_rates`.
    priority : label or None, default=None
        The class that is left out; None includes all classes.

    Returns
    -------
    error : float
        In [0, 1]; nan if there are no rows of other classes.

    References
    ----------
    IPC, section 1.1.

    Examples
    --------
    >>> from fairconstrained.metrics import neyman_pearson_error
    >>> neyman_pearson_error([0, 0, 1, 2], [0, 1, 1, 0], priority=2)
    0.5
    """
    rates = class_error_rates(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    _check_label("priority", priority, y_true)
    if priority is not None:
        rates = rates.drop(index=priority, errors="ignore")
    values = rates.to_numpy(dtype=float)
    return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


def _check_label(argument: str, label: object, y_true: ArrayLike) -> None:
    """Raise if a label could not be one of `y_true`'s, though some rows may not have it."""
    text = isinstance(np.ravel(np.asarray(y_true))[:1].tolist()[0], str)
    if label is not None and (not np.isscalar(label) or isinstance(label, str | bytes) != text):
        kind = "a string" if text else "a number"
        raise ValueError(
            f"{argument} must be one of the labels of y_true, {kind}, or None; got {label!r}."
        )
