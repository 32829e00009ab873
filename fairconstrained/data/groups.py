"""Groups of rows: codes and names, from the columns of sensitive attributes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np

from fairconstrained.data.attributes import (
    encode_column,
    group_columns,
    names_of_columns,
    probabilities_error,
    probabilities_of,
    split_strata,
    titles_of,
)
from fairconstrained.utils.arguments import check_option
from fairconstrained.utils.arrays import Array, MatrixLike, some_of

UNKNOWN = "unknown"
GROUPS_MISSING = "raise", "own_group", "ignore_in_constraint"
_BY_ROW = ("probabilities", "guesses", "original", "errors")
_MANY = 50  # no more groups than these are taken for values that rows do not share
COMBINE = "intersection", "marginal"


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row belongs to.

    Examples
    --------
    >>> from fairconstrained.data.groups import Groups
    >>> groups = Groups.encode(["f", "m", "f"])
    >>> groups.names.tolist(), groups.codes.tolist()
    (['f', 'm'], [0, 1, 0])
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"], "old": [True, True, False]})
    >>> Groups.encode(table).names.tolist()
    [('f', False), ('f', True), ('m', True)]
    >>> Groups.encode(table).labels[0]
    'sex=f, old=False'
    >>> Groups.encode(table, combine="marginal").listed.tolist()
    ['sex=f', 'sex=m', 'old=False', 'old=True']
    >>> from fairconstrained import with_strata
    >>> Groups.encode(with_strata(table["sex"], table["old"])).listed.tolist()
    ['f | old=False', 'f | old=True', 'm | old=True']
    """

    codes: Array  # the position of each row's group in `names`; -1 where it is not known, (n_rows,)
    # the groups in sorted order: values for one column, tuples for several, (n_groups,)
    names: Array
    # the groups of every column on its own, if there are several
    attributes: "tuple[Groups, ...]" = ()
    title: str = ""  # the name of the column
    # whether constraints are about every attribute on its own, not about intersections
    marginal: bool = False
    # the names of the columns, where a frame has them; see `in_order`
    column_names: tuple[str, ...] = ()
    # whether `attributes` are the strata and the groups, which are compared within each stratum
    stratified: bool = False
    stratum: str = ""  # the stratum whose rows these are, see `by_stratum`
    probabilities: Array | None = None  # of each group, where it is not known, see `spread`
    # for rows of known group, probabilities that do not use it; nan for others; see `surveyed`
    guesses: Array | None = None
    # the row that each is, where rows are listed once for each group that they may be of
    original: Array | None = None
    errors: Array | None = None  # what is to be added to the weights of means, see `surveyed`

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.names)

    def take(self, rows: Array) -> "Groups":
        """Return the groups of some rows; a group that none of them has is forgotten."""
        some = some_of(self, _BY_ROW, rows)
        if self.probabilities is not None:
            return replace(self, codes=self.codes[rows], **some)
        return replace(self._encoded(lambda codes: codes[rows]), **some)

    def _encoded(self, chosen: Callable[[Array], Array]) -> "Groups":
        """Return the groups with other codes; a group that no row has is forgotten."""
        codes = chosen(self.codes)
        present = np.unique(codes[codes >= 0])
        codes = np.where(codes >= 0, np.searchsorted(present, codes), -1)
        attributes = tuple(part._encoded(chosen) for part in self.attributes)
        return replace(self, codes=codes, names=self.names[present], attributes=attributes)

    def widened(self) -> "Groups":
        """Return the same groups with codes that can be calculated with."""
        attributes = tuple(part.widened() for part in self.attributes)
        return replace(self, codes=self.codes.astype(np.intp, copy=False), attributes=attributes)

    def among(self, names: list[Any], what: str = "") -> Array:
        """Return the position of each row's group among names, their number where it is none."""
        place = {name: k for k, name in enumerate(names)}
        new = [name for name in self.names.tolist() if name not in place]
        if new and what:
            raise ValueError(
                f"X has rows of the group {self.called(new)[0]!r}, which no row had in fit; {what} "
                f"the groups {self.called(names)}. Leave these rows out, or fit with rows of that "
                "group."
            )
        table = [place.get(name, len(names)) for name in self.names.tolist()]
        return np.array([*table, len(names)])[self.codes]

    def spread(self, weight: Array) -> "tuple[Array, Groups, Array]":
        """Return rows once for each group of positive probability, groups and weights.

        Where groups are known these are all rows.
        """
        if self.probabilities is None:
            return np.arange(len(weight)), self, weight
        rows, codes = np.nonzero(self.probabilities)
        groups = replace(self, codes=codes, probabilities=None, guesses=None, original=rows)
        return rows, groups, weight[rows] * self.probabilities[rows, codes]

    def surveyed(self, weight: Array) -> "tuple[Array, Groups, Array]":
        r"""Return the same as `spread` for measurements, corrected where some groups are known.

        With guesses q that do not know the group g, the weight of group k,
        :math:`\sum_i w_i q_{ik}`, is off by :math:`\sum_i w_i (1\{g_i = k\} - q_{ik})`. The rows of
        known group, a random sample, estimate this sum: their terms, times the total weight over
        theirs, are the `errors`. Sums of weights and errors are right on average, whatever the
        guesses are (Angelopoulos et al. 2023, "Prediction-powered inference").
        """
        if self.guesses is None or self.probabilities is None:
            return self.spread(weight)
        seen = np.isfinite(self.guesses[:, 0])
        if not seen.any():
            return self.spread(weight)
        P = np.where(seen[:, None], self.guesses, self.probabilities)
        rows, groups, spread = replace(self, probabilities=P).spread(weight)
        terms = np.where(seen, weight, 0.0) * (weight.sum() / weight[seen].sum())
        errors = terms[:, None] * (self.probabilities - P)
        return rows, replace(groups, errors=errors[rows, groups.codes]), spread

    def once(self, weight: Array) -> tuple[Array, Array]:
        """Return the place of every row, once, and the weight of all places where it is listed."""
        if self.original is None:
            return np.arange(len(weight)), weight
        _, places, rows = np.unique(self.original, return_index=True, return_inverse=True)
        return places, np.bincount(rows, weight)

    def variances(self, weight: Array) -> Array | None:
        r"""Return what the place of a row adds to the variance of a gap, None for 1.

        Let :math:`c_{ik}` be the weight of row i in the rate of group k, listed for all groups that
        it may be of. The variance of the difference of the rates of k and l is that of
        :math:`\sum_i (c_{ik} - c_{il}) d_i`: half of the mixed products is taken off each of the
        two rates. All other groups together stand for the other one.
        """
        if self.original is None:
            return None
        of_row, of_group = np.bincount(self.original, weight), np.bincount(self.codes, weight)
        others = weight.sum() - of_group[self.codes]
        mixed = (of_row[self.original] / weight - 1.0) * of_group[self.codes]
        return 1.0 - np.divide(mixed, others, out=np.zeros(len(mixed)), where=others > 0.0)

    @property
    def known(self) -> Array:
        """Which rows' group is known, (n_rows,) of bool."""
        return self.codes >= 0

    @property
    def separate(self) -> "tuple[Groups, ...]":
        """What constraints are bound to, one after the other.

        This is itself; with `marginal` the groups of every attribute, called "attribute=value";
        with strata these groups in each stratum.
        """
        if self.stratified:
            return tuple(part for stratum in self.by_stratum for part in stratum.separate)
        if not self.marginal:
            return (self,)
        return tuple(
            replace(part, names=np.array(part.titled(part.names.tolist())), stratum=self.stratum)
            for part in self.attributes
        )

    @property
    def by_stratum(self) -> "tuple[Groups, ...]":
        """The groups in every stratum, with no group for the other rows; or itself."""
        if not self.stratified:
            return (self,)
        strata, groups = self.attributes

        def within(k: int) -> Callable[[Array], Array]:
            return lambda codes: np.where(strata.codes == k, codes, -1)

        return tuple(
            replace(groups._encoded(within(k)), stratum=name)
            for k, name in enumerate(strata.titled(strata.names.tolist()))
        )

    @property
    def sensitive(self) -> "Groups":
        """The groups, whatever the stratum."""
        return self.attributes[1] if self.stratified else self

    def titled(self, names: list[Any]) -> list[str]:
        """Return names of groups with those of their attributes, "attribute=value"."""
        return self.called(names) if self.attributes else [f"{self.title}={name}" for name in names]

    @cached_property
    def labels(self) -> list[Any]:
        """What groups are called where they are shown, see `called`."""
        return self.called(self.names.tolist())

    def called(self, names: list[Any]) -> list[Any]:
        """Return names of groups as they are shown.

        With several attributes these are "attribute=value" for each of them.
        """
        if self.stratum:
            return [f"{name} | {self.stratum}" for name in replace(self, stratum="").called(names)]
        if self.stratified and names:
            (of_rows, groups), each = self.attributes, zip(*names, strict=True)
            inside, members = (list(dict.fromkeys(part)) for part in each)
            strata = dict(zip(inside, of_rows.titled(inside), strict=True))
            group = dict(zip(members, groups.called(members), strict=True))
            return [f"{group[name]} | {strata[stratum]}" for stratum, name in names]
        if not self.attributes:
            return names
        titles = [part.title for part in self.attributes]

        def written(as_text: Callable[[object], str]) -> list[str]:
            return [", ".join(map("{}={}".format, titles, map(as_text, name))) for name in names]

        texts = written(str)
        return texts if len(set(texts)) == len(texts) else written(repr)

    def named(self, name: object) -> int:
        """Return which group has a name, with or without "attribute="; -1 if none has."""
        prefix = f"{self.title}="
        labels = [str(each).removeprefix(prefix) for each in replace(self, stratum="").labels]
        bare = str(name).removeprefix(prefix)
        return labels.index(bare) if bare in labels else -1

    @property
    def listed(self) -> Array:
        """The names of all groups that constraints are bound to."""
        if self.stratified:
            return np.array([name for part in self.separate for name in part.labels])
        return np.concatenate([part.names for part in self.separate])

    @property
    def columns(self) -> "tuple[Groups, ...]":
        """The groups of every column on its own, also where there is one column only."""
        return self.sensitive.attributes or (self.sensitive,)

    @classmethod
    def encode(
        cls,
        values: Any,
        *,
        name: str = "sensitive_features",
        combine: str = "intersection",
        missing: str = "raise",
        narrow: bool = False,
        probable: bool = False,
    ) -> "Groups":
        """Return the groups of an array, Series or DataFrame.

        With `probable` they may be known in probability only; the caller calls `spread`, or
        `surveyed`.
        """
        check_option("combine", combine, COMBINE)
        check_option("groups_missing", missing, GROUPS_MISSING)
        if isinstance(values, Groups):
            return values
        values, strata = split_strata(values)
        probabilities = probabilities_of(values, name)
        if probabilities is not None:
            if not probable:
                raise probabilities_error(name)
            titles, P, guesses = probabilities
            names, order = np.unique(titles, return_index=True)
            P, (title,) = P[:, order], titles_of([names], name)
            guesses = None if guesses is None else guesses[:, order]
            return cls(P.argmax(axis=1), names, title=title, probabilities=P, guesses=guesses)
        if values is None and strata is not None:
            raise ValueError(
                "control_features are strata in which groups are compared, and there are no "
                "groups: pass sensitive_features as well, or name sensitive_columns."
            )
        options = missing, narrow
        groups = cls._of_columns(values, name, *options)
        groups = replace(groups, marginal=combine == "marginal" and len(groups.columns) > 1)
        if strata is None:
            return groups
        crossed = cls.crossed((cls._of_columns(strata, "control_features", *options), groups))
        same: Any = {"marginal": groups.marginal, "column_names": groups.column_names}
        return replace(crossed, stratified=True, **same)

    @classmethod
    def _of_columns(cls, values: Any, name: str, *options: Any) -> "Groups":
        """Return the groups of rows that agree in all columns."""
        columns = group_columns(values, name)
        encoded = tuple(
            cls(*encode_column(column, name, *options), title=title)
            for column, title in zip(columns, titles_of(columns, name), strict=True)
        )
        groups = encoded[0] if len(encoded) == 1 else cls.crossed(encoded)
        return replace(groups, column_names=names_of_columns(values))

    @classmethod
    def crossed(cls, attributes: "tuple[Groups, ...]") -> "Groups":
        """Return the groups of rows that agree in several attributes."""
        stacked = np.column_stack([part.codes for part in attributes])
        known = (stacked >= 0).all(axis=1)
        present, inverse = np.unique(stacked[known], axis=0, return_inverse=True)
        codes = np.full(len(stacked), -1)
        codes[known] = np.ravel(inverse)
        levels = [part.names[k].tolist() for part, k in zip(attributes, present.T, strict=True)]
        return cls(codes, np.fromiter(zip(*levels, strict=True), object, len(present)), attributes)

    def with_unknown(self) -> "Groups":
        """Return the groups of an attribute, rows of unknown group among those called "unknown"."""
        if self.known.all():
            return self
        names = self.names.tolist()
        names += [UNKNOWN] * (UNKNOWN not in names)
        codes = np.where(self.known, self.codes, names.index(UNKNOWN))
        return replace(self, codes=codes, names=np.array(names, dtype=object))


def check_groups(
    values: MatrixLike | Groups,
    n_rows: int,
    *,
    name: str = "sensitive_features",
    rows: str = "X",
    compared: bool = False,
    **options: Any,
) -> Groups:
    """Return the groups of `n_rows` rows, which messages call `rows`; see :meth:`Groups.encode`.

    With `compared` their rates are compared, see :func:`check_shared`.
    """
    groups = Groups.encode(values, name=name, **options)
    joined = not compared and (groups.marginal or groups.stratified)
    if isinstance(values, Groups) and joined and options.get("combine") != "marginal":
        parts = f"{len(groups.columns)} attributes are on their own (combine='marginal')"
        raise ValueError(
            f"{name}: {'there are strata' if groups.stratified else parts}, and a constraint is "
            "bound to one grouping at a time: bind it to each of `groups.separate`."
        )
    if len(groups.codes) != n_rows:
        raise ValueError(
            f"{name} has {len(groups.codes)} rows, {rows} has {n_rows}: give one group per row of "
            f"{rows}, in the same order."
        )
    if compared:
        check_shared(groups, n_rows)
    return groups


def check_shared(groups: Groups, n_rows: int) -> None:
    """Raise if groups that are compared are no groups: values that hardly any two rows share."""
    from fairconstrained.utils.execution import in_fold  # workers have no scikit-learn

    named = [("sensitive features make {} groups", part, groups) for part in groups.separate]
    if groups.stratified:
        strata = groups.attributes[0]
        named.insert(0, ("control features make {} strata", strata, strata))
    for text, part, columns in named:
        if len(part) > max(_MANY, n_rows / 2) and not in_fold():
            raise ValueError(
                f"The {text.format(len(part))} of {n_rows} rows: each must be a value that many "
                f"rows share. Instead {advice_on_groups(columns)}."
            )


def advice_on_groups(groups: Groups) -> str:
    """Return what can be done about groups of few rows."""
    names = [name for part in groups.columns for name in part.names.tolist()]
    if not any(isinstance(name, Number) for name in names):
        return "merge groups, or leave out rows of rare groups"
    advice = "bin numeric columns, for example with pd.cut(column, 4)"
    if all(isinstance(name, float) and 0.0 <= name <= 1.0 for name in names):
        return (
            "pass GroupProbabilities(values, names) if these are probabilities of groups, or "
            f"the most probable group, probabilities.argmax(axis=1), or {advice}"
        )
    return advice
