"""Predictive parity: a selected row has a positive label as often in all groups."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import measures
from fairconstrained.constraints.parity import RateParity
from fairconstrained.data.groups import Groups
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans, OnCells, cell_matrix
from fairconstrained.terms.head import FunctionAverages
from fairconstrained.terms.ordered_pairs import as_csr, identity
from fairconstrained.terms.threshold_rates import averages
from fairconstrained.utils.typing import Array, SparseMatrix


@dataclass(frozen=True, eq=False)
class Precisions(OnCells, FunctionAverages):
    r"""Affine functions of precisions, the shares of positive labels among what is selected.

    A number's precision is :math:`\sum_{c +} h_c r_c / \sum_c h_c r_c` with the rates r of its
    cells and their shares h of the weight. Where no row is selected it is that of all rows: such a
    group sets no gap.
    """

    function: ScalarFunction
    shares: SparseMatrix  # h, of shape (n_numbers, n_cells); the last row is that of all rows
    positive: Array  # whether the labels of each cell are positive, (n_cells,)

    shardable = factored = of_rates = True
    difference_of_convex = False
    convexify = Term.convexify

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return len(self.positive)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Only without outputs."""
        return self.n_outputs == 0

    @cached_property
    def _rates(self) -> CellMeans:
        return averages(self, self.function)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the rates of the cells and their pullback."""
        return self._rates.forward(scores)

    def averages(self, statistics: Array) -> Array:
        """Return the precisions."""
        selected = self.shares @ statistics
        hits = self.shares @ (self.positive * statistics)
        overall = hits[-1] / selected[-1] if selected[-1] > 0.0 else 0.0
        return np.divide(hits, selected, out=np.full(len(hits), overall), where=selected > 0.0)

    def _slopes(self, statistics: Array) -> Any:
        """Return the derivatives of the precisions in the rates."""
        selected = self.shares @ statistics
        scale = np.divide(1.0, selected, out=np.zeros(len(selected)), where=selected > 0.0)
        hits = self.shares @ sp.diags_array(self.positive.astype(float))
        rest = hits - sp.diags_array(self.averages(statistics)) @ self.shares
        return sp.csr_array(sp.diags_array(scale) @ rest)

    def averages_vjp(self, statistics: Array, weights: Any) -> Any:
        """Return the weights times the derivatives of the precisions."""
        listed = weights if isinstance(weights, np.ndarray) else as_csr(weights)
        return listed @ self._slopes(statistics)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sizes of the derivatives times the averages of the subgradient error."""
        if not self.function.corners:
            return np.zeros(self.n_outputs)
        slopes = self._slopes(self.forward(scores)[0])
        return abs(self.combination) @ (abs(slopes) @ self._average_errors(scores, auxiliary))


class _ByLabel(measures.Measures):
    """Numbers of groups whose cells are their rows of each label."""

    @cached_property
    def cells(self) -> SparseMatrix:
        return cell_matrix(self.codes, self.weight, 2 * len(self))


@dataclass(eq=False, repr=False)
class PredictiveParity(RateParity):
    r"""Predictive parity: a selected row has a positive label as often in all groups.

    .. math::
        \mathrm{precision}_k = \frac{\sum_{i \in k, y_i = 1} w_i\, \sigma(s_i)}
        {\sum_{i \in k} w_i\, \sigma(s_i)}, \qquad
        |\mathrm{precision}_a - \mathrm{precision}_b| \le \kappa.

    With the sigmoid and the logistic loss :math:`\sigma(s)` is the predicted probability p, and the
    precision is the mean of the labels, weighted by p. That of predictions is the share of positive
    labels among the rows that are selected; a group without any sets no gap.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.
    against : {"pairs", "overall"} or str, default="pairs"
        Groups are compared with each other, all rows, or the group of this name.

    References
    ----------
    A. Chouldechova, "Fair prediction with disparate impact", Big Data 5 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import PredictiveParity
    >>> term = PredictiveParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, 1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'precision(a) - precision(b) <= 0.1'
    >>> term.zero_one().gap(np.ones(4))  # half of the selected rows of a and all of b are positive
    array([-0.5,  0.5])
    """

    _: KW_ONLY
    ratio: ClassVar[None] = None  # type: ignore[misc]  # a precision may be 0

    rates = ("precision",)
    cannot_be_tested = "a precision is a ratio of two rates, and there is no exact test of it"

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        means = measures.means(groups, weight, self._warn, "precision")
        n, known = len(means), means.codes >= 0
        codes = np.where(known, 2 * means.codes + (y > 0), -1)
        masses = np.bincount(codes[known], weight[known], 2 * n) / weight[known].sum()
        each = np.arange(2 * n)
        by_group = sp.csr_array((masses, (each // 2, each)), shape=(n, 2 * n))
        shares = sp.csr_array(sp.vstack([by_group, masses[None, :]]))
        kind = partial(Precisions, shares=shares, positive=each % 2 == 1)
        requirement = measures.difference(self.checked_kappa())
        numbers = identity(n + 1)
        part = _ByLabel(codes, weight, means.shares, means.what, means.groups, numbers)
        against = measures.comparison(self.against, groups, self._warn)
        return measures.Compared([part], against, replace(requirement, kind=kind))
