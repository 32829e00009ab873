"""Cross-validation along warm-started paths: which kappa, and which alpha."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _num_samples

from fairconstrained.data.attributes import with_strata
from fairconstrained.data.inputs import check_same_rows, check_weight
from fairconstrained.estimators.logistic import FairLogisticClassifier
from fairconstrained.estimators.rows import check_options, penalty_of
from fairconstrained.estimators.solution import warn_of_other_solver
from fairconstrained.exceptions import ConvergenceWarning, warn
from fairconstrained.model_selection.path_fitting import follow, grid, strictest
from fairconstrained.model_selection.search import BestScoreWithin, SearchProgress, folds_of
from fairconstrained.solvers import Result
from fairconstrained.utils import execution
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import as_frame, is_number
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike

_ALPHAS = "alphas must be a sequence of numbers >= 0 or penalties, at least one"
_MEASURES = {"accuracy": "val_accuracy", "loss": "val_loss", "gap": "val_decision_gap"}
_Measured = tuple[dict[str, Array], list[Result]]  # the measures of a path, and how it ended


def knee(results: dict[str, Any]) -> int:
    """Return the candidate where the frontier bends: farthest above the line between its ends."""
    accuracy, gap = results["mean_test_accuracy"], results["mean_test_gap"]
    worst = np.lexsort((-accuracy, gap))
    ends = worst[0], int(np.argmax(accuracy))
    width, height = gap[ends[1]] - gap[ends[0]], accuracy[ends[1]] - accuracy[ends[0]]
    if not (width > 0.0 and height > 0.0):
        return int(ends[1])
    above = (accuracy - accuracy[ends[0]]) / height - (gap - gap[ends[0]]) / width
    return int(np.nanargmax(above))


@dataclass(eq=False, repr=False, kw_only=True)
class FairLogisticClassifierCV(FairLogisticClassifier):
    r"""FairLogisticClassifier whose kappa and alpha are chosen by cross-validation.

    For every alpha and every fold a :func:`~fairconstrained.fairness_path` is computed. Accuracy,
    loss and the gap of the predictions are measured on the held-out fold. A rule selects kappa and
    alpha, and the model is fitted with them to all rows. `max_gap` bounds the gap of predictions on
    held-out rows, whereas kappa bounds the gap of the surrogate on training rows.

    Parameters
    ----------
    constraint : str, Constraint or list of these, default="demographic_parity"
        The constraints, without kappa.
    kappa : float, default=0.05
        Not used by `fit`, which chooses kappa; it is the tolerance of `bind`.
    kappas : array-like of float or None, default=None
        The candidates for kappa. None takes `n_kappas` values in geometric progression, from the
        largest at which the constraint is active on all rows; see :func:`fairness_path`.
    n_kappas : int, default=15
        The number of candidates for kappa if `kappas` is None.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty, if `alphas` is None.
    alphas : sequence of float or None, default=None
        The candidates for alpha, >= 0; None for `alpha` alone.
    max_gap : float, default=0.03
        For refit="accuracy": the largest mean held-out gap allowed, >= 0.
    refit : {"accuracy", "knee"} or callable, default="accuracy"
        The rule that selects a candidate. "accuracy": the most accurate candidate within `max_gap`
        (if there is none, the one with the smallest gap, with a warning). "knee": the candidate
        farthest above the line through the fairest and the most accurate one. A callable takes
        `cv_results_` and returns the position of a candidate.
    cv : int, cross-validation generator, iterable or None, default=None
        As in scikit-learn; None stands for 5 stratified folds.
    n_jobs : int or None, default=None
        The number of folds that run in parallel, as in scikit-learn.
    verbose : int, default=0
        1 prints a line per path, that is per fold, and per iteration of the final fit; 2 also
        prints a line per point of a path. Callbacks receive the paths and the final fit as
        tasks, and the points as their subtasks.
    random_state : int, RandomState or None, default=None
        The source of randomness of the shuffling of the folds, if `cv` is a number or None, and of
        stochastic solvers. None does not shuffle.
    enforce, confidence, holdout
        Of the fit to all rows, see :class:`FairLogisticClassifier`; the paths bound scores.
    bound : bool, default=False
        Whether to compute the `optimality_gap_` of the fit to all rows.
    goal, max_loss_increase, solver, beta, surrogate, loss, domain, fit_intercept
        See :class:`FairLogisticClassifier`; a path needs goal="accuracy".
    sensitive_columns, use_sensitive, combine, groups_missing, pos_label, class_weight, threshold
    group_interactions, max_iter, tol, warm_start
        See :class:`FairLogisticClassifier`.

    Attributes
    ----------
    kappa_, alpha_ : float
        The selected values.
    best_index_ : int
        The position of the selected candidate in `cv_results_`.
    best_estimator_ : FairLogisticClassifier
        The model fitted to all rows; this estimator has its attributes as well.
    cv_results_ : dict of str to ndarray
        In scikit-learn's format: "params", "param_kappa", "param_alpha", and for accuracy, loss and
        gap "split0_test_accuracy", ..., "mean_test_accuracy", "std_test_accuracy" and
        "rank_test_accuracy" (1 is the best one: the smallest loss or gap). Folds whose gap is not
        defined, since a group has no rows there, are left out of its mean; it is NaN if the gap is
        not defined in any fold.
    kappas_ : ndarray
        The candidates for kappa, in decreasing order.
    n_splits_ : int
        The number of folds.

    Warns
    -----
    UserWarning
        If no candidate is within `max_gap`.
    ConvergenceWarning
        Once, if points of the paths did not converge.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifierCV, make_biased_classification
    >>> X, y, groups = make_biased_classification(3000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifierCV(n_kappas=6, max_gap=0.05, cv=3)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> bool(clf.cv_results_["mean_test_gap"][clf.best_index_] <= 0.05)
    True
    >>> bool(clf.kappa_ == clf.best_estimator_.kappa)
    True
    """

    kappas: ArrayLike | None = None
    n_kappas: valid.Several = 15
    alphas: Sequence[float] | None = None
    max_gap: valid.NonNegative = 0.03
    refit: Literal["accuracy", "knee"] | Callable[[dict[str, Any]], int] = "accuracy"
    cv: valid.Splits = None
    n_jobs: valid.Jobs = None
    bound: bool = False

    @execution.with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        control_features: MatrixLike | None = None,
        constraint_data: tuple[Any, Any, Any] | None = None,
        **params: Any,
    ) -> Self:
        """Choose kappa and alpha, and fit the model with them to all rows.

        Parameters
        ----------
        X, y, sensitive_features, control_features
            See :meth:`FairLogisticClassifier.fit`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows, in the fits and in the measures.
        constraint_data : tuple of (X, y or None, groups) or None, default=None
            Rows of the constraints, the same in all folds; see :meth:`FairLogisticClassifier.fit`.
            `sensitive_features` and `control_features` are then for the gaps on held-out rows;
            without them the measured gaps are those of the rows of the constraints.
        **params : object
            Further arguments of the `split` of `cv`, such as `groups` for `GroupKFold`.

        Returns
        -------
        self : FairLogisticClassifierCV
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument is not valid.
        TypeError
            If there is an argument that nothing takes.
        """
        groups = as_frame(with_strata(sensitive_features, control_features))
        passed = {"sample_weight": sample_weight, "sensitive_features": groups}
        splitting = execution.splitter_params(self, params, **passed)
        with execution.all_or_nothing(self):
            return self._search((X, y, sample_weight, groups), constraint_data, splitting)

    def _search(self, given: tuple[Any, ...], asked: Any, splitting: dict[str, Any]) -> Self:
        """Choose among all candidates, for the arguments of `fit`."""
        X, y, sample_weight, sensitive_features = given
        check_same_rows(
            X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        check_options(self)
        names, alphas = FairLogisticClassifier._get_param_names(), self._alphas()
        base = clone(FairLogisticClassifier(**{name: getattr(self, name) for name in names}))
        on_path = clone(base).set_params(enforce="score", confidence=None)
        with execution.limited_threads(X):
            of_fit = sensitive_features if asked is None else None  # else only measures need them
            strict = strictest(on_path, (X, y, sample_weight, of_fit), constraint_data=asked)
            self.kappas_ = grid(strict, self.kappas, self.n_kappas)
        weight = sample_weight
        if weight is not None:
            weight = check_weight("sample_weight", weight, _num_samples(X))
        rows = tuple(indexable(X, column_or_1d(y), weight, sensitive_features, of_fit))
        folds = folds_of(self, X, rows[1], weight, splitting)
        self.n_splits_ = len(folds)
        progress = SearchProgress(self, (X, y, sample_weight), len(alphas) * len(folds))
        runs = execution.workers(self.n_jobs, _num_samples(X), return_as="generator")(
            delayed(_measure)(on_path, alpha, rows, asked, self.kappas_, fold)
            for alpha, fold in product(alphas, folds)
        )
        measured = []
        for (alpha, k), run in zip(product(alphas, range(len(folds))), runs, strict=True):
            name = f"fold {k + 1} of {len(folds)}" + f", alpha {alpha}" * (len(alphas) > 1)
            progress.path(name, self.kappas_, run[0])
            measured.append(run)
        self.cv_results_ = _results(alphas, self.kappas_, measured, len(folds))
        self.best_index_ = self._chosen()
        best = self.cv_results_["params"][self.best_index_]
        self.kappa_, self.alpha_ = best["kappa"], best["alpha"]
        self.best_estimator_ = clone(base).set_params(**best)
        progress.say(f"all rows with kappa {self.kappa_:.4g} and alpha {self.alpha_}")
        with progress.task("refit", self.best_estimator_):
            groups = {"sensitive_features": of_fit, "constraint_data": asked}
            self.best_estimator_.fit(X, y, sample_weight, **groups)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        execution.set_fitted(self, execution.fitted_attributes(self.best_estimator_))
        progress.close(partial(execution.fitted_attributes, self.best_estimator_))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what this estimator requests, and what it passes on to the splitter."""
        return execution.with_splitter(MetadataRouter(owner=self).add_self_request(self), self.cv)

    def _chosen(self) -> int:
        """Return the position of the candidate that the rule of `refit` selects."""
        results, n, rule = self.cv_results_, len(self.cv_results_["params"]), self.refit
        if rule == "accuracy":
            rule = BestScoreWithin("gap", self.max_gap, "accuracy")
            if np.all(np.isnan(results["mean_test_gap"])):  # of one group, which was warned of
                results = {**results, "mean_test_gap": np.zeros(n)}
        position = (rule if callable(rule) else knee)(results)
        if not (is_number(position, Integral) and 0 <= position < n):
            raise ValueError(
                "refit must return the position of a candidate, an integer from 0 to "
                f"{n - 1}; got {position!r}."
            )
        return int(position)

    def _alphas(self) -> list[Any]:
        if self.alphas is None:
            return [self.alpha]
        try:
            alphas = [] if isinstance(self.alphas, str) else list(self.alphas)
            penalties = [penalty_of(alpha) for alpha in alphas]
            for penalty in penalties:
                valid.check_parameters(penalty)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{_ALPHAS}; got {self.alphas!r}: {error}") from error
        if not penalties:
            raise ValueError(f"{_ALPHAS}; got {self.alphas!r}.")
        return alphas


def _measure(
    base: Any, alpha: Any, rows: Sequence[Any], asked: Any, kappas: Array, fold: Sequence[Array]
) -> _Measured:
    """Return what the points of a fold's path are worth, and how they ended."""
    inside, outside = (
        [None if part is None else _safe_indexing(part, some) for part in rows] for some in fold
    )
    base = clone(base).set_params(alpha=alpha)
    with execution.limited_threads(inside[0]):
        strict = strictest(base, (*inside[:3], inside[4]), outside[:4], constraint_data=asked)
        path, _ = follow(strict, kappas, outside[:4])
    measures = {name: path.validation[key] for name, key in _MEASURES.items()}
    return measures, [model.result_.without_arrays() for model in path.estimators]


def _results(
    alphas: list[Any], kappas: Array, measured: list[_Measured], n_splits: int
) -> dict[str, Any]:
    params = [{"kappa": float(k), "alpha": a} for a, k in product(alphas, kappas)]
    results: dict[str, Any] = {
        "params": params,
        "param_kappa": np.ma.array([candidate["kappa"] for candidate in params]),
        "param_alpha": np.ma.array([candidate["alpha"] for candidate in params]),
    }
    for name in _MEASURES:
        values = np.array([measures[name] for measures, _ in measured])
        by_fold = values.reshape(len(alphas), n_splits, len(kappas)).transpose(1, 0, 2)
        splits = by_fold.reshape(n_splits, len(params))
        results |= {f"split{k}_test_{name}": values for k, values in enumerate(splits)}
        defined = np.ma.masked_invalid(splits)  # a fold may lack a group, so that it has no gap
        mean = defined.mean(axis=0).filled(np.nan)
        results[f"mean_test_{name}"] = mean
        results[f"std_test_{name}"] = defined.std(axis=0).filled(np.nan)
        worse = np.nan_to_num(-mean if name == "accuracy" else mean, nan=np.inf)
        results[f"rank_test_{name}"] = rankdata(worse, method="min").astype(np.int32)
    ended = [result for _, points in measured for result in points]
    warn_of_other_solver(ended)
    if failed := sum(not result.converged for result in ended):
        warn(
            f"{failed} of the {len(ended)} points of the paths did not converge; they were "
            "measured as they are. Raise max_iter or tol.",
            ConvergenceWarning,
        )
    return results
