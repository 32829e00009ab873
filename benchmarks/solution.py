"""The default solver's answers against SciPy's SLSQP, both measured by NumPy formulas.

Every measure is computed on `coef_` and `intercept_` without the library. SLSQP starts from 0 and
from our answer plus noise; the better feasible answer is the reference.
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from benchmarks.harness.fits import ALPHA, add_grid, fit, grid, rows_of, where
from benchmarks.harness.slsqp import PlainProblem
from benchmarks.harness.tables import Row, at_most, write_table

add_options = add_grid


def run(options: Namespace) -> None:
    """Write solution.md and solution.csv."""
    X, y, sex = rows_of(options)
    rows: list[Row] = []
    for constraint, kappa in grid(options):
        clf = fit(X, y, sex, constraint, kappa)
        ours = np.append(clf.coef_[0], clf.intercept_)
        plain = PlainProblem(X, y, sex, constraint, kappa, ALPHA)
        best, start = plain.reference(ours)
        relative = plain.objective(ours) / plain.objective(best) - 1.0
        violation = plain.violation(ours)
        worst = max(violation, clf.kkt_residual_, abs(relative))
        rows.append(
            {
                "constraint": constraint,
                "kappa": kappa,
                "status": clf.result_.status.value,
                "violation": violation,
                "KKT (library)": clf.kkt_residual_,
                "stationarity (NumPy)": plain.stationarity(ours),
                "objective": plain.objective(ours),
                "reported - NumPy's": clf.objective_ - plain.objective(ours),
                "relative to SLSQP": relative,
                "SLSQP from": start,
                "SLSQP violation": plain.violation(best),
                "SLSQP stationarity": plain.stationarity(best),
                "decision gap": plain.decision_gap(ours),
                "all <= 1e-4": at_most(worst if clf.result_.converged else np.inf, 1e-4),
            }
        )
    write_table(rows, "solution", f"{where(options)}: solutions against SLSQP", options.out)
