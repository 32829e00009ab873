"""What a user passes to `fit`, checked: features, labels, groups and weights."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.data import inputs
from fairconstrained.data.groups import Groups
from fairconstrained.data.labels import (
    Queries,
    ScoreConvention,
    class_weights,
    encode_labels,
    encoded,
    positions_of,
)
from fairconstrained.data.sensitive_columns import SensitiveColumns, feature_kind, groups_of
from fairconstrained.utils.arguments import check_unset
from fairconstrained.utils.arrays import (
    MANY_ROWS,
    Array,
    ArrayLike,
    MatrixLike,
    RandomState,
    by_first_row,
    some_of,
)

_BY_ROW = ("X", "y", "groups", "sample_weight", "query", "counts", "squares")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked data: rows of weight zero are left out, labels are numbers."""

    X: Any  # the features that the model sees, (n_rows, n_model_features)
    y: Array  # the labels: -1 or +1, or 0, 1, ... of several classes, (n_rows,)
    # what the labels were called; of two, the second one is the favourable class, (n_classes,)
    classes: Array
    groups: Groups | None  # the groups, if any were given
    sample_weight: Array  # the weights, > 0, (n_rows,)
    # the one that is fitted; it knows the columns that X has
    estimator: Any = field(default=None, kw_only=True)
    query: Queries | None = None  # the queries, for rankers
    # how many rows each of these stands for; None stands for ones, (n_rows,)
    counts: Array | None = None
    # the sum of their squared weights, (n_rows,)
    squares: Array | None = field(default=None, kw_only=True)
    # what the weights of the classes' rows are multiplied by in the loss; None for ones,
    # (n_classes,)
    class_weight: Array | None = None
    # how the scores of the fit are related to those that users see
    convention: ScoreConvention = field(default_factory=ScoreConvention)
    # from the features and X to what the model sees, where that is more than the features
    expand: Callable[[Any, Any], Any] | None = field(default=None, kw_only=True)
    # a linear model's `FeatureMap`: how its features come from the columns of X and the groups
    feature_map: Any = field(default=None, kw_only=True)
    # the positions of the rows among those passed to `fit`; None if these are all of them, in their
    # order, (n_rows,)
    positions: Array | None = field(default=None, kw_only=True)
    passed: Any = field(default=None, kw_only=True)  # X as it was passed, see `positions`
    # X, labels or None, and groups of the rows that the constraints are on, as passed, and which of
    # them these are; None where the constraints are on the rows themselves
    constraint_data: tuple[Any, Any, Any, Array | None] | None = field(default=None, kw_only=True)

    @property
    def asked(self) -> "TrainingData":
        """The rows that the constraints are on."""
        # A stored reference to itself would keep the rows until the next collection of cycles.
        return self if self.constraint_data is None else self._asked_elsewhere

    @cached_property
    def _asked_elsewhere(self) -> "TrainingData":
        """The rows of `constraint_data`."""
        assert self.constraint_data is not None
        names = (f"{part} of constraint_data" for part in ("X", "y", "groups"))
        *rows, kept = self.constraint_data
        asked = self.of_constraint(*rows, *names)
        return asked if kept is None else asked.take(kept)

    def of_constraint(self, X: Any, y: Any, groups: Any, *names: str) -> "TrainingData":
        """Return the rows of a constraint, perhaps without labels, by the names of arguments."""
        rows = self._other_rows(X, y, groups, *names)
        without: dict[str, Any] = dict.fromkeys(("constraint_data", "query", "counts", "squares"))
        return replace(rows, sample_weight=np.ones(len(rows.y)), **without).spread()

    def _other_rows(self, X: Any, y: Any, groups: Any, *names: str) -> "TrainingData":
        """Return rows with the features, labels (0 without any) and groups of other rows."""
        if self.estimator is None:
            raise ValueError("these training data were not made by an estimator's fit.")
        of_X, of_y, of_groups = names
        inputs.check_same_rows(**{of_X: X, of_y: y, of_groups: groups})
        features = SensitiveColumns(self.estimator).features(X, reset=False, name=of_X)
        labels = np.zeros(features.shape[0])
        titles = () if self.groups is None else self.groups.column_names
        options: Any = {"name": of_groups, "rows": of_X, "probable": True}
        encoded_groups = groups_of(self.estimator, X, groups, len(labels), titles, **options)
        features = features if self.expand is None else self.expand(features, X)
        if y is not None:
            given = inputs.check_labels(of_y, y, len(labels), rows=of_X)
            labels = encoded(inputs.known_labels(of_y, given, self.classes.tolist()), self.classes)
        new: Any = {"groups": encoded_groups, "passed": X, "positions": None}
        return replace(self, X=features, y=labels, **new)

    @property
    def n_rows(self) -> int:
        """The number of rows that these stand for."""
        return len(self.y) if self.counts is None else int(self.counts.sum())

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return float(self.sample_weight.max())

    @property
    def loss_weight(self) -> Array:
        """The weights of the rows in the loss; averages over groups have `sample_weight`."""
        if self.class_weight is None:
            return self.sample_weight
        return self.sample_weight * self.class_weight[self.class_positions]

    @property
    def narrow(self) -> bool:
        """Whether labels, groups and weights take a byte per row, see `check`."""
        return bool(self.y.dtype.kind == "i")

    @property
    def several_classes(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.classes) > 2

    @property
    def class_positions(self) -> Array:
        """The position among the classes of every row's class."""
        return positions_of(self.y, len(self.classes))

    def queries_for(self, asking: str) -> Queries:
        """Return the queries of the rows, which what asks for them needs.

        Raises
        ------
        ValueError
            If the rows have no queries: the estimator is no ranker.
        """
        if self.query is None:
            raise ValueError(
                f"{asking} compares rows of the same query, and this estimator's fit takes no "
                "queries: use FairRanker."
            )
        return self.query

    def by_size(self) -> "TrainingData":
        """Return the rows with several classes in the order of weight, the heaviest first.

        Classes of equal weight have the order of their first rows. In the order of the names, sums
        over classes would round differently after a renaming, and a search could end at another
        model.
        """
        if not self.several_classes:
            return self
        k, n = self.class_positions, len(self.classes)
        first = [np.argmax(k == each) for each in range(n)]
        order = np.lexsort((first, -np.bincount(k, self.sample_weight, minlength=n)))
        weights = None if self.class_weight is None else self.class_weight[order]
        y = np.argsort(order)[k].astype(self.y.dtype)
        return replace(self, y=y, classes=self.classes[order], class_weight=weights)

    def one_versus_rest(self, k: int) -> "TrainingData":
        """Return the rows with the label +1 for class k of several and -1 for all others."""
        name = self.classes.tolist()[k]
        names = np.array([f"other than {name}", str(name)], dtype=object)
        signs = np.where(self.class_positions == k, 1.0, -1.0)
        return replace(self, y=signs, classes=names, class_weight=None)

    @classmethod
    def check(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | None,
        sample_weight: ArrayLike | None,
        query: ArrayLike | None = None,
        *,
        narrow: bool = False,
        features: Array | None = None,
    ) -> "TrainingData":
        """Check what was passed to `fit`; sets n_features_in_ and feature_names_in_.

        With `narrow`, many dense rows have labels, groups and weights that take a byte per row;
        `widened` returns what can be calculated with. `features` are given if X was read before.
        """
        if y is None:
            raise ValueError(
                f"{type(estimator).__name__} requires y to be passed, but the target y is None."
            )
        columns, to_square = SensitiveColumns(estimator), features is None
        columns.check_only_source(sensitive_features)
        inputs.check_same_rows(
            X=X,
            y=y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            query=query,
        )
        if features is None:
            features = columns.features(X, reset=True)
        n_rows = features.shape[0]
        narrow = narrow and n_rows >= MANY_ROWS and isinstance(features, np.ndarray)
        weight = inputs.check_weight("sample_weight", sample_weight, n_rows, narrow=narrow)
        narrow = narrow and int(np.count_nonzero(weight)) >= MANY_ROWS
        labels = inputs.check_labels("y", y, n_rows)
        groups = groups_of(estimator, X, sensitive_features, n_rows, narrow=narrow, probable=True)
        classes, labels = encode_labels(
            labels, estimator.pos_label, several=estimator.several_classes, narrow=narrow
        )
        queries = None if query is None else Queries.encode(query, n_rows)
        if to_square and feature_kind(estimator).squared:
            inputs.check_squares(features, weight.sum(), columns.seen[columns.kept()])
        made_by: Any = {"estimator": estimator, "passed": X}
        rows = cls(features, labels, classes, groups, weight, queries, **made_by)
        rows = rows.spread().counted()
        by_class = class_weights(estimator.class_weight, classes, rows.y, rows.sample_weight)
        return replace(rows, class_weight=by_class)

    def widened(self) -> "TrainingData":
        """Return the rows with labels, codes and weights of full width, see `check`."""
        groups = None if self.groups is None else self.groups.widened()
        weight = np.ascontiguousarray(self.sample_weight)
        return replace(self, y=self.y.astype(float), groups=groups, sample_weight=weight)

    def moved(self, by: float) -> "TrainingData":
        """Return the rows with a threshold that is higher by a number."""
        convention = replace(self.convention, threshold=self.convention.threshold + by)
        return replace(self, convention=convention)

    def spread(self) -> "TrainingData":
        """Return rows once for each group that they may be of, weighted by its probability."""
        if self.groups is None or self.groups.probabilities is None:
            return self
        why = (
            "needs the group of every row, and sensitive_features has probabilities of groups: set"
        )
        check_unset(self.estimator, why, per_group=False, group_interactions=False, confidence=None)
        if self.query is not None:
            raise ValueError("rankers need the group of every row, not probabilities of groups.")
        rows, groups, weight = self.groups.spread(self.sample_weight)
        return replace(replace(self, groups=None).take(rows), groups=groups, sample_weight=weight)

    @property
    def variances(self) -> Array | None:
        """What each row adds to variances, over its squared weight; None for 1.

        It may stand for several rows, or be listed once for each group that it may be of.
        """
        if self.squares is not None:
            return self.squares / self.sample_weight**2
        return None if self.groups is None else self.groups.variances(self.sample_weight)

    @property
    def listed(self) -> float:
        """How often a row is listed, on average: once for each group that it may be of."""
        original = None if self.groups is None else self.groups.original
        return 1.0 if original is None else len(original) / len(np.unique(original))

    def counted(self) -> "TrainingData":
        """Return the rows whose weight is positive."""
        weight = self.sample_weight
        all_count = np.count_nonzero(weight) == len(weight)
        return self if all_count else self.take(np.flatnonzero(weight))

    def take(self, rows: Array) -> "TrainingData":
        """Return some rows, in the order of their positions."""
        positions = rows if self.positions is None else self.positions[rows]
        return replace(self, **some_of(self, _BY_ROW, rows), positions=positions)

    def like(self, training: "TrainingData") -> "TrainingData":
        """Return the rows with the threshold and the strata of training rows.

        The parts of a constraint then stand for the strata of the training rows. A stratum may have
        no rows here. Rows of other strata belong to none.
        """
        groups = self.groups
        if groups is not None and groups.stratified:
            assert training.groups is not None
            names, (strata, inside) = training.groups.attributes[0].names, groups.attributes
            codes = strata.among(names.tolist())
            strata = replace(strata, names=names, codes=np.where(codes < len(names), codes, -1))
            groups = replace(groups, attributes=(strata, inside))
        return replace(self, groups=groups, convention=training.convention)

    def validation_rows(
        self,
        X: MatrixLike | None,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: MatrixLike | None = None,
        query: ArrayLike | None = None,
    ) -> "TrainingData | None":
        """Return rows for validation, of positive weight, None if all arguments are."""
        given = {"X_val": X, "y_val": y, "sensitive_features_val": sensitive_features}
        given |= {"sample_weight_val": sample_weight, "query_val": query}
        if all(part is None for part in given.values()):
            return None
        if X is None or y is None:
            raise ValueError("validation rows need X_val and y_val, both of them.")
        inputs.check_same_rows(**given)
        names = "X_val", "y_val", "sensitive_features_val"
        rows = self._other_rows(X, y, sensitive_features, *names)
        groups, n_rows = rows.groups, len(rows.y)
        if groups is None and self.groups is not None:
            raise ValueError(
                "sensitive_features_val is missing: the gaps of X_val need its groups."
            )
        both = groups, self.asked.groups
        if len({part.stratified for part in both if part is not None}) > 1:
            raise ValueError(
                "control_features: the rows of the constraints have strata, and those for "
                "validation have none, or the other way round. Pass both (control_features_val; in "
                "constraint_data with_strata(groups, strata)) or neither."
            )
        if (query is None) != (self.query is None):
            raise ValueError(
                "pass query_val, the query of each row of X_val, together with query, or neither: "
                "only FairRanker has queries."
            )
        rows = replace(
            rows,
            constraint_data=self.constraint_data if groups is None else None,
            sample_weight=inputs.check_weight("sample_weight_val", sample_weight, n_rows),
            query=None if query is None else Queries.encode(query, n_rows, rows="X_val"),
        )
        return rows.spread().counted()


Split = tuple[TrainingData, TrainingData]
"""The rows that are trained on, and those that choose when training stops."""


FEW_ROWS = 10
"""Smaller groups are not divided separately."""


def split(data: TrainingData, share: float, random_state: RandomState) -> Split:
    """Return the rows to train on, and a share of other rows.

    The share is taken of every group and label, as nearly as their rows allow; of every label where
    groups and labels have fewer than ten rows each on average, or groups are known in probability.
    See :func:`divided`.
    """
    if data.query is not None:
        return divided(data, _without_a_class(data, data.query), share, random_state)
    groups = np.zeros(len(data.y), dtype=int) if data.groups is None else data.groups.codes
    cells = 2 * groups + (data.y > 0)
    few = len(np.unique(cells)) * FEW_ROWS > len(cells) and groups.any()
    if few or (data.groups is not None and data.groups.original is not None):
        cells = (data.y > 0).astype(int)
    return divided(data, by_first_row(cells), share, random_state)


def divided(data: TrainingData, cells: Array, share: float, random_state: RandomState) -> Split:
    """Return the rows without a share of every cell, and that share.

    Rows of one query stay together, and so does a row that is listed for several groups.
    """
    random, units = check_random_state(random_state), np.arange(len(cells))
    if data.query is not None:
        units = data.query.codes
    elif data.groups is not None and data.groups.original is not None:
        units = data.groups.original
    held = np.zeros(units.max(initial=-1) + 1, dtype=bool)
    for cell in range(cells.max(initial=-1) + 1):
        inside = random.permutation(np.unique(units[cells == cell]))
        held[inside[: min(max(round(share * len(inside)), 1), len(inside) - 1)]] = True
    return data.take(np.flatnonzero(~held[units])), data.take(np.flatnonzero(held[units]))


def _without_a_class(data: TrainingData, queries: Queries) -> Array:
    """Return which rows are of queries that lack a class: both parts need some that have both."""
    n = len(queries)
    counts = [np.bincount(queries.codes[side], minlength=n) for side in (data.y > 0, data.y < 0)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if both.sum() < 2:
        raise ValueError(
            "early_stopping and constraint_fraction set queries aside, and fewer than two of them "
            "have rows of both classes: use early_stopping=False and constraint_fraction=None."
        )
    return (~both[queries.codes]).astype(int)
