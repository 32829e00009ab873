"""Fair classifiers under explicit constraints, as scikit-learn estimators.

Public names are imported on first use, from where `__init__.pyi` says, which type checkers read.
Workers of a cluster, which import what reads rows, do without the estimators and without
scikit-learn.
"""

import ast
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.3.0.dev0"

_PACKAGES = (
    "constraints",
    "datasets",
    "deployment",
    "domains",
    "exceptions",
    "functions",
    "metrics",
    "model_selection",
    "objectives",
    "penalties",
    "plotting",
    "solvers",
)
_HOMES = {
    alias.name: node.module
    for node in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(node, ast.ImportFrom) and node.module != "typing"
    for alias in node.names
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    """Return a public object or a public package, which is imported on first use."""
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(str(_HOMES[name])), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
