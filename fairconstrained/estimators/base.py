"""The base classes of the estimators: bind, minimise with callbacks, store, warn."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fairconstrained.bounds import OptimalityGap
from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import COMBINE, GROUPS_MISSING
from fairconstrained.data.inputs import check_three
from fairconstrained.data.labels import ScoreConvention, given_queries
from fairconstrained.data.sensitive_columns import Columns, SensitiveColumns, feature_kind
from fairconstrained.data.validation import Split, TrainingData
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.estimators import ConstraintParameters, DocumentedEstimator, rows, solving
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.selection_rate import cut_exactly, moved, settled, warn_of_share
from fairconstrained.estimators.solution import warn_of_fit
from fairconstrained.estimators.thresholds import score_convention
from fairconstrained.penalties import Penalty
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.shards.model import rows_by_atom
from fairconstrained.solvers import SOLVERS, Result, Solver, default_solver
from fairconstrained.solvers.base import Start, without_kinks
from fairconstrained.utils import execution
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import resolve
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike


@dataclass(eq=False, repr=False, kw_only=True)
class ConstrainedEstimator(execution.CallbackSupportMixin, DocumentedEstimator):
    """Estimators trained by minimising a constrained problem.

    The parameters of an estimator are the fields of a dataclass. Subclasses have `warm_start` too.
    """

    solver: str | Solver = "auto"
    beta: float | None = None
    alpha: valid.Strength | Penalty = 1e-4
    max_iter: valid.Count | None = None
    tol: valid.Positive = 1e-4
    random_state: valid.Seed = None
    verbose: valid.Verbosity = 0

    __metadata_request__fit: ClassVar = {"sample_weight": True}
    several_classes: ClassVar[bool] = False  # whether y may have more than two classes

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: sparse features, missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        checks = feature_kind(self).checks
        tags.input_tags.allow_nan = checks.get("ensure_all_finite") == "allow-nan"
        return tags

    def _scores(self, X: MatrixLike) -> Array:
        """Return the scores that users see, of rows with the columns seen in `fit`."""
        check_is_fitted(self)
        return self._raw_scores(SensitiveColumns(self).features(X, reset=False))

    @abstractmethod
    def _raw_scores(self, features: Any) -> Array:
        """Return the scores of rows with the features that the fitted model uses."""

    def _default_solver(self, problem: Problem) -> Solver:
        """Return the solver that "auto" stands for."""
        return default_solver(problem)

    def _adapted(self, solver: Solver, problem: Problem) -> Solver:
        """Return the solver with options that not all estimators have."""
        return solver

    def _solver(self, problem: Problem) -> Solver:
        """Return the solver with the options of this estimator.

        A solver that is chosen by name and needs continuous gradients gets a problem with rounded
        kinks.
        """
        names = {"auto": lambda: self._default_solver(problem), **SOLVERS}
        solver = resolve("solver", self.solver, names, Solver)
        named = isinstance(self.solver, str)
        if named:
            solver = solver.with_options(tol=self.tol)
        solver = self._adapted(solving.with_beta(solver, self.beta), problem)
        if self.max_iter is not None:
            solver = solver.with_options(max_iter=self.max_iter).unpolished()
        return without_kinks(problem, solver) if named else solver

    def _train(self, problem: Problem, fit: Any = None, **options: Any) -> solving.Solved:
        """Return the solution of a problem of a fit, and the evaluation there, see `best_of`."""
        solver, sampled = self._solver(problem), None
        if options.get("warm") is None:
            sampled = solving.sampled_start(solver, problem, self)
        if sampled is None:
            return solving.best_of(solver, problem, self, **options)
        solver, start = sampled
        result, at = solving.best_of(solver, problem, self, **(options | {"warm": start}))
        return replace(result, data_passes=result.data_passes + start.data_passes), at

    def _minimize(
        self,
        problem: Problem,
        passed: tuple[Any, ...],
        attributes: Callable[[Array], Mapping[str, Any]],
        *,
        variables: Array | None,
        first: Start | None = None,
        fit: Any = None,
    ) -> solving.Solved:
        """Return the solution, see `_train`; callbacks receive all measured iterates."""
        watched = self.verbose or getattr(self, "_skl_callbacks", None)
        progress = execution.Progress(self, passed, attributes) if watched else None
        if variables is not None:
            w, last = problem.start() if first is None else np.array(first.w), self.result_
            if last.w.size == problem.n_variables:
                w[:] = last.w
            w[: len(variables)] = variables
            same = len(last.multipliers) == problem.n_constraints
            first = Start(w, last.multipliers if same else None)
        result, at = self._train(problem, fit, warm=first, callback=progress)
        if progress is not None:
            progress.close(lambda: attributes(result.w))
        return result, at


@dataclass(eq=False, repr=False)
class FairEstimator(ConstraintParameters, ConstrainedEstimator):
    """Estimators of two classes under fairness constraints, with any model."""

    constraint: ConstraintLike = "demographic_parity"
    kappa: float = 0.05
    _: KW_ONLY
    goal: Literal["accuracy", "fairness"] = "accuracy"
    max_loss_increase: valid.Positive = 0.001
    sensitive_columns: Columns = None
    use_sensitive: bool = False
    combine: Annotated[str, valid.one_of(*COMBINE)] = "intersection"
    groups_missing: Annotated[str, valid.one_of(*GROUPS_MISSING)] = "raise"
    pos_label: object = None
    bound: bool = True

    __metadata_request__fit: ClassVar = dict.fromkeys(
        ("sensitive_features", "control_features", "constraint_data"), True
    )
    needs_queries: ClassVar[bool] = False  # whether rows belong to queries: for rankers
    most_thresholds: ClassVar[int] = 12
    _follows_others = False  # whether the constraints are on the rows that choose the iterate

    def bind(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        *,
        query: ArrayLike | None = None,
        validation: tuple[Any, ...] = (),
        constraint_data: tuple[Any, Any, Any] | None = None,
        path: bool = False,
    ) -> Fit:
        """Return the problem that `fit` would solve, for developers; sets n_features_in_.

        The problem has no rows of weight zero. `data.positions` has the positions of its rows in X,
        or is None if they are the rows of X.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, control_features, query, constraint_data
            See `fit`.
        validation : tuple, default=()
            X_val, y_val, sample_weight_val, groups with their strata, and query_val of `fit`.
        path : bool, default=False
            Whether the tolerances are to vary, see :meth:`Fit.bind`.
        """
        groups = with_strata(sensitive_features, control_features)
        asked = None if constraint_data is None else (*check_three(constraint_data, groups), None)
        if self.needs_queries:
            given_queries(self, query, "fit")
        rows.check_options(self)
        narrow = not path and asked is None and self._reads_by_atom()
        data = TrainingData.check(self, X, y, groups, sample_weight, query, narrow=narrow)
        convention = score_convention(self, data.classes)
        data = replace(data.by_size(), convention=convention, constraint_data=asked)
        others = data.validation_rows(*validation) if validation else None
        if others is not None and not self._stops_early:
            raise ValueError(
                "X_val: validation rows choose when training stops: use early_stopping=True, "
                "for rankers that of BoostedScores."
            )
        constraints = rows.constraints_of(self, data)
        if data.several_classes:
            rows.check_several_classes(self, constraints)
        rows.check_group_sizes(constraints, data.asked)
        data = self._prepared(data)
        if data.narrow:  # one row per atom, where an evaluation is one read of many rows
            averages = all(constraint.averages_atoms for constraint in constraints)
            data = (rows_by_atom(data) if averages else None) or data.widened()
        data, held_out = rows.without_held_out(self, data, constraints)
        fit = Fit.bind(self, data, constraints, self._split(data, others), path=path)
        return fit if held_out is None else fit.tested(held_out)

    @execution.with_callbacks
    def certify(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        query: ArrayLike | None = None,
        constraint_data: tuple[Any, Any, Any] | None = None,
        gap: valid.BelowOne = 0.005,
        seconds: valid.Positive = 10.0,
    ) -> OptimalityGap:
        """Search longer than `fit` for a bound on the distance from the best model.

        First the search of `fit` continues. Then, with at most 30 features and 30,000 different
        rows, the models are divided into boxes of coefficients. Each box has its own bound, and
        bounds are larger in smaller boxes. The smallest of these bounds holds for all models.
        `verbose` and callbacks report every step. If the gap is smaller than `optimality_gap_`, it
        replaces this, also in `result_`.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, control_features, query, constraint_data
            The rows that the model was fitted to.
        gap : float, default=0.005
            The search ends when the gap is at most this.
        seconds : float, default=10.0
            The time after which the search ends; a step is not interrupted.

        Returns
        -------
        gap : OptimalityGap
            Its attributes are `gap` and `reason`, why it is None; as text it is a sentence.

        Raises
        ------
        ValueError
            If the objective of the model on these rows is not `objective_`.
        """
        check_is_fitted(self)
        valid.check_arguments(type(self).certify, gap=gap, seconds=seconds)
        passed, before = (X, y, sample_weight), self.optimality_gap_
        with execution.limited_threads(X):
            others: dict[str, Any] = {"query": query, "constraint_data": constraint_data}
            fit = copy(self).bind(*passed, sensitive_features, control_features, **others)
        threshold = ScoreConvention.of(self).threshold  # of a SelectionRate it follows the scores
        if by := threshold - fit.data.convention.threshold:
            fit = moved(fit, by)
        at = fit.problem.uncounted().at(self.result_.w[: fit.problem.n_variables])
        if not np.isclose(at.objective, self.objective_, rtol=1e-6, atol=0.0):
            raise ValueError(
                "certify needs the rows that the model was fitted to: its objective on these is "
                f"{at.objective:.6g}, objective_ is {self.objective_:.6g}."
            )
        progress = execution.Progress(self, passed, fit.attributes)

        def watch(gap: float) -> bool:
            return progress.report(f"optimality gap {100.0 * gap:.4g}%", at.w)

        with execution.limited_threads(X):
            optimality = fit.optimality(self.result_, at, stop=gap, seconds=seconds, watch=watch)
        progress.close(lambda: fit.attributes(at.w))
        if before is None or (optimality.gap is not None and optimality.gap < before):
            result = replace(self.result_, optimality=optimality.text)
            self.__dict__ = vars(self) | optimality.attributes | {"result_": result}
        return optimality

    @property
    def _stops_early(self) -> bool:
        """Whether rows for validation choose when training stops."""
        return bool(getattr(self, "early_stopping", False))

    def _reads_by_atom(self) -> bool:
        """Return whether rows may be read once per evaluation: nothing needs their scores."""
        return False

    def _prepared(self, data: TrainingData) -> TrainingData:
        """Return the rows with the features that the model uses; checks its parameters."""
        return data

    def _split(self, data: TrainingData, others: TrainingData | None) -> Split | None:
        """Return the rows to train on and those that choose the iterate, the user's if given."""
        return None if others is None else (data, others)

    @abstractmethod
    def _free_problem(self, data: TrainingData, *growing: Any) -> Problem:
        """Return the problem without constraints.

        Trees are grown by the constraints, the split of the rows, and whether it is for a path.
        """

    @abstractmethod
    def _fitted(self, fit: Fit, w: Array) -> Mapping[str, Any]:
        """Return the fitted attributes that `predict` uses, for the model's variables."""

    def _variables(self, fit: Fit) -> Array | None:
        """Return the variables of the last fit, None if they are of no use for this one."""
        return None

    def _with_linear_scores(self, at: Evaluation) -> Evaluation:
        """Return the problem whose scores are linear in its variables, at a point, for bounds."""
        return at

    def _train_free(self, fit: Fit, problem: Problem, near: Start | None) -> Result:
        """Return the solution of the problem without constraints of a fit, from a start near it."""
        return solving.minimize_by_default(problem, near)

    def _decided(self, fit: Fit, result: Result) -> tuple[DecisionSearch, Certificate | None]:
        """Return the search on decisions, which varies all variables, from a solution on scores."""
        return fit.searched(fit.decision_task(result), fit.held_out)

    def _fit(self, *passed: Any, **others: Any) -> Self:
        """Check the rows, bind the problem, solve it and store the solution; arguments of `bind`.

        Every estimator is fitted so. Subclasses say what the model is (`_prepared`,
        `_free_problem`, `_fitted`) and how it is trained (`_default_solver`, `_train`, `_decided`).
        """
        with execution.all_or_nothing(self), execution.limited_threads(passed[0]):
            rows.warn_of_unused_kappa(self)
            fit, problem, first, passes = settled(self.bind(*passed, **others))
            variables = self._variables(fit) if self.warm_start else None
            options: dict[str, Any] = {"variables": variables, "first": first, "fit": fit}
            result, at = self._minimize(problem, passed[:3], fit.attributes, **options)
            fit, result, at = cut_exactly(fit, result, at, passes)
            solution = fit.enforced(result)
            if self.bound:
                solution = replace(solution, optimality=fit.optimality(result, at))
            fit.store(self, solution, like=at)
            warn_of_fit(fit, solution, result, at)
            warn_of_share(fit, solution)
        return self
