"""What the scores of a ranker may be: the base class of the objects passed as `model`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from fairconstrained.data.features import FeatureKind
from fairconstrained.utils.parameters import Parametrized


class RankerModel(Parametrized, ABC):
    """How the scores of a :class:`FairRanker` come from features.

    Subclasses hold parameters only. Their names are in the table of
    `estimators.ranking.parametrization`.
    """

    @property
    def feature_kind(self) -> FeatureKind:
        """What is accepted as features: finite numbers, dense or sparse."""
        return FeatureKind()

    @abstractmethod
    def parametrization(self, estimator: Any) -> type[Any]:
        """Return how scores depend on the solver's variables, a `Parametrization`.

        Parameters
        ----------
        estimator : FairRanker
            Its parameters are read.

        Raises
        ------
        ValueError
            If a parameter is not valid.
        """
