"""What a domain is: a closed convex set of weights with an exact projection."""

from abc import ABC, abstractmethod
from operator import attrgetter

import numpy as np

from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import Count, Positive

ON_THE_BOUNDARY = 1e-9  # relative: points nearer to the boundary count as lying on it


class Domain(Parametrized, ABC):
    """A closed convex set with an exact projection.

    Attributes
    ----------
    whole_space : bool
        Whether the set is all of R^n, so that units of the variables may be changed freely.
    """

    whole_space = False

    @property
    def n_variables(self) -> int | None:
        """The number of variables, None for a set that exists for any number of them."""
        sizes = (np.size(value) for value in vars(self).values() if np.ndim(value))
        return next(sizes, None)

    @abstractmethod
    def project(self, w: Array) -> Array:
        """Return the point of the set nearest to `w`; a ball returns nan where w is not finite.

        Parameters
        ----------
        w : ndarray of shape (..., n_variables)
            A point, or several.
        """

    @abstractmethod
    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return gradient + v for the v in the normal cone N_W(w) that makes it smallest.

        Its norm is the distance of -gradient from the normal cone: zero when `w` is stationary.

        Parameters
        ----------
        w, gradient : ndarray of shape (..., n_variables)
            A point and a gradient, or several.
        """

    def stretched(self, factors: Array) -> "Domain | None":
        """Return the set of all factors * w with w in this one, None if it has no known projection.

        The problem is then one in the variables factors * w, which solvers find easier where these
        have similar sizes.

        Parameters
        ----------
        factors : ndarray of shape (n_variables,)
            Positive. If they are all equal, the set is known for every domain.
        """
        return Enlarged(self, float(factors[0])) if np.ptp(factors) == 0.0 else None


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

    def stretched(self, factors: Array) -> "WholeSpace":
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

    domain: Domain
    factor: Positive

    def project(self, w: Array) -> Array:
        """Project onto the domain at its own size."""
        return self.factor * self.domain.project(w / self.factor)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the domain's: the normal cone is the same one."""
        return self.domain.normal_cone_residual(w / self.factor, gradient)


class Blocks(Domain):
    """The product of `n_blocks` copies of a set: every block of variables lies in it on its own.

    Parameters
    ----------
    domain : Domain
        The set of one block.
    n_blocks : int
        How many blocks there are, all of one size, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import Blocks, L2Ball
    >>> Blocks(L2Ball(1.0), 2).project(np.array([3.0, -4.0, 0.6, 0.0]))
    array([ 0.6, -0.8,  0.6,  0. ])
    """

    domain: Domain
    n_blocks: Count

    whole_space = property(attrgetter("domain.whole_space"))

    def _split(self, w: Array) -> Array:
        return w.reshape(*w.shape[:-1], self.n_blocks, -1)

    def project(self, w: Array) -> Array:
        """Project every block."""
        return self.domain.project(self._split(w)).reshape(w.shape)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the blocks' residuals: the normal cone of a product is the product of theirs."""
        residual = self.domain.normal_cone_residual(self._split(w), self._split(gradient))
        return residual.reshape(w.shape)

    def stretched(self, factors: Array) -> Domain | None:
        """Return the product of the stretched sets, where the factors of all blocks are equal."""
        each = self._split(factors)
        block = self.domain.stretched(each[0]) if np.ptp(each, axis=0).max() == 0.0 else None
        return block and Blocks(block, self.n_blocks)


class Leading(Domain):
    """The first `size` variables lie in `domain`, the others (intercept, auxiliary) are free.

    Parameters
    ----------
    domain : Domain
        The set of the leading variables.
    size : int
        How many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.domains import L2Ball, Leading
    >>> Leading(L2Ball(1.0), 2).project(np.array([3.0, -4.0, 7.0]))
    array([ 0.6, -0.8,  7. ])
    """

    domain: Domain
    size: Count

    whole_space = property(attrgetter("domain.whole_space"))

    def project(self, w: Array) -> Array:
        """Project the leading variables."""
        lead = self.domain.project(w[..., : self.size])
        return np.concatenate([lead, w[..., self.size :]], axis=-1)

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the residual of the leading variables, then the gradient of the free ones."""
        lead = self.domain.normal_cone_residual(w[..., : self.size], gradient[..., : self.size])
        return np.concatenate([lead, gradient[..., self.size :]], axis=-1)
