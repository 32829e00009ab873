"""The forward passes of an evaluation: one per model, made when first needed and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.passes import ModelPass, TermPass, forward_pass
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem


@dataclass
class EvaluationCounter:
    """Counts the rows that forward passes have read."""

    rows: float = 0.0

    def count(self, n_rows: int) -> None:
        """Count a read of some rows."""
        self.rows += n_rows


class ForwardPasses:
    """The passes over the rows of a problem's models at a point, and over those of its terms.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    like : ForwardPasses or None, default=None
        Passes, perhaps of another problem, which are shared where the models' parameters are the
        same.

    Attributes
    ----------
    models : list of ModelPass
        The passes made so far; the same list for all that share them.
    terms : list of TermPass
        The terms' passes made so far.
    with_zero_one : bool
        Whether zero-one versions are computed where the rows are read.
    """

    def __init__(self, problem: Problem, w: Array, *, like: ForwardPasses | None = None):
        self.problem, self.w = problem, w
        known = like if like is not None and like._has_parameters_of(self) else None
        self.models: list[ModelPass] = [] if known is None else known.models
        self.terms: list[TermPass] = [] if known is None else [*known.terms]
        self.with_zero_one = False
        self._found: dict[tuple[int, int, int], TermPass] = {}  # for models and terms kept in it

    def _has_parameters_of(self, other: ForwardPasses) -> bool:
        """Return whether the models of another problem have the same parameters here."""
        n = max((model.n_parameters for model in other.problem.models), default=0)
        return self.w.size >= n and same_values(self.w[:n], other.w[:n])

    def model(self, model: Model) -> ModelPass:
        """Return the pass of a model."""
        for known in self.models:
            if known.model is model:
                return known
        self.problem.counter.rows += model.n_rows
        self.models.append(forward_pass(model, self.w[: model.n_parameters]))
        return self.models[-1]

    def term(self, part: CompositeFunction) -> TermPass:
        """Return the pass of a part's term."""
        key = id(part.model), id(part.term), part.auxiliary.start
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._known(part) or self._made(part)
        return found

    def _known(self, part: CompositeFunction) -> TermPass | None:
        """Return the pass of a part's term if it was made."""
        assert part.term is not None and part.model is not None
        model_pass, auxiliary = self.model(part.model), self.w[part.auxiliary]
        for one in self.terms:
            if one.is_of(model_pass, part.term, auxiliary):
                return one
        return None

    def _made(self, part: CompositeFunction) -> TermPass:
        """Return a new pass of a part's term."""
        assert part.term is not None and part.model is not None
        model_pass, needed = self.model(part.model), [part]
        if model_pass.at_once:
            others = [*self.problem.parts]
            if self.with_zero_one:
                others += [one.zero_one() for one in self.problem.constraints]
            for one in others:
                new = one.model is part.model and all(one.term is not k.term for k in needed)
                if new and one.term is not None and self._known(one) is None:
                    needed.append(one)
        asked = [(one.term, self.w[one.auxiliary]) for one in needed if one.term is not None]
        made = model_pass.terms(asked)
        self.terms += made
        return made[0]
