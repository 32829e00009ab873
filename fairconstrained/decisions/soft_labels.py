"""Constraints on rates of few rows, estimated from more rows: labels by their probability."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from fairconstrained.decisions.smoothing import effective_rows
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.typing import Array, SparseMatrix

_SOFT_ROWS = 300.0  # as many rows of a cell count as much as its soft labels
_FEW_ROWS = 3000.0  # cells of more rows have no soft labels


@dataclass(frozen=True, eq=False)
class SoftLabels:
    r"""The rows of a fit with the probability of the favourable label.

    A true positive rate of a group with few positive rows is a mean of few predictions, and a
    search among many models finds one that meets a bound on it by chance. All rows of the group,
    weighted by the probability that their label is positive, estimate the same rate,

    .. math:: \sum_{i \in a} v_i p_i 1\{s_i > 0\} / \sum_{i \in a} v_i p_i,

    and are more rows. It is the expectation of the rate over labels drawn with these probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.soft_labels import SoftLabels
    >>> y, groups = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0, 0, 1, 1])
    >>> labels = SoftLabels.of(np.array([2.0, -2.0, 1.0, -1.0]), y, groups, np.ones(4))
    >>> labels.probability.round(2)
    array([0.88, 0.12, 0.73, 0.27])
    """

    y: Array  # the labels, -1 or +1, (n_rows,)
    codes: Array  # the groups; -1 where a row's group is not known, (n_rows,)
    weight: Array  # the weights v, (n_rows,)
    probability: Array  # p, the probability of the label +1, (n_rows,)

    @classmethod
    def of(cls, scores: Array, y: Array, codes: Array, weight: Array) -> SoftLabels:
        """Return soft labels from the scores of a model that was fitted without constraints.

        The probabilities are those of a logistic regression on the scores with an intercept for
        every group, which is shrunk: labels of few rows change it little.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores.
        y, codes, weight
            See above.
        """
        members = _members(codes)
        X = sp.csr_array(sp.hstack([sp.csr_array(scores[:, None]), members]))
        model = LogisticRegression().fit(X, y, sample_weight=weight / weight.mean())
        return cls(y, codes, weight, model.predict_proba(X)[:, 1])

    def constraints(self, problem: Problem) -> tuple[CompositeFunction, ...]:
        """Return the constraints on rates of few rows, with soft labels.

        Parameters
        ----------
        problem : Problem
            The constraints. True and false positive rates and error rates are averages over the
            rows of a label in some groups; selection rates and others have no such estimate. Rates
            of groups of one label have none either: there are no more rows of these groups.
        """
        model, found = problem.objective.model, []
        for part in problem.constraints:
            if isinstance(part.term, CellMeans) and part.model is model:
                softened = self._softened(part, part.term)
                found += [] if softened is None else [softened]
        return tuple(found)

    def _softened(self, part: CompositeFunction, term: CellMeans) -> CompositeFunction | None:
        """Return the outputs that depend on cells of few rows, None if there are none.

        Error rates, which depend on cells of both labels, are left out.
        """
        if (mixed := self._mixed(term, _SOFT_ROWS)) is None:
            return None
        cells, soft, positive = mixed
        used = abs(as_csr(term.combination))
        of_both = (used @ positive > 0.0) & (used @ ~positive > 0.0)
        outputs = np.flatnonzero((used @ soft > 0.0) & ~of_both)
        if not len(outputs):
            return None
        some = term if len(outputs) == term.n_outputs else term.some_outputs(outputs)
        return part.with_outputs(replace(some, cells=cells), outputs)

    def statistics(self, term: Term, scores: Array) -> Array | None:
        """Return averages of a term with soft labels alone where cells have few rows.

        None if there are no such cells, or it is not a term of averages of these rows.
        """
        if not isinstance(term, CellMeans) or (mixed := self._mixed(term, np.inf)) is None:
            return None
        return replace(term, cells=mixed[0]).forward(scores)[0]

    def _mixed(self, term: CellMeans, prior: float) -> tuple[SparseMatrix, Array, Array] | None:
        """Return cells with soft labels, which they are, and which are of positive labels.

        They are those of few rows, all rows with a label in some groups that have rows of the other
        label, too. Others may be those of selection rates, and there are no rows to add. `prior` is
        the number of a cell's rows that count as much as its soft labels.
        """
        if term.n_rows != len(self.y):
            return None
        cells, sizes, members = (
            as_csr(term.cells),
            effective_rows(term),
            _members(self.codes)[:, 1:],
        )
        labels = np.column_stack([self.y < 0.0, self.y > 0.0]).astype(float)
        every, inside = members.T @ labels, sp.csr_array(cells.sign())
        counts, soft = inside @ labels, np.zeros(len(sizes), dtype=bool)
        mixed = cells
        for k, chance in enumerate((1.0 - self.probability, self.probability)):
            groups = sp.csr_array((inside @ (members * labels[:, [k]])).sign())
            there = groups @ every  # the rows of these groups, by label
            some = (there[:, k] == counts[:, k]) & (counts[:, 1 - k] == 0.0) & (sizes < _FEW_ROWS)
            some &= there[:, 1 - k] > 0.0
            share = 1.0 / (1.0 + np.divide(prior, sizes, out=np.zeros(len(sizes)), where=some))
            rows = sp.csr_array(groups @ members.T * (self.weight * chance))
            factors = np.divide(1.0 - share, rows.sum(axis=1), out=np.zeros(len(share)), where=some)
            mixed = sp.csr_array(mixed * share[:, None] + rows * factors[:, None])
            soft |= some
        return (sp.csc_array(mixed), soft, counts[:, 1] > 0.0) if soft.any() else None


def _members(codes: Array) -> sp.csr_array:
    """Return a column for every group, the first one for rows of no group."""
    n_rows = len(codes)
    entries = np.ones(n_rows), codes + 1, np.arange(n_rows + 1)
    return sp.csr_array(entries, shape=(n_rows, int(codes.max()) + 2))


def has_few_rows(problem: Problem) -> bool:
    """Return whether a constraint on averages has a cell whose rate soft labels change."""
    terms = [part.term for part in problem.constraints if isinstance(part.term, CellMeans)]
    return any(bool(np.any(effective_rows(term) < _FEW_ROWS)) for term in terms)
