"""Models: from weights to scores, and from weights on the scores back to gradients.

The protocol `Model` is what problems and solvers ask of a model. `LinearModel` is one; `LeafModel`
is linear in the leaf values of given trees; the parameters of `ScoreModel` are the scores
themselves. What scores mean for a constraint belongs in ``terms`` and ``constraints``.
"""

from fairconstrained.models.linear import LinearModel, Model
from fairconstrained.models.trees import LeafModel, ScoreModel

__all__ = ["LeafModel", "LinearModel", "Model", "ScoreModel"]
