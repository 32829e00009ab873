"""The options of thresholds, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairconstrained.data.groups import COMBINE, GROUPS_MISSING
from fairconstrained.decisions.population import check_confidence
from fairconstrained.estimators.score_thresholds._scores import check_cv_option
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.validation import check_seed, check_switch
from fairconstrained.utils.workers import check_jobs


def check_threshold_options(estimator: Any) -> None:
    """Check the options that nothing else looks at.

    Raises
    ------
    ValueError, TypeError
        With the argument's name, what was found and what is valid.
    """
    fitted = isinstance(estimator.cv, str) and estimator.cv == "prefit"
    needed = "predict" if fitted else "fit"
    if isinstance(estimator.estimator, type) or not hasattr(estimator.estimator, needed):
        raise TypeError(
            f"estimator must be a classifier with {needed}, such as RandomForestClassifier(); got "
            f"{estimator.estimator!r}."
        )
    check_jobs(estimator.n_jobs)
    check_switch("per_group", estimator.per_group)
    check_switch("use_sensitive", estimator.use_sensitive)
    _check_columns(estimator)
    check_option("combine", estimator.combine, COMBINE)
    check_option("groups_missing", estimator.groups_missing, GROUPS_MISSING)
    check_cv_option(estimator.cv)
    check_confidence(estimator)
    check_seed(estimator.random_state)


def _check_columns(estimator: Any) -> None:
    """Check that the inner classifier's own sensitive columns are not taken out of X."""
    inner = final_estimator(estimator.estimator)
    own, inside = (
        set() if columns is None or callable(columns) else set(np.ravel(np.array(columns, object)))
        for columns in (estimator.sensitive_columns, getattr(inner, "sensitive_columns", None))
    )
    if own & inside and not estimator.use_sensitive:
        raise ValueError(
            f"sensitive_columns={estimator.sensitive_columns!r} with use_sensitive=False are taken "
            f"out of X, and the classifier has sensitive_columns={inner.sensitive_columns!r}: use "
            "use_sensitive=True, or a classifier without sensitive_columns."
        )
