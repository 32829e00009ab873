"""Networks of PyTorch under fairness constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairconstrained.data.labels import ScoreConvention
from fairconstrained.data.validation import Split, TrainingData, split
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch, DecisionTask
from fairconstrained.estimators import network_training as training
from fairconstrained.estimators.classifier import EarlyStoppedClassifier, ProbabilitiesMixin
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.solving import Solved
from fairconstrained.functions.losses import Loss
from fairconstrained.models.modules import ACTIVATIONS, DEVICES, MakeModule, with_affine_output
from fairconstrained.objectives import Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import PLADA, Result, Solver, default_solver
from fairconstrained.solvers.base import Start
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arrays import Array, MatrixLike

if TYPE_CHECKING:
    from torch.nn import Module


_ROWS_FOR_VALIDATION = 500  # with fewer rows, a tenth of them is too few to choose an iterate
_LARGEST_JACOBIAN = 10**6  # entries; polishing needs the gradients of all constraints
_CHECKS = 2  # data passes between two measurements
_MANY_ROWS = 10_000


@dataclass(eq=False, repr=False, kw_only=True)
class FairNetworkClassifier(training.NetworkScores, ProbabilitiesMixin, EarlyStoppedClassifier):
    r"""A neural network under explicit fairness constraints. Needs PyTorch (extra ``torch``).

    .. math::
        \min_w \frac{\sum_i v_i\, \ell(y_i h_w(x_i))}{\sum_i v_i} + \frac{\alpha}{2} \|W\|_2^2
        \quad \text{s.t.} \quad g_j(w) \le 0,

    with a network h_w, sample weights v, the loss of a margin, all weights W but the biases, and
    one-sided constraints g_j on the scores, those of
    :class:`~fairconstrained.FairLogisticClassifier`. Features are standardised within the model, so
    that results do not depend on their units. A network has enough weights to meet a bound on the
    training rows but not on new rows. With enough rows, some of them are therefore used as
    validation rows, which choose among the iterates of the training.

    Parameters
    ----------
    constraint : str, Constraint, list of these or None, default="demographic_parity"
        See :class:`~fairconstrained.FairLogisticClassifier`.
    kappa : float, default=0.05
        The largest gap allowed, in [0, 1], for constraints without a kappa of their own.
    hidden_layer_sizes : sequence of int, default=(64, 64)
        The number of units of each hidden layer; () for linear scores.
    module : callable or None, default=None
        A function that takes the number of features and returns a ``torch.nn.Module`` with one
        output per row, which replaces these layers. Training starts from its initial weights. A
        copy of the module is used, in evaluation mode: dropout does nothing, and batch
        normalisation keeps its running statistics.
    activation : {"relu", "tanh", "elu", "gelu", "silu"}, default="relu"
        The function after every hidden layer.
    goal, max_loss_increase
        See :class:`~fairconstrained.FairLogisticClassifier`; goal="fairness" starts at the
        unconstrained network.
    solver : str or Solver, default="auto"
        "auto" takes PLADA, with `batch_size` or from 10,000 rows on its steps on batches. "ipc",
        "idca", "idca-stochastic", "ipp-ssg" and "ipp-conex" cannot train networks. An object such
        as ``PLADA.network()``, the setting of the PLADA paper, keeps its own parameters. If a
        run ends at a violation, the last layer is fitted again, for any solver.
    beta : float or None, default=None
        The parameter `beta` of the solver, see :class:`~fairconstrained.FairLogisticClassifier`.
    batch_size : int or None, default=None
        The number of rows of a batch, for stochastic solvers; None takes the solver's default.
    max_epochs : int, default=200
        The maximum number of data passes: forward passes over all rows.
    learning_rate : float or None, default=None
        The step size of the weights, > 0, for solvers that have a parameter `eta`. None lets the
        solver choose it from the curvature that it observes.
    early_stopping : bool or "auto", default="auto"
        Whether validation rows choose the iterate. Candidates are the iterates that meet the
        constraints on the training rows and violate them on the validation rows by at most the
        sampling error :math:`1 / \sqrt{n}`. The candidate with the smallest loss on the validation
        rows is chosen. "auto" does so from 500 rows on. Without it the solver runs to its tolerance
        or to `max_epochs`.
    validation_fraction : float, default=0.1
        The share of the rows of every group and label that are validation rows, in (0, 1).
    n_iter_no_change : int, default=30
        The number of data passes without a better iterate after which training stops.
    surrogate, loss, tol
        See :class:`~fairconstrained.FairLogisticClassifier`.
    alpha : float or Penalty, default=1e-4
        The strength of the L2 penalty on the weights, >= 0, or a penalty. Biases are not penalised.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the network is computed; "auto" uses a GPU if there is one. Fitted estimators hold
        NumPy arrays only and can be used on any machine.
    sensitive_columns, use_sensitive, combine, groups_missing, pos_label, class_weight, threshold
        See :class:`~fairconstrained.FairLogisticClassifier`.
    enforce : {"score", "decision"}, default="score"
        Which gap `kappa` bounds on the training rows: that of the surrogate or that of the
        predictions. "decision" searches the weights of the last layer, in which scores are linear,
        with all other layers fixed.
    confidence, holdout
        See :class:`~fairconstrained.FairLogisticClassifier`.
    bound : bool, default=True
        Whether `fit` bounds the distance from the best network with the same hidden layers, or
        uses a second fit for expected gaps; see :class:`FairLogisticClassifier`.
    max_iter : int or None, default=None
        The maximum number of iterations of the solver; None makes as many as `max_epochs` allows.
    warm_start : bool, default=False
        Whether `fit` starts from the weights and multipliers of the last fit.
    random_state : int, RandomState or None, default=None
        The source of randomness of the initial weights, the validation rows and the batches. The
        random state of PyTorch is neither used nor changed.
    verbose : int, default=0
        0 prints nothing; 1 prints a line per measured iterate.

    Attributes
    ----------
    weights_ : ndarray of shape (n_weights,)
        The weights, matrices first, then biases. The output of the network is the score of the
        favourable label minus `score_threshold_`.
    feature_mean_, feature_scale_ : ndarray of shape (n_model_features,)
        The centring and the scale of the features that the model uses. Features that are constant
        on the training rows have an infinite scale: the network ignores them.
    classes_, n_features_in_, feature_names_in_, groups_, pos_label_, threshold_, score_threshold_
        See :class:`~fairconstrained.FairLogisticClassifier`.
    sensitive_names_in_ : ndarray of shape (n_attributes,)
        See :class:`~fairconstrained.FairLogisticClassifier`.
    n_iter_, multipliers_, objective_, violation_, bound_violation_, bound_met_
    gap_, decision_gap_, kkt_residual_
        See :class:`~fairconstrained.FairLogisticClassifier`; on all rows, the validation rows
        included. The KKT residual refers to all weights of the network.
    optimality_gap_, optimality_gap_reason_
        See :class:`~fairconstrained.FairLogisticClassifier`; of the last layer, given the others.
    validation_indices_ : ndarray of int of shape (n_validation_rows,)
        With early stopping: the rows of X that chose the iterate. Exists after such fits only.
    decision_search_, certificate_, holdout_indices_, constraint_choices_
        See :class:`~fairconstrained.FairLogisticClassifier`. The model without constraints to which
        the search compares has the same layers except the last one.
    result_ : Result
        These figures with the status, the trace and the solver. The status is "chosen on validation
        rows" if these chose the iterate; the trace is that of the rows trained on.

    Warns
    -----
    ConvergenceWarning
        If training ends before the tolerance is reached and there are no validation rows, or if it
        ends at a violation.
    InfeasibleConstraintWarning, ConstantDecisionWarning, VacuousConstraintWarning
    GeneralizationWarning, InputWarning
        See :class:`~fairconstrained.FairLogisticClassifier`.

    References
    ----------
    PLADA, section 5.3 (networks with intersectional groups); 3S-Econ (Liu, Xu 2025).

    Examples
    --------
    >>> from fairconstrained import FairNetworkClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(n_samples=1000, gap=0.1, random_state=0)
    >>> clf = FairNetworkClassifier(kappa=0.05, hidden_layer_sizes=(16,), random_state=0)
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value, clf.violation_ <= 1e-4
    ('chosen on validation rows', True)
    >>> clf.predict_proba(X[:3]).shape
    (3, 2)
    """

    most_thresholds: ClassVar[int] = 5
    hidden_layer_sizes: valid.LayerSizes = (64, 64)
    module: MakeModule | None = None
    activation: Annotated[str, valid.one_of(*ACTIVATIONS)] = "relu"
    batch_size: valid.Count | None = None
    max_epochs: valid.Count = 200
    learning_rate: valid.Positive | None = None
    early_stopping: bool | Literal["auto"] = "auto"
    validation_fraction: valid.OpenShare = 0.1
    n_iter_no_change: valid.Count = 30
    loss: str | Loss | Objective = "logistic"
    device: Annotated[str, valid.one_of(*DEVICES)] = "auto"
    warm_start: bool = False

    def _split(self, data: TrainingData, others: TrainingData | None) -> Split | None:
        if others is None and self._validates(len(data.y)):
            return split(data, self.validation_fraction, self.random_state)
        return super()._split(data, others)

    def _validates(self, n_rows: int) -> bool:
        if self.early_stopping == "auto":
            return n_rows >= _ROWS_FOR_VALIDATION
        return self.early_stopping

    def _default_solver(self, problem: Problem) -> Solver:
        if problem.in_epigraph_form:
            return default_solver(problem)
        many = self.batch_size is not None or problem.n_rows >= _MANY_ROWS
        # Steps that are measured at the start are too short: the curvature is largest there.
        return PLADA.stochastic() if many and problem.batchable else PLADA(eta=0.5)

    def _adapted(self, solver: Solver, problem: Problem) -> Solver:
        """Return the solver with the options of networks, and for so many data passes."""
        parameters = solver.get_params(deep=False)
        for name, parameter in (("batch_size", "batch_size"), ("learning_rate", "eta")):
            value = getattr(self, name)
            if value is not None and parameter not in parameters:
                raise ValueError(
                    f"{name}={value!r} is given, but solver {solver!r} has no such parameter; "
                    f"leave {name} at None."
                )
            solver = solver.with_options(**{parameter: value})
        if not isinstance(self.solver, str):
            return solver
        if "check_every" in parameters:
            rows, batch = problem.n_rows, solver.get_params(deep=False).get("batch_size")
            batch = int(rows**0.5) if batch == "sqrt" else batch
            steps = training.iterations(self.max_epochs, rows, batch)
            checks = training.iterations(_CHECKS, rows, batch)
            solver = solver.with_options(max_iter=steps, check_every=checks)
        entries = problem.n_variables * max(problem.n_constraints, 1)
        polishes = entries <= _LARGEST_JACOBIAN and not self._validates(problem.n_rows)
        return solver if polishes else solver.unpolished()

    def _train(
        self, problem: Problem, fit: Any = None, *, warm: Any = None, callback: Any = None, **_: Any
    ) -> Solved:
        """Return the iterate that is best on validation rows, else the solver's solution.

        It is measured on all rows. If it violates the constraints, or is worse than a constant
        score, its last layer is fitted once more with the others fixed.
        """
        parts = None if problem.in_epigraph_form else fit.split_problems
        trained, others = (problem, None) if parts is None else parts
        solver, choice = self._solver(trained), None
        if others is not None:
            choice = training.BestOnValidation(
                trained, others.uncounted(), solver.tol, self.n_iter_no_change, callback
            )
        if warm is not None:
            multipliers = warm.multipliers
            if multipliers is None or len(multipliers) != trained.n_constraints:
                warm = Start(warm.w)  # of a problem with other constraints
        solution = solver.solve(
            trained,
            warm=warm,
            callback=callback if choice is None else choice,
            random_state=self.random_state,
            max_data_passes=float(self.max_epochs),
        )
        if choice is not None:
            solution = choice.chosen(problem, solution[0])
        return training.with_fitted_last_layer(
            problem, solution, self.random_state, validated=choice is not None
        )

    def _train_free(self, fit: Fit, problem: Problem, near: Start | None) -> Result:
        """Return the network without constraints, trained as that with them."""
        return self._train(problem, fit)[0]

    def _decided(self, fit: Fit, result: Result) -> tuple[DecisionSearch, Certificate | None]:
        """Return the search of the last layer, with all others fixed, or else of all weights.

        The constraints hold on its scores as well, so that the search starts from the solution. The
        unconstrained model is that of the fixed layers.
        """
        last = training.last_layer(fit.problem, result.w)
        if last is None:
            return super()._decided(fit, result)
        problem, start, lift = last
        first = training.refit(problem, Start(start, result.multipliers), result.solver.tol)
        n = problem.objective.model.n_parameters
        free = training.refit(problem.with_constraints(()), Start(first.w), result.solver.tol)
        task = DecisionTask(problem, first, fit.data.y, fit.data.loss_weight, free.w[:n])
        held_out = fit.held_out
        if held_out is not None:
            parts = training.with_last_layer(held_out.constraints, result.w, fit.model.n_parameters)
            held_out = replace(held_out, constraints=tuple(parts))
        search, certificate = fit.searched(task, held_out)
        return replace(search, w=lift(search.w)), certificate

    def _scores(self, X: MatrixLike) -> Array:
        scores = super()._scores(X)  # raises an error before a fit
        return ScoreConvention.of(self).shown(scores)

    def to_torch(self) -> Module:
        """Return the network as a module of PyTorch.

        It consists of layers of PyTorch, standardises the features itself, and does not need this
        library (it needs the code of `module`, if that was given). Its rows have the columns that
        the model uses: all columns, without sensitive ones unless `use_sensitive`.

        Returns
        -------
        module : torch.nn.Module
            On the host, in float64 and in evaluation mode; maps rows, (n_rows, n_model_features),
            to the scores of `decision_function`, (n_rows,).

        Raises
        ------
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import numpy as np, torch
        >>> from fairconstrained import FairNetworkClassifier, make_biased_classification
        >>> X, y, groups = make_biased_classification(n_samples=600, random_state=0)
        >>> clf = FairNetworkClassifier(hidden_layer_sizes=(8,), random_state=0)
        >>> network = clf.fit(X, y, sensitive_features=groups).to_torch()
        >>> with torch.no_grad():
        ...     scores = network(torch.tensor(X)).numpy()
        >>> np.allclose(scores, clf.decision_function(X))
        True
        """
        check_is_fitted(self)
        network = training.fitted_network(self).module(self.weights_)
        convention = ScoreConvention.of(self)
        if convention == ScoreConvention():
            return network
        return with_affine_output(network, convention.sign, float(convention.shown(np.zeros(1))[0]))
