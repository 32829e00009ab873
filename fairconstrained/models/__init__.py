"""Models: from weights to scores, and from weights on the scores back to gradients.

The protocol `Model` is what problems and solvers ask of a model; `LinearModel` is one. What scores
mean for a constraint belongs in ``terms`` and ``constraints``.
"""

from fairconstrained.models.base import Model
from fairconstrained.models.linear import LinearModel

__all__ = ["LinearModel", "Model"]
