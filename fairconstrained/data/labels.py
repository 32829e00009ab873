"""Labels as numbers, and the queries of ranked rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets

from fairconstrained.data.inputs import check_labels
from fairconstrained.utils.arguments import is_number
from fairconstrained.utils.arrays import Array, ArrayLike, codes_in_blocks, ranges, unique_codes

ClassWeight = str | Mapping[Any, float] | None
_CLASS_WEIGHT = "class_weight must be None, 'balanced' or a mapping from labels to numbers > 0"


@dataclass(frozen=True)
class ScoreConvention:
    r"""How the scores that users see follow from those of a fit.

    A fit has scores u and decides for the favourable class where u > 0. Users see scores s of the
    second of the sorted classes, as scikit-learn has them:

    .. math:: s = \mathrm{sign} \cdot (u + \text{threshold}).
    """

    sign: float = 1.0  # 1 if the favourable class is the second of the sorted classes, else -1
    # the favourable class is decided where its score, sign times s, is above the threshold
    threshold: float = 0.0

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the convention of a fitted estimator, also of one without a favourable label."""
        last = estimator.classes_.tolist()[-1]
        is_last = getattr(estimator, "pos_label_", last) == last
        return cls(1.0 if is_last else -1.0, getattr(estimator, "score_threshold_", 0.0))

    @classmethod
    def of_classes(cls, classes: Array, threshold: float = 0.0) -> Self:
        """Return the convention of a fit, whose favourable class is the last one."""
        return cls(1.0 if np.array_equal(classes, np.sort(classes)) else -1.0, threshold)

    def shown(self, scores: Array) -> Array:
        """Return s for u."""
        return self.sign * (scores + self.threshold)

    def fitted(self, scores: Array) -> Array:
        """Return u for s."""
        return self.sign * scores - self.threshold


def encode_labels(
    y: Array, pos_label: object = None, *, several: bool = False, narrow: bool = False
) -> tuple[Array, Array]:
    """Return the classes and the labels: -1 and +1 of two classes, 0, 1, ... of several."""
    if y.dtype.kind in "mMO" and not isinstance(y[0], str | bytes):
        raise ValueError(
            f"Unknown label type: y has the dtype {y.dtype} and labels such as {y[0]!r}. Convert "
            "them to numbers, booleans or strings, for instance with `y.astype(int)`."
        )
    classes, positions = codes_in_blocks(len(y), y.__getitem__) if narrow else unique_codes(y)
    if len(classes) > 2 or y.dtype.kind not in "biuU":  # a sort, needless for two labels
        check_classification_targets(y)
    if len(classes) <= 2:
        return _signs(classes, positions, pos_label)
    if not several:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(classes)} classes."
        )
    if pos_label is not None:
        raise ValueError(
            f"pos_label={pos_label!r}: y has {len(classes)} classes, and constraints apply to "
            "the rate of each class; use pos_label=None."
        )
    return classes, positions if narrow else positions.astype(float)


def _signs(classes: Array, positions: Array, pos_label: object) -> tuple[Array, Array]:
    """Return two classes, the favourable one last, and the labels -1 and +1."""
    if len(classes) < 2:
        raise ValueError(f"y must have two classes; there is one class: {classes.tolist()[0]!r}.")
    signs = np.array([-1, 1], np.int8 if positions.dtype == np.int8 else float)
    if pos_label is None:
        return classes, signs[positions]
    names = classes.tolist()
    if np.ndim(np.asarray(pos_label, dtype=object)) or pos_label not in names:
        raise ValueError(
            f"pos_label={pos_label!r} is not among the labels {names} of y: pos_label must be the "
            "label of the favourable decision, or None for the second of the sorted labels."
        )
    favourable = names.index(pos_label)
    return classes[[1 - favourable, favourable]], (signs if favourable else -signs)[positions]


def positions_of(labels: Array, n_classes: int) -> Array:
    """Return the position among the classes of every label."""
    return (labels > 0).astype(int) if n_classes == 2 else labels.astype(int)


def encoded(labels: Array, classes: Array) -> Array:
    """Return labels of given classes as in a fit: -1 and +1 of two, 0, 1, ... of several."""
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)
    order = np.argsort(classes)
    return order[np.searchsorted(classes, labels, sorter=order)].astype(float)


def class_position(argument: str, label: object, names: list[Any]) -> int:
    """Return the position of a class that an argument names."""
    if label not in names:
        has = f"y has {sorted(names)}"
        raise ValueError(f"{argument} names the class {label!r}, which y does not have; {has}.")
    return names.index(label)


def class_weights(
    class_weight: ClassWeight, classes: Array, y: Array, sample_weight: Array
) -> Array | None:
    """Return the weights of the classes in the loss, None if they are equal."""
    if class_weight is None:
        return None
    names, weights = classes.tolist(), np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(positions_of(y, len(names)), sample_weight, minlength=len(names))
        counted = totals > 0.0  # a class without weight has nothing to balance
        weights[counted] = totals.sum() / counted.sum() / totals[counted]
        return weights
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"{_CLASS_WEIGHT}; got {class_weight!r}.")
    for label, weight in class_weight.items():
        position = class_position("class_weight", label, names)
        if not (is_number(weight, Real) and 0.0 < weight < np.inf):
            raise ValueError(f"{_CLASS_WEIGHT}; the label {label!r} has {weight!r}.")
        weights[position] = weight
    return weights


@dataclass(frozen=True, eq=False)
class Queries:
    """Which query each row belongs to."""

    codes: Array  # the position of each row's query in `names`, (n_rows,)
    names: Array  # the queries, in the order of their first rows, (n_queries,)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.names)

    @classmethod
    def encode(
        cls, query: "ArrayLike | Queries | None", n_rows: int, *, rows: str = "X"
    ) -> "Queries":
        """Return the queries of `n_rows` rows."""
        if isinstance(query, Queries):
            return query
        if query is None:
            return cls(np.zeros(n_rows, dtype=int), np.array(["all rows"]))
        labels = check_labels("query", query, n_rows, rows=rows)
        try:
            codes, names = pd.factorize(labels)
        except TypeError as error:  # dictionaries and lists
            raise ValueError(
                f"query must hold strings, numbers or other labels, one per row of {rows}: {error}."
            ) from error
        return cls(codes, np.asarray(names))

    def take(self, rows: Array) -> "Queries":
        """Return the queries of some rows; a query that none of them has is left out."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Queries(codes.ravel(), self.names[present])


def given_queries(ranker: object, query: ArrayLike | None, method: str) -> ArrayLike:
    """Return the queries that a ranker is passed; raise a ValueError if there are none."""
    if query is None:
        raise ValueError(
            f"{type(ranker).__name__}.{method} needs query=, the query of each row. In pipelines "
            "and searches it is passed by metadata routing: "
            "sklearn.set_config(enable_metadata_routing=True) and search.fit(X, y, query=query)."
        )
    return query


def pairs_within(positive: Array, queries: Array) -> tuple[Array, Array]:
    """Return the rows of all pairs of a positive and a negative row of one query."""
    order = np.argsort(queries, kind="stable")
    high, low = order[positive[order]], order[~positive[order]]
    counts = np.bincount(queries[low], minlength=int(queries.max(initial=-1)) + 1)
    ends = np.cumsum(counts)[queries[high]]  # of every query's negatives in `low`
    partners = counts[queries[high]]
    return np.repeat(high, partners), low[ranges(ends - partners, ends)]
