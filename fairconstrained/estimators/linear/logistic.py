"""Logistic regression under fairness constraints."""

from __future__ import annotations

from typing import ClassVar

from fairconstrained.estimators.linear.base import FairLinearClassifier
from fairconstrained.estimators.probabilities import ProbabilitiesMixin


class FairLogisticClassifier(ProbabilitiesMixin, FairLinearClassifier):
    r"""Logistic regression under explicit fairness constraints.

    .. math::
        \min_{w, b} \frac{\sum_i v_i\, \ell(y_i (x_i^\top w + b))}{\sum_i v_i}
        + \frac{\alpha}{2} \|w\|_2^2 \quad \text{s.t.} \quad g_j(w, b) \le 0,

    with sample weights v, the logistic loss, and one-sided constraints g_j such as
    :math:`\mathrm{rate}_a - \mathrm{rate}_b \le \kappa` for every ordered pair of groups. The
    model is deterministic and does not need the sensitive features to predict.

    With more than two classes the loss is the multinomial logistic loss of one score per class, and
    every constraint holds for each class k against all others: labels are +1 for the rows of class
    k, scores are its log odds, and the surrogate of its prediction is the soft-max probability
    :math:`P(k \mid x)`, with the sigmoid. Demographic parity then bounds the differences of
    :math:`E[P(k \mid x) \mid \mathrm{group}]` for every k, and equal opportunity those among the
    rows whose label is k. Predictions are the class of the largest score. `pos_label`, `threshold`,
    `confidence`, `group_interactions`, other losses and constraints on losses are for two classes.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        The constraint: a name such as "demographic_parity", "equal_opportunity",
        "predictive_equality" or "equalized_odds" (the guide lists all), an object such as
        ``EqualizedOdds(kappa=0.1, against="overall")``, or a list, all of which must hold. None
        fits the model without constraints and needs no groups.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    goal : {"accuracy", "fairness"}, default="accuracy"
        "accuracy" minimises the loss subject to the constraints. "fairness" minimises the largest
        gap, max_j g_j with kappa = 0 for constraints without a kappa of their own, subject to a
        loss (with its penalty) of at most 1 + `max_loss_increase` times the least possible; it
        starts at the unconstrained model and does not use `kappa`.
    max_loss_increase : float, default=0.001
        For goal="fairness": the relative increase of the loss that is allowed, > 0.
    solver : str or Solver, default="auto"
        "auto" takes the first one that can solve the problem of "ipc" (smooth problems),
        "smoothing" (hinges, ramps and other functions with known kinks), "ipp-ssg" (weakly convex
        problems) and "ssg" (all problems). The guide lists all names with their requirements and
        guarantees. An object such as ``IPC(rho=0.01)`` keeps its own tolerance. The solver that ran
        is ``result_.solver``.
    beta : float or None, default=None
        A parameter of some solvers; an error for others.
    surrogate : {"sigmoid", "ramp"} or Surrogate, default="sigmoid"
        The approximation of the prediction 1{score > 0} in constraints without a surrogate of their
        own.
    loss : str, Loss or Objective, default="logistic"
        A loss of the margin: "logistic", "truncated_logistic", "hinge", "squared_hinge" or
        "quadratic". Or a loss of pairs of rows: "auc" is
        :class:`~fairconstrained.objectives.PairwiseLoss`, "partial_auc" is
        :class:`~fairconstrained.objectives.PartialAUC`; objects of these classes have parameters
        for the loss of a pair and the ranks. Only with "logistic" are scores log odds, so that
        there are probabilities (`predict_proba`). Losses of pairs measure how well scores rank, and
        do not determine the intercept: use the scores, or choose a threshold afterwards.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty, >= 0, or a penalty such as ``SCAD(0.02)``. The intercept is
        not penalised. Where `domain` is the whole space, the penalty is on coefficients per feature
        scale (see `feature_scale_`), so that units do not matter; for 0/1 columns and standardised
        columns that is the usual penalty.
    domain : Domain or None, default=None
        The set of the coefficients, in the units of the features, for instance ``L1Ball(20.0)``;
        None is the whole space.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    sensitive_columns : list of str or int, callable or None, default=None
        The columns of X that hold the sensitive attributes, or a function of X that returns the
        groups. With None the groups are passed to `fit`. Columns that the model does not use may be
        absent in `predict`: a DataFrame without them, or an array with the other columns in the
        same order.
    use_sensitive : bool, default=False
        Whether the sensitive columns are features of the model.
    combine : {"intersection", "marginal"}, default="intersection"
        How several sensitive columns make groups. "intersection": rows with equal values in all of
        them are one group. "marginal": each column has groups of its own, as if there were one
        constraint per column; they are named "attribute=value".
    groups_missing : {"raise", "own_group", "ignore_in_constraint"}, default="raise"
        The meaning of missing values (None, NaN, pd.NA) in sensitive columns: an error, a group
        named "missing", or rows that count in the loss but in no cell of a constraint (with several
        columns: rows with any value missing; with ``combine="marginal"``: for that column only).
    pos_label : label or None, default=None
        The label of the favourable decision: constraints, gaps and reports call it positive. None
        takes the second of the sorted labels; where labels are strings the text of a fitted
        classifier then says which one that is. `classes_`, the columns of `predict_proba` and the
        sign of `decision_function` do not depend on it. `domain` and `surrogate` refer to the
        scores of the favourable label.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in the loss, by label, as in scikit-learn's LogisticRegression; they
        multiply `sample_weight`. "balanced" gives both classes the same total weight. Constraints
        do not use them: their rates are shares of the rows, weighted by `sample_weight` only.
    threshold : float, SelectionRate or None, default=None
        The favourable label is predicted where its probability is above this number, in (0, 1); for
        losses without probabilities where its score is above this number. None is 1/2 for
        probabilities and 0 for scores. ``SelectionRate(0.2)`` selects a share of the training rows
        (see :class:`SelectionRate`); it is not available with `confidence`. Constraints, `enforce`,
        `confidence` and all gaps are for the decisions at this threshold, and surrogates are
        centred there. A bound that was fitted at one threshold says nothing about decisions at
        another one: after moving it, for instance with scikit-learn's
        ``TunedThresholdClassifierCV``, measure the gap again, or fit again with `threshold`.
    group_interactions : bool, default=False
        Whether the model has coefficients for every group: IDCA's cross terms (1, x, z, z x). The
        groups are then read from X in `predict` as well, so that `sensitive_columns` is required.
        The penalty is on the coefficients that all groups share and on the deviations of each.
    enforce : {"score", "decision"}, default="score"
        Which gap `kappa` bounds on the training rows: that of the surrogate, as in the papers, or
        that of the predictions. "decision" starts from the fit on scores. It searches tolerances of
        the surrogate, its scale and the intercept for the most accurate model that meets the bound,
        and among equally accurate ones for that of least loss, at two to four times the cost (see
        `decision_search_`). `result_` then has the status, trace and multipliers of the fit on
        scores; its other figures are those of the model that was found.
    confidence : float or None, default=None
        With enforce="decision": the probability, over the draw of the data, with which the gap of
        predictions in the population is at most kappa. A part of the rows is held out. Models
        fitted to the others, with margins that decrease from one to the next, are tested on it by
        exact tests (see :mod:`fairconstrained.decisions.population`). The model is not fitted
        again to all rows afterwards. For constraints on rates of predictions and on score
        distributions.
    holdout : float or "auto", default="auto"
        The share of every group that is held out for `confidence`. "auto" takes half of the rows,
        or fewer where fewer suffice for the test.
    max_iter : int or None, default=None
        The solver's largest number of iterations; None takes its default, and with solver="auto"
        limits the data passes to some thousands (``result_.message`` says where a fit ended).
    tol : float, default=1e-4
        The tolerance on violation and KKT residual for a solver given by name.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients and multipliers of the last fit.
    random_state : int, RandomState or None, default=None
        For stochastic solvers.
    verbose : int, default=0
        1 prints a line per outer iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients, with a row for each of several classes; zero for sensitive columns that
        are not features. With
        `group_interactions` the shape is (n_groups, n_features), and row k multiplies the rows
        of group ``groups_[k]``.
    intercept_ : ndarray of shape (1,), (n_groups,) or (n_classes,)
        The intercept, or one for every group or for every one of several classes.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    pos_label_ : label
        The favourable label of two.
    threshold_ : float
        The probability, or without probabilities the score, above which it is predicted.
    score_threshold_ : float
        The same as a score of the favourable label, which is that of `decision_function` if the
        label is ``classes_[1]`` and minus that if it is ``classes_[0]``.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had any.
    feature_scale_ : ndarray of shape (n_features,)
        The scale of each feature that the penalty refers to: the distance of the values of a
        two-valued column, the standard deviation of any other; ones where a domain is given.
    n_iter_ : int
        The iterations of the solver.
    groups_ : ndarray
        The groups, sorted; tuples if there were several sensitive attributes, and with
        ``combine="marginal"`` the groups of each, named "attribute=value".
    multipliers_ : ndarray of shape (n_constraints,)
        The Lagrange multipliers: the decrease of the objective per unit of each tolerance.
    objective_ : float
        Mean loss plus penalty, for either goal. (With goal="fairness" the solver minimises a bound
        on the gaps; its value is ``result_.objective``.)
    violation_ : float
        The largest violation on scores, measured with the surrogate; 0 if all constraints hold.
        With goal="fairness" it is that of the bound on the loss.
    gap_ : float
        The largest gap on scores, measured with the surrogate, before kappa is subtracted (nan
        without constraints).
    decision_gap_ : float
        The largest gap of the predictions on the training rows (nan without constraints): a
        difference of rates, or the gap that the constraint's page defines, such as the shortfall
        1 - rate_a / rate_b of a ratio.
    kkt_residual_ : float
        See :func:`~fairconstrained.problem.kkt.kkt_residual`.
    decision_search_ : DecisionSearch or None
        With enforce="decision": whether the bound is met, the training accuracy of this model, of
        the fit on scores and of the unconstrained model, `accuracy_cost` (the last one minus the
        first one), and the data passes; see
        :class:`~fairconstrained.decisions.search.DecisionSearch`.
    certificate_ : Certificate or None
        With `confidence`: whether the constraints hold for the population, upper bounds on them,
        and the number of rows that would suffice; see
        :class:`~fairconstrained.decisions.population.Certificate`.
    holdout_indices_ : ndarray of int
        With `confidence`: the rows of X that were held out. All other figures are of the remaining
        rows.
    result_ : Result
        These figures with the status, the trace and the solver.

    Warns
    -----
    ConvergenceWarning
        If the solver ends before it reaches its tolerance.
    InfeasibleConstraintWarning
        If the violation is above the tolerance; with enforce="decision" if neither a model that was
        found nor constant predictions meet the bound.
    ConstantDecisionWarning
        With enforce="decision": if the best model found predicts the same class for every row, or
        with `confidence` if no other one could be certified.
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

    Three classes:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> wide = X[:, 1] > 3.0
    >>> iris = FairLogisticClassifier(kappa=0.1).fit(X, y, sensitive_features=wide)
    >>> rates = [iris.predict_proba(X[group]).mean(axis=0) for group in (wide, ~wide)]
    >>> bool(abs(rates[0] - rates[1]).max() <= 0.1 + 1e-4), iris.coef_.shape
    (True, (3, 4))
    """

    several_classes: ClassVar[bool] = True
