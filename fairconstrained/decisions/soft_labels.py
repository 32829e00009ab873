"""Constraints on rates of few rows, estimated from more rows: labels by their probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from fairconstrained.decisions.smoothing import effective_rows
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, rows_by_cell
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
        n_rows = len(y)
        entries = (np.ones(n_rows), codes + 1, np.arange(n_rows + 1))
        members = sp.csr_array(entries, shape=(n_rows, int(codes.max()) + 2))
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
        if term.n_rows != len(self.y):
            return None
        cells = dict(self._soft_cells(term, _SOFT_ROWS))
        if not cells:
            return None
        positive = np.array([self.y[rows[0]] > 0.0 for rows, _ in rows_by_cell(term.cells)])
        used = abs(as_csr(term.combination))
        of_both = (used @ positive > 0.0) & (used @ ~positive > 0.0)
        outputs = np.flatnonzero((used[:, list(cells)].sum(axis=1) > 0.0) & ~of_both)
        if not len(outputs):
            return None
        some = term if len(outputs) == term.n_outputs else term.some_outputs(outputs)
        soft = replace(some, cells=_with_rows(term.cells, cells))
        return part.with_outputs(soft, outputs)

    def statistics(self, term: Term, scores: Array) -> Array | None:
        """Return averages of a term with soft labels alone where cells have few rows.

        None if there are no such cells, or it is not a term of averages of these rows.
        """
        if not isinstance(term, CellMeans) or term.n_rows != len(self.y):
            return None
        cells = dict(self._soft_cells(term, np.inf))
        if not cells:
            return None
        return replace(term, cells=_with_rows(term.cells, cells)).forward(scores)[0]

    def _soft_cells(self, term: CellMeans, prior: float) -> Iterator[tuple[int, sp.csr_array]]:
        """Yield the cells of few rows with their new weights, (1, n_rows).

        `prior` is the number of a cell's rows that count as much as its soft labels.
        """
        cells, sizes = rows_by_cell(term.cells), effective_rows(term)
        for k in np.flatnonzero(sizes < _FEW_ROWS):
            (rows, weights), share = cells[k], 1.0 / (1.0 + prior / sizes[k])
            soft = self._soft_cell(rows)
            if soft is not None:
                soft *= 1.0 - share
                soft[rows] += share * weights
                yield int(k), sp.csr_array(soft[None, :])

    def _soft_cell(self, members: Array) -> Array | None:
        """Return the weights of a cell of all rows with a label in some groups, None if others.

        None too if these groups have no rows of the other label. Such a cell may be that of a
        selection rate, and there are no rows to add.
        """
        label, codes = self.y[members[0]], np.unique(self.codes[members])
        inside = np.isin(self.codes, codes)
        if codes[0] < 0 or np.count_nonzero(inside) == len(members):
            return None
        if np.count_nonzero(inside & (self.y == label)) != len(members):
            return None
        if np.any(self.y[members] != label):
            return None
        chance = self.probability if label > 0.0 else 1.0 - self.probability
        soft = np.where(inside, self.weight * chance, 0.0)
        return soft / soft.sum()


def _with_rows(cells: SparseMatrix, rows: dict[int, sp.csr_array]) -> sp.csc_array:
    """Return cells with other rows in the place of some."""
    each = cells.tocsr()
    return sp.csc_array(sp.vstack([rows.get(k, each[[k]]) for k in range(each.shape[0])]))


def has_few_rows(problem: Problem) -> bool:
    """Return whether a constraint on averages has a cell whose rate soft labels change."""
    terms = [part.term for part in problem.constraints if isinstance(part.term, CellMeans)]
    return any(bool(np.any(effective_rows(term) < _FEW_ROWS)) for term in terms)
