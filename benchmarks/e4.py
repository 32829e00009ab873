"""E4 (3S-Econ, Problem 2): hinge loss and SCAD under demographic parity on rows of its own.

python benchmarks/e4.py [a9a|compas ...]      # 3S-Econ-D and -S next to the published figures
"""

from __future__ import annotations

import sys
import time

import common  # noqa: F401  (puts the repository on the path)
import numpy as np
from real_problems import encode
from sklearn.model_selection import train_test_split

from fairconstrained import DemographicParity
from fairconstrained.cells import average
from fairconstrained.datasets import fetch_a9a, fetch_compas
from fairconstrained.domains import Box
from fairconstrained.losses import Hinge
from fairconstrained.models import LinearModel
from fairconstrained.penalties import SCAD
from fairconstrained.problem import Part, Problem
from fairconstrained.solvers.three_s_econ import ThreeSEcon

KAPPA, STRENGTH, BOUND = 0.02, 0.02, 5.0


def _a9a():
    """Return the two parts of a9a: the published files have 32,561 and 16,281 rows, 2 to 1."""
    parts = [fetch_a9a(subset=subset) for subset in ("train", "test")]
    return [(p.data, p.target.to_numpy(), p.sensitive_features.to_numpy()) for p in parts]


def _compas():
    """Return a random 2:1 split of COMPAS, Caucasian against all others.

    The paper's 16 features are not named, and its objective of 0.204 is out of reach of the
    features that are known before the outcome: the published figure cannot be compared with.
    """
    data = fetch_compas()
    caucasian = (data.sensitive_features["race"] == "Caucasian").to_numpy()
    X = np.column_stack([encode(data.data), np.ones(len(caucasian))])
    parts = train_test_split(X, data.target.to_numpy(), caucasian, test_size=1 / 3, random_state=0)
    return [parts[::2], parts[1::2]]


PARTS = {"a9a": _a9a, "compas": _compas}


def e4_problem(data: str) -> Problem:
    r"""Return 3S-Econ's Problem 2 (equation 42), to be started at 0.

    .. math::
        \min_{\|w\|_\infty \le 5} \frac1n \sum_{i \in D} [1 - b_i w^\top a_i]_+ + 0.02\,
        \mathrm{SCAD}(w) \quad\text{s.t.}\quad \Big|\frac1{n_p} \sum_p \sigma(w^\top a_i)
        - \frac1{n_u} \sum_u \sigma(w^\top a_i)\Big| \le 0.02,

    sigma the sigmoid, without intercept; D is two thirds of the rows, the groups p and u are in the
    other third. The absolute value is two constraints.

    Parameters
    ----------
    data : {"a9a", "compas"}
        The data set.
    """
    (X, y, _), (X_fair, y_fair, groups) = PARTS[data]()
    signs = np.where(y == np.max(y), 1.0, -1.0)
    loss = average(Hinge(), signs, np.ones(len(signs)))
    parity = DemographicParity(KAPPA).bind(y_fair, groups, np.ones(len(groups)))
    return Problem(
        Part(LinearModel(X, fit_intercept=False), loss, SCAD(STRENGTH)),
        (Part(LinearModel(X_fair, fit_intercept=False), parity),),
        Box(-BOUND, BOUND),
    )


# 3S-Econ's Table 2: objective and passes over g; on COMPAS with other features than ours.
PUBLISHED = {
    ("a9a", "3S-Econ-D"): (0.505, 4.2e4),
    ("a9a", "3S-Econ-S"): (0.510, 110.0),
    ("compas", "3S-Econ-D"): (0.204, 3.07e5),
    ("compas", "3S-Econ-S"): (0.206, 4.35e3),
}
OURS = {"3S-Econ-D": ThreeSEcon(), "3S-Econ-S": ThreeSEcon.stochastic()}


def run(data: str) -> None:
    """Print how soon the published objective is reached with no violation, and where we end."""
    for name, solver in OURS.items():
        clock = time.process_time()
        result = solver.minimize(e4_problem(data), random_state=0)
        seconds = time.process_time() - clock
        objective, passes = PUBLISHED[data, name]
        trace = result.trace.to_frame().query("violation == 0 and objective <= @objective")
        reached = f"{trace.data_passes.iloc[0]:.0f} passes" if len(trace) else "not reached"
        print(
            f"{data} {name}: objective {objective} by {reached} (published: {passes:g}); "
            f"{result.objective:.4f}, violation {result.violation:.1e} after "
            f"{result.data_passes:.0f} passes, {seconds:.1f} s of CPU"
        )


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PARTS:
        run(chosen)
