"""The largest output of a term, such as the objective of the least unfairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.terms._composed import WrappedTerm, with_ability
from fairconstrained.terms.base import NO_AUXILIARY, Batchable, Pullback
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Maximum(WrappedTerm, Batchable):
    r"""The largest output :math:`\max_j c_j(s)` of a term.

    It has kinks where several outputs are largest; the derivative is then that of the first of
    them, a subgradient if the term is convex or smooth.

    Parameters
    ----------
    term : Term
        c. Its abilities to be weakly convex and to be estimated from batches are kept. A batch
        estimates the statistics; the largest output of estimates is biased upwards.

    References
    ----------
    3S-Econ, equation (5): the largest of the differences at 400 thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.terms.maximum import Maximum
    >>> parity = DemographicParity(0.0).bind(np.ones(4), np.array([0, 0, 1, 1]), np.ones(4))
    >>> Maximum(parity).value(np.array([2.0, 2.0, -2.0, -2.0])).round(3)
    array([0.762])
    """

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    @property
    def names(self) -> Sequence[str]:
        """A description of the output."""
        return (f"the largest of {self.term.n_outputs}: {', '.join(self.term.names[:2])} ...",)

    @property
    def smooth(self) -> bool:
        """Whether the gradients are continuous: if there is one output, as the term's are."""
        return self.term.smooth and self.term.n_outputs == 1

    @property
    def n_auxiliary(self) -> int:
        """The number of the term's own variables."""
        return self.term.n_auxiliary

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of the auxiliary variables."""
        return self.term.auxiliary_start

    @property
    def batchable(self) -> bool:
        """Whether the term can be estimated from batches."""
        return isinstance(self.term, Batchable) and self.term.batchable

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics of the term and their pullback."""
        return self.term.forward(scores, auxiliary)

    def head(self, statistics: Array) -> Array:
        """Return the largest output, shape (1,)."""
        return np.array([self.term.head(statistics).max()])

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return v times the gradient of the largest output."""
        outputs = self.term.head(statistics)
        unit = np.zeros(len(outputs))
        unit[int(outputs.argmax())] = float(v[0])
        return self.term.head_vjp(statistics, unit)

    def zero_one(self) -> Maximum:
        """Return the largest output of the zero-one version."""
        return replace(self, term=self.term.zero_one())

    def take(self, rows: Array, weights: Array) -> Maximum:
        """Return the largest output of the term on some rows."""
        return replace(self, term=self._batchable().take(rows, weights))

    def strata(self) -> Array:
        """Return the codes of the term's cells."""
        return self._batchable().strata()

    def blocks(self) -> Array | None:
        """Return the rows that a batch of the term must hold together."""
        return self._batchable().blocks()

    def _batchable(self) -> Batchable:
        return with_ability(Batchable, [self.term])[0]
