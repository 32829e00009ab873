"""Import optional dependencies."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module of an optional dependency.

    Parameters
    ----------
    module : str
        Its name, for instance "lightgbm".
    extra : str
        The extra of this package that installs it.
    purpose : str
        What needs it, for the message.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.

    Examples
    --------
    >>> from fairconstrained.utils.extras import import_extra
    >>> import_extra("not_installed", "boosting", "FairBoostingClassifier")
    Traceback (most recent call last):
        ...
    ImportError: FairBoostingClassifier needs not_installed, which is not installed. Install it
    with: pip install "fairconstrained[boosting]"
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        raise ImportError(
            f"{purpose} needs {module}, which is not installed. "
            f'Install it with: pip install "fairconstrained[{extra}]"'
        ) from error
