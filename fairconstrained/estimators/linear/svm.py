"""The support vector classifier under fairness constraints."""

from __future__ import annotations

from fairconstrained.constraints import ConstraintLike
from fairconstrained.data.labels import ClassWeight
from fairconstrained.data.sensitive_columns import Columns
from fairconstrained.domains import Domain
from fairconstrained.estimators.linear.base import FairLinearClassifier
from fairconstrained.estimators.thresholds import Threshold
from fairconstrained.functions.losses import Loss
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.objectives import Objective
from fairconstrained.penalties import Penalty
from fairconstrained.solvers import Solver
from fairconstrained.utils.typing import RandomState


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
    goal, max_loss_increase, solver, beta, surrogate, domain, fit_intercept
        See :class:`FairLogisticClassifier`.
    sensitive_columns, use_sensitive, combine, groups_missing, group_interactions, enforce
        See :class:`FairLogisticClassifier`.
    pos_label, class_weight, threshold
        See :class:`FairLogisticClassifier`.
    confidence, holdout, max_iter, tol, warm_start, random_state, verbose
        See :class:`FairLogisticClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, pos_label_, threshold_, score_threshold_
        See :class:`FairLogisticClassifier`.
    n_features_in_, feature_names_in_, feature_scale_, n_iter_
        See :class:`FairLogisticClassifier`.
    groups_, sensitive_names_in_, multipliers_, objective_, violation_, bound_violation_
    bound_met_, gap_, decision_gap_
        See :class:`FairLogisticClassifier`.
    kkt_residual_
        See :class:`FairLogisticClassifier`.
    decision_search_, certificate_, holdout_indices_, constraint_choices_, result_
        See :class:`FairLogisticClassifier`.

    Warns
    -----
    ConvergenceWarning
        If the solver ends before it reaches its tolerance.
    InfeasibleConstraintWarning
        If the violation is above the tolerance.
    VacuousConstraintWarning
        If a cell of a constraint has no rows.

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

    def __init__(
        self,
        constraint: ConstraintLike = "demographic_parity",
        kappa: float = 0.05,
        *,
        goal: str = "accuracy",
        max_loss_increase: float = 0.001,
        solver: str | Solver = "auto",
        beta: float | None = None,
        surrogate: str | Surrogate = "sigmoid",
        loss: str | Loss | Objective = "hinge",
        alpha: float | Penalty = 1e-4,
        domain: Domain | None = None,
        fit_intercept: bool = True,
        sensitive_columns: Columns = None,
        use_sensitive: bool = False,
        combine: str = "intersection",
        groups_missing: str = "raise",
        pos_label: object = None,
        class_weight: ClassWeight = None,
        threshold: Threshold = None,
        group_interactions: bool = False,
        enforce: str = "score",
        confidence: float | None = None,
        holdout: float | str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ):
        super().__init__(
            constraint,
            kappa,
            goal=goal,
            max_loss_increase=max_loss_increase,
            solver=solver,
            beta=beta,
            surrogate=surrogate,
            loss=loss,
            alpha=alpha,
            domain=domain,
            fit_intercept=fit_intercept,
            sensitive_columns=sensitive_columns,
            use_sensitive=use_sensitive,
            combine=combine,
            groups_missing=groups_missing,
            pos_label=pos_label,
            class_weight=class_weight,
            threshold=threshold,
            group_interactions=group_interactions,
            enforce=enforce,
            confidence=confidence,
            holdout=holdout,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
