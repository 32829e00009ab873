"""Fitted models: the classifier inside pipelines and searches, and where a model comes from."""

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairconstrained.utils.arguments import as_frame

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn")
_OPTIONAL = ("lightgbm", "torch", "dask")


def best_estimator(model: Any) -> Any:
    """Return the model that decides: of a fitted search its `best_estimator_`."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def final_estimator(model: Any) -> Any:
    """Return the classifier that decides: of pipelines the last step."""
    return last_step(model, None)[0]


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier that decides, and X as it receives it: what the steps before it make.

    Samplers of imbalanced-learn are skipped, as in their pipelines: rows are sampled in `fit` only.
    """
    model = best_estimator(model)
    while hasattr(model, "steps"):
        for _, step in model.steps[:-1] if X is not None else ():
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

    It is `pos_label_` of a classifier of this library, `pos_label` of scikit-learn's
    FixedThresholdClassifier, and the second of the classes for any other.
    """
    last = final_estimator(model)
    given = getattr(last, "pos_label", None)
    return getattr(last, "pos_label_", classes[1] if given is None else given)


def provenance(models: Any, *data: Any, **facts: Any) -> dict[str, str]:
    """Return the origin of models or of a report, as text by name.

    Parameters
    ----------
    models : estimator, None, or mapping of str to these
        The models. Of each the parameters are hashed (SHA-256 of their text), and the values of
        ``random_state`` among them are listed as seeds.
    *data : array-like, DataFrame, sparse matrix or None
        The rows: features, labels, groups, weights. They are hashed by value, with the names of
        columns and without row labels.
    **facts : object
        What else is to be kept, as text.

    Returns
    -------
    origin : dict of str to str
        Versions of Python, of the library and of its dependencies, the date (UTC), the command, the
        hash of the data, and of each model its parameters' hash and its seeds.

    Raises
    ------
    TypeError
        If a fact is an array or a table.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier
    >>> from fairconstrained.deployment import provenance
    >>> origin = provenance(FairLogisticClassifier(random_state=3), [[1.0], [2.0]], [0, 1])
    >>> origin["seeds"], origin["data"][:8]
    ('random_state=3', 'b0ab0f8f')
    """
    rows = next((name for name, fact in facts.items() if np.ndim(fact)), None)
    if rows is not None:
        raise TypeError(
            f"{rows} is not text: rows are passed by position, `provenance(model, X, y, {rows})`, "
            "and are hashed; facts by name are kept as they are."
        )
    optional = {name: getattr(sys.modules.get(name), "__version__", None) for name in _OPTIONAL}
    library = import_module("fairconstrained").__version__  # it need not be installed
    origin = {
        "fairconstrained": library,
        **{name: version(name) for name in _PACKAGES},
        **{name: number for name, number in optional.items() if number is not None},
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "data": data_hash(*data),
    }
    for name, model in named_models(models).items() if models is not None else ():
        of = f" of {name}" if name else ""
        parameters = model.get_params() if hasattr(model, "get_params") else {}
        text = repr(sorted((key, repr(value)) for key, value in parameters.items()))
        seeds = {key: value for key, value in parameters.items() if key.endswith("random_state")}
        origin[f"parameters{of}"] = sha256(text.encode()).hexdigest()
        origin[f"seeds{of}"] = ", ".join(f"{key}={value}" for key, value in seeds.items())
    return origin | {name.replace("_", " "): str(fact) for name, fact in facts.items()}


def data_hash(*data: Any) -> str:
    """Return the SHA-256 of rows by their values, in hexadecimal digits."""
    digest = sha256()
    for part in data:
        sparse = part.tocsr() if hasattr(part, "tocsr") else None
        arrays = [part] if sparse is None else [sparse.indptr, sparse.indices, sparse.data]
        for values in arrays if part is not None else []:
            table = as_frame(values)
            named = isinstance(table, pd.DataFrame | pd.Series)
            frame = pd.DataFrame(table if named else np.asarray(table).reshape(len(table) or 1, -1))
            digest.update(repr([*map(str, frame.columns), frame.shape]).encode())
            try:
                hashes = pd.util.hash_pandas_object(frame, index=False)
            except TypeError:  # cells of dicts or lists
                hashes = pd.util.hash_pandas_object(frame.map(repr), index=False)
            digest.update(hashes.to_numpy().tobytes())
    return digest.hexdigest()
