"""What a fit needs of an estimator: its parameters, and how scores depend on variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.validation import Columns, TrainingData
from fairconstrained.domains import Domain
from fairconstrained.estimators.solving import SolverOptions
from fairconstrained.functions.losses import Loss
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.models import Model
from fairconstrained.objectives import Objective
from fairconstrained.penalties.base import Penalty
from fairconstrained.utils.typing import Array


class Parametrization(Protocol):
    """How the scores of an estimator depend on the solver's variables.

    This is all that distinguishes linear classifiers, networks and trees in a :class:`Fit`.

    Attributes
    ----------
    model : Model
        The model on the training rows.
    penalty : Penalty
        The penalty on the variables.
    domain : Domain
        The set of the variables.
    """

    model: Model
    penalty: Penalty
    domain: Domain

    @classmethod
    def features(cls, estimator: Any, data: TrainingData) -> TrainingData:
        """Return the rows with the features that the model uses."""

    @classmethod
    def of(cls, estimator: Any, data: TrainingData) -> Self:
        """Return the parametrization for an estimator's options on rows from `features`."""

    def attributes(self, w: Array) -> Mapping[str, Array]:
        """Return the fitted attributes that `predict` uses, for the solver's variables."""

    def variables(self, estimator: object) -> Array | None:
        """Return the variables of a fitted estimator, None if it was fitted to other features."""


class FairOptions(SolverOptions, Protocol):
    """The parameters of an estimator that a :class:`Fit` reads."""

    parametrization: ClassVar[type[Any]]
    constraint: ConstraintLike
    kappa: float
    goal: str
    max_loss_increase: float
    surrogate: str | Surrogate
    loss: str | Loss | Objective
    sensitive_columns: Columns
    use_sensitive: bool
    combine: str
    groups_missing: str
    enforce: str
    confidence: float | None
    holdout: float
