"""Access to the classifier inside pipelines and searches."""

from __future__ import annotations

from typing import Any


def best_estimator(model: Any) -> Any:
    """Return the model that decides: of a fitted search its `best_estimator_`."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def final_estimator(model: Any) -> Any:
    """Return the classifier that decides: of pipelines the last step."""
    model = best_estimator(model)
    while hasattr(model, "steps"):
        model = best_estimator(model.steps[-1][1])
    return model
