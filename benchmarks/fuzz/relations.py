"""Fits that must agree with the first one: the same data in other units, order, names or form."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.fuzz import checks
from benchmarks.fuzz.checks import Failure, Failures, rounding
from benchmarks.fuzz.data import CONTAINERS, Array, Data, Rng, dress
from benchmarks.fuzz.descent import check_certificate, is_local_solution
from benchmarks.fuzz.fitting import Case, Outcome, run
from benchmarks.fuzz.formulas import PAIR_LOSSES, kind_of
from fairconstrained import GroupProbabilities
from fairconstrained.constraints.parity import RateParity

_SEEDED = (
    "ssg-stochastic", "3s-econ-stochastic", "plada-stochastic", "idca-stochastic",
    "yu-neely-wei", "multiplier-model",
)  # fmt: skip
OTHER_SOLVER = "worse than another solver"
SEVERAL_SOLUTIONS = "several local solutions"
_OF_COPIES = (checks.check_violation, checks.check_objective, checks.check_figures)
_OTHERS = ("ipc", "augmented-lagrangian", "sqp", "smoothing", "exact-penalty")
Changed = Case | Data
Suits = Callable[[Outcome], bool]


def _dressed(data: Data, rows: Array | slice = slice(None), **changes: object) -> Data:
    """Return the same rows, or some of them, in another form."""
    data = replace(data, **changes)  # type: ignore[arg-type]
    weight = None if data.weight is None else data.weights[rows]
    return dress(data.spec, data.dense[rows], data.positions[rows], data.codes[rows], weight)


def _units(case: Case, data: Data, rng: Rng) -> Changed:
    return _dressed(data, dense=data.dense * 2.0 ** rng.integers(-6, 7, data.dense.shape[1]))


def _order(case: Case, data: Data, rng: Rng) -> Changed:
    return _dressed(data, rng.permutation(len(data.positions)))


def _copies(case: Case, data: Data, rng: Rng) -> Changed:
    rows = np.repeat(np.arange(len(data.positions)), data.weights.astype(int))
    return _dressed(data, rows, weight=None)


def _group_names(case: Case, data: Data, rng: Rng) -> Changed:
    kind = {"strings": "integers", "categories": "integers"}.get(data.spec.group_kind, "strings")
    return _dressed(data, spec=replace(data.spec, group_kind=kind))


def _class_names(case: Case, data: Data, rng: Rng) -> Changed:
    labels = "objects" if data.spec.labels != "objects" else "integers"
    return _dressed(data, spec=replace(data.spec, labels=labels))


def _container(case: Case, data: Data, rng: Rng) -> Changed:
    others = [name for name in CONTAINERS if name not in ("float32", data.spec.container)]
    return _dressed(data, spec=replace(data.spec, container=str(rng.choice(others))))


def _weight_units(case: Case, data: Data, rng: Rng) -> Changed:
    return _dressed(data, weight=data.weights * 2.0 ** int(rng.integers(-8, 9)))


def _other_solver(case: Case, data: Data, rng: Rng) -> Changed:
    names = [name for name in _OTHERS if name != case.solver]
    solver = str(rng.choice(names)) if case.solver == "auto" else "auto"
    return replace(case, settings=case.settings | {"solver": solver, "max_iter": None})


def _local(case: Case, data: Data, rng: Rng) -> Changed:
    return replace(case, estimator=case.estimator.removeprefix("dask."))


def _free(outcome: Outcome) -> bool:
    return not {"domain", "radius"} & outcome.case.settings.keys()


def _reproducible(outcome: Outcome) -> bool:
    return "random_state" in outcome.case.settings or outcome.case.solver not in _SEEDED


def _whole_weights(outcome: Outcome) -> bool:
    return outcome.data.spec.weights == "integers" and outcome.data.sensitive_columns is None


def _plain_groups(outcome: Outcome) -> bool:
    kinds = {getattr(rule, "membership", "crossed") for rule in outcome.constraints}
    return outcome.data.groups is not None and kinds <= {"crossed"}


def _dressable(outcome: Outcome) -> bool:
    return outcome.data.sensitive_columns is None and not outcome.data.spec.missing


def _linear(outcome: Outcome) -> bool:
    return hasattr(outcome.estimator, "coef_")


def _scored(outcome: Outcome) -> bool:
    return outcome.case.settings.get("enforce") != "decision"


def _unique(outcome: Outcome) -> bool:
    """Return whether the fit ends at a solution that does not depend on a draw of rows.

    Not so for models along the trees, and where rows are held out for early stopping.
    """
    drawn = bool(outcome.case.settings.get("early_stopping"))
    return _reproducible(outcome) and (_no_trees(outcome) or (_scored(outcome) and not drawn))


def _no_trees(outcome: Outcome) -> bool:
    """Return whether no trees are grown.

    LightGBM's regularisation is in units of the weights, and its sums over rows are rounded in the
    order of the rows, which decides between splits that are equally good.
    """
    return outcome.case.estimator != "FairBoostingClassifier"


@dataclass(frozen=True)
class Relation:
    """A change of a case or of its data that must not matter, where all of `suits` hold.

    `exact` demands the same scores up to rounding whatever the status; otherwise the objectives
    must agree where both fits converged. An exact one keeps the order of the rows. `kind` is the
    class of failure.
    """

    kind: str
    change: Callable[[Case, Data, Rng], Changed]
    exact: bool
    suits: tuple[Suits, ...] = ()


RELATIONS: dict[str, Relation] = {
    "again": Relation("not deterministic", lambda case, *_: case, True, (_reproducible,)),
    "units": Relation("changed by units", _units, True, (_free, _reproducible)),
    "order": Relation("changed by row order", _order, False, (_unique, _no_trees)),
    "groups": Relation(
        "changed by names", _group_names, True, (_plain_groups, _reproducible, _dressable)
    ),
    "classes": Relation("changed by names", _class_names, True, (_reproducible,)),
    "copies": Relation("changed by copies for weights", _copies, False, (_whole_weights, _linear)),
    "weights": Relation("changed by units of weights", _weight_units, False, (_unique, _no_trees)),
    "container": Relation("changed by container", _container, False, (_dressable, _unique)),
    "solver": Relation(OTHER_SOLVER, _other_solver, False, (_linear, _scored)),
    "local": Relation("changed by partitions", _local, False),
}


def check_relation(name: str, outcome: Outcome, rng: Rng) -> Failures:
    """Fit a changed case and compare."""
    relation, case, data = RELATIONS[name], outcome.case, outcome.data
    changed = relation.change(case, data, rng)
    other = run(changed, data) if isinstance(changed, Case) else run(case, changed)
    if other.error is not None:
        if type(other.error).__name__ != "IncompatibleSolverError":
            yield Failure(relation.kind, f"the changed fit fails: {other.trace}")
    elif relation.exact:
        off = float(np.max(np.abs(outcome.scores - other.scores)))
        if off > rounding(outcome) * (1.0 + np.abs(outcome.scores).max()):
            yield Failure(relation.kind, f"scores differ by {off:.3g}")
    elif _scored(outcome):
        yield from same_objective(relation.kind, outcome, other)
    else:
        yield from _same_accuracy(relation.kind, outcome, other)


def check_probabilities(outcome: Outcome) -> Failures:
    """A fit to groups known in probability is a fit to copies of the rows, weighted by these."""
    case, data = outcome.case, outcome.data
    codes, n = data.codes[:, 0], len(data.codes)
    rates = all(isinstance(rule, RateParity) for rule in outcome.constraints)
    rates &= not case.estimator.startswith("dask")
    single = data.codes.shape[1] == 1 and not outcome.estimator.group_interactions
    if not (rates and single and _dressable(outcome) and _scored(outcome)):
        return
    names = np.arange(codes.max() + 1)
    random = np.random.default_rng([case.seed, case.index, 3]).dirichlet(np.ones(len(names)), n)
    P = 0.6 * np.eye(len(names))[codes] + 0.4 * random
    probable = run(case, replace(data, groups=GroupProbabilities(P, names)))
    if probable.error is not None:
        yield Failure("groups in probability", probable.trace)
        return
    rows = np.repeat(np.arange(n), len(names))
    weight, codes = (data.weights[:, None] * P).ravel(), np.tile(names, n)[:, None]
    spec = replace(data.spec, container="numpy")
    copies = dress(spec, data.dense[rows], data.positions[rows], codes, weight)
    scores = probable.estimator.decision_function(copies.X)
    seen = replace(probable, data=copies, scores=scores)
    for check in (*_OF_COPIES, check_certificate):
        yield from check(seen)


def same_objective(kind: str, outcome: Outcome, other: Outcome) -> Failures:
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
    worse = (outcome if mine > its else other).case
    default_is_worse = kind == OTHER_SOLVER and worse.solver == "auto"
    default_is_worse &= kind_of(worse.settings.get("loss", "logistic")) not in PAIR_LOSSES
    local = not default_is_worse and is_local_solution(outcome) and is_local_solution(other)
    text = f"objective {mine:.6g} ({outcome.result.solver}), {its:.6g} ({other.result.solver})"
    yield Failure(SEVERAL_SOLUTIONS if local else kind, text)


def _same_accuracy(kind: str, outcome: Outcome, other: Outcome) -> Failures:
    """The accuracies of two searches on decisions differ by at most two standard errors.

    A search that does not meet the bound minimises the violation, whatever the accuracy: two such
    searches differ by at most a row of the smallest group.
    """
    both = (outcome, other)
    searches = [each.estimator.decision_search_ for each in both]
    if not any(search is None or search.met for search in searches):  # None: nothing is compared
        first, second = (search.violation for search in searches)
        allowed = 1.0 / np.unique(outcome.data.codes, return_counts=True)[1].min()
        what = "violations"
    else:
        first, second = (
            each.estimator.score(each.data.X, each.data.y, sample_weight=each.data.weight)
            for each in both
        )
        n = np.square(outcome.data.weights.sum()) / np.square(outcome.data.weights).sum()
        allowed = 2.0 * np.sqrt(max(first * (1.0 - first), 1.0 / n) / n)
        what = "accuracies"
    if abs(first - second) > allowed:
        yield Failure(kind, f"{what} {first:.4f} and {second:.4f}, allowed are {allowed:.4f}")
