"""The link from an estimator's HTML representation to its page in the documentation."""

from __future__ import annotations

from sklearn.base import BaseEstimator

DOCUMENTATION = "https://fairconstrained.github.io/fairconstrained"


class DocumentedEstimator(BaseEstimator):
    """An estimator of this library whose HTML representation links to our documentation."""

    _doc_link_module = "fairconstrained"
    _doc_link_template = f"{DOCUMENTATION}/generated/fairconstrained.{{estimator_name}}.html"
