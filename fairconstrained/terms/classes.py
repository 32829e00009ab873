"""Terms of several classes: losses of margins between classes, log odds of each class."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import expit, logsumexp, softmax

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.cell_means import CellMeans, OnCells, cell_matrix
from fairconstrained.terms.head import FunctionAverages
from fairconstrained.utils.arguments import joined
from fairconstrained.utils.arrays import Array, SparseMatrix, joint_codes

Losses = tuple[Array, Callable[[Array], Array]]


@dataclass(frozen=True, eq=False)
class ClassTerm(OnCells):
    r"""Affine functions :math:`R\, r + d - b` of weighted sums of losses of rows.

    The cells have the weights of the rows in each sum, >= 0, one in total on the full data. A sum
    is over the rows of a class, or over all rows.
    """

    labels: Array  # the class of each row, the column of its own score, (n_rows,)

    shardable = True

    @cached_property
    def _rows(self) -> Array | slice:
        """The rows that are in a sum."""
        inside = np.diff(self.cells.indptr) > 0
        return slice(None) if inside.all() else np.flatnonzero(inside)

    @cached_property
    def _weights(self) -> SparseMatrix:
        """The weights of these rows."""
        return self.cells[:, self._rows]

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """Where the scores of these rows for their classes are."""
        labels = self.labels[self._rows]
        return np.arange(len(labels)), labels

    @abstractmethod
    def _losses(self, scores: Array) -> Losses:
        """Return the losses of rows, and what maps weights of the losses to those of the scores."""

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the sums of losses and their pullback."""
        losses, slopes = self._losses(scores[self._rows])

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(scores.shape)
            back[self._rows] = slopes(self._weights.T @ u)
            return back, NO_AUXILIARY

        return self._weights @ losses, pullback

    def zero_one(self) -> "ErrorRates":
        """Return the share of the rows of each class that are predicted to be of another class."""
        return ErrorRates(**{each.name: getattr(self, each.name) for each in fields(ClassTerm)})

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; class sizes stay those of the full data."""
        return replace(super().take(rows, weights), labels=self.labels[rows])

    def strata(self) -> Array:
        """Return the classes of the rows, -1 for those that are in no sum."""
        codes = np.full(self.n_rows, -1)
        codes[self._rows] = self.labels[self._rows]
        return codes


class MultinomialLoss(ClassTerm):
    r"""The weighted mean of the multinomial logistic loss; parameters of :class:`ClassTerm`.

    .. math:: \sum_i v_i \Bigl(\log \sum_k e^{s_{ik}} - s_{i, y_i}\Bigr), \qquad \sum_i v_i = 1.
    """

    smooth = True
    convex = True

    def _losses(self, scores: Array) -> Losses:
        total = logsumexp(scores, axis=1)

        def slopes(weights: Array) -> Array:
            back = np.exp(scores - total[:, None])
            back[self._own] -= 1.0
            back *= weights[:, None]
            return back

        return total - scores[self._own], slopes


class ErrorRates(ClassTerm):
    """The share of the rows of each class, or of all, whose largest score is another class's."""

    def _losses(self, scores: Array) -> Losses:
        wrong = scores.argmax(axis=1) != self._own[1]
        return wrong.astype(float), lambda weights: np.zeros(scores.shape)


@dataclass(frozen=True, eq=False)
class PairwiseMargins(ClassTerm, FunctionAverages):
    r"""The mean loss of the margins between a class and every other class.

    .. math::
        r_k(S) = \sum_{i:\, y_i = k} v_i \sum_{l \ne k} \phi(S_{ik} - S_{il}),
        \qquad c = R\, r + d - b, \qquad \sum_{i:\, y_i = k} v_i = 1,

    for some of the classes k, with scores S of shape (n_rows, n_classes), the weights v of the
    cells, and phi not increasing.

    References
    ----------
    IPC, section 1.1; 3S-Econ, equation (3).
    """

    function: ScalarFunction  # phi
    # classes l that the sums do not contain. The papers' problem leaves out the class that has
    # priority, whose loss is the objective: its constraints sum over the other classes only
    left_out: tuple[int, ...] = ()

    def _counted(self, values: Array) -> Array:
        """Make values for pairs of classes 0 where no sum contains them."""
        values[self._own] = 0.0
        values[:, list(self.left_out)] = 0.0
        return values

    def _losses(self, scores: Array) -> Losses:
        margins = scores[self._own][:, None] - scores
        value = self.function.value(margins)

        def slopes(weights: Array) -> Array:
            slope = self._counted(-self.function.derivative(margins, value))
            slope *= weights[:, None]
            slope[self._own] = -slope.sum(axis=1)
            return slope

        return self._counted(value.copy()).sum(axis=1), slopes

    def _bend(self) -> Array:
        """Return v_i times the downward curvature of R phi times K.

        Along a direction d the curvature is that of phi times the sum over l of (d_k - d_l)^2,
        which is at most K times |d|^2.
        """
        n_classes = max(int(self.labels.max(initial=0)), self.n_statistics) + 1
        return n_classes * (self.cells.T @ self._largest_bend())


def class_losses(
    function: ScalarFunction,
    labels: Array,
    sample_weight: Array,
    classes: Sequence[int],
    bounds: Sequence[float],
    names: Sequence[str] = (),
    *,
    left_out: Sequence[int] = (),
) -> PairwiseMargins:
    """Return the mean losses of some classes minus their bounds."""
    codes = np.full(max(int(labels.max()), *classes) + 1, -1)
    codes[np.array(classes, dtype=int)] = np.arange(len(classes))
    cells = cell_matrix(codes[labels], sample_weight, len(classes))
    return PairwiseMargins(
        cells, labels, function, tuple(left_out), offset=np.array(bounds, dtype=float), names=names
    )


def correct_share(labels: Array, sample_weight: Array) -> ErrorRates:
    """Return the share of rows whose largest score is that of their class: 1 - error rate."""
    cells = cell_matrix(np.zeros(len(labels), dtype=int), sample_weight, 1)
    return ErrorRates(cells, labels, combination=np.array([[-1.0]]), constant=1.0)


def log_odds(scores: Array) -> Array:
    r"""Return the log odds of every class against all others.

    .. math:: t_{ik} = s_{ik} - \log \sum_{l \ne k} e^{s_{il}}, \qquad
        \frac{1}{1 + e^{-t_{ik}}} = \frac{e^{s_{ik}}}{\sum_l e^{s_{il}}}.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.terms.classes import log_odds
    >>> log_odds(np.log([[0.5, 0.25, 0.25]])).round(4) + 0.0
    array([[ 0.    , -1.0986, -1.0986]])
    """
    # Scores are centred at the best one: its own term of the sum is 1.
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    centred = scores - scores[rows, best][:, None]
    raised = np.exp(centred)
    raised[rows, best] = 0.0
    others = raised.sum(axis=1)
    out = np.array(centred - np.log((1.0 + others)[:, None] - raised), order="F")
    # Where the best class is far above the others, the sum of their terms underflows.
    far = np.flatnonzero(others < np.finfo(float).tiny)
    centred[rows, best] = -np.inf
    others[far] = 1.0
    out[rows, best] = -np.log(others)
    out[far, best[far]] = -logsumexp(centred[far], axis=1)
    return out


def predicted(scores: Array) -> Array:
    """Return +1 in the column of the class of the largest score (the first one), else -1."""
    out = np.full(scores.shape, -1.0, order="F")
    out[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
    return out


@dataclass(frozen=True, eq=False)
class ByClass(Term):
    r"""Terms of one score, one for every class, applied to the log odds of the classes.

    The sigmoid of the log odds of class k is its soft-max probability, so that the average of the
    sigmoid is the expected rate at which class k is predicted. Zero-one versions of rates count the
    rows whose largest score is that of class k; those of other terms, for instance of ranks, are
    taken at the log odds.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.terms.classes import ByClass
    >>> y, groups = np.array([0, 1, 2, 1]), np.array(["a", "a", "b", "b"])
    >>> terms = [
    ...     DemographicParity(0.1).bind(np.where(y == k, 1, -1), groups, np.ones(4))
    ...     for k in range(3)
    ... ]
    >>> term = ByClass(tuple(terms), ("low", "middle", "high"))
    >>> term.names[0]
    'class low: rate(a) - rate(b) <= 0.1'
    >>> scores = np.array([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0], [0, 9.0, 0]])
    >>> term.zero_one().gap(scores)
    array([ 0.5, -0.5,  0. ,  0. , -0.5,  0.5])
    """

    terms: tuple[Term, ...]  # one term of scores of shape (n_rows,) for every class
    classes: tuple[str, ...]  # the names of the classes
    # a factor of the scores, the inverse of the temperature of the soft-max. With a large one
    # soft-max probabilities are near 0 and 1, and their averages near the rates of predictions
    sharpness: float = 1.0

    smooth = joined("terms", "smooth")
    batchable = joined("terms", "batchable")
    smoothable = joined("terms", "smoothable")
    n_outputs = joined("terms", "n_outputs", sum)
    n_statistics = joined("terms", "n_statistics", sum)
    n_auxiliary = joined("terms", "n_auxiliary", sum)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows of the scores."""
        return self.terms[0].n_rows

    def strata(self) -> Array:
        """Return codes of the cells of all terms together."""
        return joint_codes([term.strata() for term in self.terms])

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the classes' outputs."""
        each = zip(self.classes, self.terms, strict=True)
        return tuple(f"class {label}: {name}" for label, term in each for name in term.names)

    @property
    def counts_predictions(self) -> bool:
        """Whether all terms are affine functions of shares of predictions."""
        return all(map(counts_predictions, self.terms))

    @property
    def by_class(self) -> tuple[CellMeans, ...]:
        """The terms, of rates of predictions: for every class the shares in cells of rows."""
        return tuple(term for term in self.terms if isinstance(term, CellMeans))

    def outputs_at(self, shares: Sequence[Array]) -> Array:
        """Return the outputs for shares of predictions, (n_outputs, n_points)."""
        return np.vstack(list(map(CellMeans.outputs_at, self.by_class, shares)))

    @property
    def auxiliary_start(self) -> Array:
        """Those of all terms, moved as thresholds are: to classes of equal probability."""
        level = -float(np.log(max(len(self.terms) - 1, 1)))
        return level + np.concatenate([term.auxiliary_start for term in self.terms])

    def auxiliary_for(self, value: Callable[[Array], Array]) -> Array:
        """Return the values that the terms choose, one after the other."""
        variables = self._split(self.auxiliary_start, "n_auxiliary")
        for k, term in enumerate(self.terms):

            def outputs(chosen: Array, k: int = k) -> Array:
                every = np.concatenate([*variables[:k], chosen, *variables[k + 1 :]])
                return self._split(value(every), "n_outputs")[k]

            variables[k] = term.auxiliary_for(outputs)
        return np.concatenate(variables)

    def _split(self, values: Array, size: str) -> list[Array]:
        """Return what every term has of values that are one after the other."""
        return np.split(values, np.cumsum([getattr(term, size) for term in self.terms])[:-1])

    def _each(self, statistics: Array) -> Iterator[tuple[Term, Array]]:
        """Yield the terms with their statistics."""
        return zip(self.terms, self._split(statistics, "n_statistics"), strict=True)

    def _scores(self, scores: Array) -> list[Array]:
        """Return the scores of every term: log odds, or +1 where the class is predicted."""
        on_predictions = list(map(of_predictions, self.terms))
        odds = scores if all(on_predictions) else log_odds(scores)
        decided = predicted(scores) if any(on_predictions) else odds
        return [(decided if on else odds)[:, k] for k, on in enumerate(on_predictions)]

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics of all terms and their pullback."""
        factor, scores = self.sharpness, self.sharpness * scores
        columns = self._scores(scores)
        each = zip(self.terms, columns, self._split(auxiliary, "n_auxiliary"), strict=True)
        passes = [term.forward(column, of_term) for term, column, of_term in each]

        def pullback(u: Array) -> tuple[Array, Array]:
            parts = zip(passes, self._split(u, "n_statistics"), strict=True)
            slopes, on_variables = zip(*(pull(part) for (_, pull), part in parts), strict=True)
            back = _to_scores(np.column_stack(slopes), scores, columns)
            return factor * back, np.concatenate(on_variables)

        return np.concatenate([statistics for statistics, _ in passes]), pullback

    def head(self, statistics: Array) -> Array:
        """Return the outputs of all terms."""
        return np.concatenate([term.head(part) for term, part in self._each(statistics)])

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient of <v, outputs> with respect to the statistics."""
        each = zip(self._each(statistics), self._split(v, "n_outputs"), strict=True)
        return np.concatenate([term.head_vjp(part, weights) for (term, part), weights in each])

    def gap_of(self, statistics: Array) -> Array:
        """Return the gaps of all terms."""
        return np.concatenate([term.gap_of(part) for term, part in self._each(statistics)])

    @property
    def gap_bounds(self) -> Array:
        """The largest values allowed for the gaps of all terms."""
        return np.concatenate([term.gap_bounds for term in self.terms])

    def zero_one(self) -> "ByClass":
        """Return the zero-one versions of all terms, at the scores themselves."""
        return ByClass(tuple(term.zero_one() for term in self.terms), self.classes)

    def take(self, rows: Array, weights: Array) -> "ByClass":
        """Return the terms on some rows."""
        return replace(self, terms=tuple(term.take(rows, weights) for term in self.terms))

    def smoothed(self, width: float) -> "ByClass":
        """Return the terms with their kinks rounded."""
        return replace(self, terms=tuple(term.smoothed(width) for term in self.terms))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the subgradient errors of all terms."""
        variables = self._split(auxiliary, "n_auxiliary")
        each = zip(self.terms, self._scores(self.sharpness * scores), variables, strict=True)
        return np.concatenate([term.subgradient_error(*at) for term, *at in each])


def counts_predictions(term: Term) -> bool:
    """Return whether a term is an affine function of shares of predictions."""
    return isinstance(term, CellMeans) and isinstance(term.function, Indicator)


def of_predictions(term: Term) -> bool:
    """Return whether a term is a function of shares of predictions, affine or not."""
    return term.of_rates and isinstance(getattr(term, "function", None), Indicator)


def class_terms(term: Term) -> tuple[Term, ...]:
    """Return the terms of the classes; of two classes there is one term."""
    return term.terms if isinstance(term, ByClass) else (term,)


def _to_scores(slopes: Array, scores: Array, columns: Sequence[Array]) -> Array:
    r"""Pull derivatives with respect to log odds back to scores.

    :math:`\partial t_k / \partial s_l = -p_l / (1 - p_k)` for l other than k, and 1 for l = k.
    """
    rest = np.column_stack([expit(-column) for column in columns])  # 1 - p
    ratio = slopes / np.maximum(rest, np.finfo(float).tiny ** 0.5)  # no infinite ratio
    return slopes - softmax(scores, axis=1) * (ratio.sum(axis=1, keepdims=True) - ratio)
