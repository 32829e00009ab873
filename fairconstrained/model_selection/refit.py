"""A rule for GridSearchCV's `refit`: the best score among candidates that are fair enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number


def within(gaps: Array, limit: float, worth: Array, what: str, *, at_least: bool = False) -> int:
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
    at_least : bool, default=False
        Whether they are ratios, which are within the limit if they are at least as large.

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
        raise ValueError(
            f"{what} is nan for all candidates, so that none can be selected: check the scorer."
        )
    unfair = -gaps if at_least else gaps
    allowed = np.flatnonzero(gaps >= limit if at_least else gaps <= limit)
    if allowed.size:
        order = np.lexsort((unfair[allowed], -np.nan_to_num(worth[allowed], nan=-np.inf)))
        return int(allowed[order[0]])
    best = int(np.nanargmin(unfair))
    warnings.warn(
        f"no candidate has a mean {what} of at {'least' if at_least else 'most'} {limit:g}; the "
        f"fairest one, with {gaps[best]:.3g}, is selected. Change the limit, or add candidates.",
        UserWarning,
        stacklevel=3,
    )
    return best


class BestScoreWithin:
    """A rule for GridSearchCV's `refit`: what :func:`best_score_within` returns."""

    def __init__(self, gap: str, limit: float, score: str, at_least: bool = False):
        self.gap = gap
        self.limit = limit
        self.score = score
        self.at_least = at_least

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the best candidate."""
        gaps = np.abs(self._column(cv_results, self.gap))  # scorers of gaps are negated
        worth = self._column(cv_results, self.score)
        return within(gaps, self.limit, worth, self.gap, at_least=self.at_least)

    @staticmethod
    def _column(cv_results: Mapping[str, Any], name: str) -> Array:
        key = f"mean_test_{name}"
        if key not in cv_results:
            has = sorted(k.removeprefix("mean_test_") for k in cv_results if k[:10] == "mean_test_")
            raise ValueError(f"cv_results_ has no score {name!r}; it has {has}: see scoring=.")
        return np.asarray(cv_results[key], dtype=float)

    def __repr__(self) -> str:
        """Return how the rule was made."""
        ratio = ", at_least=True" if self.at_least else ""
        return f"best_score_within({self.gap!r}, {self.limit!r}, score={self.score!r}{ratio})"


def best_score_within(
    gap: str, limit: float, *, score: str = "accuracy", at_least: bool = False
) -> BestScoreWithin:
    """Return a rule for ``GridSearchCV(refit=...)``: the best score whose gap is small enough.

    Parameters
    ----------
    gap : str
        The name in `scoring` of the gap. Its absolute value is bounded, so a scorer may negate it.
    limit : float
        The largest mean over the folds that is allowed, >= 0.
    score : str, default="accuracy"
        The name in `scoring` of the score that is maximised.
    at_least : bool, default=False
        Whether `limit` is the smallest mean that is allowed, for metrics such as ratios that should
        be large.

    Returns
    -------
    rule : callable
        A function from `cv_results_` to the position of the selected candidate. If no candidate is
        within the limit, it issues a warning and selects the one with the smallest gap.

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
    for argument, name in (("gap", gap), ("score", score)):
        if not isinstance(name, str):
            raise ValueError(
                f"{argument} must be a string, a name of a scorer in scoring=; got {name!r}."
            )
    if not (is_number(limit, Real) and 0.0 <= limit < np.inf):
        raise ValueError(f"limit must be a number >= 0; got {limit!r}.")
    if not isinstance(at_least, bool):
        raise ValueError(f"at_least must be True or False; got {at_least!r}.")
    return BestScoreWithin(gap, limit, score, at_least)
