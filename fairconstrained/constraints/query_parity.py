"""Parity of pairwise errors within every query: the constraint of rankers."""

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.base import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.data.labels import Queries, pairs_within
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.models.linear import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.cell_means import cell_matrix
from fairconstrained.terms.pairs import QueryPairs, differences
from fairconstrained.utils.arguments import check_switch, resolve
from fairconstrained.utils.arrays import Array, ArrayLike, unique_codes


class QueryParity(Constraint, kw_only=True):
    r"""Query parity: equal pairwise errors across groups within every query.

    A pair of a positive row i and a negative row j of a query is in the wrong order if
    :math:`s_i < s_j`. For every query q and all groups :math:`a \ne b`,

    .. math::
        E[\ell(s_i - s_j) \mid i \in q, a+;\ j \in q, b-]
        - E[\ell(s_i - s_j) \mid i \in q, b+;\ j \in q, a-] \le \kappa,

    where a+ and a- are the positive and the negative rows of group a, and :math:`\ell` is the hinge
    in place of the error :math:`1\{s_i < s_j\}`. With two groups there are two constraints per
    query, each with its own multiplier; the cost of an evaluation does not depend on their number.
    Pairs are weighted by the product of the sample weights of their rows. Rows with a missing group
    are in no pair.

    The hinge is not bounded, so the constraint also limits the differences of the margins. Equal
    scores have no gap.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest difference of the mean losses allowed, >= 0. None takes the estimator's, or 0.25
        outside of one.
    loss : {"hinge", "squared_hinge", "logistic", ...} or Loss, default="hinge"
        The loss :math:`\ell` of a pair's difference.
    average : bool, default=False
        Whether the differences are averaged over the queries: one constraint, with one multiplier,
        for each ordered pair of groups instead of one per query.

    Notes
    -----
    The zero-one version is the difference of the pairwise errors, in which ties count half.

    References
    ----------
    PLADA, appendix D.3; H. Narasimhan, A. Cotter, M. Gupta, S. Wang, "Pairwise fairness for ranking
    and regression", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import QueryParity
    >>> y, groups = np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"])
    >>> term = QueryParity(kappa=0.25).bind(y, groups, np.ones(4), np.array([7, 7, 7, 7]))
    >>> term.names[0]
    'error(a+, b- | query 7) - error(b+, a- | query 7) <= 0.25'
    >>> scores = np.array([2.0, 0.0, -0.5, 1.0])
    >>> term.gap(scores), term.zero_one().gap(scores)
    (array([-1.5,  1.5]), array([-1.,  1.]))
    """

    surrogate: ClassVar[None] = None  # type: ignore[misc]  # the loss takes its place
    loss: str | Loss = "hinge"
    average: bool = False

    by_class: ClassVar[bool] = False
    subtracts_kappa = True
    gap_title = "largest difference of two groups' pairwise errors in a query"
    scores_title = "losses of pairs"
    _default_kappa = 0.25
    _largest_kappa = np.inf
    needs_queries: ClassVar[bool] = True

    def bind(
        self,
        y: Array | None,
        groups: Groups | Array,
        sample_weight: Array,
        query: Queries | ArrayLike | None = None,
    ) -> QueryPairs:
        """Return the term with two outputs for every query and pair of groups.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.
        query : Queries, array-like of shape (n_rows,) or None, default=None
            The query of each row; None stands for one query of all rows.

        Raises
        ------
        ValueError
            If kappa or the loss is not valid, or groups are missing.

        Warns
        -----
        VacuousConstraintWarning
            If queries lack the pairs to be compared; the message has their numbers.
        """
        y, groups, weight = self._checked(y, groups, sample_weight)
        queries, positive = Queries.encode(query, len(weight)), y > 0
        kappa, loss = self.checked_kappa(), resolve("loss", self.loss, LOSSES, Loss)
        first, second, cells, of_query, kinds = _across_groups(positive, groups, queries)
        self._warn_of_queries(len(np.unique(of_query)), queries, positive)
        weights = weight[first] * weight[second]
        weights /= np.bincount(cells, weights, minlength=2 * len(kinds))[cells]
        output_blocks: Array | None = np.repeat(of_query, 2)
        start, titles = "", groups.labels
        places = [f" | query {queries.names[k]}" for k in of_query]
        if check_switch("average", self.average):
            kinds, codes = np.unique(kinds, axis=0, return_inverse=True)
            codes = np.ravel(codes)
            weights /= np.bincount(codes)[codes[cells // 2]]
            cells = 2 * codes[cells // 2] + cells % 2
            output_blocks, start, places = None, "mean over queries of ", [""] * len(kinds)
        names = tuple(
            f"{start}error({a}+, {b}-{place}) - error({b}+, {a}-{place}) <= {kappa:g}"
            for place, (g, h) in zip(places, kinds.tolist(), strict=True)
            for a, b in ((titles[g], titles[h]), (titles[h], titles[g]))
        )
        both_ways = np.array([[1.0, -1.0], [-1.0, 1.0]])
        return QueryPairs(
            cell_matrix(cells, weights, 2 * len(kinds)),
            differences(first, second, len(y)),
            queries.codes,
            loss,
            output_blocks,
            combination=sp.csr_array(sp.kron(sp.eye_array(len(kinds)), both_ways, format="csr")),
            offset=np.full(len(names), kappa),
            names=names,
        )

    def _warn_of_queries(self, n_compared: int, queries: Queries, positive: Array) -> None:
        """Warn of queries that lack pairs across groups in both directions."""
        n = len(queries)
        kinds = [np.bincount(queries.codes[rows], minlength=n) for rows in (positive, ~positive)]
        of_one_class = int(np.sum((kinds[0] == 0) | (kinds[1] == 0)))
        if n_compared < n:
            low, high = self.labels
            self._warn(
                f"nothing is asked of {n - n_compared} of {n} queries: {of_one_class} have no rows "
                f"with label {high} or none with label {low}, and {n - n_compared - of_one_class} "
                "have no pairs of them across two groups in both directions."
            )

    def build(self, model: Model, data: TrainingData) -> CompositeFunction:
        """Return the constraint on training rows with queries."""
        queries, groups = data.queries_for(f"constraint={self!r}"), data.groups
        assert groups is not None, "estimators ask for groups if the constraint needs them"
        return CompositeFunction(model, self.bind(data.y, groups, data.sample_weight, queries))

    def known_rows(self, groups: Groups) -> Array:
        """Return all rows: those whose group is not known are in no pair of the constraint."""
        return np.ones(len(groups.codes), dtype=bool)


def _across_groups(
    positive: Array, groups: Groups, queries: Queries
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the pairs across groups that can be compared, and the comparisons.

    Comparison k is of the cells 2 k (positives of the first group) and 2 k + 1 (of the second one).
    """
    first, second = pairs_within(positive, queries.codes)
    high, low = groups.codes[first], groups.codes[second]
    across = (high != low) & (high >= 0) & (low >= 0)
    first, second, high, low = (side[across] for side in (first, second, high, low))
    n = len(groups)
    kind = (queries.codes[first] * n + np.minimum(high, low)) * n + np.maximum(high, low)
    present, place = unique_codes(kind)
    cells = 2 * place + (high > low)
    both = np.bincount(cells, minlength=2 * len(present)).reshape(-1, 2).min(axis=1) > 0
    kept, present = both[place], present[both]
    cells -= 2 * np.cumsum(~both)[place]
    kinds = np.column_stack([present // n % n, present % n])
    return first[kept], second[kept], cells[kept], present // n**2, kinds
