"""Attributes and files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array

_OF_SOME_FITS = (
    *("holdout_indices_", "pos_label_", "score_threshold_", "sensitive_names_in_"),
    *("threshold_", "validation_indices_", "_by_group"),
    *("booster_", "coef_", "feature_mean_", "feature_scale_", "weights_"),  # of rankers' models
)


_OF_CALLBACKS = ("_callback", "_skl_callback")  # scikit-learn ends its callbacks after a failure


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before its fit, if the fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        now = vars(estimator).items()
        ending = {name: value for name, value in now if name.startswith(_OF_CALLBACKS)}
        estimator.__dict__ = before | ending
        raise


def set_fitted(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """Set the fitted attributes of an estimator.

    Some attributes exist only after some fits: a model of more than two classes has no threshold,
    for instance. Those that an earlier fit has left are removed.
    """
    kept = {name: vars(estimator)[name] for name in vars(estimator) if name not in _OF_SOME_FITS}
    estimator.__dict__ = {**kept, **attributes}


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return the fitted attributes of an estimator: those whose names end with an underscore."""
    attributes = vars(estimator)
    return {name: attributes[name] for name in attributes if name.endswith("_") and name[0] != "_"}


def coefficients(estimator: Any) -> Array:
    """Return the coefficients of a linear model as an ndarray, also after `sparsify`."""
    coef: Any = getattr(estimator, "coef_", np.empty(0))
    return coef.toarray() if hasattr(coef, "toarray") else coef


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, which replaces the file at the end.

    The file that was there is unchanged if the body raises an error or is interrupted. The
    temporary file has the same ending, and the permissions of the file that it replaces. A device
    or a pipe is not replaced but yielded itself.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairconstrained.utils.storage import whole_file
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/page.html") as temporary:
    ...         written = temporary.write_text("text")
    ...     print(*(file.name for file in Path(folder).iterdir()))
    page.html
    """
    with _named(path):
        if not _is_replaced(path):
            yield Path(path)
            return
        target = Path(os.path.realpath(path))
        temporary = _beside(target)
        try:
            yield temporary
            with temporary.open("rb+") as stream:  # only then some disks report that they are full
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                temporary.unlink()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError of :func:`whole_file` if its temporary file cannot be made."""
    with _named(path):
        if _is_replaced(path):
            trial = _beside(Path(os.path.realpath(path)))
            trial.touch(exist_ok=False)
            trial.unlink()


def _is_replaced(path: str | os.PathLike[str]) -> bool:
    return Path(path).is_file() or not Path(path).exists()


def _beside(target: Path) -> Path:
    return target.with_name(f".{token_hex(8)}{target.suffix}")


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in an OSError which file cannot be written."""
    try:
        yield
    except OSError as error:
        why = f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        raise OSError(error.errno, why) from error
