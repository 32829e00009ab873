"""The exact penalty method: sequential quadratic programming without the Hessian."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from fairconstrained.solvers.sqp import SQP
from fairconstrained.utils.parameter_constraints import AboveOne, Limit, Positive


@dataclass(eq=False, repr=False)
class ExactPenalty(SQP):
    """The exact penalty method: :class:`SQP` that learns the curvature from gradients alone.

    Parameters
    ----------
    rho : float, default=10.0
        The first weight of the largest violation, > 0.
    growth : float, default=10.0
        The factor by which rho grows where it holds a step back from the constraints, > 1.
    memory : int, default=30
        The number of pairs of L-BFGS; with 0 the model is linear, as in the cited article.
    max_iter : int, default=1000
        The maximum number of trial steps, each of which is one evaluation.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    C. Cartis, N. Gould, P. Toint, "On the evaluation complexity of composite function minimization
    with applications to nonconvex nonlinear programming", SIAM Journal on Optimization 21 (2011),
    the quadratic regularization method; IPC, section 4 compares with it.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import ExactPenalty
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ExactPenalty())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    preferred_with: ClassVar[tuple[str, ...]] = ("in_epigraph_form",)

    rho: Positive = 10.0
    _: KW_ONLY
    growth: AboveOne = 10.0
    memory: Limit | None = 30

    @classmethod
    def paper(cls, **options: Any) -> ExactPenalty:
        """Return the exact penalty method of the comparison in IPC, section 4.

        The paper cites Cartis, Gould and Toint (2011) and tunes the parameters; neither the
        algorithm nor their values are printed. This is the cited article's method with a
        linear model and a quadratic regularisation.

        Parameters
        ----------
        **options
            Further hyperparameters.
        """
        return cls(**{"memory": 0, "max_iter": 5000, **options})
