"""Bounds on decisions that hold for the population with a given probability."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import norm

from fairconstrained.constraints.base import Constraint
from fairconstrained.decisions.held_out import MAX_MARGIN, HeldOut, scores_of
from fairconstrained.decisions.search import LOOSEN, DecisionSearch, DecisionTask
from fairconstrained.decisions.threshold_search import ThresholdTask
from fairconstrained.exceptions import ConstantDecisionWarning, warn
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.arrays import Array, at_most

# How far below the limit of the test candidates are fitted, in standard deviations of the gap on
# held-out rows, the largest first.
_DEVIATIONS = 4.0, 3.0, 2.5, 2.0, 1.6, 1.3, 1.0, 0.7, 0.4, 0.2, 0.0, -0.3
_SHARES = 0.25, 0.5, 0.75  # of the first model's decisions that are not those of the constant one
_SAFE = 0.001  # of the error of the test, the error of limits that compare the safety of models
_SUFFICIENT = 1.3  # standard deviations that are left below the limit where the rows suffice


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the held-out rows show about the constraints in the population.

    Attributes
    ----------
    confidence : float
        The probability, over the draw of the held-out rows, with which the statement holds.
    certified : bool
        Whether the constraints hold for the population with that confidence. Constant decisions,
        whose rates are known, are certified without a test.
    bounds : ndarray of shape (n_statements,)
        Upper confidence bounds on the left-hand sides of the statements, less their right-hand
        sides, for the population, each valid on its own; <= 0 where the statement is certified.
    names : list of str
        The statements: a constraint for two groups, for all thresholds where it has several.
    n_tested, n_accepted : int
        The candidates tested, the safest first, and those accepted before the first rejection.
    n_held_out : int
        The number of rows held out.
    smallest : int
        The number of them in the smallest cell.
    rows_needed : int or None
        About how many rows, training included, a model that is not constant would need; None if
        that is unknown, because a cell has no rows, or if no number of rows suffices, because no
        other model was found that meets the constraints on the training rows.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier(
    ...     kappa=0.2, enforce="decision", confidence=0.9, random_state=0
    ... ).fit(X, y, sensitive_features=groups)
    >>> certificate = clf.certificate_
    >>> certificate.certified, certificate.n_held_out == len(clf.holdout_indices_)
    (True, True)
    >>> bool(certificate.bounds.max() <= 0.0), certificate.names[0]
    (True, 'rate(0) - rate(1) <= 0.2')
    """

    confidence: float
    certified: bool
    bounds: Array = field(repr=False)
    names: list[str] = field(repr=False)
    n_tested: int
    n_accepted: int
    n_held_out: int
    smallest: int
    rows_needed: int | None

    def warn(self) -> None:
        """Warn, with the numbers, if no candidate was accepted."""
        if self.n_accepted:
            return
        if self.rows_needed is None and self.smallest:
            warn(
                f"confidence={self.confidence:g}: no model other than constant decisions was found "
                "that could pass the test with more rows; the same class is predicted "
                f"for every row. Merge small groups, or {LOOSEN}.",
                ConstantDecisionWarning,
            )
            return
        rows = "" if self.rows_needed is None else f" (about {self.rows_needed} in all)"
        warn(
            f"confidence={self.confidence:g}: the {self.n_held_out} rows held out (the smallest "
            f"cell has {self.smallest}) are too few to show that a model other than constant "
            f"decisions meets the constraints; the same class is predicted for every row. "
            f"Use more rows{rows}, lower confidence, merge small groups, or {LOOSEN}.",
            ConstantDecisionWarning,
        )


def check_testable(constraints: Sequence[Constraint]) -> None:
    """Raise a ValueError with the reason if held-out rows cannot test the constraints."""
    for constraint in constraints:
        if constraint.cannot_be_tested:
            raise ValueError(
                "confidence is for constraints on rates of predictions (parity of selection, true "
                "positive, false positive and error rates, of groups with each other or with all "
                "rows, as differences or ratios; bounded error rates; equal or partly equal score "
                f"distributions); {constraint!r} is not one of them: "
                f"{constraint.cannot_be_tested}. Leave confidence at None."
            )


def search_with_confidence(
    task: DecisionTask | ThresholdTask, held_out: HeldOut, confidence: float
) -> tuple[DecisionSearch, Certificate]:
    r"""Return the most accurate model whose constraints hold with confidence, and the certificate.

    Candidates are found on the training rows, on lines of a few models, so that each is little
    nearer to the bound than the one before. They are tested on the held-out rows, those first that
    are safest on the training rows, each with error delta = 1 - confidence, up to the first that
    is rejected. A candidate is accepted if every statement is, by an exact test, see
    :class:`~fairconstrained.constraints.claims.Claim`. The probability that a candidate that
    violates a constraint is accepted is at most delta: the first of these in the order is accepted
    only if the test of the statement that is false errs, so that no correction for the number of
    candidates, of statements or of thresholds is needed. Constant predictions, whose rates are
    known, need no test. The statement is about the model that was tested. It is not fitted again to
    all rows: that would be another model, about which the test says nothing.

    Parameters
    ----------
    task : DecisionTask or ThresholdTask
        What the search on the training rows starts from.
    held_out : HeldOut
        The constraints on the held-out rows.
    confidence : float
        The probability with which the constraints are to hold for the population.

    References
    ----------
    Fixed-sequence testing: A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, "Learn then
    test" (2021), section 2.3; intersection-union tests: R. Berger, Technometrics 24 (1982).
    """
    problem, begin = task.problem, task.problem.passes
    delta, total = 1.0 - confidence, held_out.n_training + held_out.n_rows
    plain = task.search()
    accepted, tested, needed = [], 0, None
    if held_out.complete:
        margins = Margins(held_out, problem, plain.w, delta)
        for model in _safer_models(task, held_out, plain, margins, delta):
            tested += 1
            if not held_out.accepted(model.w, delta):
                break
            accepted.append(model)
        needed = margins.rows_needed(total) if plain.met and not plain.constant else None
    constant = plain.with_model(task.candidates().constant)
    best = max(accepted, key=lambda model: (model.met, model.accuracy), default=constant)
    if accepted:
        bounds = held_out.limits(best.w, delta)
    else:
        bounds = held_out.constants(problem.constraints[0], best.w)
    certificate = Certificate(
        confidence=confidence,
        certified=bool(np.all(at_most(bounds))),
        bounds=bounds,
        names=held_out.names,
        n_tested=tested,
        n_accepted=len(accepted),
        n_held_out=held_out.n_rows,
        smallest=held_out.smallest,
        rows_needed=needed,
    )
    passes = plain.data_passes_on_scores + problem.passes - begin
    return replace(best, data_passes=passes), certificate


class Margins:
    """How far below their bounds candidates are fitted, at the rates of a model w.

    The rates are those on the training rows. `delta` is the error of the test. Further constraints
    of the problem, without statements, have no margins.
    """

    def __init__(self, held_out: HeldOut, problem: Problem, w: Array, delta: float):
        parts, table = problem.constraints, [np.zeros((0, 3))]
        each = zip(parts, scores_of(parts, w), held_out.training, held_out.claims, strict=False)
        for part, scores, training, claims in each:
            rows = []
            for before, after in zip(training, claims, strict=True):
                claim, events = before.given(scores)
                deviation = claim.deviation(events)
                tested = deviation * after.deviation() / before.deviation()
                width, noise = norm.isf(delta) * tested, np.hypot(deviation, tested)
                rows.append((width, noise, claim.room(events)))
            if [claim.name for claim in training] != list(part.term.names):  # the widest for all
                width, noise, room = np.transpose(rows or [(0.0, 0.0, 0.0)])
                rows = [(width.max(), noise.max(), room.min())] * part.term.n_outputs
            table.append(np.reshape(rows, (-1, 3)))
        untested = problem.n_constraints - sum(map(len, table))  # limits of the search
        # Of every constraint: the distance between a gap found and the limit of the test, the
        # standard deviation of the gap on the held-out rows given that on the training rows, and
        # the distance between equal rates and the bound.
        self.width, self.noise, self.room = np.concatenate([*table, np.zeros((untested, 3))]).T

    def shifts(self, deviations: float) -> Array:
        """Return the margins at which each gap is accepted up to so many standard deviations.

        `deviations` is the normal quantile of the probability. It is raised for several groups.
        """
        several = max(0.5 * len(self.noise), 1.0)  # of two opposite constraints one is active
        quantile = norm.isf(norm.sf(deviations) / several)
        return np.minimum(self.width + quantile * self.noise, MAX_MARGIN * self.room)

    def rows_needed(self, n_rows: int) -> int | None:
        """Return about how many rows a model that is not constant would need, None if unknown."""
        asked = self.room > 0.0
        if not np.any(asked):
            return None
        wanted = (self.width + _SUFFICIENT * self.noise)[asked]
        ratio = float(np.max(wanted / (MAX_MARGIN * self.room[asked])))
        return int(np.ceil(n_rows * max(ratio**2, 1.0)))


def _safer_models(
    task: DecisionTask | ThresholdTask,
    held_out: HeldOut,
    plain: DecisionSearch,
    margins: Margins,
    delta: float,
) -> Iterator[DecisionSearch]:
    """Yield models whose decisions are below the bound, the safest on the training rows first.

    Before the first of them there are models between it and the constant one, whose rates vary
    less, where the limits on the training rows show that they are as safe.
    """
    shifts: list[Array] = []
    for deviations in _DEVIATIONS:
        shift = margins.shifts(deviations)
        if not shifts or not np.allclose(shift, shifts[-1], rtol=0.0, atol=1e-3):
            shifts.append(shift)
    search, error = task.candidates(), _SAFE * delta

    def risk(w: Array) -> float:
        return held_out.risk(task.problem, w, error)

    # A gap of few selected rows may be small by chance: the largest margin need not be the safest.
    models = [model for model in task.below(plain, shifts) if model.met and not model.constant]
    models.sort(key=lambda model: risk(model.w))
    if not models:
        return
    first, safe = models[0], risk(models[0].w)
    for model in search.towards_constant(search.evaluate(first.w), _SHARES):
        if risk(model.w) <= safe:
            yield plain.with_model(model)
    yield from models
