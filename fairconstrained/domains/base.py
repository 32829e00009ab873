"""What a domain is: a closed convex set of weights with an exact projection."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_positive

ON_THE_BOUNDARY = 1e-9  # relative: points nearer to the boundary count as lying on it


class Domain(BaseEstimator, ABC):
    """A closed convex set with an exact projection.

    Attributes
    ----------
    whole_space : bool
        Whether the set is all of R^n, so that units of the variables may be changed freely.
    n_variables : int or None
        The number of variables, None for a set that exists for any number of them.
    """

    whole_space: bool = False
    n_variables: int | None = None

    def check(self) -> None:
        """Check the parameters.

        Raises
        ------
        ValueError
            With the parameter's name, what was found and what is valid.
        """

    @abstractmethod
    def project(self, w: Array) -> Array:
        """Return the point of the set nearest to `w`; a ball returns nan where w is not finite."""

    @abstractmethod
    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + v for the v in the normal cone N_W(w) that makes it smallest.

        Its norm is the distance of -gradient from the normal cone: zero when `w` is stationary.
        """

    def project_rows(self, rows: Array) -> Array:
        """Return the projections of several points, one per row, shape (n_points, n_variables)."""
        return np.stack([self.project(w) for w in rows])

    def residual_rows(self, rows: Array, gradients: Array) -> Array:
        """Return the normal cone residuals of several points with a gradient each, one per row."""
        both = zip(rows, gradients, strict=True)
        return np.stack([self.normal_cone_residual(w, gradient) for w, gradient in both])

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return lower and upper bounds when the set is a box, else None."""
        return None

    def stretched(self, factors: Array) -> Domain | None:
        """Return the set of all factors * w with w in this one, None if it has no known projection.

        The problem is then one in the variables factors * w, which solvers find easier where these
        have similar sizes.

        Parameters
        ----------
        factors : ndarray of shape (n_variables,)
            Positive. If they are all equal, the set is known for every domain.
        """
        return Enlarged(self, float(factors[0])) if np.ptp(factors) == 0.0 else None


def check_inner(owner: str, domain: object) -> None:
    """Check the domain that another domain is made of.

    Raises
    ------
    TypeError
        If it is not a domain.
    ValueError
        If one of its parameters is not valid.
    """
    if not isinstance(domain, Domain):
        raise TypeError(f"{owner}: domain must be a domain, such as L2Ball(); got {domain!r}.")
    domain.check()


class WholeSpace(Domain):
    """All of R^n.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import WholeSpace
    >>> WholeSpace().project(np.array([3.0, -4.0]))
    array([ 3., -4.])
    """

    whole_space = True

    def project(self, w: Array) -> Array:
        """Return `w`."""
        return w

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the gradient: the normal cone is {0}."""
        return gradient

    def bounds(self, n_variables: int) -> tuple[Array, Array]:
        """Return infinite bounds."""
        return np.full(n_variables, -np.inf), np.full(n_variables, np.inf)

    def stretched(self, factors: Array) -> WholeSpace:
        """Return the same."""
        return self


class Enlarged(Domain):
    """The set of all factor * w with w in a domain.

    Parameters
    ----------
    domain : Domain
        The set of w.
    factor : float
        The factor, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import Enlarged, L2Ball
    >>> Enlarged(L2Ball(1.0), 2.0).project(np.array([3.0, -4.0]))
    array([ 1.2, -1.6])
    """

    def __init__(self, domain: Domain, factor: float):
        self.domain = domain
        self.factor = factor

    def check(self) -> None:
        """Check the domain and the factor."""
        check_inner("Enlarged", self.domain)
        check_positive("Enlarged: factor", self.factor)

    def project(self, w: Array) -> Array:
        """Project onto the domain at its own size."""
        return self.factor * self.domain.project(w / self.factor)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the domain's: the normal cone is the same one."""
        return self.domain.normal_cone_residual(w / self.factor, gradient)
