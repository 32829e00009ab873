"""Access to the classifier inside pipelines and searches."""

from __future__ import annotations

from collections.abc import Mapping
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


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier that decides, and X as it receives it: what the steps before it make.

    Parameters
    ----------
    model : classifier
        Fitted; of pipelines and searches the last step decides.
    X : array-like or DataFrame
        The rows that the model gets.
    """
    model = best_estimator(model)
    while hasattr(model, "steps"):
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = best_estimator(model.steps[-1][1])
    return model, X


def named_models(models: Any, alone: str = "") -> dict[str, Any]:
    """Return models by name.

    Parameters
    ----------
    models : model or mapping of str to model
        One model, or several by name.
    alone : str, default=""
        The name of a single model.

    Raises
    ------
    ValueError
        If there are no models, or two of them have the same name.
    """
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


def prediction_groups(model: Any, sensitive_features: Any) -> dict[str, Any]:
    """Return the keyword arguments that a model's methods need besides X.

    Parameters
    ----------
    model : classifier
        Fitted or not; of pipelines and searches the last step counts.
    sensitive_features : array-like or DataFrame
        The groups of the rows.

    Returns
    -------
    arguments : dict
        The groups, for models whose decisions depend on them and that do not read them from X,
        which have an attribute `groups_at_prediction` that is true; empty for all others.
    """
    if getattr(final_estimator(model), "groups_at_prediction", False):
        return {"sensitive_features": sensitive_features}
    return {}


class _WithGroups:
    """A model whose `predict` gets the groups of the rows."""

    def __init__(self, model: Any, groups: Any):
        self._model, self._groups = best_estimator(model), groups

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, X: Any) -> Any:
        return self._model.predict(X, sensitive_features=self._groups)


def with_groups(model: Any, sensitive_features: Any) -> Any:
    """Return a model whose `predict` needs the rows only, also where it needs their groups."""
    if sensitive_features is None or not prediction_groups(model, sensitive_features):
        return model
    return _WithGroups(model, sensitive_features)


def decision_margin(model: Any, X: Any, sensitive_features: Any) -> Any:
    """Return the scores minus the thresholds of the rows, of a model with a `decision_margin`.

    Parameters
    ----------
    model : classifier
        Fitted; of pipelines and searches the last step has the method.
    X : array-like or DataFrame
        The rows that the model gets.
    sensitive_features : array-like or DataFrame
        The groups of the rows.
    """
    last, X = last_step(model, X)
    return last.decision_margin(X, **prediction_groups(last, sensitive_features))


def favourable_label(model: Any) -> Any:
    """Return the label of the favourable decision of a fitted classifier of two classes.

    It is `pos_label_` of a classifier of this library, the second of `classes_` for any other.
    """
    best = best_estimator(model)
    return getattr(final_estimator(best), "pos_label_", best.classes_[1])


def library_class(estimator: object) -> type[Any]:
    """Return the class of this library that an object's class is or extends, else its class."""
    kinds = type(estimator).__mro__
    library = __name__.partition(".")[0]
    return next((kind for kind in kinds if kind.__module__.startswith(f"{library}.")), kinds[0])


def library_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of the library's class, whichever of them a subclass names."""
    return {name: getattr(estimator, name) for name in library_class(estimator)._get_param_names()}
