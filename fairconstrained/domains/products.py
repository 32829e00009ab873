"""Products of sets: blocks of variables, and variables of which some are free."""

from __future__ import annotations

import numpy as np

from fairconstrained.domains.base import Domain, check_inner
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_count


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

    def __init__(self, domain: Domain, n_blocks: int):
        self.domain = domain
        self.n_blocks = n_blocks

    def check(self) -> None:
        """Check the set of a block and the number of blocks."""
        check_inner("Blocks", self.domain)
        check_count("Blocks: n_blocks", self.n_blocks)

    @property
    def whole_space(self) -> bool:  # type: ignore[override]
        """Whether the set of a block is."""
        return self.domain.whole_space

    def project(self, w: Array) -> Array:
        """Project every block."""
        return self.domain.project_rows(w.reshape(self.n_blocks, -1)).ravel()

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the blocks' residuals: the normal cone of a product is the product of theirs."""
        blocks = w.reshape(self.n_blocks, -1), gradient.reshape(self.n_blocks, -1)
        return self.domain.residual_rows(*blocks).ravel()

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return the bounds of a block, repeated, or None."""
        one = self.domain.bounds(n_variables // self.n_blocks)
        if one is None:
            return None
        return np.tile(one[0], self.n_blocks), np.tile(one[1], self.n_blocks)

    def stretched(self, factors: Array) -> Domain | None:
        """Return the product of the stretched sets, where the factors of all blocks are equal."""
        each = factors.reshape(self.n_blocks, -1)
        one = self.domain.stretched(each[0]) if np.ptp(each, axis=0).max() == 0.0 else None
        return None if one is None else Blocks(one, self.n_blocks)


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

    def __init__(self, domain: Domain, size: int):
        self.domain = domain
        self.size = size

    def check(self) -> None:
        """Check the set of the leading variables and their number."""
        check_inner("Leading", self.domain)
        check_count("Leading: size", self.size)

    @property
    def whole_space(self) -> bool:  # type: ignore[override]
        """Whether the set of the leading variables is."""
        return self.domain.whole_space

    def project(self, w: Array) -> Array:
        """Project the leading variables."""
        return np.concatenate([self.domain.project(w[: self.size]), w[self.size :]])

    def normal_cone_residual(self, w: Array, gradient: Array) -> Array:
        """Return the residual of the leading variables, then the gradient of the free ones."""
        lead = self.domain.normal_cone_residual(w[: self.size], gradient[: self.size])
        return np.concatenate([lead, gradient[self.size :]])

    def bounds(self, n_variables: int) -> tuple[Array, Array] | None:
        """Return the leading bounds followed by infinite ones, or None."""
        lead = self.domain.bounds(self.size)
        if lead is None:
            return None
        free = np.full(n_variables - self.size, np.inf)
        return np.concatenate([lead[0], -free]), np.concatenate([lead[1], free])
