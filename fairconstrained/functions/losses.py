"""Losses of the margin t = y * score, with labels y in {-1, +1}."""

import numpy as np
from scipy.special import expit

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.utils.arguments import check_positive
from fairconstrained.utils.arrays import Array


class Loss(ScalarFunction):
    r"""A function of the margin t = y * score, >= 0, small if the score has the label's sign.

    Attributes
    ----------
    gives_log_odds : bool
        Whether the scores of least expected loss are the log odds :math:`\log(P(y = 1 \mid x) / P(y
        = -1 \mid x))`, so that the logistic function of a score is a probability. This is true for
        the logistic loss only.
    """

    gives_log_odds = False


class Logistic(Loss):
    r"""The logistic loss :math:`\ell(t) = \log(1 + \exp(-t))`, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Logistic
    >>> Logistic().value(np.array([-800.0, 0.0, 800.0]))
    array([8.00000000e+02, 6.93147181e-01, 0.00000000e+00])
    """

    convex = True
    twice_differentiable = True
    gives_log_odds = True
    curvature = 0.0, 0.25

    def value(self, t: Array) -> Array:
        """Return ``log1p(exp(-|t|)) - min(t, 0)``, which cannot overflow."""
        return np.log1p(np.exp(-np.abs(t))) - np.minimum(t, 0.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return -1 / (1 + exp(t))."""
        return -expit(-t)

    def second_derivative(self, t: Array, derivative: Array) -> Array:
        """Return -p (1 + p) with p = phi'(t)."""
        return -derivative * (1.0 + derivative)


class TruncatedLogistic(Loss):
    r"""The truncated logistic loss :math:`\alpha \log(1 + \ell(t) / \alpha)`.

    It grows logarithmically for negative margins, so that outliers have less influence. It is
    weakly convex with constant at most :math:`1 / \alpha`.

    Parameters
    ----------
    alpha : float, default=2.0
        The level above which the loss grows logarithmically, > 0.

    References
    ----------
    IPC, section 5 (alpha = 2).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import TruncatedLogistic
    >>> TruncatedLogistic().value(np.array([-100.0, 0.0])).round(4)
    array([7.8637, 0.5951])
    """

    alpha: float = 2.0

    def check_parameters(self) -> None:
        """Raise a ValueError unless alpha is a number > 0."""
        check_positive("TruncatedLogistic: alpha", self.alpha)

    @property
    def curvature(self) -> tuple[float, float]:  # type: ignore[override]
        """Between -1 / alpha and 1/4."""
        return -1.0 / self.alpha, 0.25

    def value(self, t: Array) -> Array:
        """Return alpha log(1 + logistic(t) / alpha)."""
        return self.alpha * np.log1p(Logistic().value(t) / self.alpha)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return logistic'(t) / (1 + logistic(t) / alpha)."""
        return Logistic().derivative(t, value) / np.exp(value / self.alpha)


class Hinge(Loss):
    r"""The hinge loss :math:`\max\{0, 1 - t\}`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Hinge
    >>> Hinge().value(np.array([-1.0, 0.5, 2.0]))
    array([2. , 0.5, 0. ])
    """

    smooth = False
    convex = True
    kinks = ((1.0, 1.0),)
    curvature = 0.0, np.inf

    def value(self, t: Array) -> Array:
        """Return max(0, 1 - t)."""
        return np.maximum(1.0 - t, 0.0)

    def derivative(self, t: Array, value: Array) -> Array:
        """Return -1 where the loss is positive, else 0."""
        return -(value > 0.0).astype(float)


class SquaredHinge(Loss):
    r"""The squared hinge loss :math:`\max\{0, 1 - t\}^2 / 2`, which is smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([-1.0, 0.5, 2.0]))
    array([2.   , 0.125, 0.   ])
    """

    convex = True
    knots = (1.0,)
    curvature = 0.0, 1.0

    def value(self, t: Array) -> Array:
        """Return max(0, 1 - t)^2 / 2."""
        return 0.5 * np.maximum(1.0 - t, 0.0) ** 2

    def derivative(self, t: Array, value: Array) -> Array:
        """Return -max(0, 1 - t)."""
        return -np.maximum(1.0 - t, 0.0)


class Quadratic(Loss):
    r"""The quadratic loss :math:`(s - y)^2 / 2 = (1 - t)^2 / 2` for labels +-1.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Quadratic
    >>> Quadratic().value(np.array([-1.0, 0.0, 1.0]))
    array([2. , 0.5, 0. ])
    """

    convex = True
    knots = ()
    curvature = 1.0, 1.0

    def value(self, t: Array) -> Array:
        """Return (1 - t)^2 / 2."""
        return 0.5 * (1.0 - t) ** 2

    def derivative(self, t: Array, value: Array) -> Array:
        """Return t - 1."""
        return t - 1.0


LOSSES: dict[str, type[Loss]] = {
    "logistic": Logistic,
    "truncated_logistic": TruncatedLogistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "quadratic": Quadratic,
}
