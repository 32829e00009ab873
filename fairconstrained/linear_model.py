"""Linear classifiers under fairness constraints."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.constraints.base import check_kappa
from fairconstrained.domains import Domain
from fairconstrained.exceptions import ConvergenceWarning, InfeasibleConstraintWarning
from fairconstrained.losses import LOSSES, Loss
from fairconstrained.models import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem import Problem
from fairconstrained.progress import Progress
from fairconstrained.registry import resolve
from fairconstrained.scalar import Array
from fairconstrained.solvers import SOLVERS, Result, Solver, automatic
from fairconstrained.solvers.base import Start
from fairconstrained.training import (
    SensitiveColumns,
    TrainingData,
    build_problem,
    check_options,
    domain_of,
    penalty_of,
    threads_that_pay,
)


class FairLogisticClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Logistic regression under explicit fairness constraints.

    .. math::
        \min_{w, b} \frac{\sum_i v_i\, \ell(y_i (x_i^\top w + b))}{\sum_i v_i}
        + \frac{\alpha}{2} \|w\|_2^2 \quad \text{s.t.} \quad g_j(w, b) \le 0,

    with sample weights v, the logistic loss, and one-sided constraints g_j such as
    :math:`\mathrm{rate}_a - \mathrm{rate}_b \le \kappa` for every ordered pair of groups. The
    model is deterministic and does not need the sensitive features to predict.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        What must hold: "demographic_parity", "equal_opportunity", "predictive_equality",
        "equalized_odds", an object such as ``EqualizedOdds(kappa=0.1, against="overall")``, or a
        list, all of which must hold. None fits the unconstrained model and needs no groups.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    solver : str or Solver, default="auto"
        "auto" takes the first that can solve the problem of "ipc" (smooth problems), "ipp-ssg"
        (weakly convex ones) and "ssg" (any); the README lists all names with what each needs and
        guarantees. Or an object such as ``IPC(rho=0.01)``, whose own tolerance then holds. Which
        one ran is in ``result_.solver``.
    beta : float or None, default=None
        Passed to solvers that have such a parameter; an error for others.
    surrogate : {"sigmoid", "ramp"} or Surrogate, default="sigmoid"
        What stands for the decision 1{score > 0} in constraints that do not name their own.
    loss : {"logistic", "truncated_logistic", "hinge", "quadratic"} or Loss, default="logistic"
        The loss of the margin.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty such as ``SCAD(0.02)``. The intercept is
        free. Where `domain` is the whole space, coefficients are penalised per spread of their
        feature (see `feature_scale_`), so that units do not matter: this is the plain penalty for
        0/1 columns and standardised ones.
    domain : Domain or None, default=None
        Where the coefficients may lie, in the units of the features, for instance
        ``L1Ball(20.0)``; None is the whole space.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    sensitive_columns : list of str or int, callable or None, default=None
        The columns of X that hold the sensitive attributes, or a function of X that returns the
        groups. With None the groups are passed to `fit`.
    use_sensitive : bool, default=False
        Whether the sensitive columns are features of the model as well.
    enforce : {"score"}, default="score"
        Whether `kappa` bounds the surrogate's gap, as in the papers.
    max_iter : int or None, default=None
        The solver's largest number of iterations; None takes its default.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual for a solver given by name.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients and multipliers of the fit before.
    random_state : int, RandomState or None, default=None
        For stochastic solvers.
    verbose : int, default=0
        1 prints a line per outer iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        The coefficients; zero for sensitive columns that the model may not see.
    intercept_ : ndarray of shape (1,)
        The intercept.
    classes_ : ndarray of shape (2,)
        The class labels; the second one is the positive decision.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.
    feature_scale_ : ndarray of shape (n_features_in_,)
        The spread of each feature that the penalty refers to: the distance of the values of a
        two-valued column, the standard deviation of any other; ones where a domain is given.
    n_iter_ : int
        The solver's iterations.
    groups_ : ndarray
        The groups, sorted; tuples if there were several sensitive attributes.
    multipliers_ : ndarray of shape (n_constraints,)
        The Lagrange multipliers: what the objective would gain per unit of each tolerance.
    objective_ : float
        Mean loss plus penalty.
    violation_ : float
        The largest violation on scores, measured with the surrogate; 0 if all constraints hold.
    decision_gap_ : float
        The largest gap that the decisions show on the training rows (nan without constraints).
    kkt_residual_ : float
        See :func:`~fairconstrained.certificate.kkt_residual`.
    result_ : Result
        All of this, the status, the trace and the solver.

    Warns
    -----
    ConvergenceWarning
        If the solver ends short of its tolerance.
    InfeasibleConstraintWarning
        If it ends with a violation above its tolerance.
    VacuousConstraintWarning
        If a cell of a constraint has no rows.

    References
    ----------
    IPC (Ma, Lin, Yang 2019); PLADA; 3S-Econ (Liu, Xu 2025); IDCA (He, Huang, Yao, Lin 2025).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier("demographic_parity", kappa=0.05)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_ <= 1e-4
    ('converged', True)
    >>> unconstrained = FairLogisticClassifier(constraint=None).fit(X, y)
    >>> clf.objective_ > unconstrained.objective_
    True
    """

    def __init__(
        self,
        constraint: Any = "demographic_parity",
        kappa: float = 0.05,
        *,
        solver: str | Solver = "auto",
        beta: float | None = None,
        surrogate: Any = "sigmoid",
        loss: Any = "logistic",
        alpha: float | Penalty = 1e-4,
        domain: Domain | None = None,
        fit_intercept: bool = True,
        sensitive_columns: Any = None,
        use_sensitive: bool = False,
        enforce: str = "score",
        max_iter: int | None = None,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.constraint = constraint
        self.kappa = kappa
        self.solver = solver
        self.beta = beta
        self.surrogate = surrogate
        self.loss = loss
        self.alpha = alpha
        self.domain = domain
        self.fit_intercept = fit_intercept
        self.sensitive_columns = sensitive_columns
        self.use_sensitive = use_sensitive
        self.enforce = enforce
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: binary labels, sparse features."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The labels, of two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows in the loss and in the groups' averages alike.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups; rows that agree in all columns are one group. Not needed with
            `sensitive_columns` or without a constraint.

        Returns
        -------
        self : FairLogisticClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid, groups are missing, or the solver cannot solve the problem.
        """
        check_options(self)
        columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
        data = TrainingData.check(self, X, y, sensitive_features, sample_weight, columns)
        constraints = self._constraints(data)
        with threads_that_pay(data.X):
            problem = build_problem(
                data,
                constraints,
                loss=resolve("loss", self.loss, LOSSES, Loss),
                penalty=penalty_of(self.alpha),
                domain=domain_of(self.domain),
                fit_intercept=self.fit_intercept,
            )
            kept = columns.kept(self)
            solver = self._solver(problem)
            solver.check(problem)
            progress = Progress(
                self, X, y, sample_weight, lambda w: self._ready_to_predict(problem, data, kept, w)
            )
            result = solver.minimize(
                problem,
                warm=self._warm(problem, kept, solver),
                callback=progress,
                random_state=self.random_state,
            )
            progress.close(result.w)
        self._store(problem, result, data, kept)
        self._warn()
        return self

    def _constraints(self, data: TrainingData) -> list[Constraint]:
        """Return the constraints with the estimator's kappa and surrogate where they have none."""
        if self.constraint is None:
            return []
        given = self.constraint if isinstance(self.constraint, list | tuple) else [self.constraint]
        found = [resolve("constraint", one, CONSTRAINTS, Constraint) for one in given]
        if found and data.groups is None:
            raise ValueError(
                f"constraint={self.constraint!r} needs groups: pass sensitive_features to fit (in "
                "pipelines and searches by metadata routing), or name columns of X in "
                "sensitive_columns."
            )
        if any(one.kappa is None for one in found):
            check_kappa(self.kappa)
        return [one.with_defaults(kappa=self.kappa, surrogate=self.surrogate) for one in found]

    def _solver(self, problem: Problem) -> Solver:
        """Return the solver with the estimator's options."""
        names = {"auto": lambda: automatic(problem), **SOLVERS}
        solver = resolve("solver", self.solver, names, Solver)
        if isinstance(self.solver, str):
            solver = solver.with_options(tol=self.tol)
        if self.beta is not None and "beta" not in solver.get_params(deep=False):
            raise ValueError(
                f"beta={self.beta!r} is given, but solver {solver!r} has no such parameter; "
                "leave beta at None."
            )
        return solver.with_options(max_iter=self.max_iter, beta=self.beta)

    def _warm(self, problem: Problem, kept: Array, solver: Solver) -> Start | None:
        """Return the last fit as a start if it is wanted and fits the problem."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if self.coef_.shape[1] != self.n_features_in_:
            return None
        w = problem.objective.model.variables(self.coef_[:, kept], self.intercept_)
        known = len(self.multipliers_) == problem.n_constraints
        return Start(w, self.multipliers_ if known else None)

    def _ready_to_predict(
        self, problem: Problem, data: TrainingData, kept: Array, w: Array
    ) -> dict[str, Array]:
        """Return what `predict` needs, in the units of X, for the solver's variables."""
        model = problem.objective.model
        coef, intercept = model.coefficients(w[: model.n_parameters])
        full = np.zeros((1, self.n_features_in_))
        full[:, kept] = coef
        return {"coef_": full, "intercept_": intercept, "classes_": data.classes}

    def _store(self, problem: Problem, result: Result, data: TrainingData, kept: Array) -> None:
        for name, value in self._ready_to_predict(problem, data, kept, result.w).items():
            setattr(self, name, value)
        scale = problem.objective.model.scale
        self.feature_scale_ = np.ones(self.n_features_in_)
        if scale is not None:
            self.feature_scale_[kept] = scale
        self.groups_ = np.array([]) if data.groups is None else data.groups.names
        self.n_iter_ = result.n_iter
        self.multipliers_ = result.multipliers
        self.objective_ = result.objective
        self.violation_ = result.violation
        self.decision_gap_ = problem.unmetered().at(result.w).decision_gap
        self.kkt_residual_ = result.kkt_residual
        self.result_ = result

    def _warn(self) -> None:
        result = self.result_
        if result.violation > result.solver.tol:
            warnings.warn(
                f"No model that meets the constraints was found; the least violation is "
                f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
                InfeasibleConstraintWarning,
                stacklevel=4,
            )
        elif not result.converged:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=4)

    def decision_function(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The second class is decided where the score is positive.
        """
        check_is_fitted(self)
        columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
        model = LinearModel(columns.features(self, X, reset=False))
        return model.scores(np.append(self.coef_[0, columns.kept(self)], self.intercept_))

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, the logistic function of the scores.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            In the order of `classes_`.
        """
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, 2)
        """
        scores = self.decision_function(X)
        return np.column_stack([log_expit(-scores), log_expit(scores)])
