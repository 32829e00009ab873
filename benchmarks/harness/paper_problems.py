"""The problems of the papers' experiments E1 to E6, in the forms that their lines need.

E1 and E2 are IPC's (section 5; the loan data are not distributed with this library), E3 to E5 the
Problems 1 to 3 of 3S-Econ, E6 is PLADA's. The paper's features of COMPAS are not named, so that
only figures on a9a compare.
"""

import os
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from benchmarks.harness.data import Data, encode, parts, signs
from benchmarks.harness.swapped import swapped
from fairconstrained.constraints import DemographicParity, EqualizedOdds, MinorityRate, ROCParity
from fairconstrained.datasets import fetch_a9a, fetch_bank, fetch_compas
from fairconstrained.domains import Blocks, Box, L1Ball, L2Ball, WholeSpace
from fairconstrained.domains import Leading as LeadingOf
from fairconstrained.functions.losses import Hinge, Logistic, Loss, TruncatedLogistic
from fairconstrained.functions.surrogates import Sigmoid, Stretched
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import SCAD, Leading, Penalty, Proximity
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Smoothing, Solver, default_solver
from fairconstrained.terms.cell_means import average
from fairconstrained.terms.classes import class_losses
from fairconstrained.utils.arrays import Array

SVIO_TOL = 1e-4  # of the subproblem of near-stationarity


@dataclass(frozen=True)
class Setup:
    """A problem of a paper.

    Attributes
    ----------
    problem : Problem
        In the paper's form.
    start : ndarray
        Where the paper starts.
    rho : float
        The constant of near-stationarity, and half of rho^ of the proximal methods.
    epigraph : Problem or None
        The problem for the library's default, where the paper's objective is a maximum: its level
        is a last variable.
    remark : str
        What the page says about the problem.
    constraint_rho : float or None
        The constant of near-stationarity for the constraints; None is `rho`.
    """

    problem: Problem
    start: Array
    rho: float
    epigraph: Problem | None = None
    remark: str = ""
    constraint_rho: float | None = None

    def default(self) -> tuple[Problem, Array]:
        """Return the problem for the library's default, and its start."""
        if self.epigraph is None:
            return self.problem, self.start
        return self.epigraph, self._lifted(self.start)

    def _lifted(self, w: Array) -> Array:
        return np.append(w, self.problem.uncounted().at(w).objective)

    def near_stationarity(self, w: Array, tol: float) -> float:
        """Return SVio at a point: the distance to the solution of its proximal subproblem.

        Returns
        -------
        distance : float
            It is nan if the subproblem is not solved to the tolerance.
        """
        rho, constraint_rho = 2.0 * self.rho, self.constraint_rho
        if self.epigraph is None:
            bound = None if constraint_rho is None else 2.0 * constraint_rho
            near, start = self.problem.uncounted().proximal(w, rho, bound), w
        else:
            assert constraint_rho == 0.0
            near, start = self.epigraph.uncounted(), self._lifted(w)
            near = replace(near, objective=near.objective.add(Leading(Proximity(w, rho), w.size)))
        nearest = solver_for(near).minimize(near, start, tol=tol, random_state=0)
        return float(np.linalg.norm(nearest.w[: w.size] - w)) if nearest.converged else np.nan


def solver_for(problem: Problem) -> Solver:
    """Return the library's default, which gets a problem with rounded kinks where it needs to."""
    solver = default_solver(problem)
    return Smoothing() if solver.missing(problem) else solver


def minimized(solver: Solver, problem: Problem, start: Array, passes: float) -> Result:
    """Return the result of a run; how runs that are cut short or diverge end is in the table."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return solver.minimize(problem.uncounted(), start, max_data_passes=passes, random_state=0)


class QuadraticForm(Penalty):
    """The function w' diag(d) w / 2 + offset: E1, and the ball of E3 as a constraint."""

    diagonal: Array
    offset: float = 0.0

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether no curvature is negative."""
        return self.modulus >= 0.0

    @property
    def modulus(self) -> float:
        """The least curvature."""
        return float(np.min(self.diagonal))

    def value(self, w: Array) -> float:
        """Return the value."""
        return float(0.5 * w @ (self.diagonal * w)) + self.offset

    def gradient(self, w: Array) -> Array:
        """Return the gradient."""
        return self.diagonal * w


def _mean_squares(groups: Array, X) -> list[float]:
    """Return the groups' mean squared norms: the paper's rho is their sum or their maximum."""
    squares = np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X * X).sum(1)).ravel()
    return [float(squares[groups == g].mean()) for g in np.unique(groups)]


def _scores(X, **options) -> LinearModel:
    return LinearModel(X, fit_intercept=False, **options)


def _mean_loss(loss: Loss, X, y: Array, *penalty: Penalty) -> CompositeFunction:
    return CompositeFunction(_scores(X), average(loss, signs(y), np.ones(len(y))), *penalty)


def simple_example(small: bool) -> Setup:
    """Return E1; the paper's modulus is 5."""
    objective = CompositeFunction(penalty=QuadraticForm(np.array([10.0, -1.0])))
    rule = CompositeFunction(penalty=QuadraticForm(np.array([50.0, -5.0]), -10.0))
    problem = Problem(objective, (rule,), L1Ball(1.0), n_variables=2)
    return Setup(problem, np.array([0.0, 0.5]), 5.0)


def _halves_of_bank() -> tuple[Array, Array, Array, Array]:
    """Return D and S, random halves of Bank with 81 columns, and who is single in S."""
    data = fetch_bank()
    columns = encode(data.data.assign(day=data.data["day"].astype("category")))
    assert columns.shape[1] == 81
    single = (data.sensitive_features["marital"] == "single").to_numpy()
    arrays = columns, data.target.to_numpy(), single
    X, Z, y, _, _, minority = train_test_split(*arrays, test_size=0.5, random_state=0)
    return X, y, Z, minority


def minority(data: str, c: float, small: bool) -> Setup:
    r"""Return E2; the rows of the constraint, S, are not those of the loss, D.

    .. math::
        \min_{\|w\|_1 \le 20} \frac{1}{|D|} \sum_{i \in D} \phi_2(\ell(y_i w^\top x_i))
        \quad \text{s.t.} \quad
        \frac{1}{|S|} \Big(c \sum_{i \in S} \sigma(w^\top x_i)
        - \sum_{i \in S_{\min}} \sigma(w^\top x_i)\Big) \le 0,

    c being the minority's least share of the positive decisions.
    """
    if data == "bank":
        X, y, Z, members = _halves_of_bank()
    else:
        (X, y, _), (Z, _, sex) = parts(data)
        members = sex == "Female"
    rule = MinorityRate(c, minority=True).bind(None, members, np.ones(len(members)))
    rate = CompositeFunction(_scores(Z), rule)
    problem = Problem(_mean_loss(TruncatedLogistic(), X, y), (rate,), L1Ball(20.0))
    start = problem.domain.project(np.ones(problem.n_variables))
    return Setup(problem, start, 0.5 * 10**-2.5)


INCREASE, RADII, THRESHOLDS = 0.001, 5.0, 400  # of the loss; of the norm of x*
STEPS = 20_000  # by which x* is reached


@cache
def hinge_loss(data: str) -> CompositeFunction:
    """Return the loss of E3."""
    (X, y, _), _ = parts(data)
    return _mean_loss(Hinge(), X, y)


@cache
def least_loss(data: str) -> tuple[Array, float]:
    """Return x* and the least hinge loss."""
    best = Smoothing(tol=3e-5).minimize(Problem(hinge_loss(data)))
    return best.w, best.objective


def sampled_loss(data: str, seed: int = 0) -> tuple[Array, float]:
    """Return the last point of the paper's stochastic subgradient steps, and its hinge loss.

    The paper takes x* and the bound from "a stochastic subgradient method" with its own steps on
    batches of sqrt(N) rows, 1 / (100 ceil(sqrt(k / sqrt(N)))), and "a large number" of them. 20,000
    are a choice of ours: on a9a the loss is then 3.9% above the least one; more leave less room.
    """
    (X, y, _), _ = parts(data)
    rows, labels, draw = sp.csr_array(X), signs(y), np.random.RandomState(seed)
    w, size = np.zeros(rows.shape[1]), int(np.ceil(np.sqrt(len(labels))))
    for k in range(1, STEPS + 1):
        some = draw.randint(len(labels), size=size)
        batch, signed = rows[some], labels[some]
        inside = signed * (signed * (batch @ w) < 1.0)
        w += batch.T @ inside / (size * 100.0 * np.ceil(np.sqrt(k / size)))
    return w, Problem(hinge_loss(data)).at(w).objective


def roc(data: str, exact: bool, small: bool) -> Setup:
    r"""Return E3 with x* as the exact minimiser or by the paper's stochastic steps.

    .. math::
        \min_{\|x\| \le 5 \|x^*\|} \max_\theta \Big|\frac1{n_p} \sum_p \sigma(x^\top a_i - \theta)
        - \frac1{n_u} \sum_u \sigma(x^\top a_i - \theta)\Big|
        \quad\text{s.t.}\quad \Phi(x) \le 1.001\, \Phi(x^*),

    Phi the hinge loss on two thirds of the rows, the groups p and u in the other third. In the form
    for the library's default the ball is a constraint, since quasi-Newton steps need all space.
    """
    best, loss = (least_loss if exact else sampled_loss)(data)
    _, (X, y, groups) = parts(data)
    objective = hinge_loss(data)
    scores = objective.model.scores(best)
    low, high = scores.min(), scores.max()
    half = 0.5 * (high - low)
    grid = np.linspace(low - half, high + half, 100 if small else THRESHOLDS)
    parity = ROCParity(0.0, thresholds=grid).bind(y, groups, np.ones(len(groups)))
    radius = RADII * float(np.linalg.norm(best))
    problem = Problem(objective, (CompositeFunction(_scores(X), parity),), L2Ball(radius))
    bound = (1.0 + INCREASE) * loss
    epigraph = replace(problem, domain=WholeSpace()).epigraph(bound)
    ball = Leading(QuadraticForm(np.full(best.size, radius**-2), -0.5), best.size)
    rules = [*epigraph.constraints, CompositeFunction(penalty=ball)]
    rho, default = sum(_mean_squares(groups, X)), epigraph.with_constraints(rules)
    remark = f"x* has a hinge loss {loss / least_loss(data)[1] - 1.0:.2%} above the least"
    return Setup(swapped(problem, bound), best, rho, default, remark, constraint_rho=0.0)


def scad(data: str, small: bool) -> Setup:
    r"""Return E4, 3S-Econ's Problem 2 (equation 42).

    .. math::
        \min_{\|w\|_\infty \le 5} \frac1n \sum_{i \in D} [1 - b_i w^\top a_i]_+ + 0.02\,
        \mathrm{SCAD}(w) \quad\text{s.t.}\quad \Big|\frac1{n_p} \sum_p \sigma(w^\top a_i)
        - \frac1{n_u} \sum_u \sigma(w^\top a_i)\Big| \le 0.02,

    sigma the sigmoid, without intercept; D is two thirds of the rows, the groups p and u are in the
    other third. The absolute value is two constraints.
    """
    (X, y, _), (Z, labels, groups) = parts(data)
    parity = DemographicParity(0.02).bind(labels, groups, np.ones(len(groups)))
    rule = CompositeFunction(_scores(Z), parity)
    problem = Problem(_mean_loss(Hinge(), X, y, SCAD(0.02)), (rule,), Box(-5.0, 5.0))
    return Setup(problem, problem.start(), sum(_mean_squares(groups, Z)))


def mnist(n_rows: int | None = None, part: str = "train") -> tuple[Array, Array]:
    """Return images as rows of numbers in [0, 1] (float32), and digits; 1 comes first, 0 last.

    The paper's class i holds the digit i mod 10, so that the priority class is the digit 1.
    """
    with np.load(Path(os.environ["FAIRCONSTRAINED_DATA"]) / "mnist.npz") as file:
        images, digits = file[f"x_{part}"][:n_rows], file[f"y_{part}"][:n_rows].astype(int)
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255.0), (digits - 1) % 10


def digits(small: bool) -> Setup:
    """Return E5, 3S-Econ's Problem 3: no intercepts, a ball of radius 0.3 for each digit.

    As in its equation (3), the sums are over the classes without priority, hence 0, where it is
    started, is strictly feasible: the loss of a class is then 8 / 2 - 4.5 = -0.5.
    """
    X, labels = mnist(3000 if small else None)
    function, weight, others = Stretched(Sigmoid()), np.ones(len(labels)), list(range(1, 10))
    names = [f"loss of {(k + 1) % 10}" for k in others]
    limits = [4.5] * len(others)
    loss = class_losses(function, labels, weight, [0], [0.0], ["loss of 1"], left_out=[0])
    rules = class_losses(function, labels, weight, others, limits, names, left_out=[0])
    model = _scores(X, n_outputs=10)
    domain = LeadingOf(Blocks(L2Ball(0.3), 10), model.n_coefficients)
    problem = Problem(CompositeFunction(model, loss), (CompositeFunction(model, rules),), domain)
    return Setup(problem, problem.start(), max(_mean_squares(labels, X)))


@cache
def raw_columns(data: str) -> Data:
    """Return the columns of E6, of which the paper prints the number only, labels and groups.

    Adult: the 123 of a9a. COMPAS: 16, the numbers as they are, and the levels. Bank: 54, numbers in
    [0, 1] (as they are, PLADA's printed step diverges), the levels but the first of each, and the
    group.
    """
    if data == "adult":
        bunch = fetch_a9a(subset="all")
        return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)
    bunch = fetch_compas() if data == "compas" else fetch_bank(version="additional")
    sensitive, y = bunch.sensitive_features, bunch.target.to_numpy()
    if data == "compas":
        groups = (sensitive["race"] == "Caucasian").to_numpy()
        return encode(bunch.data, "passthrough", "if_binary"), y, groups
    groups = (sensitive["age"] == "25-60").to_numpy()
    return np.column_stack([encode(bunch.data, MinMaxScaler(), "first"), groups]), y, groups


def classification(data: str, notion: str, small: bool) -> Setup:
    r"""Return E6, PLADA's problem (16) with (15) or (17), without penalty and intercept.

    .. math::
        \min_w \frac1N \sum_i \log(1 + e^{-y_i w^\top x_i}) \quad\text{s.t.}\quad
        \hat\Delta(w) \le \epsilon,

    epsilon being 0.02 (demographic parity) and 0.05 (equalized odds), which the paper does not
    print. An absolute value is two constraints.
    """
    X, y, groups = raw_columns(data)
    constraint = DemographicParity(0.02) if notion == "DP" else EqualizedOdds(0.05)
    loss = _mean_loss(Logistic(), X, y)
    rule = CompositeFunction(loss.model, constraint.bind(y, groups, np.ones(len(y))))
    problem = Problem(loss, (rule,))
    return Setup(problem, np.zeros(problem.n_variables), 1.0)
