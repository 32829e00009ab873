"""Boosted trees under fairness constraints: their leaf values are the variables of a fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import Split, TrainingData, split
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch, DecisionTask
from fairconstrained.domains import Box, Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.estimators import tree_parameters
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.classifier import EarlyStoppedClassifier, ProbabilitiesMixin
from fairconstrained.estimators.fit import Fit, moved_variables
from fairconstrained.estimators.growth import Growth, Trees, as_lightgbm_data
from fairconstrained.estimators.rows import loss_part
from fairconstrained.estimators.score_lagrangian import LogLoss, PairLoss
from fairconstrained.estimators.solving import Solved, with_beta
from fairconstrained.models import LeafModel
from fairconstrained.penalties import InUnits, Leading, Penalty, Proximity
from fairconstrained.problem import Problem
from fairconstrained.solvers import Result, Solver, Status
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.utils.arrays import Array


class BoostedTrees(Solver):
    """Measures the start, the boosted leaf values, and makes no step.

    It stands for the boosting iterations in the result of a fit whose trees meet the constraints.
    """

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the start with its multipliers."""
        yield Iterate(start.at(problem), start.multipliers, 1)


class TreeScores(FairEstimator):
    """Estimators whose scores may be those of boosted trees: leaf values start at boosted ones."""

    @property
    def _trees(self) -> Any:
        """The parameters of trees, None where scores are others."""
        return self

    @property
    def _stops_early(self) -> bool:
        return self._trees is not None and bool(self._trees.early_stopping)

    @property
    def _follows_others(self) -> bool:  # type: ignore[override]
        """Whether the constraints are on the rows that trees are not grown on."""
        return getattr(self._trees, "constraint_fraction", None) is not None

    def _split(self, data: TrainingData, others: TrainingData | None) -> Split | None:
        """Return the rows that trees are grown on, and the others, None for all rows."""
        if others is not None and self._follows_others:
            raise ValueError(
                "X_val: with constraint_fraction a share of the queries chooses the number of "
                "trees. Use constraint_fraction=None, or leave X_val out."
            )
        if others is not None or not (self._stops_early or self._follows_others):
            return super()._split(data, others)
        follows, trees = self._follows_others, self._trees
        share = trees.constraint_fraction if follows else trees.validation_fraction
        return split(data, share, self.random_state or 0)

    def _tree_loss(self, data: TrainingData) -> LogLoss | PairLoss:
        return LogLoss(data)

    def _prepared(self, data: TrainingData) -> TrainingData:
        """Return the rows as they are, once parameters and codes of categories are checked."""
        trees, columns = self._trees, SensitiveColumns(self)
        names = columns.seen
        tree_parameters.check_lightgbm_params(trees)
        is_category = np.isin(names, list(self.categories_))
        self.is_categorical_ = tree_parameters.categorical_mask(
            trees.categorical_features, names.tolist(), is_category
        )
        kept = columns.kept()
        tree_parameters.check_codes(data.X, self.is_categorical_[kept], names[kept].tolist())
        return data

    def _free_problem(self, data: TrainingData, *growing: Any) -> Problem:
        """Return the problem of the leaf values of trees that are grown here.

        The variables are those of `Trees`; the penalty is the squared distance from the boosted
        values. Constraints that come later, those of a path, do not count.
        """
        constraints, split, path = growing
        trees, free = self._trees, path or self.goal == "fairness"
        rows, held = (data, None) if split is None else split
        n_fitted = None if free else trees.n_fitted_trees
        grown = Growth(self, rows, () if free else constraints, held, n_fitted).run()
        values, lengths = grown.values(), grown.lengths
        model = LeafModel.of(
            grown.features(),
            data.X,
            data.loss_weight,
            values,
            grown.last_scores,
            curvature=grown.curvature,
            alpha=float(trees.alpha) * lengths**2,
            fit_intercept=getattr(self, "fit_intercept", True),
        )
        model, n = replace(model, grown=grown), model.n_coefficients
        penalty: Penalty = Proximity(values[:n] * lengths, float(trees.alpha))
        domain: Domain = WholeSpace()
        if grown.monotone:  # sums of monotone trees with factors >= 0 are monotone
            penalty, domain = InUnits(penalty, lengths), LeadingDomain(Box(0.0, np.inf), n)
        return Problem(loss_part(self, model, data).add(Leading(penalty, n)), domain=domain)

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Any]:
        """Return a booster with these leaf values, and what is counted in its trees."""
        assert isinstance(fit.model, LeafModel)
        convention, offset, trees = fit.data.convention, fit.model.offset(), fit.model.grown
        values = np.append(w, 0.0)  # comparisons of scores need no intercept
        if offset is not None:
            values = convention.sign * (w + convention.threshold * offset)
        booster = trees.with_values(values)
        importances = np.zeros(len(self.is_categorical_), dtype=int)
        importances[SensitiveColumns(self).kept()] = booster.feature_importance()
        return {
            "booster_": booster,
            "n_estimators_": trees.n_trees,
            "feature_importances_": importances,
        }

    def _raw_scores(self, features: Any) -> Array:
        rows, threads = as_lightgbm_data(features), tree_parameters.thread_count(self._trees.n_jobs)
        return np.asarray(self.booster_.predict(rows, raw_score=True, num_threads=threads))

    def _train(self, problem: Problem, fit: Any = None, **options: Any) -> Solved:
        """Return the optimal leaf values, and the evaluation there.

        The start has the multipliers with which the trees were grown. The boosted trees are
        returned as they are without constraints, and where these are on predictions that meet them.
        """
        grown = getattr(problem.objective.model, "grown", None)
        if grown is not None and grown.first.w.size == problem.n_variables:  # else an epigraph
            w, multipliers = grown.first.w, grown.first.multipliers
            if by := fit.data.convention.threshold - grown.threshold:
                w = moved_variables(problem, w, by)
            same = multipliers is not None and 0 < len(multipliers) == problem.n_constraints
            first = Start(w, multipliers if same else None)
            if self._are_kept(grown, first, problem):
                solver = with_beta(BoostedTrees(tol=self.tol), self.beta)
                result, at = solver.solve(problem, warm=first, callback=options.get("callback"))
                met = "whose predictions meet the constraints"
                message = (
                    f"{grown.n_trees} boosted trees, "
                    f"{met if problem.n_constraints else 'unconstrained'}: "
                    "leaf values were not fitted again."
                )
                return replace(result, status=Status.CONVERGED, message=message), at
            if options.get("warm") is None:
                options["warm"] = first
        return super()._train(problem, fit, **options)

    def _are_kept(self, grown: Trees, first: Start, problem: Problem) -> bool:
        """Return whether the boosted trees are the model: see `Trees.meets`."""
        if not problem.n_constraints:
            return True
        if self.confidence is not None or first.w is not grown.first.w or not grown.meets:
            return False
        at = problem.uncounted().at(first.w)
        selected = at.scores_of(problem.objective) > 0.0
        return at.zero_one_violation == 0.0 and bool(selected.any() and not selected.all())

    def _decided(self, fit: Fit, result: Result) -> tuple[DecisionSearch, Certificate | None]:
        """Return the search of the leaf values, or the boosted trees if they are the model."""
        if not isinstance(result.solver, BoostedTrees):
            return super()._decided(fit, result)
        data, w = fit.data, result.w[: fit.model.n_parameters]
        return DecisionTask(fit.problem, result, data.y, data.loss_weight, w).without_search(), None

    def to_lightgbm(self) -> Any:
        """Return the fitted trees as a LightGBM model that does not need this library.

        Files, exporters and explainers of LightGBM's models work with it.

        Returns
        -------
        booster : lightgbm.Booster
            A copy of `booster_`. Its `predict` returns the scores of a ranker; of a classifier the
            probability of ``classes_[1]``, and with ``raw_score=True`` the score. See `booster_`
            for columns of pandas' category dtype.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self)
        text = self.booster_.model_to_string()
        return tree_parameters.import_lightgbm().Booster(model_str=text)


@dataclass(eq=False, repr=False, kw_only=True)
class FairBoostingClassifier(  # type: ignore[misc]  # alpha is a number
    ProbabilitiesMixin, tree_parameters.TreeParameters, TreeScores, EarlyStoppedClassifier
):
    r"""Gradient boosted trees under explicit fairness constraints, with LightGBM.

    The scores are :math:`s(x) = b + \sum_t v_{t, \ell_t(x)}`, with an intercept b and the value
    :math:`v_{t, \ell_t(x)}` of the leaf of x in tree t. They are fitted in two steps:

    1. **Trees are grown** for the augmented Lagrangian of the problem. Every tree is fitted to its
       gradient with respect to the scores, and the multipliers of the constraints are updated after
       every tree, with steps that are scaled to what a tree can change.
    2. **Leaf values are fitted**, with the trees as they are, by one of the library's solvers:
       those of the last `n_fitted_trees` trees, and a common factor of the others,

       .. math::
           \min_{v, b} \frac{\sum_i w_i\, \log(1 + \exp(-y_i s(x_i)))}{\sum_i w_i}
           + \frac{\alpha}{2} \|v - v^0\|_2^2 \quad \text{s.t.} \quad g_j(v, b) \le 0,

       with sample weights w, the boosted leaf values :math:`v^0` and the constraints of
       :class:`FairLogisticClassifier`. The certificate (`kkt_residual_`, `result_`) is that of this
       problem: given the trees, the leaf values are optimal and meet the constraints to `tol`.
       Without constraints the trees are the model, as LightGBM's, and no leaf value is fitted.

    The fitted trees are a LightGBM model that predicts without this library (`to_lightgbm`). The
    model is deterministic and does not need the sensitive features to predict. LightGBM is an
    optional dependency: ``pip install "fairconstrained[boosting]"``.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        The constraint, see :class:`FairLogisticClassifier`.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    n_estimators : int, default=100
        The number of trees.
    learning_rate : float, default=0.1
        The factor by which the values of every tree are multiplied.
    num_leaves : int, default=15
        The maximum number of leaves of a tree.
    max_depth : int, default=-1
        The maximum depth of a tree; -1 for no limit.
    min_child_samples : int, default=50
        The minimum number of rows in a leaf.
    min_child_weight : float, default=1e-3
        The minimum sum of the second derivatives of the loss in a leaf.
    min_split_gain : float, default=0.0
        The minimum gain of a split.
    subsample : float, default=1.0
        The share of the rows that a tree is grown on; it needs a positive `subsample_freq`.
    subsample_freq : int, default=0
        The number of trees after which rows are drawn again; 0 uses all rows.
    colsample_bytree : float, default=1.0
        The share of the features that a tree may use.
    reg_alpha, reg_lambda : float, default=0.0 and 10.0
        L1 and L2 regularisation of the leaf values while trees are grown. With weak regularisation,
        bounds on the predictions of training rows do not generalise to new rows. As in LightGBM,
        they are added to sums over the rows of a leaf. Only the ratios of weights matter.
    max_bin : int, default=255
        The maximum number of bins of a feature.
    categorical_features : "from_dtype", list of str, int or bool, or None, default="from_dtype"
        The categorical columns: those of a categorical type (of pandas, polars or arrow), or
        names, positions or a mask. They may hold text, in tables of pandas, polars and other
        libraries, or integers >= 0. Categories that were not seen in `fit` are treated as missing
        values.
    monotone_constraints : sequence of int, mapping from columns to int or None, default=None
        For each column: 1 if the score of the favourable label must not fall when the column rises,
        -1 if it must not rise, or 0. A mapping lists some columns, by name or position. Trees then
        keep the proportions of their leaf values: each of the last `n_fitted_trees` has a fitted
        factor >= 0.
    early_stopping : bool, default=False
        Whether the number of trees is chosen by the loss on validation rows, among the iterations
        that violate the constraints by at most 0.002 (that do not violate them, with
        ``enforce="decision"``).
    validation_fraction : float, default=0.1
        The share of the rows of every group and label that are validation rows, in (0, 1). Leaf
        values are fitted on all rows.
    n_iter_no_change : int, default=10
        Growing stops after this number of iterations without a smaller validation loss.
    lightgbm_params : dict or None, default=None
        Other parameters of LightGBM, for instance ``{"path_smooth": 1.0}``. Unknown names,
        parameters of this estimator, and parameters that would break a fit, such as
        ``boosting="dart"``, raise an error.
    alpha : float, default=0.1
        The strength of the penalty that keeps leaf values close to the boosted ones, >= 0.
    n_fitted_trees : int or None, default=25
        The number of trees, counted from the last, whose leaf values are fitted in step 2; None for
        all. The values of the other trees are multiplied by a common factor, which is fitted as
        well. For a path and with goal="fairness" all leaf values are fitted.
    goal, max_loss_increase
        See :class:`FairLogisticClassifier`. With goal="fairness" trees are grown without
        constraints.
    solver, beta, surrogate, max_iter, tol, sensitive_columns, use_sensitive, combine
    groups_missing, pos_label, class_weight, threshold
        See :class:`FairLogisticClassifier`; the solver fits the leaf values.
    enforce : {"score", "decision"}, default="score"
        Which gap `kappa` bounds on the training rows: that of the surrogate, or that of the
        predictions. With "decision" the multipliers are updated with the gaps of the predictions.
        The model has the trees up to the last iteration, within the final quarter, at which the
        predictions meet the bound. If there is no such iteration, leaf values are fitted and
        searched as in :class:`FairLogisticClassifier` (see `decision_search_`).
    confidence, holdout
        See :class:`FairLogisticClassifier`. Trees are grown without the rows that are held out.
    bound : bool, default=True
        Whether to compute `optimality_gap_`, here the distance from the best leaf values of the
        same trees, or to use a second fit for expected gaps; see :class:`FairLogisticClassifier`.
    n_jobs : int or None, default=None
        The number of threads of LightGBM; None takes its default, all cores.
    random_state : int, RandomState or None, default=None
        The source of randomness of subsamples, validation rows, held-out rows and stochastic
        solvers. Equal seeds give equal models, and so does None: trees then have a fixed seed.
    verbose : int, default=0
        0 prints nothing; 1 prints a line per iteration of the solver.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The fitted trees. ``booster_.predict(X, raw_score=True)`` returns the scores and
        ``booster_.predict(X)`` the probabilities of ``classes_[1]``. X must hold the features of
        the model. Columns of pandas' category dtype may be passed as such if all of them are in
        `categories_` and all categories are numbers or strings. Otherwise LightGBM raises a
        ValueError ("categorical_feature do not match"): pass an array, with positions in
        `categories_` for the categories of its columns.
    n_estimators_ : int
        The number of trees.
    feature_importances_ : ndarray of int of shape (n_features,)
        How often the trees split by each column of X, as in LightGBM's estimators; 0 for sensitive
        columns that are not features.
    is_categorical_ : ndarray of bool of shape (n_features,)
        Which columns of X are categorical.
    categories_ : dict of str to list
        The categories of the categorical columns that do not hold numbers.
    classes_, n_features_in_, feature_names_in_, n_iter_, groups_, pos_label_, threshold_
    score_threshold_, decision_search_, certificate_, holdout_indices_, constraint_choices_
    result_, sensitive_names_in_
        See :class:`FairLogisticClassifier`.
    multipliers_, objective_, violation_, bound_violation_, bound_met_
    optimality_gap_, optimality_gap_reason_, gap_, decision_gap_, kkt_residual_
        See :class:`FairLogisticClassifier`. They are those of the leaf values, given the trees, on
        all rows.
    validation_indices_ : ndarray of int of shape (n_validation_rows,)
        With early stopping: the rows of X that chose the number of trees. Exists after such fits
        only.

    Raises
    ------
    ImportError
        By `fit`, if LightGBM is not installed.

    Warns
    -----
    ConvergenceWarning, InfeasibleConstraintWarning, ConstantDecisionWarning
    VacuousConstraintWarning, GeneralizationWarning, InputWarning
        See :class:`FairLogisticClassifier`.

    References
    ----------
    G. Ke et al., "LightGBM: A highly efficient gradient boosting decision tree" (2017). A. Cruz,
    C. Belem, J. Bravo, P. Saleiro, P. Bizarro, "FairGBM: Gradient boosting with fairness
    constraints" (2023), for boosting on a Lagrangian; here the steps of the multipliers are scaled,
    and leaf values are fitted. IPC, Remark 2, for the augmented Lagrangian.

    Examples
    --------
    >>> from fairconstrained import FairBoostingClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.3, random_state=0)
    >>> clf = FairBoostingClassifier("demographic_parity", kappa=0.05, n_estimators=30)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_ <= 1e-4
    ('converged', True)
    >>> bool(abs(clf.to_lightgbm().predict(X) - clf.predict_proba(X)[:, 1]).max() < 1e-12)
    True
    """

    loss: ClassVar[str] = "logistic"
    warm_start: ClassVar[bool] = False

    @property
    def n_classes_(self) -> int:
        """The number of classes, as LightGBM's classifiers have it."""
        return len(self.classes_)
