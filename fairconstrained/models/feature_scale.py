"""The scales of features, computed block by block."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.utils.arrays import Array, Matrix, column_range

_BLOCK = 1 << 15  # entries of X that are converted at a time: a block fits into the cache
_SAMPLE = 255  # rows; a value of half the weight is a third of them, except once in ten million
_STRATA = (np.arange(_SAMPLE) + np.random.default_rng(0).random(_SAMPLE)) / _SAMPLE


def row_blocks(X: Matrix) -> Iterator[slice]:
    """Yield slices of the rows of X; a dense block of them fits into the cache."""
    step = max(1, _BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)


@dataclass(frozen=True)
class FeatureScale:
    """The weighted mean and variance of each feature, and its scale."""

    mean: Array  # see `feature_scale`, (n_features,)
    variance: Array
    scale: Array
    constant: Array  # which features are constant, up to rounding, (n_features,)


def feature_scale(X: Matrix, sample_weight: Array) -> FeatureScale:
    r"""Return the mean, the variance and the scale of each feature.

    The scale of a column of which more than half of the weight has one value m, as most 0/1 columns
    and counts of words, is the root mean square of the distance of its other values from m,

    .. math:: \sqrt{(\mathrm{var}(x) + (\mathrm{mean}(x) - m)^2) / P(x \ne m)},

    so that it does not depend on how rare these are. The scale of a column with two values is their
    distance (0/1 columns have scale 1), that of a constant one the absolute value of its value (1
    if that is zero), and that of any other its standard deviation. For columns with two values and
    for the others this is Gelman's (2008) rule for putting inputs on one scale, without his factor
    2. A column has two values exactly when its variance meets the Bhatia-Davis bound
    (max - mean)(mean - min).

    References
    ----------
    A. Gelman, "Scaling regression inputs by dividing by two standard deviations", Statistics in
    Medicine 27 (2008).
    """
    moments = Moments.of(X, sample_weight)
    return moments.scale(lambda values: other_shares(X, sample_weight, values) / moments.weight)


@dataclass(frozen=True, eq=False)
class Moments:
    """The weight, means, sums of squares, extremes and frequent values of some rows."""

    weight: float  # the total weight of the rows
    # for every feature its weighted mean, its weighted sum of squared differences from the mean,
    # its least and its largest value, (n_features,)
    mean: Array
    squares: Array
    low: Array
    high: Array
    # the values that may have more than half of the weight in some part of the rows, and so all
    # that may have it in all of them; NaN stands for no value, (n_values, n_features)
    values: Array

    @classmethod
    def of(cls, X: Matrix, sample_weight: Array) -> "Moments":
        """Return the moments of rows, of which there is at least one.

        Dense rows are read once, block by block. Squares are summed about the mean of the first
        block, which costs no more than a few digits whatever the order of the rows.
        """
        total, n, values = float(sample_weight.sum()), X.shape[1], frequent_values(X, sample_weight)
        if not isinstance(X, np.ndarray):
            # Workers with dense rows lack scikit-learn.
            from sklearn.utils.sparsefuncs import mean_variance_axis

            weights = (sample_weight / sample_weight.mean()).astype(X.dtype)
            mean, variance = mean_variance_axis(X, axis=0, weights=weights)
            squares = total * np.maximum(variance, 0.0).astype(float)  # < 0 by rounding
            return cls(total, mean.astype(float), squares, *column_range(X), values)
        size = min(max(1, _BLOCK // max(1, n)), X.shape[0])
        center, shift, squares = np.zeros(n), np.zeros(n), np.zeros(n)
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        buffer = np.empty((n, size))  # column by column: operations on long rows are vectorised
        for start in range(0, X.shape[0], size):
            features = X[start : start + size]
            weight = sample_weight[start : start + size] / total
            block = buffer[:, : len(features)]
            np.copyto(block, features.T)
            np.minimum(low, block.min(axis=1), out=low)
            np.maximum(high, block.max(axis=1), out=high)
            if start == 0:
                center = block @ weight / weight.sum()
            block -= center[:, None]
            shift += block @ weight
            block *= block
            squares += block @ weight
        variance = np.maximum(squares - shift**2, 0.0)
        ends = low.astype(X.dtype), high.astype(X.dtype)
        return cls(total, center + shift, total * variance, *ends, values)

    def times(self, factor: float) -> "Moments":
        """Return the moments of the same rows with weights that are larger by a factor."""
        return replace(self, weight=factor * self.weight, squares=factor * self.squares)

    @classmethod
    def merged(cls, parts: "Sequence[Moments]") -> "Moments":
        """Return the moments of all rows from those of parts.

        References
        ----------
        T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983.
        """
        whole = parts[0]
        for part in parts[1:]:
            weight, step = whole.weight + part.weight, part.mean - whole.mean
            between = step**2 * (whole.weight * part.weight / weight)
            values = whole.values
            for more in part.values:
                more = np.where((more == values).any(axis=0), np.nan, more)
                values = values if np.isnan(more).all() else np.vstack([values, more])
            whole = cls(
                weight,
                whole.mean + step * (part.weight / weight),
                whole.squares + part.squares + between,
                np.minimum(whole.low, part.low),
                np.maximum(whole.high, part.high),
                values,
            )
        return whole

    def scale(self, other_shares: Callable[[Array], Array]) -> FeatureScale:
        """Return the feature scale of the rows, see :func:`feature_scale`."""
        mean, variance = self.mean, self.squares / self.weight
        rounding = np.sqrt(np.finfo(self.low.dtype).eps)  # float32 values are rounded
        low, high = self.low.astype(float), self.high.astype(float)
        reach = high - low
        scale = np.sqrt(variance)
        bound = (high - mean) * (mean - low)
        two_values = np.abs(bound - variance) <= rounding * bound
        constant = reach <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
        values = np.where(two_values | constant, np.nan, self.values)
        values = values[~np.isnan(values).all(axis=1)]
        for value, share in zip(values, other_shares(values) if len(values) else (), strict=True):
            rare = share < 0.5 - 1e-9  # half of the weight, up to rounding, is not more
            scale[rare] = np.sqrt((variance + (mean - value) ** 2)[rare] / share[rare])
        scale = np.where(two_values, reach, scale)
        scale = np.where(constant, np.abs(high), scale)
        return FeatureScale(mean, variance, np.where(scale > 0, scale, 1.0), constant)


def frequent_values(X: Matrix, sample_weight: Array) -> Array:
    """Return the values that may have more than half of the weight of a column, from a sample.

    Such a value has a third of a sample of the rows, drawn by weight, and so it is one of the two
    terciles of the sample.
    """
    ends, third = np.cumsum(sample_weight), _SAMPLE // 3
    sample = X[np.searchsorted(ends[:-1], _STRATA * ends[-1], side="right")]
    values, columns = np.full((2, X.shape[1]), np.nan), np.arange(X.shape[1])
    if not isinstance(sample, np.ndarray):  # a frequent value of other columns is zero
        values[0] = 0.0
        columns = np.flatnonzero(np.bincount(sample.indices, minlength=len(columns)) > third)
        sample = sample[:, columns].toarray()
    terciles = np.sort(sample, axis=0)[[third, _SAMPLE - 1 - third]]  # faster than to partition
    frequent = np.ones(_SAMPLE) @ (sample == terciles[:, None]) > third
    values[:, columns] = np.where(frequent, terciles, np.nan)
    values[1, values[1] == values[0]] = np.nan
    return values


def other_shares(X: Matrix, weight: Array, values: Array) -> Array:
    """Return the weight of the rows that have other values than given ones."""
    values = values.astype(X.dtype)
    if isinstance(X, np.ndarray):
        others = [weight[rows] @ (X[rows] != values[:, None]) for rows in row_blocks(X)]
        return np.asarray(np.sum(others, axis=0))
    stored = np.repeat(weight, np.diff(X.indptr))
    zeros = weight.sum() - np.bincount(X.indices, stored, X.shape[1])
    other = [np.bincount(X.indices, stored * (X.data != v[X.indices]), X.shape[1]) for v in values]
    return np.asarray(other + np.where(values == 0.0, 0.0, zeros))
