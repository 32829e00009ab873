"""Constraints on the decisions of all rows, whatever their groups: coverage and churn."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint, WeightedScores
from fairconstrained.constraints.claims import Claim
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.registry import FieldParameters
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_between


class _OfAllRows(FieldParameters, Constraint):
    """A bound on a mean over all rows, which are one group."""

    needs_groups = False
    compares_groups = False
    by_class = False
    bounds_rates = True
    subtracts_kappa = True
    cannot_be_tested = ""

    def groupings(self, data: TrainingData) -> list[TrainingData]:
        """Return the rows with one group for all."""
        return [replace(data, groups=Groups.encode(np.zeros(len(data.y), dtype=int)))]

    def groups_of_parts(self, groups: Groups) -> tuple[Groups, ...]:
        """Return the groups, which do not matter."""
        return (groups,)

    def _checked(
        self, y: Array | None, groups: Groups | Array, sample_weight: Array
    ) -> tuple[Array, Groups, Array]:
        weight = np.asarray(sample_weight, dtype=float)
        return np.asarray(y), Groups.encode(np.zeros(len(weight), dtype=int)), weight

    def known_rows(self, groups: Groups) -> Array:
        """Return that the constraint is on all rows.

        Parameters
        ----------
        groups : Groups
            See :meth:`Constraint.known_rows`.
        """
        return np.ones(len(groups.codes), dtype=bool)

    def _at_most(
        self, codes: Array, weight: Array, numbers: Array, constant: Array, what: str,
        names: list[str], kind: Any = CellMeans,
    ) -> measures.Compared:  # fmt: skip
        """Return the bound kappa on affine functions of the means of cells of rows."""
        each, shares = [*range(len(names)), 0], np.ones(len(names))  # the last stands for all rows
        numbered = measures.Measures(
            codes, weight, shares, what, names, numbers[each], constant=constant[each]
        )
        kappa = self.checked_kappa()
        bound = measures.Requirement((1.0, 0.0), kappa, f"{{first}} <= {kappa:g}", kind=kind)
        return measures.Compared([numbered], measures.each_group, bound)


@dataclass(frozen=True, eq=False)
class TargetRate(CellMeans):
    """The selection rate, with what it is to be near."""

    target: float = 0.0  # the rate


class Coverage(_OfAllRows):
    r"""Coverage: the share of all rows that is selected is near a given one.

    .. math:: \Big| \frac{\sum_i w_i\, \sigma(s_i)}{\sum_i w_i} - \text{rate} \Big| \le \kappa.

    Parameters
    ----------
    rate : float or None, default=None
        The share, in [0, 1]. None takes the share of positive labels. Measurements of a fitted
        model on other rows are about this share.
    kappa : float or None, default=None
        The largest difference allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.

    References
    ----------
    G. Goh, A. Cotter, M. Gupta, M. Friedlander, "Satisfying real-world goals with dataset
    constraints", NeurIPS 2016; IPC, section 1.1 (data-driven constraints).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import Coverage
    >>> term = Coverage(0.3).bind(None, np.zeros(4), np.ones(4))
    >>> term.names
    ('excess(selected over 0.3) <= 0.05', 'excess(rejected over 0.7) <= 0.05')
    >>> term.zero_one().gap(np.array([1.0, -1.0, 1.0, 1.0]))
    array([ 0.45, -0.45])
    """

    rate: float | None = None
    _: KW_ONLY
    kappa: float | None = None
    surrogate: str | Surrogate | None = None

    gap_title = "difference of the selection rate from the given one"
    needs_labels = property(lambda self: self.rate is None)
    _chosen: ClassVar = {"rate": "target"}

    def _target(self, y: Array, weight: Array) -> float:
        rate = float(np.average(y > 0, weights=weight)) if self.rate is None else self.rate
        return check_between("rate", rate, 0.0, 1.0, "the share that is selected")

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        target, sides = self._target(y, weight), np.array([1.0, -1.0])
        names = [f"selected over {target:g}", f"rejected over {1.0 - target:g}"]
        codes, kind = np.zeros(len(weight), dtype=int), partial(TargetRate, target=target)
        numbers, constant = sides[:, None], -target * sides
        return self._at_most(codes, weight, numbers, constant, "excess", names, kind)

    def claims(self, y: Array, groups: Groups | Array, sample_weight: Array) -> list[Claim]:
        """Return the statements that not too many are selected, and not too many rejected."""
        (target, kappa), sides = (self._target(y, sample_weight), self.checked_kappa()), []
        for claim, share in zip(
            super().claims(y, groups, sample_weight), (target, 1.0 - target), strict=True
        ):
            sides.append(replace(claim, bound=share + kappa))
        return sides


class Churn(_OfAllRows):
    r"""Churn: at most a share of the rows is decided otherwise than by a given model.

    With the decisions :math:`d_i \in \{-1, 1\}` of that model,

    .. math:: \frac{\sum_i w_i\, \sigma(-d_i s_i)}{\sum_i w_i} \le \kappa,

    for symmetric surrogates; for others :math:`1 - \sigma(s_i)` where d is positive.

    Parameters
    ----------
    previous : classifier or None, default=None
        The given model, fitted; its `predict` gets the rows as `fit` of this estimator does. None
        takes the model without constraints.
    kappa : float or None, default=None
        The largest share allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.

    References
    ----------
    G. Goh, A. Cotter, M. Gupta, M. Friedlander, "Satisfying real-world goals with dataset
    constraints", NeurIPS 2016; IPC, section 1.1 (data-driven constraints).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import Churn
    >>> decisions = np.array([1, -1, 1, -1])  # `bind` takes them in place of labels
    >>> term = Churn(kappa=0.1).bind(decisions, np.zeros(4), np.ones(4))
    >>> term.names, term.zero_one().gap(np.array([1.0, -1.0, -1.0, -1.0]))
    (('share(decided otherwise) <= 0.1',), array([0.25]))
    """

    previous: Any = None
    _: KW_ONLY
    kappa: float | None = None
    surrogate: str | Surrogate | None = None

    gap_title = "share of the rows that are decided otherwise than by the given model"
    bound_to_training_rows = "it compares predictions with those of another model"
    needs_labels = False
    _free = cast("Array | None", None)  # the decisions of the model without constraints

    @property
    def cannot_be_tested(self) -> str:  # type: ignore[override]
        """Why held-out rows cannot test it: the model without constraints is not given."""
        return "" if self.previous is not None else "previous=None is not a given model"

    def groupings(self, data: TrainingData) -> list[TrainingData]:
        """Return the rows with the given model's decisions as labels."""
        (rows,) = super().groupings(data)
        if self.previous is None:
            return [rows]
        if not hasattr(self.previous, "predict"):
            raise ValueError(f"previous must be a fitted classifier; got {self.previous!r}.")
        if data.passed is None:
            raise ValueError(f"{self!r} is for rows in memory: use another constraint with dask.")
        decided = np.asarray(self.previous.predict(data.passed))
        if data.positions is not None:
            decided = decided[data.positions]
        unknown = np.setdiff1d(decided, data.classes)
        if unknown.size:
            raise ValueError(f"Churn: previous predicts {unknown.tolist()}, which y does not have.")
        return [replace(rows, y=np.where(decided == data.classes[1], 1.0, -1.0))]

    def settled(self, scores: WeightedScores) -> Self:
        """Return the constraint with the decisions of the model without constraints, if asked."""
        made = copy(self)
        if self.previous is None:
            made._free = np.where(scores()[0] > 0.0, 1.0, -1.0)
        return made

    def build(self, model: Model, data: TrainingData) -> CompositeFunction:
        """Return the constraint on the decisions, which are the labels of the rows."""
        if self._free is None:
            return super().build(model, data)
        if len(self._free) != len(data.y):
            raise ValueError(f"{self!r} is for rows in memory: use another constraint with dask.")
        return super().build(model, replace(data, y=self._free))

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        codes = (y > 0).astype(int)
        rejected, selected = np.bincount(codes, weight, minlength=2) / weight.sum()
        numbers, constant = np.array([[rejected, -selected]]), np.array([selected])
        return self._at_most(codes, weight, numbers, constant, "share", ["decided otherwise"])
