"""The groups that tables and pictures show, with their rates and their scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.inspection.collected import collect
from fairconstrained.inspection.outputs import check_model, response_of
from fairconstrained.metrics.inputs import GroupedRows
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.utils.arguments import check_finite
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.meta_estimators import final_estimator

FEW_ROWS = 30
"""Rates of fewer rows than this are marked in reports: their intervals are wide."""

MOST_GROUPS = 8
"""The number of groups up to which all of them are shown."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The groups that are shown, and those that are summarized as "others"."""

    shown: Array  # the groups that are shown, from the highest to the lowest value
    others: Array  # the other groups; empty if all are shown

    @property
    def label(self) -> str:
        """The name of the other groups together."""
        return f"{len(self.others)} other{'s' if len(self.others) > 1 else ''}"

    @property
    def n_rows(self) -> int:
        """The number of groups that are shown, and one for the others."""
        return len(self.shown) + bool(len(self.others))


def choose_groups(
    values: Array, sizes: Array, *, low: Array | None = None, high: Array | None = None
) -> Choice:
    """Choose the groups to show: all, or the extremes and the largest of the other groups.

    Of more than `MOST_GROUPS` these are the groups with the highest and with the lowest value, of
    shape (n_groups,), where nan sorts last and is never an extreme; with confidence limits, further
    groups that are most certainly high (by their lower limits) or low (by their upper limits), else
    those with the next values; and the largest of the others. The extremes on each side are three
    eighths of that number.
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(-values, kind="stable")  # nan last
    if len(order) <= MOST_GROUPS:
        return Choice(order, np.empty(0, dtype=int))
    measured, side = order[~np.isnan(values[order])], 3 * MOST_GROUPS // 8
    by_low, by_high = (
        measured[np.argsort(-(values if limits is None else limits)[measured], kind="stable")]
        for limits in (low, high)
    )
    highest = list(dict.fromkeys([*measured[:1], *by_low]))[:side]
    lowest = list(dict.fromkeys([*measured[-1:], *by_high[::-1]]))[:side]
    largest = np.argsort(-np.asarray(sizes), kind="stable")
    inside = np.isin(order, list(dict.fromkeys([*highest, *lowest, *largest]))[:MOST_GROUPS])
    return Choice(order[inside], order[~inside])


def shown_groups(rows: GroupedRows, confidence: float = 0.95, keep: int | None = None) -> Groups:
    """Return one grouping sorted by selection rates; of many groups those to show, and the others.

    The rates have exact intervals. The group `keep` is shown in any case.
    """
    groups, weight = rows.groups, rows.weight
    rates, sizes = rows.means(rows.values)
    limits = clopper_pearson(rates, sizes, confidence)
    totals = np.bincount(groups.codes[groups.known], weight[groups.known], len(groups))
    choice = choose_groups(rates, totals, low=limits.low, high=limits.high)
    if keep is not None and keep in choice.others:
        choice = Choice(np.append(choice.shown, keep), choice.others[choice.others != keep])
    names = [*(groups.labels[k] for k in choice.shown), *[choice.label] * bool(len(choice.others))]
    position = np.full(len(groups), len(choice.shown))
    position[choice.shown] = np.arange(len(choice.shown))
    codes = np.where(groups.known, position[groups.codes], -1)
    return Groups(codes, np.fromiter(names, object, len(names)), title=groups.title)


def stacked(groups: Groups) -> tuple[Array, Groups]:
    """Return rows and one grouping of them in which the marginal groups are side by side.

    With marginal groups each row is listed once for each attribute, with the group that it has
    there, so that tables and pictures of groups need no case for them. Rows of unknown group are
    left out.
    """
    rows = [np.flatnonzero(part.known) for part in groups.separate]
    starts = np.cumsum([0, *map(len, groups.separate)])
    parts = zip(groups.separate, rows, starts[:-1], strict=True)
    codes = [part.codes[known] + start for part, known, start in parts]
    names = [name for part in groups.separate for name in part.labels]
    every = np.fromiter(names, object, len(names))
    return np.concatenate(rows), Groups(np.concatenate(codes), every, title=groups.title)


@dataclass(frozen=True)
class Dot:
    """A value of a model, by its position, with interval, bound and verdict; nan where unknown."""

    model: int
    value: float
    low: float
    high: float
    bound: float = np.nan
    verdict: str = ""
    equal: bool = False


@dataclass(frozen=True)
class DotRow:
    """The dots of the models for a group, a model or a class.

    A row that stands for the groups that are not shown has their lowest and highest rate by the
    last model in `others`.
    """

    name: str
    dots: list[Dot]
    sizes: Any = (0,)  # the numbers of rows, by model
    others: tuple[float, float] | None = None

    @property
    def few(self) -> bool:
        """Whether rates of so few rows are marked."""
        return any(0 < size < FEW_ROWS for size in self.sizes)


class RateDots:
    """A rate of all groups by several models: what pictures of rates show.

    It is taken from tables of :func:`~fairconstrained.metrics.group_rates`. Without a choice the
    groups are chosen and sorted by this rate of the last model. `hidden` are the groups that are
    not shown, and `others` all of them together.
    """

    def __init__(self, tables: Sequence[pd.DataFrame], rate: str, choice: Choice | None = None):
        columns = [rate, f"{rate}_low", f"{rate}_high"]
        ends = np.stack([table.reindex(columns=columns).to_numpy(dtype=float) for table in tables])
        sizes = np.array([_denominator(table, rate) for table in tables])
        if choice is None:
            rates, low, high = ends[-1].T
            choice = choose_groups(rates, sizes[-1], low=low, high=high)
        self.choice, self.others = choice, None
        self.shown, self.hidden = (
            [
                DotRow(name, [Dot(m, *ends[m, k]) for m in range(len(tables))], sizes[:, k])
                for name, k in zip(tables[0].index[some].map(str), some, strict=True)
            ]
            for some in (choice.shown, choice.others)
        )
        if self.hidden:
            values = [row.dots[-1].value for row in self.hidden]
            defined = [value for value in values if not np.isnan(value)] or [np.nan]
            n_rows = sizes[:, choice.others].sum(axis=1)
            self.others = DotRow(choice.label, [], n_rows, (min(defined), max(defined)))


def _denominator(table: pd.DataFrame, rate: str) -> Array:
    """Return the numbers of rows in the denominator of a rate; 1 where they are not known."""
    rows, positive, selected = (
        table[name].to_numpy() if name in table else np.ones(len(table), dtype=int)
        for name in ("rows", "positive_labels", "positive_decisions")
    )
    of_rate = {"true_positive_rate": positive, "false_positive_rate": rows - positive}
    return (of_rate | {"precision": selected}).get(rate, rows)


Ranks = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class GroupScores(GroupedRows):
    """Scores of rows by group; labels are None if they are not known."""

    threshold: float = 0.0  # a prediction is positive if its score is above
    unit: str = "score"  # the name of the scores, for axis labels

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike | None,
        scores: ArrayLike,
        sensitive_features: MatrixLike | Groups,
        sample_weight: ArrayLike | None = None,
        threshold: float | None = None,
        unit: str = "score",
    ) -> Self:
        """Check scores and groups, and drop the rows of weight zero.

        With ``threshold=None`` the threshold is 1/2 if all scores are between 0 and 1, and else 0.
        """
        given = y_true, scores, sensitive_features, None, sample_weight
        rows = cls.check(*given, scores=True, optional="y_true").counted()
        if threshold is None:
            threshold = 0.5 if rows.values.min() >= 0.0 and rows.values.max() <= 1.0 else 0.0
        return replace(rows, threshold=check_finite("threshold", threshold), unit=unit)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | Groups | None,
        sample_weight: ArrayLike | None = None,
        *,
        response_method: str = "auto",
        threshold: float | None = None,
        marginal: bool = False,
        pos_label: object = None,
    ) -> "GroupScores":
        """Return the scores of a fitted classifier.

        With `marginal`, for a classifier with ``combine="marginal"``, each row is listed once for
        each attribute. `pos_label` is the positive class; None takes that of the classifier. Of
        several classes it is needed: the scores are those of this class, or the logarithms of its
        probabilities, minus the highest of the others.
        """
        method = response_of(check_model(estimator), response_method)
        methods = ["predict", method]
        every = collect(estimator, X, y, sensitive_features, sample_weight, methods=methods)
        collected = every.against_rest(pos_label)
        scores, usual, unit = collected.outputs[""].response(method)
        threshold = usual if threshold is None else check_finite("threshold", threshold)
        if np.isnan(threshold):
            raise ValueError(
                f"response_method={response_method!r}: {type(estimator).__name__} does not predict "
                f"by a threshold on {method}. Pass threshold=, or response_method='auto'."
            )
        rows, groups = np.arange(len(scores)), replace(collected.groups, marginal=False)
        if marginal and collected.groups.marginal:
            rows, groups = stacked(collected.groups)
        labels = None if collected.labels is None else collected.labels[rows]
        return cls(labels, scores[rows], groups, collected.weight[rows], threshold, unit)

    def chosen(self, keep: int | None = None) -> "GroupScores":
        """Return the scores with the groups to show, of many groups, and the others as one group.

        Up to eight groups are all shown, in their order. Beyond, the groups are chosen and sorted
        by their selection rates; see `choose_groups`. The group `keep` is shown in any case.
        """
        if len(self.groups) <= MOST_GROUPS:
            return self
        selected = replace(self, values=self.values > self.threshold)
        return replace(self, groups=shown_groups(selected, keep=keep))


def ranks_of(estimator: object) -> Ranks:
    """Return the range of ranks of the model's constraint; None if it has no range."""
    constraint = getattr(final_estimator(estimator), "constraint", None)
    for each in constraint if isinstance(constraint, list | tuple) else [constraint]:
        if isinstance(each, Constraint) and each.rank_range is not None:
            return each.rank_range
    return None
