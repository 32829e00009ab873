"""Where a model or a report comes from: versions, date, command, hashes of data and parameters."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.utils.meta_estimators import named_models

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn")
_OPTIONAL = ("lightgbm", "torch", "dask")


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
            f"{rows} is no text: rows are passed by position, `provenance(model, X, y, {rows})`, "
            "and are hashed; facts by name are kept as they are."
        )
    optional = {name: getattr(sys.modules.get(name), "__version__", None) for name in _OPTIONAL}
    library = import_module("fairconstrained").__version__  # it need not be installed
    origin = (
        {"fairconstrained": library}
        | {name: version(name) for name in _PACKAGES}
        | {name: number for name, number in optional.items() if number is not None}
        | {
            "python": platform.python_version(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": shlex.join(sys.argv),
            "data": data_hash(*data),
        }
    )
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
            titles = getattr(values, "column_names", getattr(values, "columns", None))
            if isinstance(values, pd.DataFrame | pd.Series):
                frame = pd.DataFrame(values)
            elif titles is not None:  # of polars and pyarrow
                frame = pd.DataFrame({title: np.asarray(values[title]) for title in titles})
            else:
                frame = pd.DataFrame(np.asarray(values).reshape(len(values), -1))
            digest.update(repr([*map(str, frame.columns), frame.shape]).encode())
            try:
                hashes = pd.util.hash_pandas_object(frame, index=False)
            except TypeError:  # cells of dicts or lists
                hashes = pd.util.hash_pandas_object(frame.map(repr), index=False)
            digest.update(hashes.to_numpy().tobytes())
    return digest.hexdigest()
