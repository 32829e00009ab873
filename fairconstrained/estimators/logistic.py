"""Logistic regression and the support vector classifier under fairness constraints."""

from dataclasses import dataclass
from typing import ClassVar

from fairconstrained.estimators.classifier import ProbabilitiesMixin
from fairconstrained.estimators.linear import FairLinearClassifier
from fairconstrained.functions.losses import Loss
from fairconstrained.objectives import Objective


class FairLogisticClassifier(ProbabilitiesMixin, FairLinearClassifier):
    r"""Logistic regression under explicit fairness constraints.

    .. math::
        \min_{w, b} \frac{\sum_i v_i\, \ell(y_i (x_i^\top w + b))}{\sum_i v_i}
        + \frac{\alpha}{2} \|w\|_2^2 \quad \text{s.t.} \quad g_j(w, b) \le 0,

    with sample weights v, the logistic loss, and one-sided constraints g_j such as
    :math:`\mathrm{rate}_a - \mathrm{rate}_b \le \kappa` for every ordered pair of groups. The
    model is deterministic and does not need the sensitive features to predict.

    With more than two classes there is one score per class, the loss is the multinomial logistic
    loss, and every constraint holds for each class k against all others, on the log odds of class
    k: demographic parity bounds the differences of :math:`E[P(k \mid x) \mid \mathrm{group}]` for
    every k, and equal opportunity bounds them among the rows whose label is k. The class of the
    largest score is predicted. `pos_label`, `threshold`, `confidence`, `group_interactions`, other
    losses and constraints on losses are available for two classes only.

    The parameters by topic, the most common ones first:

    - what is fair: `constraint`, `kappa`, `enforce`, `confidence`, `holdout`, `goal`,
      `max_loss_increase`, `threshold`, `pos_label`, `surrogate`;
    - the model: `loss`, `alpha`, `domain`, `fit_intercept`, `group_interactions`;
    - the rows: `sensitive_columns`, `use_sensitive`, `combine`, `groups_missing`, `class_weight`;
    - the solver: `solver`, `max_iter`, `tol`, `bound`, `warm_start`, `random_state`, `verbose`,
      `beta`.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        The constraint: a name such as "demographic_parity", "equal_opportunity",
        "predictive_equality" or "equalized_odds" (the guide lists all), an object such as
        ``EqualizedOdds(kappa=0.1, against="overall")``, or a list of these, all of which must hold.
        None fits the model without constraints; no groups are needed.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    enforce : {"score", "decision"}, default="score"
        Which gap `kappa` bounds on the training rows: "score" bounds the gap of the surrogate, as
        in the papers, and "decision" the gap of the predictions. "decision" starts from the fit
        with "score" and minimises the share of errors, with ever steeper sigmoids in place of
        predictions. Of the models that meet the bound it takes the most accurate one (of equally
        accurate ones, that of least loss); `class_weight` multiplies the weights of the accuracy.
        True and false positive rates of few rows may meet a bound by chance. Rates of fewer than
        3,000 rows are therefore also estimated from all rows of their group, weighted by the
        probability of the label; a fifth of the excess over the bound is subtracted from the
        accuracy. The search takes several times as long as the fit; see `decision_search_`.
        `result_` has the status, trace and multipliers of the first fit, and all other figures of
        the final model.
    confidence : float or None, default=None
        With enforce="decision": the probability, over the draw of the data, with which the gap of
        predictions in the population is at most kappa. Models are fitted to some of the rows with
        decreasing margins below the bound, and tested on the others, which are held out, by exact
        tests (see :mod:`fairconstrained.decisions.population`). Available for most constraints on
        rates of predictions and errors, and on score distributions.
    holdout : float or "auto", default="auto"
        The share of every group that is held out for `confidence`, in (0, 1). "auto" takes half of
        the rows, or fewer if fewer suffice for the test.
    goal : {"accuracy", "fairness"}, default="accuracy"
        "accuracy" minimises the loss subject to the constraints. "fairness" minimises the largest
        gap, max_j g_j with kappa = 0 for constraints without a kappa of their own, subject to an
        objective (loss plus penalty) of at most 1 + `max_loss_increase` times its minimum without
        constraints; `kappa` is not used.
    max_loss_increase : float, default=0.001
        For goal="fairness": the relative increase of the loss that is allowed, > 0.
    threshold : float, SelectionRate or None, default=None
        The favourable label is predicted if its probability is above this number, in (0, 1); for
        losses without probabilities, if its score is above this number. None is 1/2 for
        probabilities and 0 for scores. ``SelectionRate(0.2)`` selects a share of the training rows
        (see :class:`SelectionRate`). Constraints, `enforce`, `confidence` and all gaps refer to the
        predictions at this threshold, and surrogates are centred there. A bound at one threshold
        does not hold at another one, such as that of ``TunedThresholdClassifierCV``.
    pos_label : label or None, default=None
        The label of the favourable decision: constraints, gaps and reports call it positive, and
        `domain` and `surrogate` refer to its scores. None takes the second of the sorted labels; if
        labels are strings, the repr of a fitted classifier shows it. `classes_`, the columns of
        `predict_proba` and the sign of `decision_function` do not depend on it.
    surrogate : {"sigmoid", "ramp"} or Surrogate, default="sigmoid"
        The function of the score that replaces the prediction 1{score > 0} in constraints without a
        surrogate of their own.
    loss : str, Loss or Objective, default="logistic"
        A loss of the margin: "logistic", "truncated_logistic", "hinge", "squared_hinge" or
        "quadratic"; `predict_proba` exists for "logistic" only. Or a loss of pairs of rows: "auc"
        is :class:`~fairconstrained.objectives.PairwiseLoss`, "partial_auc" is
        :class:`~fairconstrained.objectives.PartialAUC`, whose objects have further parameters.
        These measure how well scores rank and do not determine the intercept: use the scores, or
        choose a threshold afterwards.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty such as ``SCAD(0.02)``. The intercept is
        not penalised. If `domain` is the whole space, the penalty applies to the coefficients of
        scaled features (see `feature_scale_`), so that units do not matter; for 0/1 columns and
        standardised columns it is the usual penalty.
    domain : Domain or None, default=None
        The set that the coefficients must lie in, in the units of the features, for example
        ``L1Ball(20.0)``. None is the whole space.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    group_interactions : bool, default=False
        Whether the model has coefficients for each group: the features 1, x, z and z x of IDCA,
        with indicators z of the groups. `predict` then reads the groups from X, so that
        `sensitive_columns` is required. The coefficients that all groups share and the deviations
        of each group are penalised.
    sensitive_columns : str, int, list of these, callable or None, default=None
        The columns of X that hold the sensitive attributes, or a function of X that returns the
        groups. With None the groups are passed to `fit`. If the model does not use these columns,
        they can be left out of `X` in `predict`: pass a DataFrame without them, or an array with
        the other columns in the same order.
    use_sensitive : bool, default=False
        Whether the sensitive columns are features of the model.
    combine : {"intersection", "marginal"}, default="intersection"
        How several sensitive columns form groups. "intersection": rows with equal values in all of
        them are one group. "marginal": each column has its own groups and its own constraint;
        groups are named "attribute=value".
    groups_missing : {"raise", "own_group", "ignore_in_constraint"}, default="raise"
        How missing values (None, NaN, pd.NA) of sensitive columns are treated. "raise" raises an
        error; "own_group" makes a group named "missing"; with "ignore_in_constraint" these rows
        are part of the loss but of no constraint (with several columns: rows with any missing
        value; with ``combine="marginal"``: for that column only).
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss, by label, as in scikit-learn's LogisticRegression; they
        multiply `sample_weight`. "balanced" gives all classes the same total weight. Constraints do
        not use them: rates are weighted by `sample_weight` only.
    solver : str or Solver, default="auto"
        "auto" takes the first suitable one of "sqp" (smooth problems with a constraint; with a
        `domain` up to 100 columns), "augmented-lagrangian" (other smooth problems), "smoothing"
        (hinges, ramps and other functions with known kinks), "ipc" (weakly convex problems) and
        "ssg" (all problems). The user guide lists all names. An object such as ``IPC(rho=0.01)``
        has its own tolerance. If the model of a solver violates the constraints, other solvers are
        tried, unless the solver is an object with ``polish=False``, such as ``IPC.paper()``;
        ``result_.solver`` is the solver that found the model.
    max_iter : int or None, default=None
        The maximum number of iterations of the solver. None takes the solver's default, and with
        solver="auto" limits the data passes to some thousands.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual for a solver given by name.
    bound : bool, default=True
        Whether to compute `optimality_gap_`. This takes at most half the data passes of the fit;
        with few rows, up to 16 passes that read at most 20,000 rows in total. With
        enforce="decision" there is no `optimality_gap_`; `bound` then says whether estimates of
        gaps on new rows may use a second fit, where rows cannot be left out of the first one, see
        :class:`~fairconstrained.decisions.new_rows.ExpectedGap`.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients and multipliers of the last fit.
    random_state : int, RandomState or None, default=None
        The source of randomness of stochastic solvers and of the choice of held-out rows.
    verbose : int, default=0
        0 prints nothing; 1 prints a line per outer iteration.
    beta : float or None, default=None
        The parameter `beta` of the solvers "3s-econ" (penalty parameter) and "plada" (proximal
        parameter) and of their stochastic versions. None takes the solver's default. Other solvers
        do not use it and warn.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients of `decision_function`; one row for two classes, a row per class for more.
        They are zero for sensitive columns that are not features. With `group_interactions` the
        shape is (n_groups, n_features), and row k has the coefficients of group ``groups_[k]``.
    intercept_ : ndarray of shape (1,), (n_groups,) or (n_classes,)
        The intercept; one per group with `group_interactions`, one per class for more than two
        classes.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    pos_label_ : label
        The favourable label; only for two classes.
    threshold_ : float
        The probability, or without probabilities the score, above which the favourable label is
        predicted.
    score_threshold_ : float
        `threshold_` as a score of the favourable label. This score is `decision_function` if the
        label is ``classes_[1]``, and its negative if the label is ``classes_[0]``.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of the columns of X, if they are all strings.
    feature_scale_ : ndarray of shape (n_features,)
        The scale of each feature that the penalty refers to: the distance between the values of a
        two-valued column; the root mean square of the distance of the other values from one that
        has more than half of the weight; the standard deviation of any other column; ones if a
        domain is given.
    n_iter_ : int
        The number of iterations of the solver.
    groups_ : ndarray
        The groups, sorted; tuples if there are several sensitive attributes, and strings
        "attribute=value" with ``combine="marginal"``.
    sensitive_names_in_ : ndarray of shape (n_attributes,)
        The names of the columns of the groups, if a DataFrame had them. Validation rows and reports
        match columns by these names, and those of arrays by position.
    multipliers_ : ndarray of shape (n_constraints,)
        The Lagrange multipliers: the rate at which the objective decreases if the tolerance of the
        constraint increases. With goal="fairness" the constraints' multipliers sum to one: they are
        their weights in the gap that is minimised. The last one is the rate at which this gap
        decreases if the bound on the loss increases.
    objective_ : float
        Mean loss plus penalty, for either goal. (With goal="fairness" the solver minimises a bound
        on the gaps; its value is ``result_.objective``.)
    optimality_gap_ : float or None
        A proved bound on :math:`(f - f^*) / f`, where f is the objective of this model and
        :math:`f^*` the smallest objective of all linear models with these constraints on scores (if
        this model has a violation, with the same violation; with a `SelectionRate`, at the same
        threshold). It is available with enforce="score" and goal="accuracy", for convex losses, an
        L2 or elastic net penalty, and constraints on averages of sigmoids, ramps or losses; with
        several classes, if multipliers are small. None in other cases, and if no bound above zero
        was found; see :mod:`fairconstrained.bounds`.
    optimality_gap_reason_ : str
        Why `optimality_gap_` is None; empty if it is a number.
    violation_ : float
        The largest violation on scores, measured with the surrogate; 0 if all constraints hold.
        With goal="fairness" it is that of the bound on the loss.
    bound_violation_ : float
        By how much the bound that was asked for is exceeded: on scores (`violation_`), with
        ``enforce="decision"`` on the predictions, with `confidence` its upper limit in the
        population.
    bound_met_ : bool or None
        Whether the bound that was asked for is met: on scores up to `tol`, on predictions exactly,
        in the population by the verdict of `certificate_`. None without a constraint.
    gap_ : float
        The largest gap on scores, measured with the surrogate, before kappa is subtracted (nan
        without constraints).
    decision_gap_ : float
        The largest gap of the predictions on the training rows (nan without constraints): a
        difference of rates, or what the documentation of the constraint defines, such as the
        shortfall 1 - rate_a / rate_b of a ratio.
    kkt_residual_ : float
        The larger of stationarity and complementarity; see
        :func:`~fairconstrained.problem.kkt.kkt_residual`.
    decision_search_ : DecisionSearch or None
        With enforce="decision": whether the bound is met, the training accuracy (with the weights
        of the loss, `sample_weight` times `class_weight`) of this model, of
        the fit with enforce="score" and of the unconstrained model, the loss of accuracy
        `accuracy_cost`, the gaps that are expected on new rows, and the data passes; see
        :class:`~fairconstrained.decisions.search.DecisionSearch`.
    certificate_ : Certificate or None
        With `confidence`: whether the constraints hold for the population, upper bounds on them,
        and the number of rows that would suffice; see
        :class:`~fairconstrained.decisions.population.Certificate`.
    holdout_indices_ : ndarray of int
        With `confidence`: the rows of X that were held out. All other figures are those of the
        remaining rows.
    constraint_choices_ : list of dict
        For every constraint the values of the parameters that it chose on the training rows, such
        as the minority of :class:`MinorityRate`; empty if there are none, or if they differ between
        classes or attributes. Reports measure with them.
    result_ : Result
        The result of the solver: the figures above, the status, the trace and the solver itself.

    Warns
    -----
    ConvergenceWarning
        If the solver ends before it reaches its tolerance.
    InfeasibleConstraintWarning
        If the violation is above the tolerance; with enforce="decision", if neither a model nor
        constant predictions were found that meet the bound.
    ConstantDecisionWarning
        With enforce="decision", if the best model found predicts the same class for every row; with
        `confidence`, if no other model could be certified.
    VacuousConstraintWarning
        If a cell of a constraint has no rows.
    GeneralizationWarning
        With enforce="decision", if a gap expected on new rows is more than twice its bound.
    InputWarning
        If groups are very small, row labels of pandas objects differ, `kappa` is not used, or the
        predictions exceed a bound on scores by more than 0.1.

    See Also
    --------
    FairLogisticClassifierCV : Chooses kappa and alpha by cross-validation.
    fairness_path : Fits the classifier for a sequence of tolerances.
    FairHingeClassifier : Linear support vector classifier with the same constraints.

    References
    ----------
    IPC (Ma, Lin, Yang 2019); PLADA; 3S-Econ (Liu, Xu 2025); IDCA (He, Huang, Yao, Lin 2025).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.1, random_state=0)
    >>> clf = FairLogisticClassifier("demographic_parity", kappa=0.05)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_ <= 1e-4
    ('converged', True)
    >>> unconstrained = FairLogisticClassifier(constraint=None).fit(X, y)
    >>> clf.objective_ > unconstrained.objective_
    True

    Three classes:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> wide = X[:, 1] > 3.0
    >>> iris = FairLogisticClassifier(kappa=0.1, enforce="decision")
    >>> predicted = iris.fit(X, y, sensitive_features=wide).predict(X)
    >>> rates = [[np.mean(predicted[rows] == k) for k in range(3)] for rows in (wide, ~wide)]
    >>> bool(np.abs(np.subtract(*rates)).max() <= 0.1), iris.coef_.shape
    (True, (3, 4))
    """

    several_classes: ClassVar[bool] = True


@dataclass(eq=False, repr=False, kw_only=True)
class FairHingeClassifier(FairLinearClassifier):
    r"""Linear support vector classifier under explicit fairness constraints.

    .. math::
        \min_{w, b} \frac{\sum_i v_i\, \max\{0, 1 - y_i (x_i^\top w + b)\}}{\sum_i v_i}
        + \frac{\alpha}{2} \|w\|_2^2 \quad \text{s.t.} \quad g_j(w, b) \le 0,

    with sample weights v and one-sided constraints g_j, as in :class:`FairLogisticClassifier`. It
    is scikit-learn's ``LinearSVC(loss="hinge")`` with :math:`C = 1 / (n \alpha)`, an intercept that
    is not penalised and coefficients penalised per feature scale. It has no probabilities.

    The loss has a kink, and so have penalties such as SCAD. ``solver="auto"`` rounds the kinks over
    intervals of decreasing width, until the optimality conditions hold for the problem without
    rounding (see :class:`~fairconstrained.solvers.Smoothing`).

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        The constraints, see :class:`FairLogisticClassifier`.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    loss : str or Loss, default="hinge"
        The loss of the margin: "hinge", "squared_hinge", "logistic", "truncated_logistic" or
        "quadratic".
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty such as ``SCAD(0.02)``.
    goal, max_loss_increase, solver, beta, surrogate, domain, fit_intercept, sensitive_columns
    use_sensitive, combine, groups_missing, group_interactions, enforce, pos_label, class_weight
    threshold, confidence, holdout, bound, max_iter, tol, warm_start, random_state, verbose
        See :class:`FairLogisticClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, pos_label_, threshold_, score_threshold_, n_features_in_
    feature_names_in_, feature_scale_, n_iter_, groups_, sensitive_names_in_, multipliers_
    objective_, violation_, bound_violation_, bound_met_, gap_, decision_gap_, kkt_residual_
    optimality_gap_, optimality_gap_reason_, decision_search_, certificate_, holdout_indices_
    constraint_choices_, result_
        See :class:`FairLogisticClassifier`.

    Warns
    -----
    ConvergenceWarning, InfeasibleConstraintWarning, ConstantDecisionWarning
    VacuousConstraintWarning, GeneralizationWarning, InputWarning
        See :class:`FairLogisticClassifier`.

    References
    ----------
    3S-Econ (Liu, Xu 2025), problems 1 and 2.

    Examples
    --------
    >>> from fairconstrained import FairHingeClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.3, random_state=0)
    >>> clf = FairHingeClassifier("demographic_parity", kappa=0.05)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_ <= 1e-4
    ('converged', True)
    """

    loss: str | Loss | Objective = "hinge"
