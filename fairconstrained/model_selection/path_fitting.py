"""The frontier of accuracy and fairness: a model for every tolerance, each from the last."""

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairconstrained.constraints import resolve_constraints
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.inputs import check_same_rows, check_three
from fairconstrained.estimators import solution as ending
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.selection_rate import cut_exactly, settled
from fairconstrained.estimators.solution import Solution
from fairconstrained.estimators.solving import several_solutions
from fairconstrained.exceptions import ConvergenceWarning, warn
from fairconstrained.model_selection.path import FairnessPath, Rows, fitting, predicted, refined
from fairconstrained.problem import Evaluation
from fairconstrained.solvers import Result, Status
from fairconstrained.solvers.base import Start
from fairconstrained.utils.arguments import check_numbers, check_unset
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike
from fairconstrained.utils.execution import limited_threads
from fairconstrained.utils.meta_estimators import fitted_steps, last_step
from fairconstrained.utils.parameter_constraints import OpenShare, Several, check_arguments

_MIN_RATIO = 0.01  # of the smallest to the largest kappa
_ORDER = 2  # of the polynomial in kappa that extrapolates to the next point
_LEAST = 1e-3  # the largest kappa of a path whose constraint does not bind at all

# a model, how it ended, its fit if decisions are to follow, its quality and measures, and the gaps
# of predictions that are far above their bounds on scores
_Point = tuple[FairEstimator, Result, Fit | None, float, dict[str, float], list[ending.Excess]]
_Rows = tuple[Rows, Rows | None]  # the training rows and those for validation


def fairness_path(
    estimator: FairEstimator | Pipeline,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    sensitive_features: MatrixLike | None = None,
    control_features: MatrixLike | None = None,
    query: ArrayLike | None = None,
    kappas: ArrayLike | None = None,
    n_kappas: Several = 30,
    min_ratio: OpenShare = _MIN_RATIO,
    X_val: MatrixLike | None = None,
    y_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    sensitive_features_val: MatrixLike | None = None,
    control_features_val: MatrixLike | None = None,
    query_val: ArrayLike | None = None,
    constraint_data: tuple[Any, Any, Any] | None = None,
    bound: bool = False,
) -> FairnessPath:
    r"""Fit an estimator for a decreasing sequence of tolerances.

    The start of each fit is extrapolated from the weights and multipliers of the previous points by
    a polynomial in kappa, and the solver keeps its model of the curvature. Every point is solved to
    the tolerance of a single fit. Thirty points of a linear model take about six times the data
    passes of the hardest single fit. With few rows, each point starts where a single fit starts.

    With ``enforce="decision"`` the search of a single fit follows for every point, from the
    smallest tolerance to the largest. The predictions of the previous model meet the larger
    tolerance, too; this model is kept if it is more accurate than that of the search. Therefore the
    training accuracy never falls when kappa grows.

    Parameters
    ----------
    estimator : classifier or ranker of this library, or Pipeline
        A FairLogisticClassifier, FairHingeClassifier, FairBoostingClassifier, FairNetworkClassifier
        or FairRanker, or a pipeline that ends in one. It is not changed, and its `kappa` is not
        used. Constraints with their own kappa keep it. Trees are grown once, without constraints,
        and their leaf values are fitted for every kappa. A network is trained from the weights of
        the previous point, for at most `max_epochs`, with the same validation rows for all points.
        The other steps of a pipeline are fitted once, to X and y.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features.
    y : array-like of shape (n_samples,)
        The labels.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows.
    sensitive_features : array-like or DataFrame or None, default=None
        The groups, as in `fit`.
    control_features : array-like or DataFrame or None, default=None
        Strata in which groups are compared, as in `fit`.
    query : array-like of shape (n_samples,) or None, default=None
        The query of each row, for rankers.
    kappas : array-like of float or None, default=None
        The tolerances; they are sorted in decreasing order. None takes `n_kappas` values in
        geometric progression, from the largest at which the constraint is active, at most 1, to
        `min_ratio` times that value.
    n_kappas : int, default=30
        The number of points if `kappas` is None, at least 2.
    min_ratio : float, default=0.01
        The ratio of the smallest to the largest kappa if `kappas` is None, in (0, 1).
    X_val, y_val, sample_weight_val, query_val : array-like or None
        Validation rows, on which accuracy (``NDCG@10`` of rankers), loss and gaps are measured, in
        the form of the training rows. With `early_stopping` these rows replace the validation rows
        of the fits.
    sensitive_features_val, control_features_val : array-like, DataFrame or None
        Their groups and strata.
    constraint_data : tuple of (X, y or None, groups) or None, default=None
        Rows that the constraints apply to, as in `fit`, where the rows of X have no groups; a
        pipeline transforms their X. If the validation rows have no groups, their gaps are those of
        these rows.
    bound : bool, default=False
        Whether to compute the `optimality_gap_` of every model.

    Returns
    -------
    path : FairnessPath
        The models and their measures.

    Raises
    ------
    ValueError
        If no constraint takes its kappa from the estimator, or an argument is not valid.
    TypeError
        If the estimator is none of these.

    Warns
    -----
    ConvergenceWarning
        Once, if points did not converge.
    InputWarning
        Once, if the predictions of a point exceed its bound on rates by more than 0.1.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, fairness_path
    >>> from fairconstrained import make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, gap=0.1, random_state=0)
    >>> path = fairness_path(FairLogisticClassifier(), X, y, sensitive_features=groups, n_kappas=5)
    >>> set(path.statuses.tolist()), path.coefs.shape
    ({'converged'}, (5, 10))
    >>> bool(path.gaps[-1] < 0.01 < 0.08 < path.gaps[0])
    True
    """
    check_arguments(fairness_path, n_kappas=n_kappas, min_ratio=min_ratio)
    groups = with_strata(sensitive_features, control_features)
    groups_val = with_strata(sensitive_features_val, control_features_val)
    check_same_rows(X=X, y=y, sensitive_features=groups, sample_weight=sample_weight, query=query)
    pipeline = None
    if isinstance(estimator, Pipeline):
        _check_followed(estimator[-1])
        rows: dict[str, Any] = {"y": y, "sample_weight": sample_weight}
        rows |= {"sensitive_features": groups, "query": query}
        pipeline, X, rows = fitted_steps(clone(estimator), X, rows)
        y, sample_weight, groups, query = rows.values()
        estimator = pipeline.steps[-1][1]
        X_val = None if X_val is None else last_step(pipeline, X_val)[1]
        if constraint_data is not None:
            asked, *labels = check_three(constraint_data)
            constraint_data = last_step(pipeline, asked)[1], labels[0], labels[1]
    held_out = X_val, y_val, sample_weight_val, groups_val, query_val
    with limited_threads(X):
        fit = strictest(estimator, (X, y, sample_weight, groups), held_out, query, constraint_data)
        path, far = follow(fit, grid(fit, kappas, n_kappas, min_ratio), held_out, bound=bound)
    failed = ~np.isin(path.statuses, [Status.CONVERGED.value, Status.VALIDATED.value])
    if failed.any():
        warn(
            f"{failed.sum()} of the path's {len(path)} points did not converge "
            f"({', '.join(sorted(set(path.statuses[failed])))}), at kappa = "
            f"{', '.join(f'{kappa:.3g}' for kappa in path.kappas[failed])}: raise tol, "
            "max_iter, or max_epochs of a network, or look at the statuses and leave these points "
            "out.",
            ConvergenceWarning,
        )
    ending.warn_of_predictions(far)
    ending.warn_of_other_solver([model.result_ for model in path.estimators])
    path.pipeline = pipeline
    return path


def follow(
    fit: Fit, kappas: Array, held_out: Sequence[Any], *, bound: bool = False
) -> tuple[FairnessPath, list[ending.Excess]]:
    """Return the path of a fit with kappa = 0, and gaps of predictions far above their bounds."""
    rows = _, validation = _rows(fit, held_out)
    if fit.unconstrained.selects is None:
        points = list(_points(fit, kappas, rows, bound))
        _improve(fit, points, rows, bound)
    else:
        points = list(_at_share(fit, kappas, held_out, bound))
    if fit.estimator.enforce == "decision":
        points = list(_decided(points, held_out, bound))[::-1]
    estimators, results, _, worth, measures, far = zip(*points, strict=True)
    passes = np.array([result.data_passes for result in results])
    passes[0] += fit.unconstrained.result.data_passes
    columns = {name: np.array([values[name] for values in measures]) for name in measures[0]}
    path = FairnessPath(kappas, list(estimators), passes, np.array(worth), columns)
    if validation is not None:
        weight, groups = validation.data.sample_weight, validation.data.groups
        weight = weight if groups is None else groups.once(weight)[1]
        # `@` would start BLAS threads
        path.validation_size = float(weight.sum() ** 2 / np.square(weight).sum())
    return path, [pair for of_point in far for pair in of_point]


def strictest(
    estimator: FairEstimator,
    rows: Sequence[Any],
    held_out: Sequence[Any] = (),
    query: ArrayLike | None = None,
    constraint_data: tuple[Any, Any, Any] | None = None,
) -> Fit:
    """Return the fit with kappa = 0; training that stops early does so by the held-out rows."""
    _check_followed(estimator)
    options: dict[str, Any] = {} if query is None else {"query": query}
    if query is not None and not estimator.needs_queries:
        raise ValueError(
            f"query is for rankers, and {type(estimator).__name__} is not one: leave it out."
        )
    strict = clone(estimator)
    strict.kappa = 0.0  # not by set_params: a subclass may name other parameters
    if estimator._stops_early:
        options["validation"] = tuple(held_out)
    return strict.bind(*rows, **options, constraint_data=constraint_data, path=True)


def _check_followed(estimator: object) -> None:
    if not isinstance(estimator, FairEstimator):
        raise TypeError(
            "estimator must be a FairLogisticClassifier, FairHingeClassifier, "
            "FairBoostingClassifier, FairNetworkClassifier or FairRanker, or a pipeline that ends "
            f"in one; got {estimator!r}. Fit other estimators once for every kappa, for instance "
            "with GridSearchCV."
        )
    why = "is not for a path, which varies the tolerance on the training rows: set"
    check_unset(estimator, why, goal="accuracy", confidence=None)
    if estimator.constraint is None:
        raise ValueError("constraint=None has no tolerance to vary: name a constraint.")
    if not any(each.takes_kappa for each in resolve_constraints(estimator.constraint)):
        raise ValueError(
            f"constraint={estimator.constraint!r} does not take its tolerance from the "
            "estimator: leave kappa at None in the constraint whose tolerance is to vary. Vary "
            "other tolerances by GridSearchCV, a ratio as constraint__ratio."
        )


def grid(fit: Fit, kappas: ArrayLike | None, n_kappas: int, min_ratio: float = _MIN_RATIO) -> Array:
    """Return the tolerances in decreasing order; at kappa = 0, violations are kappas that bind."""
    if kappas is not None:
        return np.unique(check_numbers("kappas", kappas, 0.0, 1.0))[::-1]
    violated = fit.problem.at(fit.start().w).constraints[fit.tolerance_slopes != 0.0]
    most = float(violated.max(initial=0.0))
    return np.geomspace(1.0, min_ratio, n_kappas) * np.clip(most, _LEAST, 1.0)


def _points(fit: Fit, kappas: Array, rows: _Rows, bound: bool) -> Iterator[_Point]:
    """Yield the point of every tolerance, each from the last ones."""
    start = fit.start()
    solved = deque[tuple[float, Result]](maxlen=_ORDER + 1)
    at = fit.problem.at(start.w)
    for kappa in kappas:
        here, warm = fit.with_kappa(float(kappa)), None
        # of few rows the branch of the last points may end at a worse solution
        if not several_solutions(here.problem):
            warm = fitting(predicted(solved, kappa) or start, here.problem, fit.model)
        result, at = here.solve(warm=warm, like=at)
        solved.append((float(kappa), refined(result, at)))
        yield _point(here, Solution(result), at, rows, bound)


def _at_share(fit: Fit, kappas: Array, held_out: Sequence[Any], bound: bool) -> Iterator[_Point]:
    """Yield the point of every tolerance where a share of the rows is selected.

    The threshold is another one at every point. Iterations start from that of the last point.
    """
    warm = fit.start()
    for kappa in kappas:
        fit = fit.with_kappa(float(kappa))
        warm = Start(fitting(warm, fit.problem, fit.model).w)
        fit, problem, start, passes = settled(fit, warm)
        fit, result, at = cut_exactly(fit, *fit.solve(problem, warm=start), passes)
        warm = Start(result.w)
        yield _point(fit, Solution(result), at, _rows(fit, held_out), bound)


def _decided(points: list[_Point], held_out: Sequence[Any], bound: bool) -> Iterator[_Point]:
    """Yield the points whose decisions meet the bound, that of the smallest tolerance first."""
    stricter = None
    for _, result, fit, *_ in reversed(points):
        assert fit is not None, "see _point"
        solution = fit.enforced(result, stricter)
        if fit.unconstrained.selects is None:  # else the next one has another threshold
            stricter = solution.search
        at = fit.problem.uncounted().at(solution.result.w)
        yield _point(fit, solution, at, _rows(fit, held_out), bound)


def _rows(fit: Fit, held_out: Sequence[Any]) -> _Rows:
    """Return the training rows and those for validation, if there are any."""
    others = fit.data.validation_rows(*held_out)
    validation = None if others is None else Rows(fit.problem_on(others), others)
    return Rows(fit.problem.uncounted(), fit.data), validation


def _point(fit: Fit, solution: Solution, at: Evaluation, rows: _Rows, bound: bool) -> _Point:
    """Return the fitted estimator, the result, its fit, and what they are worth."""
    fitted: FairEstimator = copy(fit.estimator)
    (training, validation), result = rows, solution.result
    if bound:
        solution = replace(solution, optimality=fit.optimality(result, at))
    fit.store(fitted, solution, like=at)
    measures = {} if validation is None else validation.measured(result.w)
    on_scores = solution.search is None and not fit.estimator.needs_queries
    far = ending.far_predictions(fit, at) if on_scores else []
    kept = fit if fitted.enforce == "decision" else None  # it may be as large as the rows
    return fitted, result, kept, training.worth(result.w, like=at), measures, far


def _improve(fit: Fit, points: list[_Point], rows: _Rows, bound: bool) -> None:
    """Solve points again that are worse than a stricter one, from that one.

    A model that meets a stricter bound meets this one as well: a point that is worse is at another
    local optimum. Where rows for validation choose the iterates, the objective does not.
    """
    if fit.split is not None:
        return
    for k in reversed(range(len(points) - 1)):
        (model, here, *_), stricter = points[k], points[k + 1][1]
        tol = here.solver.tol
        if stricter.violation > tol or stricter.objective >= here.objective - 10.0 * tol:
            continue
        same = fit.with_kappa(model.kappa)
        warm = fitting(Start(stricter.w, stricter.multipliers), same.problem, fit.model)
        again, at = same.solve(warm=warm)
        if again.violation <= tol and again.objective < here.objective:
            again = replace(again, data_passes=here.data_passes + again.data_passes)
            points[k] = _point(same, Solution(again), at, rows, bound)
