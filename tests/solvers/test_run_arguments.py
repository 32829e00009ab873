"""Arguments of `minimize` and of functions on problems that are not valid."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, toy_of_ipc

from fairconstrained.solvers import IPC, AugmentedLagrangian, near_stationarity

PROBLEM = PROBLEMS["demographic parity"]()
N = PROBLEM.n_variables
POINTS = ["a", 3.0, [], np.zeros(N + 1), np.zeros(N - 1), np.zeros((N, N)), np.full(N, np.nan)]
NUMBERS = ["a", float("nan"), -1.0, [0.1], True, 1j]


@pytest.mark.parametrize("w0", POINTS)
def test_first_points(w0) -> None:
    with pytest.raises(ValueError, match="w0 must have a finite number for each of the"):
        AugmentedLagrangian().minimize(PROBLEM, w0)


def test_warm_starts() -> None:
    with pytest.raises(
        TypeError, match=r"'warm' parameter of minimize must be an instance of .*Result"
    ):
        AugmentedLagrangian().minimize(PROBLEM, warm=np.zeros(N))  # type: ignore[arg-type]
    other = toy_of_ipc()
    assert other.n_variables != N
    with pytest.raises(ValueError, match=r"warm\.w must have"):
        AugmentedLagrangian().minimize(PROBLEM, warm=AugmentedLagrangian().minimize(other))


@pytest.mark.parametrize("argument", ["tol", "max_data_passes"])
@pytest.mark.parametrize("value", NUMBERS)
def test_numbers(argument, value) -> None:
    with pytest.raises(ValueError, match=f"'{argument}' parameter of minimize must be a float"):
        AugmentedLagrangian().minimize(PROBLEM, **{argument: value})


def test_callbacks_and_seeds() -> None:
    with pytest.raises(TypeError, match="'callback' parameter of minimize must be a callable"):
        AugmentedLagrangian().minimize(PROBLEM, callback=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'random_state' parameter of minimize must be"):
        AugmentedLagrangian().minimize(PROBLEM, random_state="a")  # type: ignore[arg-type]


@pytest.mark.parametrize("w", POINTS)
def test_points_whose_stationarity_is_measured(w) -> None:
    with pytest.raises(ValueError, match="w must have a finite number"):
        near_stationarity(PROBLEM, w)


@pytest.mark.parametrize("value", [*NUMBERS, 0.0])
def test_proximal_parameters(value) -> None:
    with pytest.raises(ValueError, match="'rho' parameter of near_stationarity must be a float"):
        near_stationarity(PROBLEM, np.zeros(N), value)


@pytest.mark.parametrize("value", [one for one in NUMBERS if one is not None])
def test_proximal_parameters_of_the_constraints(value) -> None:
    with pytest.raises(
        ValueError, match="'constraint_rho' parameter of near_stationarity must be a float"
    ):
        near_stationarity(PROBLEM, np.zeros(N), constraint_rho=value)


def test_the_solver_of_the_proximal_subproblem_is_an_instance() -> None:
    with pytest.raises(
        TypeError, match="'solver' parameter of near_stationarity must be an instance"
    ):
        near_stationarity(PROBLEM, np.zeros(N), solver=IPC)  # type: ignore[arg-type]
