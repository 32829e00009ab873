"""The rows held out from training: how many, which ones, and what they are to test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from fairconstrained.constraints.base import Constraint, FreeScores
from fairconstrained.constraints.claims import Claim
from fairconstrained.data.labels import Queries
from fairconstrained.data.validation import TrainingData
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.utils.numerics import by_first_row
from fairconstrained.utils.typing import Array, RandomState

_FEW_ROWS = 10  # smaller groups are not divided separately
_SHARES = tuple(np.arange(2, 11) / 20.0)
_POWER = 4.0  # standard deviations between the first candidate and the limit of the test
_WIDTH = 0.15  # the largest part of the room that the test may take, where rows suffice
_MAX_MARGIN = 0.9

Claims = tuple[tuple[Claim, ...], ...]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows that are not used for training, and the statements that they test.

    Attributes
    ----------
    constraints : tuple of CompositeFunction
        The constraints on these rows.
    attributes : mapping
        The fitted attributes that name the rows.
    claims : tuple of tuple of Claim
        The statements of each constraint, on these rows.
    training : tuple of tuple of Claim
        The same statements on the training rows. They say how large margins should be, for which
        the held-out rows must not be used.
    n_rows : int
        The number of held-out rows.
    n_training : int
        The number of training rows.
    """

    constraints: tuple[CompositeFunction, ...]
    attributes: Mapping[str, object]
    claims: Claims
    training: Claims
    n_rows: int
    n_training: int

    @classmethod
    def of(
        cls,
        constraints: Sequence[Constraint],
        *,
        problem: Problem,
        training: TrainingData,
        held_out: TrainingData,
        rows: Array | None,
        model: Model,
        unconstrained: FreeScores,
    ) -> HeldOut:
        """Return the constraints on the held-out rows, with what they chose on the training rows.

        Parameters
        ----------
        constraints : sequence of Constraint
            Their tolerances are set.
        problem : Problem
            The constraints on the training rows.
        training, held_out : TrainingData
            The rows.
        rows : ndarray of int or None
            The positions of the held-out rows in X, if these are in memory.
        model : Model
            The model on the held-out rows.
        unconstrained : FreeScores
            The model without constraints, on the held-out rows.
        """
        parts, claims, before = [], [], []
        bound = iter(problem.constraints)
        with without_vacuous_warnings():
            for one in constraints:
                pairs = zip(one.groupings(training), one.groupings(held_out), strict=True)
                for seen, unseen in pairs:
                    part = next(bound)
                    fixed = one.as_bound(part.term).for_all_groups()
                    parts.append(fixed.build_known(model, unseen, unconstrained))
                    before.append(_asked(part, fixed.claims_on(seen, part.term.n_rows)))
                    claims.append(_asked(part, fixed.claims_on(unseen, parts[-1].term.n_rows)))
        sizes, named = (held_out.n_rows, training.n_rows), {"holdout_indices_": rows}
        attributes = {} if rows is None else named
        return cls(tuple(parts), attributes, tuple(claims), tuple(before), *sizes)

    @property
    def complete(self) -> bool:
        """Whether every statement on the training rows can be tested on these rows."""
        names = [[[one.name for one in part] for part in side] for side in self._sides]
        return names[0] == names[1]

    @property
    def _sides(self) -> tuple[Claims, Claims]:
        return self.claims, self.training

    @property
    def names(self) -> list[str]:
        """The names of the statements."""
        return [one.name for part in self.training for one in part]

    @property
    def smallest(self) -> int:
        """The rows of the smallest sample; 0 if one has none."""
        if not self.complete:
            return 0
        sizes = [one.size for part in self.claims for one in part]
        return int(min(sizes, default=self.n_rows))

    def accepted(self, w: Array, delta: float) -> bool:
        """Return whether all statements are accepted for a model, each with error delta."""
        scored = zip(scores_of(self.constraints, w), self.claims, strict=True)
        return all(one.accepts(scores, delta) for scores, part in scored for one in part)

    def limits(self, w: Array, delta: float) -> Array:
        """Return the upper confidence limits of all statements for a model, each valid alone."""
        return _limits(self.constraints, self.claims, w, delta)

    def training_limits(self, problem: Problem, w: Array, delta: float) -> Array:
        """Return the same from the training rows: they say which of several models is safer."""
        parts = problem.constraints[: len(self.training)]
        return _limits(parts, self.training, w, delta)

    def constants(self, decision: bool) -> Array | None:
        """Return the left-hand sides less b for constant predictions, None if they are not known.

        Error rates of constant predictions depend on the population.
        """
        found = [one for part in self.training for one in part]
        if not all(one.of_decisions for one in found):
            return None
        return np.array([one.at_constant(decision) for one in found])


def _limits(parts: Sequence[CompositeFunction], claims: Claims, w: Array, delta: float) -> Array:
    scored = zip(scores_of(parts, w), claims, strict=True)
    return np.array([one.limit(scores, delta) for scores, part in scored for one in part])


def _asked(part: CompositeFunction, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the claims that are outputs of the part, and those of several outputs."""
    return tuple(one for one in claims if not one.one_output or one.name in part.term.names)


def scores_of(parts: Sequence[CompositeFunction], w: Array) -> list[Any]:
    """Return the scores of the rows of each part; parts with the same model share them.

    They are arrays, or where rows are in shards, their distributions in the atoms.
    """
    known: dict[Model, Any] = {}  # freed with this call; models compare by identity
    found = []
    for part in parts:
        if part.model not in known:
            known[part.model] = _scores(part.model, w[: part.model.n_parameters])
        found.append(known[part.model])
    return found


def _scores(model: Model, w: Array) -> Array | ShardedScores:
    """Return the scores of a model's rows."""
    if isinstance(model, ShardedLinearModel):
        return ShardedScores(model, w)
    return model.forward(w)[0]


def predicts_positive(part: CompositeFunction, w: Array) -> bool:
    """Return whether a model that predicts the same class for every row predicts the positive."""
    (scores,) = scores_of([part], w)
    return bool((scores.range[0] if isinstance(scores, ShardedScores) else scores[0]) > 0.0)


def hold_out(
    data: TrainingData,
    share: float | str,
    random_state: RandomState,
    constraints: Sequence[Constraint],
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows to train on, the held-out rows, and the positions of the latter.

    The share is taken of every group. Labels are left to chance, so that given their number the
    held-out rows of a group are a sample from the population of that group, and counts in them are
    binomial. Where the constraints are on other sets of rows (several attributes one by one, a
    group against all rows), or groups have few rows, the rows are drawn from all rows.

    Parameters
    ----------
    data : TrainingData
        All rows.
    share : float or "auto"
        The share that is held out, in (0, 1); "auto" takes that of `expected_share`.
    random_state : int, RandomState or None
        Chooses the rows.
    constraints : sequence of Constraint
        What is tested.
    """
    claims = claims_on_all(constraints, data)
    if isinstance(share, str):
        share = expected_share(claims)
    groups = np.zeros(len(data.y), dtype=int)
    if data.groups is not None and not data.groups.marginal:
        groups = data.groups.codes
    few = len(np.unique(groups)) * _FEW_ROWS > len(groups)
    if few or any(one.share is not None for one in claims):
        groups = np.zeros_like(groups)
    return divided(data, groups, share, random_state)


def claims_on_all(constraints: Sequence[Constraint], data: TrainingData) -> list[Claim]:
    """Return the statements of constraints on all rows, whether they are held out or not."""
    with without_vacuous_warnings():
        return [
            claim for one in constraints for g in one.groupings(data) for claim in one.claims_on(g)
        ]


def expected_share(claims: Sequence[Claim]) -> float:
    r"""Return the share of the rows to hold out, between 0.1 and 0.5.

    It is the smallest one for which the limits of the test take at most 15% of the room
    between equal rates and the bound, and models with nearly equal training rates are accepted with
    high probability: the rest of the room is four standard deviations of the gap that will be
    found. If there is none, it is the one that makes the latter most probable. Rates are taken to
    be 1/2 and the error 0.1, so that the choice depends on the numbers of rows only.

    Parameters
    ----------
    claims : sequence of Claim
        The statements, on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.decisions.held_out import expected_share
    >>> def claims(n):
    ...     return DemographicParity(0.1).claims(np.ones(n), np.arange(n) % 2, np.ones(n))
    >>> [float(expected_share(claims(n))) for n in (2000, 20_000, 200_000)]
    [0.5, 0.4, 0.1]
    """
    deviations = np.array([one.deviation() for one in claims])
    room = np.array([one.room() for one in claims])
    asked = room > 0.0
    deviations, room = deviations[asked], room[asked]
    best, most = _SHARES[-1], -np.inf
    for share in _SHARES:
        width = norm.isf(0.1) * deviations / np.sqrt(share)
        noise = deviations / np.sqrt(share * (1.0 - share))
        power = np.min((_MAX_MARGIN * room - width) / noise, initial=np.inf)
        if power >= _POWER and np.all(width <= _WIDTH * room):
            return share
        if power > most:
            best, most = share, power
    return best


def split(
    data: TrainingData, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows to train on, other rows, and the positions of the latter.

    The share is taken of every group and label, as nearly as their rows allow; of every label where
    groups and labels have fewer than ten rows each on average. Rows of one query stay together.

    Parameters
    ----------
    data : TrainingData
        All rows.
    share : float
        The share of the other rows, in (0, 1).
    random_state : int, RandomState or None
        Chooses the rows.
    """
    if data.query is not None:
        return _split_queries(data, data.query, share, random_state)
    groups = np.zeros(len(data.y), dtype=int) if data.groups is None else data.groups.codes
    cells = 2 * groups + (data.y > 0)
    if len(np.unique(cells)) * _FEW_ROWS > len(cells) and groups.any():
        cells = (data.y > 0).astype(int)
    return divided(data, cells, share, random_state)


def divided(
    data: TrainingData, cells: Array, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows without a share of every cell, that share, and its positions."""
    random, held = check_random_state(random_state), np.zeros(len(cells), dtype=bool)
    cells = by_first_row(cells)
    for cell in range(cells.max(initial=-1) + 1):
        rows = random.permutation(np.flatnonzero(cells == cell))
        held[rows[: min(max(round(share * len(rows)), 1), len(rows) - 1)]] = True
    kept, out = np.flatnonzero(~held), np.flatnonzero(held)
    return data.take(kept), data.take(out), out


def _split_queries(
    data: TrainingData, queries: Queries, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows of most queries, those of a share of the queries, and their positions.

    Queries with rows of both classes are divided on their own, so that both parts have some.
    """
    n = len(queries)
    counts = [np.bincount(queries.codes[side], minlength=n) for side in (data.y > 0, data.y < 0)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if both.sum() < 2:
        raise ValueError(
            "early_stopping and constraint_fraction set queries aside, and fewer than two of them "
            "have rows of both classes: use early_stopping=False and constraint_fraction=None."
        )
    random, held = check_random_state(random_state), np.zeros(n, dtype=bool)
    for kind in (both, ~both):
        found = random.permutation(np.flatnonzero(kind))
        held[found[: min(max(round(share * len(found)), 1), max(len(found) - 1, 0))]] = True
    out = held[queries.codes]
    kept, aside = np.flatnonzero(~out), np.flatnonzero(out)
    return data.take(kept), data.take(aside), aside
