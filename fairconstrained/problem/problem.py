"""Problem: what is minimised, and the problems that solvers make of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.models.linear import Model
from fairconstrained.penalties import Proximity
from fairconstrained.problem.composite import NO_MODEL, CompositeFunction
from fairconstrained.problem.evaluation import KINDS, Evaluation
from fairconstrained.terms.base import Term, common_blocks
from fairconstrained.utils.arguments import every, joined
from fairconstrained.utils.arrays import Array, RandomState, by_first_row, joint_codes


@dataclass
class EvaluationCounter:
    """Counts the rows that forward passes have read, and those of each kind of function."""

    rows: float = 0.0
    functions: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))


_joined = partial(joined, "parts", kind=cached_property)  # a problem does not change


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The problem :math:`\min_{w \in W} f(w)` subject to :math:`g_j(w) \le 0`.

    Attributes
    ----------
    n_constraints : int
        The number m of constraints.
    smooth, smoothable : bool
        Whether all functions have continuous gradients; whether `smoothed` gives such ones.
    convex, weakly_convex : bool
        Whether all functions are convex (sufficient, not necessary); whether a quadratic can make
        them convex.
    difference_of_convex : bool
        Whether `convexify` can be called.
    batchable : bool
        Whether `batch` can be called.
    modulus : float
        A lower bound on the curvature of all functions, by power iterations on the data.
    whole_space : bool
        Whether the domain is the whole space.
    few_columns : bool
        Whether every model has at most 100 columns. L-BFGS then learns the curvature in tens of
        steps, also if steps are projected to a domain.
    few_columns_or_whole_space : bool
        Whether there are few columns or no domain.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.functions.losses import Logistic
    >>> from fairconstrained.models.linear import LinearModel
    >>> from fairconstrained.problem.composite import CompositeFunction
    >>> from fairconstrained.problem.problem import Problem
    >>> from fairconstrained.terms.cell_means import average
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([-1, 1, -1, 1])
    >>> model, weight = LinearModel(X), np.ones(4)
    >>> parity = DemographicParity(kappa=0.1).bind(y, np.array([0, 0, 1, 1]), weight)
    >>> problem = Problem(
    ...     CompositeFunction(model, average(Logistic(), y, weight)),
    ...     (CompositeFunction(model, parity),),
    ... )
    >>> at = problem.at(np.zeros(2))
    >>> round(at.objective, 4), at.constraints, at.violation
    (0.6931, array([-0.1, -0.1]), 0.0)
    """

    objective: CompositeFunction  # f, with one output
    constraints: tuple[CompositeFunction, ...] = ()  # the parts whose outputs are g_1, ..., g_m
    domain: Domain = field(default_factory=WholeSpace)  # w
    # the number of variables; by default the model's parameters and what the terms own
    n_variables: int = 0
    # counts the rows that evaluations read; problems made from this one share it
    counter: EvaluationCounter = field(default_factory=EvaluationCounter, repr=False)
    # the rows of the problem that this one is a batch of; 0 if it is not a batch
    full_rows: int = 0
    # makes its evaluation at a point
    kind: Callable[..., Evaluation] = field(default=Evaluation, repr=False)

    def __post_init__(self) -> None:
        """Count the variables when their number is not given."""
        if not self.n_variables:
            ends = [part.auxiliary.stop for part in self.parts]
            owned = [model.n_parameters for model in self.models]
            object.__setattr__(self, "n_variables", max(ends + owned))

    @cached_property
    def parts(self) -> tuple[CompositeFunction, ...]:
        """The objective, then the constraints."""
        return (self.objective, *self.constraints)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The distinct models of the parts: each makes one pass per evaluation."""
        models = dict.fromkeys(part.model for part in self.parts)
        return tuple(model for model in models if model is not NO_MODEL)

    @cached_property
    def places(self) -> list[slice]:
        """Where the outputs of every part of the constraints are among all."""
        ends = np.cumsum([0, *(part.n_outputs for part in self.constraints)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    @cached_property
    def function_rows(self) -> dict[str, int]:
        """How many rows the functions of each kind have; 1 if they have none."""
        others = sum(model.n_rows for model in {part.model for part in self.constraints})
        rows = max(self.objective.model.n_rows, 1), max(others, 1), max(others, 1)
        return dict(zip(KINDS, rows, strict=True))

    @cached_property
    def n_rows(self) -> int:
        """The rows that one pass over all the data reads."""
        return self.full_rows or sum(model.n_rows for model in self.models)

    @property
    def names(self) -> list[str]:
        """What each constraint says."""
        return [name for part in self.constraints for name in part.term.names]

    @property
    def passes(self) -> float:
        """The data passes made so far: one means that every row was read once."""
        return self.counter.rows / max(self.n_rows, 1)

    smooth = _joined("smooth")
    smoothable = _joined("smoothable")
    batchable = _joined("batchable")
    convex = _joined("convex")
    weakly_convex = _joined("weakly_convex")
    difference_of_convex = _joined("difference_of_convex")
    whole_space = every("domain.whole_space")
    few_columns = joined("models", "gram_is_cheap")
    few_columns_or_whole_space = property(lambda self: self.few_columns or self.whole_space)
    modulus = _joined("modulus", min)
    n_constraints = joined("constraints", "n_outputs", sum, cached_property)

    @cached_property
    def twice_differentiable(self) -> bool:
        """Whether Hessians are known and cost little, on the whole space: for Newton steps.

        That needs curved terms, all of one linear model, and quadratic penalties.
        """
        if len(self.models) != 1 or not self.whole_space:
            return False
        (model,) = self.models
        owned = sum(part.term.n_auxiliary for part in self.parts)
        known = all(part.term.curved and part.penalty.quadratic for part in self.parts)
        cheap = model.gram_is_cheap and (model.in_memory or not owned)
        return known and cheap and model.n_parameters + owned == self.n_variables

    @property
    def in_epigraph_form(self) -> bool:
        """Whether the objective is a level of the constraints, see :meth:`epigraph`."""
        return self.objective.model is NO_MODEL and self.n_constraints > 0

    @property
    def preconditioner(self) -> Array:
        """The typical sizes of the variables, shape (n_variables,): the models' own, else ones."""
        sizes = np.ones(self.n_variables)
        for model in self.models:
            sizes[: model.n_parameters] = model.preconditioner()
        return sizes

    def start(self, random_state: RandomState = 0) -> Array:
        """Return the point of the domain from which solvers start: the models' and the terms' own.

        The random state is for models whose start is drawn.
        """
        w = np.zeros(self.n_variables)
        source: np.random.RandomState = check_random_state(random_state)
        for model in self.models:
            w[: model.n_parameters] = model.start(source)
        for part in self.parts:
            w[part.auxiliary] = part.term.auxiliary_start
        return self.domain.project(w)

    def start_at(self, parameters: Array) -> Array:
        """Return a start with given parameters, and auxiliary variables that terms choose for them.

        See :meth:`~fairconstrained.terms.base.Term.auxiliary_for`; this counts no data passes. The
        parameters are the first variables; others that are not auxiliary keep their initial values.
        """
        w = self.start()
        w[: parameters.size] = parameters
        at = self.uncounted().at(w.copy())
        for part in self.parts:
            outputs = partial(at.model_pass(part.model).outputs, part)
            w[part.auxiliary] = part.term.auxiliary_for(outputs)
        return w

    def unit_shift(self) -> Array | None:
        """Return the change of the variables that adds 1 to all scores, and to thresholds on them.

        None if the model has none, see :meth:`~fairconstrained.models.linear.Model.offset`.
        """
        offset = self.objective.model.offset()
        if offset is None:
            return None
        direction = np.zeros(self.n_variables)
        direction[: len(offset)] = offset
        for part in self.constraints:
            direction[part.auxiliary] = 1.0
        return direction

    def at(self, w: Array, *, like: Evaluation | None = None) -> Evaluation:
        """Return the evaluation at `w`, (n_variables,).

        `like` is an evaluation, perhaps of another problem made from the same models. If it is at
        the same parameters, what it knows of models and terms that both problems have is used
        again, and the rows are not read again.
        """
        return self.kind(self, np.asarray(w, dtype=float), like=like)

    def uncounted(self) -> "Problem":
        """Return the same problem with a counter of its own, for measurements that do not count."""
        return replace(self, counter=EvaluationCounter())

    def with_constraints(self, constraints: Sequence[CompositeFunction]) -> "Problem":
        """Return the problem with other constraints."""
        return replace(self, constraints=tuple(constraints))

    def shifted(self, shifts: Array) -> "Problem":
        """Return the problem with g_j + shift_j in place of g_j, and the same gaps and names."""
        parts = zip(self.constraints, self.places, strict=True)
        return self.with_constraints([part.shifted(shifts[place]) for part, place in parts])

    def batch(self, *rows: Array, weights: Sequence[Array] | None = None) -> "Problem":
        """Return the problem on batches, its statistics unbiased estimates of the full ones.

        There is a batch of positions of rows for every model, in the order of `models`, else a
        ValueError. `weights` have, for every batch, one over the expected draws of each row in it;
        None stands for uniform draws.
        """
        if len(rows) != len(self.models):
            raise ValueError(f"batch: {len(self.models)} models need as many, got {len(rows)}.")
        if weights is None:
            sizes = zip(self.models, map(len, rows), strict=True)
            weights = [np.full(n, model.n_rows / n) for model, n in sizes]
        batches = zip(self.models, rows, weights, strict=True)
        drawn = {model: (model.batch(chosen), chosen, weight) for model, chosen, weight in batches}
        drawn[NO_MODEL] = NO_MODEL, np.zeros(0, int), np.zeros(0)

        def take(part: CompositeFunction) -> CompositeFunction:
            model, chosen, weight = drawn[part.model]
            return replace(part, model=model, term=part.term.take(chosen, weight))

        return replace(self._map(take), full_rows=self.n_rows)

    @property
    def _terms_by_model(self) -> list[list[Term]]:
        return [[part.term for part in self.parts if part.model is model] for model in self.models]

    def strata(self) -> list[Array]:
        """Return, for every model, codes of the cells of its rows, in the order of first rows."""
        codes = [joint_codes([term.strata() for term in terms]) for terms in self._terms_by_model]
        return [*map(by_first_row, codes)]

    def blocks(self) -> list[Array | None]:
        """Return, for every model, codes of the rows that batches must hold together, or None.

        Terms of the same rows with different blocks raise a ValueError.
        """
        return [common_blocks(terms) for terms in self._terms_by_model]

    def proximal(self, center: Array, rho: float, constraint_rho: float | None = None) -> "Problem":
        r"""Return IPC's subproblem: :math:`\tfrac{\rho}{2}\|w - c\|^2` added to every function (4).

        It is strongly convex where the strength rho exceeds minus the modulus. The constraints have
        `constraint_rho` if it is given.
        """
        near = Proximity(center, rho)
        other = near if constraint_rho is None else Proximity(center, constraint_rho)
        return self._map(lambda part: part.add(near if part is self.objective else other))

    def convexify(self, w: Array, *, like: Evaluation | None = None) -> "Problem":
        """Return IDCA's convex problem at `w`, which majorises this one and touches it there.

        It is that of equation (21) and algorithm 1. `like` is an evaluation at `w`, see :meth:`at`.
        """
        at = self.uncounted().at(w, like=like)
        return self._map(lambda part: part.convexify(at.w, at.scores_of(part)))

    def smoothed(self, width: float) -> "Problem":
        """Return the problem with all kinks rounded over `width`, smooth if it is `smoothable`.

        The width is in the units of the scores for losses and surrogates, of the weights for
        penalties; see :class:`~fairconstrained.functions.base.Rounded`.
        """
        return self._map(lambda part: part.smoothed(width))

    def epigraph(self, bound: float | None = None) -> "Problem":
        r"""Return the epigraph problem: the least unfairness subject to the loss.

        .. math::
            \min_{w, t} t \quad \text{s.t.} \quad g_j(w) \le t, \quad f(w) \le \text{bound}.

        The new variable t comes last; 0 stands for "all constraints hold". Without a bound on the
        objective it is the problem of finding a feasible point (3S-Econ, Problem 1; IPC, Remark 1).
        """
        n = self.n_variables
        constraints = [part.widened(n, -1.0) for part in self.constraints]
        if bound is not None:
            constraints.append(self.objective.widened(n, 0.0).shifted(-bound))
        level, domain = CompositeFunction(slope=np.eye(n + 1)[n]), LeadingDomain(self.domain, n)
        wider = replace(self, objective=level, domain=domain, n_variables=n + 1)
        return wider.with_constraints(constraints)

    def _map(self, change: Callable[[CompositeFunction], CompositeFunction]) -> "Problem":
        objective, *constraints = (change(part) for part in self.parts)
        return replace(self, objective=objective, constraints=tuple(constraints))
