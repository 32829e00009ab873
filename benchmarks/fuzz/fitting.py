"""Fits as a user would make them, with all that they show: warnings, errors, seconds."""

import time
import traceback
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import fairconstrained
from benchmarks.fuzz.data import Array, Data, DataSpec, make
from benchmarks.fuzz.formulas import mean_loss, penalty
from benchmarks.fuzz.rates import Measured, NotMeasured, Rows, measures
from benchmarks.fuzz.settings import as_objects, draw
from benchmarks.harness.processes import OverBudget, limited
from fairconstrained.dask import estimators
from fairconstrained.solvers import Status

CPU_SECONDS = 60.0
CHUNK = 97  # rows of a partition of a dask collection


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator's name, its settings other than the defaults, its data, and where it is from."""

    estimator: str
    settings: dict[str, Any]
    data: DataSpec
    seed: int = 0
    index: int = 0

    @classmethod
    def of(cls, seed: int, index: int) -> "Case":
        """Return the case with a seed and an index."""
        return cls(*draw(np.random.default_rng([seed, index]), index), seed, index)

    @property
    def solver(self) -> str:
        """The solver's name."""
        return str(self.settings.get("solver", "auto"))

    @property
    def kind(self) -> str:
        """The estimator, or "several classes": cases of a kind have the same checks."""
        several = self.data.n_classes > 2 and self.estimator == "FairLogisticClassifier"
        return "several classes" if several else self.estimator

    def __str__(self) -> str:
        """Return the command that runs the case again, and what it is."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        command = f"python -m benchmarks fuzz --reproduce {self.seed}:{self.index}"
        return f"{command}\n{self.estimator}({settings})\n{self.data!r}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a fit showed.

    `error` is None for a fit that returned; `caught` are its warnings; `scores` are those of
    `decision_function` on the training rows.
    """

    case: Case
    estimator: Any
    data: Data
    error: BaseException | None = None
    caught: tuple[warnings.WarningMessage, ...] = ()
    seconds: float = 0.0
    scores: Any = None
    probabilities: Any = None

    def warned_of(self, *names: str) -> bool:
        """Return whether there was a warning of one of the classes, given by name."""
        return any(warning.category.__name__ in names for warning in self.caught)

    @property
    def trace(self) -> str:
        """Where the error was raised."""
        return "".join(traceback.format_exception(self.error))

    @property
    def result(self) -> Any:
        """The estimator's result."""
        return self.estimator.result_

    @property
    def status(self) -> str:
        """How the solver ended."""
        return str(self.result.status.value)

    @property
    def cut_short(self) -> bool:
        """Whether the user's `max_iter` ended the run: it is what was reached, and says so."""
        limited = self.estimator.max_iter is not None
        return limited and self.status == Status.ITERATION_LIMIT.value

    @property
    def constraints(self) -> list[Any]:
        """The constraints as objects."""
        return as_objects(self.estimator.constraint)


def queries(data: Data) -> Array:
    """Return a query of every row: about twenty rows have the same one."""
    n = len(data.positions)
    return np.random.default_rng(data.spec.seed + 2).integers(max(2, n // 20), size=n)


def collection(values: Any) -> Any:
    """Return a dask array, or for pandas objects a dask dataframe."""
    import dask.array as da
    import dask.dataframe as dd

    estimators.MOST_COLLECTED = 0  # rows stay in partitions, as those of larger collections do
    if isinstance(values, pd.DataFrame | pd.Series):
        return dd.from_pandas(values, chunksize=CHUNK, sort=False)
    values = np.asarray(values)
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def arguments(case: Case, data: Data) -> dict[str, Any]:
    """Return the arguments of fit beside X and y."""
    given: dict[str, Any] = {"sample_weight": data.weight}
    if data.groups is not None and case.estimator != "NeymanPearsonClassifier":
        given["sensitive_features"] = data.groups
    if case.estimator == "FairRanker":
        given["query"] = queries(data)
    return given


def fitted(case: Case, data: Data) -> Any:
    """Return the estimator or the path of a case, fitted."""
    given, settings = arguments(case, data), dict(case.settings)
    if data.sensitive_columns is not None:
        settings["sensitive_columns"] = data.sensitive_columns
    if case.estimator in ("fairness_path", "find_alternatives"):
        estimator = fairconstrained.FairLogisticClassifier(**case.settings)
        n_kappas = 6 if case.estimator == "fairness_path" else 2
        search = getattr(fairconstrained, case.estimator)
        return search(estimator, data.X, data.y, n_kappas=n_kappas, **given)
    if case.estimator == "FairThresholds":
        base = clone(settings["estimator"])
        settings["estimator"] = base.fit(data.X, data.y, sample_weight=data.weight)
    module, _, name = f"fairconstrained.{case.estimator}".rpartition(".")
    estimator = getattr(import_module(module), name)(**settings)
    if module.endswith("dask"):
        collected = {key: collection(each) for key, each in given.items() if each is not None}
        return estimator.fit(collection(data.X), collection(data.y), **collected)
    return estimator.fit(data.X, data.y, **given)


def outputs(case: Case, estimator: Any, data: Data) -> tuple[Any, Any]:
    """Return the scores, and probabilities where there are some.

    For thresholds the scores are 1 for rows that get the favourable label, else -1.
    """
    match case.estimator:
        case "fairness_path" | "find_alternatives":
            return None, None
        case "FairRanker":
            return np.asarray(estimator.predict(data.X)), None
        case "FairThresholds":
            groups = {"sensitive_features": data.groups} if estimator.per_group else {}
            chosen = estimator.predict(data.X, **groups) == estimator.pos_label_
            return np.where(chosen, 1.0, -1.0), None
        case "dask.FairLogisticClassifier":
            return np.asarray(estimator.decision_function(collection(data.X)).compute()), None
    chances = estimator.predict_proba(data.X) if hasattr(estimator, "predict_proba") else None
    return estimator.decision_function(data.X), chances


def run(case: Case, data: Data | None = None) -> Outcome:
    """Fit a case and return what the fit showed."""
    data = make(case.data) if data is None else data
    start = time.process_time()
    estimator, error, given = None, None, (None, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited(CPU_SECONDS):
                estimator = fitted(case, data)
                given = outputs(case, estimator, data)
        except (Exception, OverBudget) as raised:
            error = raised
    seconds = time.process_time() - start
    return Outcome(case, estimator, data, error, tuple(caught), seconds, *given)


def rows_of(outcome: Outcome, favourable: int = 1) -> tuple[Rows, Array]:
    """Return the rows of positive weight as the constraints see them, and where they are."""
    data, estimator = outcome.data, outcome.estimator
    held = getattr(estimator, "holdout_indices_", None)
    counted = np.flatnonzero(data.weights)
    counted = counted if held is None else np.setdiff1d(counted, held)
    codes = data.codes[counted]
    if getattr(estimator, "groups_missing", "") == "own_group":
        codes = np.where(codes < 0, codes.max(axis=0) + 1, codes)
    names = ("combine", "kappa", "surrogate", "loss")
    given = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if getattr(estimator, "goal", "") == "fairness":
        given["kappa"] = 0.0
    y = np.where(data.positions[counted] == favourable, 1, -1)
    return Rows(y, data.weights[counted], codes, **given), counted


def measure(
    outcome: Outcome, scores: Array | None = None, *, decisions: bool = False, favourable: int = 1
) -> Measured | None:
    """Return the violation and the gap by the independent formulas, None without a formula."""
    rows, counted = rows_of(outcome, favourable)
    scores = outcome.scores if scores is None else scores
    try:
        return measures(outcome.constraints, rows, scores[counted], decisions=decisions)
    except NotMeasured:
        return None


def objective(outcome: Outcome) -> float:
    """Return the mean loss plus the penalty by the independent formulas."""
    rows, counted = rows_of(outcome)
    loss = mean_loss(outcome.estimator.loss, outcome.scores[counted], rows.y, rows.weight)
    return loss + penalty_of(outcome.estimator)


def penalty_of(estimator: Any) -> float:
    """Return the penalty of a linear model, whose features are scaled."""
    return penalty(estimator.alpha, estimator.coef_ * estimator.feature_scale_)
