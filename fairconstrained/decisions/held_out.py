"""The rows held out from training: how many, which ones, and what they are to test."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from fairconstrained.constraints.base import Constraint, FreeScores
from fairconstrained.constraints.claims import Claim, RowScores
from fairconstrained.data.validation import FEW_ROWS, Split, TrainingData, divided
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models.linear import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores
from fairconstrained.utils.arrays import Array, RandomState, by_first_row

_SHARES = tuple(np.arange(2, 11) / 20.0)
_POWER = 4.0  # standard deviations between the first candidate and the limit of the test
_WIDTH = 0.15  # the largest part of the room that the test may take, where rows suffice
MAX_MARGIN = 0.9  # the largest share of the room between equal rates and the bound

Claims = tuple[tuple[Claim, ...], ...]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows that are not used for training, and the statements that they test."""

    constraints: tuple[CompositeFunction, ...]  # the constraints on these rows
    claims: Claims  # the statements of each constraint, on these rows
    # the same statements on the training rows. They say how large margins should be, for which the
    # held-out rows must not be used
    training: Claims
    n_rows: int  # the number of held-out rows
    n_training: int  # the number of training rows
    attributes: Mapping[str, object] = field(default_factory=dict)  # fitted: they name the rows

    @classmethod
    def of(
        cls,
        constraints: Sequence[Constraint],
        problem: Problem,
        rows: Split,
        model: Model,
        unconstrained: FreeScores,
    ) -> "HeldOut":
        """Return the constraints on the held-out rows, with what they chose on the training rows.

        `rows` are those to train on, and those held out. The tolerances of the constraints are set,
        and `problem` has them on the training rows. `model` and `unconstrained` have the scores of
        the held-out rows.
        """
        training, held_out = rows
        parts, claims, before = [], [], []
        bound = iter(problem.constraints)
        with without_vacuous_warnings():
            for constraint in constraints:
                sides = constraint.groupings(training), constraint.groupings(held_out)
                for (seen, unseen), part in zip(zip(*sides, strict=True), bound, strict=False):
                    fixed = constraint.as_bound(part.term).for_all_groups()
                    parts.append(fixed.build_known(model, unseen, unconstrained))
                    before.append(_asked(part, fixed.claims_on(seen, part.term.n_rows)))
                    claims.append(_asked(part, fixed.claims_on(unseen, parts[-1].term.n_rows)))
        return cls(tuple(parts), tuple(claims), tuple(before), held_out.n_rows, training.n_rows)

    @property
    def complete(self) -> bool:
        """Whether every statement on the training rows can be tested on these rows."""
        return [claim.name for part in self.claims for claim in part] == self.names

    @property
    def names(self) -> list[str]:
        """The names of the statements."""
        return [claim.name for part in self.training for claim in part]

    @property
    def smallest(self) -> int:
        """The rows of the smallest sample; 0 if one has none."""
        if not self.complete:
            return 0
        sizes = [sample.size for part in self.claims for claim in part for sample in claim.samples]
        return int(min(sizes, default=self.n_rows))

    def accepted(self, w: Array, delta: float) -> bool:
        """Return whether all statements are accepted for a model, each with error delta."""
        scored = _scored(self.constraints, self.claims, w)
        return all(claim.accepts(scores, delta) for claim, scores in scored)

    def limits(self, w: Array, delta: float) -> Array:
        """Return the upper confidence limits of all statements for a model, each valid alone."""
        scored = _scored(self.constraints, self.claims, w)
        return np.array([claim.limit(scores, delta) for claim, scores in scored])

    def risk(self, problem: Problem, w: Array, delta: float) -> float:
        """Return the largest of normal limits from the training rows, which compare models."""
        deviations = norm.isf(delta)
        scored = _scored(problem.constraints, self.training, w)
        limits = (claim.excess(s) + deviations * claim.deviation(s) for claim, s in scored)
        return max(limits, default=-np.inf)

    def constants(self, part: CompositeFunction, w: Array) -> Array:
        """Return the left-hand sides less b for a model that predicts the same class for every row.

        They are infinite where they are not known: error rates of constant predictions depend on
        the population.
        """
        (scores,) = scores_of([part], w)
        decision = bool((scores.range[0] if isinstance(scores, ShardedScores) else scores[0]) > 0.0)
        claims = [claim for part in self.training for claim in part]
        if not all(claim.of_decisions for claim in claims):
            return np.full(len(claims), np.inf)
        return np.array([claim.at_constant(decision) for claim in claims])


def _asked(part: CompositeFunction, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the claims that are outputs of the part, and those of several outputs."""
    names = set(part.term.names)
    return tuple(claim for claim in claims if not claim.one_output or claim.name in names)


def scores_of(parts: Sequence[CompositeFunction], w: Array) -> list[Any]:
    """Return the scores of the rows of each part; parts with the same model share them.

    Where rows are in shards, they are the distributions of scores in the atoms.
    """
    scores = {model: _scores(model, w) for model in {part.model for part in parts}}
    return [scores[part.model] for part in parts]


def _scores(model: Model, w: Array) -> Any:
    """Return the scores of a model's rows."""
    parameters = w[: model.n_parameters]
    if isinstance(model, ShardedLinearModel):
        return ShardedScores(model, parameters)
    return RowScores(model.forward(parameters)[0])


def _scored(
    parts: Sequence[CompositeFunction], claims: Claims, w: Array
) -> Iterator[tuple[Claim, Any]]:
    """Yield all claims with the scores of their rows; the last parts may have none."""
    for scores, some in zip(scores_of(parts[: len(claims)], w), claims, strict=True):
        yield from (claim.given(scores) for claim in some)


def hold_out(
    data: TrainingData,
    share: float | str,
    random_state: RandomState,
    constraints: Sequence[Constraint],
) -> Split:
    """Return the rows to train on, and the held-out rows.

    The share is taken of every group; "auto" takes that of `expected_share`. Labels are left to
    chance, so that given their number the held-out rows of a group are a sample from the population
    of that group, and counts in them are binomial. Where the constraints are on other sets of rows
    (several attributes one by one, a group against all rows), or groups have few rows, the rows are
    drawn from all rows.
    """
    claims = claims_on_all(constraints, data)
    if isinstance(share, str):
        share = expected_share(claims)
    groups = np.zeros(len(data.y), dtype=int)
    if data.groups is not None and not data.groups.marginal:
        groups = data.groups.codes
    few = len(np.unique(groups)) * FEW_ROWS > len(groups)
    if few or any(claim.share is not None for claim in claims):
        groups = np.zeros_like(groups)
    return divided(data, by_first_row(groups), share, random_state)


def claims_on_all(constraints: Sequence[Constraint], data: TrainingData) -> list[Claim]:
    """Return the statements of constraints on all rows, whether they are held out or not."""
    # A grid that ROC parity takes in the fit does not change how many rows the statements need.
    at_zero = [constraint.with_defaults(thresholds=[0.0]) for constraint in constraints]
    with without_vacuous_warnings():
        return [
            claim
            for constraint in at_zero
            for g in constraint.groupings(data)
            for claim in constraint.claims_on(g)
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
    deviations = np.array([claim.deviation() for claim in claims])
    room = np.array([claim.room() for claim in claims])
    asked = room > 0.0
    deviations, room = deviations[asked], room[asked]
    best, most = _SHARES[-1], -np.inf
    for share in _SHARES:
        width = norm.isf(0.1) * deviations / np.sqrt(share)
        noise = deviations / np.sqrt(share * (1.0 - share))
        power = np.min((MAX_MARGIN * room - width) / noise, initial=np.inf)
        if power >= _POWER and np.all(width <= _WIDTH * room):
            return share
        if power > most:
            best, most = share, power
    return best
