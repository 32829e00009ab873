"""What a fit asks of parameters and rows, the rows held out, and constraints bound to rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.constraints.base import FreeScores
from fairconstrained.data.groups import advice_on_groups, check_shared
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import hold_out
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.solving import minimize_by_default
from fairconstrained.exceptions import InputWarning, first_of, warn
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import SURROGATES, Surrogate
from fairconstrained.models import Model
from fairconstrained.objectives import MeanLoss, resolve_objective
from fairconstrained.penalties import L2, Penalty
from fairconstrained.problem import CompositeFunction, Evaluation, Problem
from fairconstrained.solvers import Result
from fairconstrained.solvers.base import Start
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.classes import ByClass, class_terms, log_odds
from fairconstrained.utils.arguments import check_kappa, check_unset, resolve
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import check_parameters

_UNUSED = 0.02  # the part of a share of rows that decisions within a bound may leave unused


@dataclass(eq=False)
class Unconstrained:
    """The model without constraints, by `minimize`; it is solved on first access."""

    problem: Problem
    minimize: Callable[[Problem, Start | None], Result] = minimize_by_default
    # the share of the rows that it selects, with their weights, wherever a constrained model has
    # its threshold; None where the threshold is fixed
    selects: tuple[float, Array] | None = None
    near: Start | None = None  # where the solution is looked for

    @cached_property
    def result(self) -> Result:
        """The solution."""
        return self.minimize(self.problem, self.near)

    @cached_property
    def at(self) -> Evaluation:
        """The problem at the solution."""
        return self.problem.at(self.result.w)

    @cached_property
    def cut(self) -> float:
        """The score above which it selects its rows."""
        return 0.0 if self.selects is None else self.cut_of(self.at)

    def cut_of(self, at: Evaluation) -> float:
        """Return the score above which another model selects that share of its rows."""
        assert self.selects is not None
        return at.model_pass(self.problem.objective.model).score_below_share(*self.selects)

    def limits(self, estimator: Any, model: Model, data: TrainingData) -> list[CompositeFunction]:
        """Return the constraints that decisions within a bound must meet to select the share.

        They may leave two per cent of it unused, or two rows if that is more. Without a share there
        are none.
        """
        if self.selects is None:
            return []
        share, weight = self.selects
        unused = max(_UNUSED * share, 2.0 * float(data.largest_weight / weight.sum()))
        least = max(share - unused, 0.0)
        term = CellMeans(
            sp.csc_array((weight / weight.sum())[None, :]),
            resolve("surrogate", estimator.surrogate, SURROGATES, Surrogate),
            combination=np.array([[1.0], [-1.0]]),
            offset=np.array([share, -least]),
            names=(f"rate(all) <= {share:g}", f"rate(all) >= {least:g}"),
        )
        return [CompositeFunction(model, term)]

    def on(self, model: Model) -> FreeScores:
        """Return the scores of the rows of a model with the same parameters."""
        distribution = cache(lambda: self.at.model_pass(model).distribution())

        def scores_of(data: TrainingData, rows: Array | None) -> tuple[Array, TrainingData]:
            scores, atoms, weight = distribution()
            scores = scores - self.cut
            if atoms is None or weight is None:
                return (scores if rows is None else scores[rows]), data
            if rows is not None:
                inside = np.isin(atoms, rows)
                scores, weight = scores[inside], weight[inside]
                atoms = np.searchsorted(rows, atoms[inside])
            return scores, replace(data.take(atoms), sample_weight=weight)

        return scores_of


def constraints_of(estimator: Any, data: TrainingData) -> list[Constraint]:
    """Return an estimator's constraints with its kappa, surrogate and loss where they have none."""
    kappa = estimator.kappa if estimator.goal == "accuracy" else 0.0
    given = resolve_constraints(estimator.constraint)
    asked = data.constraint_data
    unlabelled = asked is not None and asked[1] is None
    for constraint in () if asked is None else given:
        if constraint.needs_queries or (constraint.needs_labels and unlabelled):
            lacks = "queries" if constraint.needs_queries else "labels"
            raise ValueError(f"constraint_data has no {lacks}, and {constraint!r} needs them.")
    by_group = getattr(estimator, "per_group", False)
    needed = by_group or any(constraint.needs_groups for constraint in given)
    if needed and data.asked.groups is None:
        asks = "per_group=True" if by_group else f"constraint={estimator.constraint!r}"
        passed = "sensitive_features to fit (in pipelines and searches by metadata routing)"
        passed = passed if asked is None else "them as the third part of constraint_data"
        raise ValueError(
            f"{asks} needs groups: pass {passed}, or name columns of X in sensitive_columns."
        )
    if any(constraint.takes_kappa for constraint in given):
        check_kappa(kappa)
    defaults = {"kappa": kappa, "surrogate": estimator.surrogate, "loss": estimator.loss}
    if not data.several_classes:
        given = [constraint.naming(data.classes) for constraint in given]
    return [constraint.with_defaults(**defaults) for constraint in given]


def asked_of(model: Model, data: TrainingData) -> tuple[Model, TrainingData]:
    """Return the model of the rows that constraints are on, and these rows."""
    asked = data.asked
    return (model if asked is data else model.on(asked.X)), asked


def loss_part(estimator: Any, model: Model, data: TrainingData) -> CompositeFunction:
    """Return an estimator's loss of a model on rows, without a penalty."""
    return CompositeFunction(model, resolve_objective("loss", estimator.loss).build(data))


def bound_parts(
    constraints: Sequence[Constraint],
    model: Model,
    data: TrainingData,
    unconstrained: FreeScores,
    like: Sequence[CompositeFunction] | None = None,
) -> list[CompositeFunction]:
    """Return the constraints on rows; variables of their terms follow the model's in order.

    With `like`, the same constraints on the training rows, what they chose there is kept, for
    instance the minority.
    """
    parts, start = [], model.n_parameters
    for k, constraint in enumerate(constraints):
        terms = None if like is None else [part.term for part in like if part.source == k]
        if data.several_classes:
            made = _class_parts(constraint, model, data, unconstrained, terms)
        else:
            made = constraint.parts(model, data, unconstrained, terms)
        for part in made:
            end = start + part.term.n_auxiliary
            place = slice(start, end) if end > start else part.auxiliary
            parts.append(replace(part, source=k, auxiliary=place))
            start = end
    return parts


def _class_parts(
    constraint: Constraint,
    model: Model,
    data: TrainingData,
    free: FreeScores,
    like: Sequence[Term] | None,
) -> list[CompositeFunction]:
    """Return a constraint's parts on the log odds of each of several classes."""
    names = tuple(map(str, data.classes.tolist()))
    by_class = []

    def of_class(k: int, rows: TrainingData, some: Array | None) -> tuple[Array, TrainingData]:
        scores, rows_of_scores = free(rows, some)
        return log_odds(scores)[:, k], rows_of_scores

    for k in range(len(names)):
        rows = data.one_versus_rest(k)
        named = constraint.naming(rows.classes)
        terms = None if like is None else [class_terms(term)[k] for term in like]
        by_class.append(named.parts(model, rows, partial(of_class, k), terms))
    return [
        replace(parts[0], term=ByClass(tuple(part.term for part in parts if part.term), names))
        for parts in zip(*by_class, strict=True)
    ]


def choices(bound: Sequence[CompositeFunction]) -> list[dict[str, Any]]:
    """Return what each constraint chose on the training rows, for measurements on other rows.

    It is empty where a constraint chooses nothing, or not the same for all classes and groupings.
    """
    chosen = []
    for _, parts in groupby(bound, attrgetter("source")):
        first, *others = (dict(term.chosen) for part in parts for term in class_terms(part.term))
        same = all(np.array_equal(first[k], other.get(k, ())) for other in others for k in first)
        chosen.append(first if same else {})
    return chosen


_FEW_ROWS = 10  # groups that have fewer rows on average are probably not intended


def check_options(estimator: Any) -> None:
    """Check the parameters of an estimator, and that they fit together."""
    check_parameters(estimator)
    if estimator.enforce != "decision":
        check_unset(estimator, "bounds decisions: use enforce='decision', or", confidence=None)
    if getattr(estimator, "group_interactions", False):
        if estimator.sensitive_columns is None:
            raise ValueError(
                "group_interactions=True needs the groups when predicting as well: name the "
                "columns of X that hold them in sensitive_columns (it is not enough to pass groups "
                "to fit)."
            )
        gives = "group_interactions=True gives every row the coefficients of its group, and with"
        if estimator.groups_missing == "ignore_in_constraint":
            lack = "groups_missing='ignore_in_constraint' some rows have none; use 'own_group'."
            raise ValueError(f"{gives} {lack}")
        if estimator.combine == "marginal":
            several = "combine='marginal' a row is in several; use combine='intersection'."
            raise ValueError(f"{gives} {several}")
    if estimator.goal == "fairness":
        why = "bounds the gap of the predictions by kappa, which goal='fairness' does not use: use"
        check_unset(estimator, f"{why} goal='accuracy', or", enforce="score")
        if estimator.constraint is None:
            raise ValueError(
                "goal='fairness' minimises the gap of a constraint, and constraint=None has none: "
                "name one, such as 'demographic_parity'."
            )


def check_several_classes(estimator: Any, constraints: Sequence[Constraint]) -> None:
    """Check options that are defined for two classes only."""
    why = "is for two classes, and y has more: use"
    check_unset(estimator, why, threshold=None, confidence=None, group_interactions=False)
    objective = resolve_objective("loss", estimator.loss)
    if not (isinstance(objective, MeanLoss) and isinstance(objective.loss_function, Logistic)):
        raise ValueError(
            f"loss={estimator.loss!r} is for two classes, and y has more: use loss='logistic', "
            "which is then the multinomial loss."
        )
    for constraint in constraints:
        if not constraint.by_class:
            raise ValueError(
                f"constraint={constraint!r} is for two classes, and y has more: use a constraint "
                "on the rate of each class, such as 'demographic_parity' or 'error_rate_parity'."
            )


def warn_of_unused_kappa(estimator: Any) -> None:
    """Warn if another kappa than the default is given and no constraint uses it."""
    kappa = estimator.kappa
    if kappa is None or kappa == type(estimator).kappa:
        return
    constraints, goal = resolve_constraints(estimator.constraint), estimator.goal
    used = goal == "accuracy" and any(constraint.takes_kappa for constraint in constraints)
    if used or not constraints:
        return
    if goal != "accuracy":
        reason = f"goal={goal!r} does not use it"
    else:
        in_list = isinstance(estimator.constraint, list | tuple)
        names = ", ".join(
            f"constraint__{f'{k}__' if in_list else ''}{constraint.tolerance}"
            for k, constraint in enumerate(constraints)
        )
        kinds = " and ".join(dict.fromkeys(type(each).__name__ for each in constraints))
        reason = f"the tolerance of {kinds} is {names} in set_params and grids"
    warn(f"kappa={kappa!r} is not used: {reason}.", InputWarning)


def check_group_sizes(
    constraints: Sequence[Constraint], data: TrainingData, *, by_group: bool = False
) -> None:
    """Check that rows share groups, and warn if groups have few rows."""
    if data.groups is None or not (by_group or any(each.compares_groups for each in constraints)):
        return
    check_shared(data.groups, data.n_rows)
    few = []
    for groups in data.groups.separate:
        counts = groups.known if data.counts is None else data.counts[groups.known]
        n_rows, n_groups = int(counts.sum()), len(groups)
        if n_rows < _FEW_ROWS * n_groups and (n_groups > 2 or groups.stratum):
            few.append((groups, n_rows, n_groups))
    for parts in filter(None, [few] if data.groups.stratified else [[part] for part in few]):
        every, *sizes = zip(*parts, strict=True)
        (n_rows, n_groups), advice = map(sum, sizes), advice_on_groups(every[0])
        strata = [*dict.fromkeys(groups.stratum for groups in every if groups.stratum)]
        kind = "strata" if len(strata) > 1 else "stratum"
        where = f"In the {kind} {first_of(strata)} the" if strata else "The"
        warn(
            f"{where} sensitive features make {n_groups} groups of {n_rows} rows, "
            f"{n_rows / n_groups:.1f} rows each on average. Rates of so few rows are unreliable, "
            f"and there are many constraints. If this is not intended, {advice}.",
            InputWarning,
        )


def penalty_of(alpha: float | Penalty) -> Penalty:
    """Return the L2 penalty of strength `alpha`, or `alpha` itself if it is a penalty."""
    return alpha if isinstance(alpha, Penalty) else L2(float(alpha))


def without_held_out(
    estimator: Any, data: TrainingData, constraints: Sequence[Constraint]
) -> tuple[TrainingData, TrainingData | None]:
    """Return the rows to train on, and those held out for `confidence`, if it is given.

    Without constraints nothing is held out, and of rows that only constraints are on these alone.
    """
    if estimator.confidence is None or not constraints:
        return data, None
    check_testable(constraints)
    share, random_state, asked = estimator.holdout, estimator.random_state, data.asked
    kept, held_out = hold_out(asked, share, random_state, constraints)
    if data.constraint_data is not None:
        kept = replace(data, constraint_data=(*data.constraint_data[:3], kept.positions))
    return kept, held_out
