"""A rule for GridSearchCV's `refit`: the best score among candidates that are fair enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.utils.parameter_constraints import Strength, Text, checked
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, repr=False)
class BestScoreWithin:
    """A rule for GridSearchCV's `refit`: what :func:`best_score_within` returns."""

    gap: str
    limit: float
    score: str
    at_least: bool = False

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the best candidate."""
        gaps = np.abs(self._column(cv_results, self.gap))  # scorers of gaps are negated
        if np.all(np.isnan(gaps)):
            raise ValueError(
                f"{self.gap} is nan for all candidates, so that none can be selected: check the "
                "scorer."
            )
        unfair, limit = (-gaps, -self.limit) if self.at_least else (gaps, self.limit)
        allowed = np.flatnonzero(unfair <= limit)
        if allowed.size:
            worth = np.nan_to_num(self._column(cv_results, self.score)[allowed], nan=-np.inf)
            return int(allowed[np.lexsort((unfair[allowed], -worth))[0]])
        best = int(np.nanargmin(unfair))
        warnings.warn(
            f"no candidate has a mean {self.gap} of at {'least' if self.at_least else 'most'} "
            f"{self.limit:g}; the fairest one, with {gaps[best]:.3g}, is selected. Change the "
            "limit, or add candidates.",
            UserWarning,
            stacklevel=2,
        )
        return best

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


@checked
def best_score_within(
    gap: Text, limit: Strength, *, score: Text = "accuracy", at_least: bool = False
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
    return BestScoreWithin(gap, limit, score, at_least)
