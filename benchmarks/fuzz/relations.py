"""Fits that must agree with the first one: the same data in other units, order, names or form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.fuzz.checks import Failure, rounding
from benchmarks.fuzz.data import CONTAINERS, Array, Data, dress
from benchmarks.fuzz.descent import is_local_solution
from benchmarks.fuzz.fitting import Case, Outcome, run
from benchmarks.fuzz.formulas import determines_intercept

_STOCHASTIC = ("ssg-stochastic", "3s-econ-stochastic", "plada-stochastic", "idca-stochastic")
_SEEDED = (*_STOCHASTIC, "yu-neely-wei", "multiplier-model")
OTHER_SOLVER = "worse than another solver"
SEVERAL_SOLUTIONS = "several local solutions"
_OTHERS = ("ipc", "augmented-lagrangian", "sqp", "smoothing", "exact-penalty")
Changed = tuple[Case, Data]
Change = Callable[[Case, Data, np.random.Generator], Changed]


def _units(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    factors = 2.0 ** rng.integers(-6, 7, data.dense.shape[1])
    return case, _dressed(data, dense=data.dense * factors)


def _order(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    return case, _taken(data, rng.permutation(len(data.positions)))


def _copies(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    rows = np.repeat(np.arange(len(data.positions)), data.weights.astype(int))
    return case, replace(_taken(data, rows, weighted=False), weight=None)


def _group_names(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    kind = {"strings": "integers", "categories": "integers"}.get(data.spec.group_kind, "strings")
    return case, _dressed(data, group_kind=kind)


def _class_names(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    return case, _dressed(data, labels="objects" if data.spec.labels != "objects" else "integers")


def _container(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    others = [name for name in CONTAINERS if name not in ("float32", data.spec.container)]
    return case, _dressed(data, container=str(rng.choice(others)))


def _weight_units(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    weight = data.weights * 2.0 ** int(rng.integers(-8, 9))
    return case, dress(data.spec, data.dense, data.positions, data.codes, weight)


def _other_solver(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    names = [name for name in _OTHERS if name != case.solver]
    solver = str(rng.choice(names)) if case.solver == "auto" else "auto"
    return case.with_settings(solver=solver, max_iter=None), data


def _local(case: Case, data: Data, rng: np.random.Generator) -> Changed:
    name = case.chosen.estimator.removeprefix("dask.")
    return replace(case, chosen=replace(case.chosen, estimator=name)), data


def _dressed(data: Data, dense: Array | None = None, **changes: object) -> Data:
    """Return the same rows in another form."""
    spec = replace(data.spec, **changes)  # type: ignore[arg-type]
    dense = data.dense if dense is None else dense
    weight = None if data.weight is None else data.weights
    return dress(spec, dense, data.positions, data.codes, weight)


def _taken(data: Data, rows: Array, *, weighted: bool = True) -> Data:
    """Return some rows of a data set."""
    weight = data.weights[rows] if weighted and data.weight is not None else None
    spec = replace(data.spec, n_rows=len(rows))
    return dress(spec, data.dense[rows], data.positions[rows], data.codes[rows], weight)


@dataclass(frozen=True)
class Relation:
    """A change of a case that must not matter.

    `exact` demands the same scores up to rounding whatever the status; otherwise the objectives
    must agree where both fits converged. An exact one keeps the order of the rows. `kind` is the
    class of failure.
    """

    kind: str
    change: Change
    exact: bool
    suits: Callable[[Case, Outcome], bool] = lambda case, outcome: True


def _free(case: Case, outcome: Outcome) -> bool:
    settings = case.chosen.settings
    return settings.get("domain") is None and settings.get("radius") is None


def _reproducible(case: Case, outcome: Outcome) -> bool:
    settings = case.chosen.settings
    return "random_state" in settings or (
        case.solver not in _SEEDED and settings.get("confidence") is None
    )


def _whole_weights(case: Case, outcome: Outcome) -> bool:
    counted = outcome.data.spec.weights == "integers" and outcome.data.sensitive_columns is None
    return counted and _linear(case, outcome)


def _plain_groups(case: Case, outcome: Outcome) -> bool:
    kinds = [getattr(one, "membership", "crossed") for one in outcome.constraints]
    named = outcome.data.groups is not None and set(kinds) <= {"crossed"}
    return named and _reproducible(case, outcome)


def _dressable(case: Case, outcome: Outcome) -> bool:
    return outcome.data.sensitive_columns is None and not outcome.data.spec.missing


def _linear(case: Case, outcome: Outcome) -> bool:
    return hasattr(outcome.estimator, "coef_")


def _comparable(case: Case, outcome: Outcome) -> bool:
    return _linear(case, outcome) and not _searched(case)


def _searched(case: Case) -> bool:
    return case.chosen.settings.get("enforce") == "decision"


def _unique(case: Case, outcome: Outcome) -> bool:
    """Return whether the fit ends at a solution that does not depend on a draw of rows.

    Not so for models along the trees, and where rows are held out for early stopping.
    """
    trees = case.chosen.estimator == "FairBoostingClassifier"
    drawn = bool(case.chosen.settings.get("early_stopping"))
    return _reproducible(case, outcome) and not (trees and (drawn or _searched(case)))


def _no_trees(case: Case, outcome: Outcome) -> bool:
    """Return whether no trees are grown.

    LightGBM's regularisation is in units of the weights, and its sums over rows are rounded in the
    order of the rows, which decides between splits that are equally good.
    """
    return case.chosen.estimator != "FairBoostingClassifier"


_Suits = Callable[[Case, Outcome], bool]


def _both(*suits: _Suits) -> _Suits:
    return lambda case, outcome: all(one(case, outcome) for one in suits)


RELATIONS: dict[str, Relation] = {
    "again": Relation("not deterministic", lambda *same: same[:2], True, _reproducible),
    "units": Relation("changed by units", _units, True, _both(_free, _reproducible)),
    "order": Relation("changed by row order", _order, False, _both(_unique, _no_trees)),
    "groups": Relation("changed by names", _group_names, True, _both(_plain_groups, _dressable)),
    "classes": Relation("changed by names", _class_names, True, _reproducible),
    "copies": Relation("changed by copies for weights", _copies, False, _whole_weights),
    "weights": Relation(
        "changed by units of weights", _weight_units, False, _both(_unique, _no_trees)
    ),
    "container": Relation("changed by container", _container, False, _both(_dressable, _unique)),
    "solver": Relation(OTHER_SOLVER, _other_solver, False, _comparable),
    "local": Relation("changed by partitions", _local, False),
}  # fmt: skip


def check_relation(
    name: str, case: Case, outcome: Outcome, rng: np.random.Generator
) -> Iterator[Failure]:
    """Fit a changed case and compare."""
    relation = RELATIONS[name]
    other = run(*relation.change(case, outcome.data, rng))
    if other.error is not None:
        if type(other.error).__name__ != "IncompatibleSolverError":
            yield Failure(relation.kind, f"the changed fit fails: {other.error!r} {other.trace}")
        return
    if relation.exact:
        yield from _same_scores(relation, outcome, other)
    elif _searched(case):
        yield from _same_accuracy(relation.kind, outcome, other)
    else:
        yield from same_objective(relation.kind, outcome, other)


def _same_scores(relation: Relation, outcome: Outcome, other: Outcome) -> Iterator[Failure]:
    before, after = outcome.scores, other.scores
    near = rounding(outcome) * (1.0 + np.abs(before).max())
    off = float(np.max(np.abs(before - after)))
    if off > near:
        text = f"scores differ by {off:.3g}, objectives {outcome.estimator.objective_:.6g} and "
        yield Failure(relation.kind, f"{text}{other.estimator.objective_:.6g}")


def same_objective(kind: str, outcome: Outcome, other: Outcome) -> Iterator[Failure]:
    """Two fits that both converged have nearly the same objective.

    If they do not, but nothing clearly better is found near either of them, the problem has several
    local solutions. These are counted apart, unless the default solver has the worse one of two
    solvers. With a loss of pairs they are counted apart in this case as well: it does not determine
    the intercept, and a solver may move all scores to where the surrogate is flat.
    """
    if outcome.status != "converged" or other.status != "converged":
        return
    mine, its = outcome.result.objective, other.result.objective
    if abs(mine - its) <= 0.02 * min(abs(mine), abs(its)) + 2e-4 + rounding(outcome):
        return
    worse = outcome if mine > its else other
    default_is_worse = kind == OTHER_SOLVER and worse.settings.get("solver", "auto") == "auto"
    default_is_worse &= determines_intercept(worse.settings.get("loss", "logistic"))
    local = not default_is_worse and is_local_solution(outcome) and is_local_solution(other)
    text = f"objective {mine:.6g} ({outcome.result.solver}), {its:.6g} ({other.result.solver})"
    yield Failure(SEVERAL_SOLUTIONS if local else kind, text)


def _same_accuracy(kind: str, outcome: Outcome, other: Outcome) -> Iterator[Failure]:
    """The accuracies of two searches on decisions differ by at most two standard errors.

    A search that does not meet the bound minimises the violation, whatever the accuracy: two such
    searches differ by at most a row of the smallest group.
    """
    searches = [one.estimator.decision_search_ for one in (outcome, other)]
    if not any(search is None or search.met for search in searches):  # None: nothing is compared
        first, second = (search.violation for search in searches)
        allowed = 1.0 / np.unique(outcome.data.codes, return_counts=True)[1].min()
        if abs(first - second) > allowed:
            yield Failure(kind, f"violations {first:.4f}, {second:.4f}, allowed are {allowed:.4f}")
        return
    mine, its = _accuracy(outcome), _accuracy(other)
    n = np.square(outcome.data.weights.sum()) / np.square(outcome.data.weights).sum()
    allowed = 2.0 * np.sqrt(max(mine * (1.0 - mine), 1.0 / n) / n)
    if abs(mine - its) > allowed:
        yield Failure(kind, f"accuracies {mine:.4f} and {its:.4f}, allowed are {allowed:.4f}")


def _accuracy(outcome: Outcome) -> float:
    data = outcome.data
    return float(outcome.estimator.score(data.X, data.y, sample_weight=data.weight))
