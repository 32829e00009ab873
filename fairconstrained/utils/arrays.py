"""Arrays: their types, and computations on them.

Rounding, columns, quantiles, codes, blocks, least squares, duals. Workers import this module
without scikit-learn.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NewType, Protocol

import numpy as np
import pandas as pd
import scipy
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv
from scipy.optimize import lsq_linear, nnls

Array = NDArray[Any]

Gaps = list[tuple[Array, Array]]
"""Gaps and their bounds, for every part of the constraints."""

RandomState = int | np.random.RandomState | None
"""What scikit-learn's `check_random_state` accepts."""


if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike

    # What an estimator accepts as X. Tables of other libraries are array-like: they have the method
    # `__array__`.
    MatrixLike = ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix
else:  # `help` and notebooks would write out all of NumPy's alternatives
    ArrayLike, MatrixLike = NewType("ArrayLike", object), NewType("MatrixLike", object)


class Classifier(Protocol):
    """A fitted classifier, as scikit-learn defines it."""

    classes_: Array

    def predict(self, X: Any, /) -> Array:
        """Return the class of each row."""


SparseMatrix = Any
"""A CSR or CSC array; the stubs of SciPy know less of them than the library uses."""

Matrix = Array | SparseMatrix


SIDE_BY_SIDE = 64  # rows taken as one: NumPy is slow on rows of few columns
MANY_ROWS = 1 << 16  # from here on rows are read in blocks, and take a byte each where they can
_BLOCK = 1 << 15
_ACCURATE = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 16)  # of nnls

ROUNDING = 1e-9
"""Largest violation on decisions that counts as none.

A rate is a sum of up to millions of normalised weights. The sum of all of them may differ from 1 by
some 1e-16 per row, so that equal rates seem to differ. A single row among a hundred million counts
ten times as much as this tolerance.
"""


def at_most(value: Any, bound: Any = 0.0) -> Any:
    """Return whether measured numbers are at most a bound, up to rounding."""
    return value <= bound + ROUNDING


def without_rounding(violation: float) -> float:
    """Return a violation, with 0 in place of rounding errors."""
    return violation if violation > ROUNDING else 0.0


def within_rounding(values: Array, bounds: Array) -> Array:
    """Return numbers, with the bound in place of those that exceed it by rounding errors only."""
    return np.where(at_most(values, bounds), np.minimum(values, bounds), values)


def same_values(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same bits: faster than ``np.array_equal`` if short.

    A negative zero is not a zero here, and nan equals itself.
    """
    return first is second or first.tobytes() == second.tobytes()


def column_extremes(extreme: np.ufunc, X: Array) -> Array:
    """Return the minimum or the maximum of every column.

    Where the rows follow each other in memory, 64 of them are taken as one long row first, which
    is faster with few columns.
    """
    end = len(X) - len(X) % SIDE_BY_SIDE if X.flags.c_contiguous else 0
    if not end:
        return np.asarray(extreme.reduce(X, axis=0))
    wide = extreme.reduce(X[:end].reshape(-1, SIDE_BY_SIDE * X.shape[1]), axis=0)
    ends = extreme.reduce(wide.reshape(SIDE_BY_SIDE, -1), axis=0)
    return np.asarray(extreme(ends, column_extremes(extreme, X[end:])) if end < len(X) else ends)


def column_range(X: Array | SparseMatrix) -> tuple[Array, Array]:
    """Return the minimum and the maximum of every column, of the dtype of X."""
    if isinstance(X, np.ndarray):
        return column_extremes(np.minimum, X), column_extremes(np.maximum, X)
    zeros, ends = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0], []
    for extreme, none in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        ends.append(np.where(zeros, 0.0, none).astype(X.dtype))
        extreme.at(ends[-1], X.indices, X.data)
    return ends[0], ends[1]


def equal_weights(weight: Array) -> bool:
    """Return whether all weights are equal, up to rounding."""
    return bool(at_most(np.ptp(weight / weight.max()), 0.0))


def quantiles(values: Array, levels: Array, weight: Array) -> Array:
    """Return quantiles, NumPy's where all weights are equal.

    Otherwise they are the least values at which the cumulative shares of the weight reach the
    levels, up to rounding: the unit of the weights does not matter.
    """
    if equal_weights(weight):
        return np.asarray(np.quantile(values, levels))
    reached = np.maximum(levels - ROUNDING, 0.0)
    return np.asarray(np.quantile(values, reached, weights=weight, method="inverted_cdf"))


def score_below_share(scores: Array, weight: Array, share: float) -> float:
    """Return the score above which a share of the weight lies.

    It is half-way between two scores, as near to the share as weights and equal scores allow.
    """
    values, codes = np.unique(scores, return_inverse=True)
    totals = np.bincount(codes, weight)
    return middle_of_gap(values, totals, 0.0, float(totals.sum()), share)


def sums_above(values: Array, thresholds: Array, weight: Array) -> Array:
    """Return, for every threshold, the weight of the values above it; they need no order."""
    order = np.argsort(thresholds)
    below = np.searchsorted(thresholds[order], values)  # thresholds below a value
    sums = np.empty(len(order))
    sums[order] = np.cumsum(np.bincount(below, weight, minlength=len(order) + 1)[:0:-1])[::-1]
    return sums


def middle_of_gap(values: Array, totals: Array, above: float, total: float, share: float) -> float:
    """Return the middle of the gap between scores above which a share of the weight lies."""
    if len(values) == 1:
        return float(values[0])
    shares = (above + np.cumsum(totals[::-1])[::-1][1:]) / total
    k = int(np.argmin(np.abs(shares - share)))
    return float(0.5 * (values[k] + values[k + 1]))


def largest_first(values: Array, most: int) -> Array:
    """Return where the largest values are, in falling order, of equal ones the first ones first."""
    if len(values) <= most:
        return np.argsort(-values, kind="stable")
    some = np.flatnonzero(-values <= np.partition(-values, most - 1)[most - 1])
    return some[np.argsort(-values[some], kind="stable")][:most]


def ranges(starts: Array, ends: Array) -> Array:
    """Return the integers of [start, end) for every pair of limits, one range after the other."""
    lengths = ends - starts
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return np.arange(len(shift)) + shift


def grouped(codes: Array, n_groups: int = 0) -> tuple[Array, Array]:
    """Return the positions sorted by group, and where every group starts and the last one ends."""
    largest = int(codes.max(initial=0))
    short = codes.astype(np.uint16) if largest < 1 << 16 else codes  # sorted in linear time
    order = np.argsort(short, kind="stable")
    return order, np.append(0, np.cumsum(np.bincount(codes, minlength=n_groups)))


def unique_codes(values: Array) -> tuple[Array, Array]:
    """Return the sorted distinct values and the position of each value among them.

    This is ``np.unique(values, return_inverse=True)`` in linear time, for values without missing
    ones. Of values that do not compare, numbers come before strings.
    """
    if values.dtype.kind not in "biufOU" or values.dtype.itemsize == 2:  # pandas has no others
        return np.unique(values, return_inverse=True)
    codes, distinct = pd.factorize(values, sort=True)
    return np.asarray(distinct, dtype=values.dtype), codes


def by_first_row(codes: Array) -> Array:
    """Return the codes renumbered from 0 in the order of their first rows.

    What is drawn code by code then does not depend on what the codes stand for, such as the names
    of groups.
    """
    return pd.factorize(codes)[0]


def joint_codes(codes: Sequence[Array]) -> Array:
    """Return codes that are equal where all the given codes, >= 0, are."""
    joint = np.zeros(len(codes[0]), dtype=np.int64)
    for each in codes:
        if not each.any():
            continue
        joint = unique_codes(joint * (int(each.max(initial=0)) + 1) + each)[1]
    return joint


def blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices that make up all rows."""
    for start in range(0, n_rows, _BLOCK):
        yield slice(start, min(start + _BLOCK, n_rows))


def codes_in_blocks(n_rows: int, values_of: Callable[[slice], Array]) -> tuple[Array, Array]:
    """Return `unique_codes` of values, with codes of the shortest signed integer type."""
    codes, levels = np.empty(n_rows, np.int8), []
    for rows in blocks(n_rows):
        values, part = unique_codes(values_of(rows))
        codes = codes.astype(np.promote_types(codes.dtype, _signed(len(values))), copy=False)
        codes[rows] = part
        levels.append(values)
    distinct, places = unique_codes(np.concatenate(levels))
    kind, ends = _signed(len(distinct)), np.cumsum([len(values) for values in levels])[:-1]
    codes = codes.astype(kind, copy=False)
    for rows, place in zip(blocks(n_rows), np.split(places.astype(kind), ends), strict=True):
        codes[rows] = place[codes[rows]]
    return distinct, codes


def _signed(n: int) -> np.dtype:
    """Return the shortest signed integers that include -1 and all below n."""
    return np.min_scalar_type(-max(n, 1))


def nonnegative_least_squares(A: Array, b: Array) -> Array:
    r"""Return the x >= 0 that minimises ``|A x - b|``.

    SciPy's active set method is accurate for nearly dependent columns from version 1.16 on: 1.13
    and 1.14 use the normal equations, and 1.15 may return points that are not optimal. With these,
    and where the method does not end, the problem is solved as one with bounds, which is slower.
    """
    if A.shape[1] == 0:  # SciPy's routine corrupts memory
        return np.zeros(0)
    if _ACCURATE:
        with suppress(RuntimeError):  # the limit of iterations
            return np.asarray(nnls(A, b)[0])
    solution = lsq_linear(A, b, (0.0, np.inf), method="bvls", tol=1e-14, max_iter=10 * A.shape[1])
    return np.maximum(solution.x, 0.0)


def capped_dual(quadratic: Array, linear: Array, cap: float, guess: Array) -> Array:
    r"""Return the maximiser of :math:`b^\top x - x^\top Q x / 2` over x >= 0, sum(x) <= cap.

    A primal active set method: from a feasible point to the maximiser on the free variables, as far
    as the constraints allow; whoever reaches zero is fixed there. One variable is freed at a time:
    gradients of pairs of groups are dependent, and several at once make faces without a maximiser.
    The search starts at a guess, usually the multipliers of the last step: with many constraints
    that is what makes it faster than methods that start at zero.
    """
    m = len(linear)
    if m == 0:
        return np.zeros(0)
    if m == 1:
        return np.clip(linear / max(float(quadratic[0, 0]), 1e-300), 0.0, cap)
    Q = 0.5 * (quadratic + quadratic.T)
    # Dependent gradients make Q singular, those of constant functions zero. What is added is far
    # below any tolerance: it changes slopes by a part of the largest one.
    largest = float(np.abs(linear).max())
    Q.flat[:: m + 1] += 1e-11 * max(float(Q.trace()), largest / cap, 1e-300)
    x = np.maximum(guess, 0.0)
    x *= min(1.0, cap / max(float(x.sum()), 1e-300))
    free, tight = x > 0.0, False
    small = 1e-10 * largest  # relative: large shifts make all slopes small
    for _ in range(20 * m + 20):  # rounding errors could make it cycle
        level, (index,) = 0.0, free.nonzero()
        if len(index):
            now, total = x[index], cap if tight else None
            target, level = _on_face(Q[index[:, None], index], linear[index], total)
            if target.min() < 0.0 or (not tight and target.sum() > cap):
                move = target - now
                falling, rise = move < 0.0, float(move.sum())
                room = np.full(len(index), np.inf)
                room[falling] = -now[falling] / move[falling]
                left = (cap - now.sum()) / rise if not tight and rise > 0.0 else np.inf
                length = min(1.0, float(room.min()), left)
                x[index] = np.maximum(now + length * move, 0.0)
                tight = tight or left <= length
                hit = index[room <= length]
                x[hit], free[hit] = 0.0, False
                continue
            x[index] = target
        if tight and level < -small:  # the sum need not be as large
            tight = False
            continue
        slope = linear - Q @ x - level
        slope[index] = -np.inf
        best = int(slope.argmax())
        if slope[best] <= small:
            break
        free[best] = True
    return x


def _on_face(Q: Array, b: Array, total: float | None) -> tuple[Array, float]:
    """Return the maximiser on the free variables, with a given sum, and the sum's multiplier."""
    if total is None:
        return dgesv(Q, b)[2], 0.0
    free, ones = dgesv(Q, np.column_stack([b, np.ones(len(b))]))[2].T
    level = float((free.sum() - total) / ones.sum())
    return free - level * ones, level


def some_of(whole: Any, names: Sequence[str], rows: Array) -> dict[str, Any]:
    """Return some rows of the attributes that have rows, without those that are None."""
    parts = {name: part for name in names if (part := getattr(whole, name)) is not None}
    return {
        name: part[rows] if hasattr(part, "__getitem__") else part.take(rows)
        for name, part in parts.items()
    }
