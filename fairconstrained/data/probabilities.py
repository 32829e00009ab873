"""Groups that are known only in probability."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from fairconstrained.data.attributes import GUESSED, PROBABILITIES, check_probabilities
from fairconstrained.data.groups import Groups
from fairconstrained.data.inputs import check_held, check_titles
from fairconstrained.exceptions import InputWarning, warn
from fairconstrained.utils.arguments import as_frame
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike

_NO_BETTER = 0.01  # of the accuracy by which the likeliest group is guessed


def GroupProbabilities(
    P: MatrixLike,
    columns: Any = None,
    *,
    known: ArrayLike | None = None,
    given: MatrixLike | None = None,
) -> pd.DataFrame:
    r"""Return probabilities of groups as a frame that can be passed wherever groups are.

    A row counts in each group with its probability: with weights w and probabilities p, the rate of
    group k is :math:`\sum_i w_i p_{ik} d_i / \sum_i w_i p_{ik}` for decisions d. It is the rate of
    the true groups if, among rows of equal probabilities, the true group does not depend on the
    decision.

    Parameters
    ----------
    P : array-like or DataFrame of shape (n_samples, n_groups)
        The probabilities, >= 0; those of a row sum to 1.
    columns : sequence of str or None, default=None
        The names of the groups; None takes the columns of a DataFrame.
    known : array-like of shape (n_samples,) or None, default=None
        The true groups, missing (None or nan) where they are not known. The probabilities of all
        other rows are then corrected: a logistic regression of the true groups on the logarithms of
        the probabilities, and on `given`, is fitted to the rows of known group. A group without a
        known row then has probability 0: constraints do not restrict it, and a warning is issued.
    given : array-like of shape (n_samples, n_columns) or None, default=None
        With `known`: columns that the error of the probabilities may depend on, such as the
        features and the labels. For decisions that depend on these columns alone, rates are then
        those of the true groups, as far as the regression is right: given these columns, the
        corrected error and the decision have no covariance.

    Returns
    -------
    probabilities : DataFrame of shape (n_samples, n_groups)
        A column for each group. With `known` as many columns follow: for the rows of known group,
        probabilities that do not use this group. With them the rates in metrics and reports are
        right on average, if the known rows are a random sample, and their intervals cover the
        error of the probabilities.

    Raises
    ------
    ValueError
        If the values are not probabilities, a known group is not among the columns, or `given` has
        another number of rows, or values that are not finite numbers.

    Warns
    -----
    InputWarning
        If the likeliest group is almost always the largest group: a bound then costs accuracy and
        hardly changes the true gap.

    See Also
    --------
    with_strata : Groups and strata.

    References
    ----------
    J. Chen, N. Kallus, X. Mao, G. Svacha, M. Udell, "Fairness under unawareness: assessing
    disparity when protected class is unobserved" (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained import GroupProbabilities
    >>> from fairconstrained.metrics import group_rates
    >>> groups = GroupProbabilities([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], ["a", "b"])
    >>> rates = group_rates([1, 0, 1], [1, 0, 1], sensitive_features=groups)
    >>> rates["selection_rate"].round(3).to_dict()
    {'a': 0.875, 'b': 0.429, 'all rows': 0.667}
    """
    P = as_frame(P)
    check_held("P", P)
    names = getattr(P, "columns", None) if columns is None else columns
    values = check_array(P, dtype=float, ensure_all_finite=False, input_name="P")
    if names is None or len(names) != values.shape[1] or len(names) < 2:
        raise ValueError(
            "GroupProbabilities needs P of shape (n_samples, n_groups) with at least two groups, "
            f"and as many names in columns; got the shape {values.shape} and columns={columns!r}."
        )
    titles = list(map(str, names))
    check_titles(titles, "P" if columns is None else "columns")
    check_probabilities(values, "P")
    if known is not None:
        values, guesses = _corrected(values, titles, known, given)
    elif given is not None:
        raise ValueError("given is used with known groups only: pass known, or leave given out.")
    guessed, largest = values.max(axis=1).mean(), values.mean(axis=0).max()
    if guessed < largest + _NO_BETTER:
        warn(
            f"the probabilities guess the group of {guessed:.3f} of the rows, no better than the "
            f"largest group ({largest:.3f}): bounds on them cost accuracy and say little about the "
            "true groups.",
            InputWarning,
        )
    index = P.index if isinstance(P, pd.DataFrame) else None
    if known is not None:
        values = np.column_stack([values, guesses])
        titles = [*titles, *map(GUESSED.format, titles)]
    return pd.DataFrame(values, index=index, columns=pd.Index(titles, name=PROBABILITIES))


def _corrected(
    P: Array, names: list[str], known: ArrayLike, given: MatrixLike | None
) -> tuple[Array, Array]:
    """Return the probabilities of the true groups, known ones as they are, and their guesses.

    The guesses of rows of known group are those of regressions that have not seen the row.
    """
    groups = Groups.encode(known, name="known", missing="ignore_in_constraint")
    inside = groups.known
    places = pd.Index(names).get_indexer(pd.Index(list(map(str, groups.labels))))
    codes = places[groups.codes[inside]]
    counts = np.bincount(groups.codes[inside])
    if len(inside) != len(P) or np.any(codes < 0) or len(counts) < 2 or counts.min() < 2:
        raise ValueError(
            f"known must have one group per row of P, of the groups {names}, or None where it is "
            "not known; at least two groups, and two rows of each, must be known; got "
            f"{len(inside)} rows, known {dict(zip(groups.labels, counts.tolist(), strict=False))}."
        )
    logs = np.log(np.clip(P, 1e-6, None))
    inputs = logs if given is None else np.column_stack([logs, _numbers(given, len(P))])
    cv, grid = min(5, int(counts.min())), {"C": np.geomspace(1e-4, 1e2, 7)}
    search = GridSearchCV(LogisticRegression(max_iter=1000), grid, scoring="neg_log_loss", cv=cv)
    model = make_pipeline(StandardScaler(), search)
    model.fit(inputs[inside], codes)
    corrected, guesses = np.zeros_like(P), np.full_like(P, np.nan)
    corrected[:, model.classes_] = model.predict_proba(inputs)
    corrected[inside] = np.eye(len(names))[codes]
    chosen = make_pipeline(StandardScaler(), search.best_estimator_)
    guesses[inside] = 0.0
    guesses[np.ix_(inside, model.classes_)] = cross_val_predict(
        chosen, inputs[inside], codes, cv=cv, method="predict_proba"
    )
    return corrected, guesses


def _numbers(given: Any, n_rows: int) -> Array:
    """Return `given` as an array, or raise an error that names it."""
    values = pd.DataFrame(given).apply(pd.to_numeric, errors="coerce").to_numpy(float)
    if len(values) != n_rows or not np.isfinite(values).all():
        raise ValueError(
            f"given must have the {n_rows} rows of P, and finite numbers only. Encode text, for "
            "instance with sklearn.preprocessing.OneHotEncoder, and fill missing values."
        )
    return values
