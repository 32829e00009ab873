"""Access to the classifier inside pipelines and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing


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


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier that decides, and X as it receives it: what the steps before it make.

    Samplers of imbalanced-learn are skipped, as in their pipelines: rows are sampled in `fit` only.
    """
    model = best_estimator(model)
    while hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough" and not hasattr(step, "fit_resample"):
                X = step.transform(X)
        model = best_estimator(model.steps[-1][1])
    return model, X


def fitted_steps(
    pipeline: Pipeline, X: Any, rows: dict[str, Any]
) -> tuple[Pipeline, Any, dict[str, Any]]:
    """Return a pipeline whose steps but the last are fitted, and the rows that the last one gets.

    Samplers of imbalanced-learn choose rows.
    """
    *before, last = pipeline.steps
    fitted: list[Any] = []
    for name, step in before:
        if not hasattr(step, "fit_resample"):
            alone = Pipeline([(name, step)], memory=pipeline.memory)
            X = alone.fit_transform(X, rows["y"])
            fitted += alone.steps
            continue
        fitted.append((name, step))
        X, y = step.fit_resample(X, rows["y"])
        others = {key: value for key, value in rows.items() if key != "y" and value is not None}
        if others and not hasattr(step, "sample_indices_"):
            raise ValueError(
                f"{type(step).__name__} lacks the attribute sample_indices_, so that "
                f"{' and '.join(others)} of its rows are not known: name columns of X in "
                "sensitive_columns, or sample the rows before."
            )
        some = {key: _safe_indexing(value, step.sample_indices_) for key, value in others.items()}
        rows = rows | some | {"y": y}
    return type(pipeline)([*fitted, last]), X, rows


def named_models(models: Any, alone: str = "") -> dict[str, Any]:
    """Return models by name."""
    if not isinstance(models, Mapping):
        return {alone: models}
    named = {str(name): model for name, model in models.items()}
    if not named:
        raise ValueError(
            "models (or estimator) is an empty mapping: pass a fitted model, or several by name."
        )
    if len(named) < len(models):
        raise ValueError(f"models must have different names; got {list(models)!r}.")
    return named


def classes_of(model: Any) -> list[Any] | None:
    """Return the `classes_` of a fitted classifier; None if it has none."""
    for candidate in (best_estimator(model), final_estimator(model)):
        classes = getattr(candidate, "classes_", None)
        if classes is not None:
            return list(np.asarray(classes).tolist())
    return None


def favourable_label(model: Any, classes: Sequence[Any]) -> Any:
    """Return the label of the favourable decision of a fitted classifier of two classes.

    It is `pos_label_` of a classifier of this library, the second of the classes for any other.
    """
    return getattr(final_estimator(model), "pos_label_", classes[1])


def library_class(estimator: object) -> type[Any]:
    """Return the class of this library that an object's class is or extends, else its class."""
    kinds = type(estimator).__mro__
    library = __name__.partition(".")[0]
    return next((kind for kind in kinds if kind.__module__.startswith(f"{library}.")), kinds[0])


def library_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of the library's class, whichever of them a subclass names."""
    return {name: getattr(estimator, name) for name in library_class(estimator)._get_param_names()}
