"""What a constraint is: hyperparameters, and a way to bind them to data."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.claims import Claim, claims_of
from fairconstrained.constraints.measures import Compared, check_against
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.exceptions import VacuousConstraintWarning, warn
from fairconstrained.functions.surrogates import SURROGATES, Sigmoid, Surrogate
from fairconstrained.models.linear import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, OnCells
from fairconstrained.utils.arguments import Parametrized, check_between, resolve
from fairconstrained.utils.arrays import Array

FreeScores = Callable[[TrainingData, Array | None], tuple[Array, TrainingData]]
"""The model without constraints: its scores of rows that a constraint is bound to, or of some.

It returns scores and the rows that have them, with their labels, groups and weights. Where rows are
in shards, bins of a histogram stand for them.
"""

WeightedScores = Callable[[], tuple[Array, TrainingData]]


def measured_from(term: Any, threshold: float) -> Any:
    """Return a term for scores that are measured from a threshold.

    Terms of decisions compare such scores with 0 and are unchanged. Mean losses are functions of
    the scores themselves.
    """
    of_losses = isinstance(term, CellMeans) and term.signs is not None
    return replace(term, shift=threshold) if of_losses else term


class Constraint(Parametrized):
    """A fairness constraint: a criterion with its tolerance. Base class of all constraints.

    Instances hold hyperparameters only; `bind` returns a new term for given data.

    Parameters
    ----------
    kappa : float or None
        The tolerance, in [0, 1], or >= 0 for constraints on pairs; None takes that of the
        estimator.
    surrogate : Surrogate, str or None
        The function that replaces the prediction; None takes that of the estimator.

    Attributes
    ----------
    needs_groups : bool
        Whether the training rows must have groups.
    needs_labels : bool
        Whether the rows that it is on must have labels.
    needs_queries : bool
        Whether they must belong to queries, so that only rankers take it.
    subtracts_kappa : bool
        Whether the outputs are gaps that do not depend on kappa, minus kappa. False, the default,
        is always valid.
    cannot_be_tested : str
        Why held-out rows cannot test it, see `claims`; empty if they can.
    rates_compared : tuple of str
        The rates of :mod:`fairconstrained.metrics` whose largest difference between two groups
        (or shortfall of their ratio, with `compares_ratios`) is its gap of decisions; empty if
        there are none. Reports show their confidence intervals.
    bounds_rates : bool
        Whether its gap of decisions is one of rates of predictions at the threshold.
    compares_ratios : bool
        Whether the gap of decisions is 1 - rate_a / rate_b, not a difference.
    gap_title : str
        What its gap of predictions is, for tables and pictures.
    scores_title : str
        What takes the place of predictions in its gap on scores, with the default surrogate.
    bound_to_training_rows : str
        Why it cannot be measured on other rows than those of `fit`; empty if it can.
    rank_range : tuple of float or None
        The ranks [alpha, beta) that it restricts, if it names any.
    tolerance : str
        The parameter that is the tolerance.
    usual_kappas : tuple of float or None
        The range of kappa that is usual where its gap on scores is not one of probabilities.
    compares_groups : bool
        Whether it compares the groups of the sensitive features, each of which needs enough rows.
    joins_attributes : bool
        Whether one part has the groups of all attributes, also with ``combine="marginal"``.
    averages_atoms : bool
        Whether its terms are averages over rows that agree in label and groups, so that it can be
        bound to one row for all of these.
    by_class : bool
        Whether it can be put on each of several classes, against all others.
    labels : tuple of str
        The names of the negative and the positive class in messages; see `naming`.
    """

    needs_groups: ClassVar[bool] = True
    needs_labels = True
    needs_queries: ClassVar[bool] = False
    subtracts_kappa: ClassVar[bool] = False
    cannot_be_tested = "its gap is not one of rates of predictions"
    rates_compared: ClassVar[tuple[str, ...]] = ()
    bounds_rates: ClassVar[bool] = False
    compares_ratios = False
    gap_title = "largest gap between two groups"
    scores_title: ClassVar[str] = "predicted probabilities"
    bound_to_training_rows = ""
    rank_range: ClassVar[tuple[float, float] | None] = None
    tolerance = "kappa"
    usual_kappas: ClassVar[tuple[float, float] | None] = None
    compares_groups = True
    joins_attributes: ClassVar[bool] = False
    by_class: ClassVar[bool] = True
    averages_atoms = False
    labels = "-1", "+1"
    _functions: ClassVar[Mapping[str, Callable[[], Any]]] = SURROGATES
    _default_kappa: ClassVar[float] = 0.05
    _largest_kappa: ClassVar[float] = 1.0

    kappa: float | None = None
    _: KW_ONLY
    surrogate: str | Surrogate | None = None

    @property
    def tolerance_slope(self) -> float | None:
        """The derivative of the outputs with respect to the estimator's kappa.

        It is -1 where kappa is subtracted and 0 where the constraint has a tolerance of its own.
        None means that kappa enters in another way: the term is bound anew for every kappa.
        """
        if self.kappa is not None or getattr(self, self.tolerance) is not None:
            return 0.0
        return -1.0 if self.subtracts_kappa else None

    def checked_kappa(self) -> float:
        """Return the largest gap allowed; for None, which only estimators fill in, the default.

        Raises
        ------
        ValueError
            If kappa is not a number in [0, 1], or >= 0 for constraints on pairs.
        """
        kappa = self._default_kappa if self.kappa is None else self.kappa
        return check_between("kappa", kappa, 0.0, self._largest_kappa, "the largest gap allowed")

    def bind(self, y: Array | None, groups: Groups | Array, sample_weight: Array) -> Term:
        """Return the term whose outputs are <= 0 where the constraint holds.

        Parameters
        ----------
        y : ndarray of shape (n_rows,) or None
            The labels, -1 or +1; None for a constraint that does not look at them.
        groups : Groups or array-like of shape (n_rows,) or (n_rows, n_columns)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If a parameter of the constraint is not valid, or groups are missing.

        Warns
        -----
        VacuousConstraintWarning
            If a cell of the constraint has no rows, or fewer than two groups have the rows that are
            compared; the message names the cell.
        """
        return self._term(*self._checked(y, groups, sample_weight))

    def _checked(
        self, y: Array | None, groups: Groups | Array, sample_weight: Array
    ) -> tuple[Array, Groups, Array]:
        """Return labels, groups and weights of as many rows."""
        weight = np.asarray(sample_weight, dtype=float)
        combine = "marginal" if self.joins_attributes else "intersection"
        return np.asarray(y), check_groups(groups, len(weight), combine=combine), weight

    def _term(self, y: Array, groups: Groups, weight: Array) -> Term:
        """Return the term, see `bind`."""
        return self._compared(y, groups, weight).term(self._function())

    def _warn(self, message: str) -> None:
        """Warn that nothing is asked of some rows."""
        warn(f"{type(self).__name__}: {message}", VacuousConstraintWarning)

    def _function(self) -> Any:
        """Return the function in place of predictions; its name is one of a table."""
        return resolve("surrogate", self.surrogate or "sigmoid", self._functions, Surrogate)

    def settled(self, scores: WeightedScores) -> Self:
        """Return the constraint with what it chooses by the model without constraints.

        Parameters
        ----------
        scores : callable
            Returns that model's scores of the rows that the constraint is on, and these rows; the
            model is solved when first asked for.
        """
        return self

    def build(self, model: Model, data: TrainingData) -> CompositeFunction:
        """Return the constraint as a part of a problem: its term and the model of its rows.

        Parameters
        ----------
        model : Model
            Turns weights into scores of the training rows.
        data : TrainingData
            The training rows: `y`, `groups`, `sample_weight`. A constraint on rows of its own
            takes ``model.on(other_rows)`` instead.
        """
        assert data.groups is not None, "estimators ask for groups if the constraint needs them"
        term = self.bind(data.y, data.groups, data.sample_weight)
        return CompositeFunction(model, measured_from(term, data.convention.threshold))

    def parts(
        self, model: Model, data: TrainingData, free: FreeScores, like: Sequence[Term] | None = None
    ) -> list[CompositeFunction]:
        """Return the constraint's parts: `build` for each grouping of the rows.

        That is one, or one per sensitive attribute with ``combine="marginal"``.

        Parameters
        ----------
        model, data
            See `build`.
        free : FreeScores
            The model without constraints.
        like : sequence of Term or None, default=None
            The terms of the parts on the training rows. Their choices are kept, see `as_bound`.
        """
        groupings = self.groupings(data)
        kept = [self] * len(groupings) if like is None else [self.as_bound(term) for term in like]
        pairs = zip(kept, groupings, strict=True)
        return [constraint.build_known(model, rows, free) for constraint, rows in pairs]

    def groupings(self, data: TrainingData) -> list[TrainingData]:
        """Return the rows with the groups of each part, see `parts`."""
        if data.groups is None:
            return [data]
        groups = data.groups
        check_against(getattr(self, "against", "pairs"), groups)
        every = groups.by_stratum if self.joins_attributes else groups.separate
        return [data if each is groups else replace(data, groups=each) for each in every]

    def known_rows(self, groups: Groups) -> Array:
        """Return which rows the constraint is on: those whose group is known.

        Parameters
        ----------
        groups : Groups
            The groups of a part, see `groupings`.

        Returns
        -------
        known : ndarray of bool of shape (n_rows,)
        """
        return groups.known

    def claims(self, y: Array, groups: Groups | Array, sample_weight: Array) -> list[Claim]:
        """Return the statements about the population that `enforce="decision"` is to certify.

        Parameters
        ----------
        y, groups, sample_weight
            See `bind`.

        Returns
        -------
        claims : list of Claim
            All must be accepted. Empty where `cannot_be_tested` has a reason.
        """
        checked = self._checked(y, groups, sample_weight)
        return [] if self.cannot_be_tested else claims_of(self._compared(*checked))

    def _compared(self, y: Array, groups: Groups, weight: Array) -> Compared:
        """Return the numbers that are compared, for a constraint that held-out rows can test."""
        raise NotImplementedError("Define `_compared`, or give a reason in `cannot_be_tested`.")

    def claims_on(self, data: TrainingData, n_rows: int | None = None) -> list[Claim]:
        """Return the claims on the rows whose group is known.

        Parameters
        ----------
        data : TrainingData
            The rows, see `groupings`.
        n_rows : int or None, default=None
            The length of the scores, where rows without a group have none; None stands for all
            rows.
        """
        assert data.groups is not None, "claims are about groups"
        rows = np.flatnonzero(self.known_rows(data.groups))
        claims = self.claims(data.y[rows], data.groups.take(rows), data.sample_weight[rows])
        moved = len(rows) != n_rows
        shared = {sample for claim in claims for sample in claim.samples}
        samples = {sample: sample.on_rows(data, rows, moved=moved) for sample in shared}
        return [
            replace(
                claim,
                samples=tuple(samples[sample] for sample in claim.samples),
                labels=data.y if moved and claim.labels is not None else claim.labels,
            )
            for claim in claims
        ]

    def as_bound(self, term: Term) -> Self:
        """Return the constraint with what it chose on the training rows as parameters.

        Parameters
        ----------
        term : Term
            What `build` returned there.
        """
        return copy(self).set_params(**term.chosen)

    def for_all_groups(self) -> Self:
        """Return the constraint with claims on all groups, also on those that it leaves out."""
        return self

    def build_known(self, model: Model, data: TrainingData, free: FreeScores) -> CompositeFunction:
        """Return `build` on the rows whose group is known: the others are in no cell.

        Parameters
        ----------
        model, data, free
            See `parts`.
        """
        rows = None if data.groups is None else np.flatnonzero(self.known_rows(data.groups))
        if rows is None or len(rows) == len(data.y):
            return self.settled(partial(free, data, None)).build(model, data)
        if not len(rows):
            self._warn("no row has a known group (found: none); there is nothing to compare.")
            no_cells = sp.csc_array((0, len(data.y)))
            return CompositeFunction(model, CellMeans(no_cells, Sigmoid(), offset=np.zeros(0)))
        known = data.take(rows)
        part_of = model.on(known.X)
        part = self.settled(partial(free, known, rows)).build(part_of, known)
        if part.model is part_of and isinstance(part.term, OnCells):
            place, inside = np.zeros(len(data.y), int), np.zeros(len(data.y))
            place[rows], inside[rows] = np.arange(len(rows)), 1.0  # one pass over the data
            part = replace(part, model=model, term=part.term.take(place, inside))
        return part

    @property
    def takes_kappa(self) -> bool:
        """Whether the outputs depend on the estimator's kappa."""
        return self.tolerance_slope != 0.0

    def naming(self, classes: Array) -> Self:
        """Return a copy whose messages call the labels -1 and +1 by the names of the classes.

        Parameters
        ----------
        classes : ndarray of shape (2,)
            The names of the negative and of the positive class.
        """
        named = copy(self)
        named.labels = str(classes.tolist()[0]), str(classes.tolist()[1])
        return named

    def with_defaults(self, **defaults: object) -> Self:
        """Return a copy in which every hyperparameter that is None has the value given here."""
        names = self._get_param_names()
        if not self.takes_kappa:
            defaults.pop("kappa", None)
        missing = {k: v for k, v in defaults.items() if k in names and getattr(self, k) is None}
        return copy(self).set_params(**missing)
