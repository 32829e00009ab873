"""Impact ratios: rates against that of a reference group, for every attribute and crossing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from fairconstrained.data.attributes import MISSING
from fairconstrained.data.groups import UNKNOWN, Groups
from fairconstrained.metrics.exact_tests import ratio_interval
from fairconstrained.metrics.inputs import GroupedRows, group_labels, positive_class
from fairconstrained.utils.arguments import check_between, check_confidence, check_numbers
from fairconstrained.utils.arrays import Array, at_most, equal_weights, quantiles

FOUR_FIFTHS = 4, 5
BELOW = "below four fifths"
LEAST_SHARE = 0.02
LEVELS = ["attribute", "group"]
_TOPS = (0.1, 0.25, 0.5, 0.75, 0.9)
_TESTS = ["ratio_low", "ratio_high", "z", "p_value"]
_MISSING = "ignore_in_constraint"
_ABSENT = -1  # the place of a named group that a stratum lacks
_HEADS = {"selected": "above_median", "selection_rate": "scoring_rate"}


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows whose groups are compared with a reference group, by attribute and by crossing."""

    groups: Groups  # the groups
    weight: Array  # the weights, > 0, (n_rows,)
    reference: Any = None  # see `impact_ratios`
    least_share: float = LEAST_SHARE
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check what a user gives, the names of reference groups included."""
        check_between("least_share", self.least_share, 0.0, 1.0, "of the rows")
        check_confidence(self.confidence)
        _ = self._groupings  # which checks the names

    def table(self, selected: Array) -> pd.DataFrame:
        """Return the impact ratios of a selection, (n_rows,) of bool."""
        tables = {
            title: self._compared(rows, place)[0] for title, rows, place in self._parts(selected)
        }
        return pd.concat(tables, names=LEVELS)

    def score_table(self, every: Array, tops: Sequence[float] = _TOPS) -> pd.DataFrame:
        """Return the impact ratios of scores above the median, and what else scores have."""
        tables = {}
        for title, rows, place in self._parts(every):
            # The quantiles at which shares of the weight begin, counted from the highest score.
            scores, levels = rows.values, 1.0 - np.array([0.5, *tops])
            median, *least = quantiles(scores, levels, rows.weight)
            table, reference = self._compared(replace(rows, values=scores > median), place)
            means, _ = rows.means(scores)
            spread = np.sqrt(np.cov(scores, aweights=rows.weight)) if np.ptp(scores) else 0.0
            table = table.rename(columns=_HEADS).assign(mean_score=means)
            table["standardized_difference"] = (means - _at(means, reference)) / (spread or np.nan)
            for top, lowest in zip(tops, least, strict=True):
                rates, _ = rows.means(scores >= lowest)
                table[f"ratio_top_{100.0 * top:g}"] = rates / (_at(rates, reference) or np.nan)
            tables[title] = table
        return pd.concat(tables, names=LEVELS)

    def _parts(self, values: Array) -> Iterator[tuple[str, GroupedRows, int | None]]:
        """Yield every grouping with the values of its rows, and the place of the named group."""
        for title, inside, groups, place in self._groupings:
            yield title, GroupedRows(None, values[inside], groups, self.weight[inside]), place

    @cached_property
    def _groupings(self) -> list[tuple[str, Array, Groups, int | None]]:
        """Every attribute and crossing, of all rows and of every stratum.

        Each has a title, the positions of its rows, their groups, and the place of the named one.
        """
        parts = [("", np.arange(len(self.weight)))]
        if self.groups.stratified:
            strata = self.groups.attributes[0]
            names = enumerate(strata.titled(strata.names.tolist()))
            parts += [(f" | {name}", np.flatnonzero(strata.codes == k)) for k, name in names]
        columns = self.groups.columns
        named = self._named([column.title for column in columns])
        groupings = []
        for stratum, inside in parts:
            attributes = [column.take(inside).with_unknown() for column in columns]
            for size in range(1, len(attributes) + 1):
                for chosen in combinations(attributes, size):
                    groups = chosen[0] if size == 1 else Groups.crossed(chosen)
                    titles = [part.title for part in chosen]
                    place = _place(groups, [named.get(title) for title in titles], stratum)
                    groupings.append((", ".join(titles) + stratum, inside, groups, place))
        return groupings

    def _named(self, titles: list[str]) -> Mapping[str, Any]:
        """Return the named reference groups by attribute."""
        named = {} if self.reference is None else self.reference
        if not isinstance(named, Mapping) and len(titles) == 1:
            named = {titles[0]: named}
        if not isinstance(named, Mapping) or not set(named) <= set(titles):
            raise ValueError(
                f"reference must be a mapping from attributes, of {titles}, to a group of each; "
                f"got {self.reference!r}."
            )
        return named

    def _compared(self, selected: GroupedRows, place: int | None) -> tuple[pd.DataFrame, Array]:
        """Return groups compared with the one at a place, else with the one selected most.

        Which group that is, (n_groups,) of bool, is returned as well.
        """
        groups, n = selected.groups, len(selected.groups)
        rows, counts = selected.counts(), selected.counts(selected.values)
        rates, sizes = selected.means(selected.values)
        values = [_values(groups, k) for k in range(n)]
        unknown = np.array([not {MISSING, UNKNOWN}.isdisjoint(each) for each in values])
        shares = rows / len(groups.codes)
        if groups.original is not None:  # rows are listed for every group that they may be of
            shares = np.bincount(groups.codes, selected.weight, n) / selected.weight.sum()
        few = shares < self.least_share
        compared = ~(unknown | few)
        if place is None and compared.any():  # of equal rates, that of the most rows
            place = int(np.lexsort([-np.arange(n), rows, rates.round(12), compared])[-1])
        reference = np.arange(n) == (_ABSENT if place is None else place)
        ratio = rates / (_at(rates, reference) or np.nan)
        status = {
            "reference": reference,
            "unknown": unknown,
            f"fewer than {100.0 * self.least_share:g}% of the rows": few,
            BELOW: ~at_most(FOUR_FIFTHS[0] / FOUR_FIFTHS[1], ratio) & np.isfinite(ratio),
        }
        columns = {
            "rows": rows, "share": shares, "selected": counts,
            "selection_rate": rates, "ratio": ratio,
        }  # fmt: skip
        table = pd.DataFrame(columns, index=group_labels(groups))
        # With weights, counts are those of the effective numbers of rows. They, and the half of a
        # row, are reached up to rounding.
        whole = np.maximum((sizes + 1e-6).astype(int), 1)
        cells = list(zip((rates * whole + 0.500001).astype(int), whole, rates, sizes, strict=True))
        others = ~reference if reference.any() else reference
        tests = [
            _tests(cell, cells[reference.argmax()], self.confidence) if other else {}
            for cell, other in zip(cells, others, strict=True)
        ]
        table[_TESTS] = pd.DataFrame(tests, columns=_TESTS, dtype=float).to_numpy()
        most, of = _at(counts, reference), _at(rows, reference)
        for name, (part, whole) in {"to_four_fifths": FOUR_FIFTHS, "to_parity": (1, 1)}.items():
            table[name] = np.nan
            if reference.any() and equal_weights(self.weight):
                table[name] = np.maximum(-(-part * most * rows // (whole * of)) - counts, 0)
        return table.assign(status=np.select(list(status.values()), list(status), "")), reference


def _values(groups: Groups, k: int) -> list[str]:
    """Return the values of the attributes of a group, as text."""
    name = groups.names[k]
    return [str(value) for value in (name if groups.attributes else [name])]


def _place(groups: Groups, wanted: list[Any], stratum: str) -> int | None:
    """Return the place of a group by its values of the attributes; None where one is None.

    A stratum may lack the group.
    """
    if None in wanted:
        return None
    texts = [str(value) for value in wanted]
    for k in range(len(groups)):
        if _values(groups, k) == texts:
            return k
    if stratum:
        return _ABSENT
    raise ValueError(
        f"reference: no row has the group {', '.join(texts)}; the groups are {groups.labels}."
    )


def _at(values: Array, reference: Array) -> float:
    """Return the value of the reference group; nan without one."""
    return next(iter(values[reference].tolist()), np.nan)


def _tests(first: Sequence[Any], second: Sequence[Any], confidence: float) -> dict[str, float]:
    """Return the interval of the ratio of two rates, and the tests that they are equal.

    A cell is a count and a number of rows, and the rate and the effective number that they round.
    """
    (x, n, rate, size), (y, m, other, of) = first, second
    pooled = (rate * size + other * of) / (size + of)
    variance = pooled * (1.0 - pooled) * (1.0 / size + 1.0 / of)
    z = (rate - other) / variance**0.5 if variance > 0.0 else 0.0
    p = float(fisher_exact(np.array([[x, n - x], [y, m - y]])).pvalue)
    return dict(zip(_TESTS, (*ratio_interval((x, n), (y, m), confidence), z, p), strict=True))


@GroupedRows.metric(optional="y_true", missing=_MISSING)
def impact_ratios(
    rows: GroupedRows,
    reference: Any = None,
    least_share: float = LEAST_SHARE,
    confidence: float = 0.95,
    pos_label: object = None,
) -> pd.DataFrame:
    """Return selection rates and their ratios to that of a reference group, with tests.

    There is a table for every attribute and one for every crossing of attributes, one below the
    other. Rows with a missing value of an attribute are those of a group "unknown".

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Ignored; present for API consistency.
    y_pred : array-like of shape (n_samples,)
        The predictions, of two classes.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The attributes, a column for each; missing values are allowed.
    control_features : array-like or DataFrame or None, default=None
        Strata: the tables of all rows are followed by those of every stratum, where the groups are
        compared among its rows.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows. With weights that differ the tests and intervals are approximate:
        they use effective numbers of rows, see :func:`group_rates`, rounded to counts where a test
        needs these; and no numbers of selections are given.
    reference : group, mapping of str to group or None, default=None
        The reference group; with several attributes a mapping from their names, such as
        ``{"sex": "male", "race": "white"}``. Crossings of attributes that are all named have the
        crossing of these groups. None takes the group with the highest rate among known groups that
        are not too small; with equal rates, the largest of them. Tests and intervals do not count
        this choice, see the notes.
    least_share : float, default=0.02
        Groups with a smaller share of the rows are shown, but they neither set the highest rate nor
        are marked.
    confidence : float, default=0.95
        The confidence level of each interval, for a named reference group.
    pos_label : label or None, default=None
        The positive class; None means the second of the sorted classes.

    Returns
    -------
    ratios : DataFrame
        The index has the levels attribute and group. The columns:

        - rows, share (of all rows; of groups known in probability the mean probability), selected
          and selection_rate;
        - ratio, the rate divided by that of the reference group, with its exact unconditional
          interval (Chan and Zhang) in ratio_low and ratio_high;
        - z, the difference of the two rates in standard deviations, that of two equal rates
          (two-proportion z, pooled), and p_value of Fisher's exact test, two-sided. Where a group
          of 10 to 30 rows is compared with a large one, at rates below .05 or above .95, z is
          beyond 2 by chance in up to 9% of tables;
        - to_four_fifths and to_parity: how many more rows of the group would have to be selected
          for its rate to reach four fifths of the reference group's, or all of it;
        - status: "reference", "unknown", "fewer than 2% of the rows", "below four fifths" or "".

    Raises
    ------
    ValueError
        If lengths differ, predictions are not of two classes, or no row is of a reference group.

    Notes
    -----
    Four fifths and the tests are those of the Uniform Guidelines on Employee Selection Procedures,
    29 CFR 1607.4(D). Ratios to the highest rate, by attribute and by crossing, without groups of
    less than 2%, are those of New York City's rules, 6 RCNY 5-301. What follows from a figure is
    a question of law.

    The highest of several rates is high by chance in part, so that differences from it look surer
    than they are. In 1,500 simulated tables of eight groups of 100 rows with equal rates of .5, 10%
    of the intervals missed the ratio 1 (95% confidence) and 10% of the p-values were below .05; 43%
    of the tables had such a group, and 76% one below four fifths. With two groups these were 4.5%
    and 11%. Name the reference group beforehand, or divide the error by the number of pairs.

    References
    ----------
    I. Chan and Z. Zhang, "Test-based exact confidence intervals for the difference of two binomial
    proportions", Biometrics 55 (1999), applied to the ratio.

    Examples
    --------
    >>> from fairconstrained.metrics import impact_ratios
    >>> groups, selected = ["a"] * 50 + ["b"] * 50, [1] * 30 + [0] * 20 + [1] * 15 + [0] * 35
    >>> table = impact_ratios(None, selected, sensitive_features=groups)
    >>> table[["selection_rate", "ratio", "z", "to_four_fifths"]].round(2)
                              selection_rate  ratio     z  to_four_fifths
    attribute          group
    sensitive features a                 0.6    1.0   NaN               0
                       b                 0.3    0.5 -3.02               9
    """
    positive, rows = positive_class(rows.values, pos_label), rows.counted()
    compared = ComparedRows(rows.groups, rows.weight, reference, least_share, confidence)
    return compared.table(rows.values == positive)


@GroupedRows.metric(scores=True, optional="y_true", missing=_MISSING)
def score_impact_ratios(
    rows: GroupedRows,
    reference: Any = None,
    least_share: float = LEAST_SHARE,
    confidence: float = 0.95,
    tops: Sequence[float] = _TOPS,
) -> pd.DataFrame:
    r"""Return rates of scores above the median and their ratios, with tests and mean differences.

    Parameters
    ----------
    y_true, sensitive_features, control_features, sample_weight, reference, least_share, confidence
        See :func:`impact_ratios`; the reference group has the highest rate of scores above the
        median.
    y_pred : array-like of shape (n_samples,)
        The scores; higher ones are favourable.
    tops : sequence of float, default=(0.1, 0.25, 0.5, 0.75, 0.9)
        Shares of rows, counted from the highest score, for which ratios are given.

    Returns
    -------
    ratios : DataFrame
        As :func:`impact_ratios` returns, with above_median and scoring_rate in place of selected
        and selection_rate: how many scores of the group are above the median of all rows. Further
        columns are

        - mean_score and standardized_difference, the mean minus that of the reference group,
          divided by the standard deviation of all scores;
        - ratio_top_10 and so on: the ratio of the rates of scores in the highest 10 percent, with
          all that are equal to the lowest of them.

    Notes
    -----
    Rates above the median are the scoring rates of New York City's rules, 6 RCNY 5-301. Their
    intervals take the median of the rows as that of the population. They are too short where the
    scores of one group spread much more than those of the other: with standard deviations of 3 and
    .5, and 100 rows each, 89% in place of 95% held the ratio.

    Examples
    --------
    >>> from fairconstrained.metrics import score_impact_ratios
    >>> table = score_impact_ratios(
    ...     None, [1, 2, 3, 4, 5, 6, 7, 8], sensitive_features=list("bbabbaaa"), tops=(0.25,)
    ... )
    >>> table[["scoring_rate", "ratio", "ratio_top_25"]].round(2)
                              scoring_rate  ratio  ratio_top_25
    attribute          group
    sensitive features a              0.75   1.00           1.0
                       b              0.25   0.33           0.0
    """
    tops = check_numbers("tops", tops, 0.0, 1.0).tolist()
    compared = ComparedRows(rows.groups, rows.weight, reference, least_share, confidence)
    return compared.score_table(rows.values, tops)
