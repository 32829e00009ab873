"""The HTML representation of every estimator links to its page in the documentation."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, FairThresholds

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs" / "api.rst").read_text()
MODULES = ("fairconstrained", "fairconstrained.dask")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def documented():
    """Return the estimators on the page of the public interface, with the names of their pages."""
    found, module = {}, ""
    for line in API.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line) and module in (
            "fairconstrained",
            "fairconstrained.dask",
        ):
            found[f"{module}.{line.strip()}"] = (module, line.strip())
    return found


PAGES = documented()


@pytest.mark.parametrize("page", PAGES)
def test_link(page):
    module, name = PAGES[page]
    pytest.importorskip("dask" if module.endswith("dask") else "sklearn", reason="no dask")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and issubclass(kind, BaseEstimator)):
        pytest.skip(f"{name} is no estimator")
    arguments = {"FairThresholds": [LogisticRegression()], "SelectionRate": [0.5]}
    made = kind(*arguments.get(name, []))
    address = f"{PROJECT['urls']['Documentation']}/generated/{page}.html"
    assert f'href="{address}"' in made._repr_html_()


def test_estimators_inside_link_to_their_own_pages():
    class Policy(FairLogisticClassifier):
        """A subclass of somebody else, which we have no page of."""

    shown = FairThresholds(LogisticRegression())._repr_html_()
    assert "sklearn.linear_model.LogisticRegression.html" in shown
    assert "fairconstrained.FairThresholds.html" in shown
    Policy.__module__ = "elsewhere"
    assert "generated" not in Policy()._repr_html_()
