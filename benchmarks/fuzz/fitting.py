"""One fit as a user would make it, with everything that it showed: warnings, errors, seconds."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import fairconstrained
from benchmarks.fuzz.constraint_settings import as_objects
from benchmarks.fuzz.data import Array, Chosen, Data, make
from benchmarks.fuzz.formulas import mean_loss, penalty
from benchmarks.fuzz.measures import Measured, NotMeasured, Rows
from benchmarks.fuzz.rates import all_measured
from benchmarks.fuzz.settings import draw
from benchmarks.harness.processes import OverBudget, limited
from fairconstrained.solvers import Status

CPU_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class Case:
    """One case of a run: an estimator, its settings and its data, all from two numbers."""

    seed: int
    index: int
    chosen: Chosen
    cpu_seconds: float = CPU_SECONDS

    @classmethod
    def of(cls, seed: int, index: int, cpu_seconds: float = CPU_SECONDS) -> Case:
        """Return the case with a seed and an index; a fit may take so many CPU seconds."""
        return cls(seed, index, draw(np.random.default_rng([seed, index]), index), cpu_seconds)

    @property
    def rng(self) -> np.random.Generator:
        """The source of randomness of the checks."""
        return np.random.default_rng([self.seed, self.index, 1])

    @property
    def solver(self) -> str:
        """The solver's name."""
        return str(self.chosen.settings.get("solver", "auto"))

    @property
    def constraint(self) -> str:
        """The constraint's class, or several joined by a plus."""
        found = as_objects(self.chosen.settings.get("constraint"))
        if self.chosen.estimator == "NeymanPearsonClassifier":
            return "(class losses)"
        return "+".join(type(one).__name__ for one in found)

    def with_settings(self, **settings: Any) -> Case:
        """Return the same case with some settings replaced."""
        both = {**self.chosen.settings, **settings}
        return replace(self, chosen=replace(self.chosen, settings=both))

    def snippet(self) -> str:
        """Return code that fits the case."""
        made, name = self.chosen, self.chosen.estimator
        settings = ", ".join(f"{key}={value!r}" for key, value in made.settings.items())
        call = f"fit_path(data, {settings})" if name == "fairness_path" else f"{name}({settings})"
        lines = [
            f"# python -m benchmarks fuzz --reproduce {self.seed}:{self.index}",
            f"data = make({made.data!r})",
            call if name == "fairness_path" else f"fit({call}, data)",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a fit showed.

    `error` is None for a fit that returned; `caught` are its warnings; `scores` are those of
    `decision_function` on the training rows.
    """

    estimator: Any
    data: Data
    settings: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    trace: str = ""
    caught: tuple[warnings.WarningMessage, ...] = ()
    seconds: float = 0.0
    scores: Any = None
    probabilities: Any = None

    def warned_of(self, *names: str) -> bool:
        """Return whether there was a warning of one of the classes, given by name."""
        return any(one.category.__name__ in names for one in self.caught)

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

    @property
    def tol(self) -> float:
        """The tolerance on the violation."""
        return float(self.estimator.tol)


CHUNK = 97  # rows of a partition


def queries(data: Data) -> Array:
    """Return a query of every row: about twenty rows have the same one."""
    n = len(data.positions)
    return np.random.default_rng(data.spec.seed + 2).integers(max(2, n // 20), size=n)


def fit_ranker(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit a ranker."""
    return estimator.fit(data.X, data.y, query=queries(data), **given)


def fit_thresholds(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit the classifier, then thresholds on its scores of the same rows."""
    base = clone(estimator.estimator).fit(data.X, data.y, sample_weight=given["sample_weight"])
    return estimator.set_params(estimator=base).fit(data.X, data.y, **given)


def fit_collections(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit a classifier to collections of several partitions."""
    weight, groups = given["sample_weight"], given["sensitive_features"]
    return estimator.fit(
        collection(data.X),
        collection(data.y),
        sample_weight=None if weight is None else collection(weight),
        sensitive_features=collection(groups),
    )


def collection(values: Any) -> Any:
    """Return a dask array, or for pandas objects a dask dataframe."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(values, pd.DataFrame | pd.Series):
        return dd.from_pandas(values, chunksize=CHUNK, sort=False)
    values = np.asarray(values)
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def scores_of_ranker(estimator: Any, data: Data) -> Array:
    """Return the scores of a ranker."""
    return np.asarray(estimator.predict(data.X))


def decisions(estimator: Any, data: Data) -> Array:
    """Return 1 for rows that get the favourable label, else -1."""
    groups = {"sensitive_features": data.groups} if estimator.per_group else {}
    chosen = estimator.predict(data.X, **groups) == estimator.pos_label_
    return np.where(chosen, 1.0, -1.0)


def scores_of_collections(estimator: Any, data: Data) -> Array:
    """Return the scores of a classifier on collections."""
    return np.asarray(estimator.decision_function(collection(data.X)).compute())


Fitter = Callable[[Any, Data, dict[str, Any]], Any]
FITTERS: dict[str, tuple[Fitter, Callable[[Any, Data], Array]]] = {
    "FairRanker": (fit_ranker, scores_of_ranker),
    "FairThresholds": (fit_thresholds, decisions),
    "dask.FairLogisticClassifier": (fit_collections, scores_of_collections),
}
"""How estimators are fitted, and how their scores are read, where not as other classifiers."""


def arguments(data: Data) -> dict[str, Any]:
    """Return the arguments of fit beside X and y."""
    given = {"sample_weight": data.weight}
    if data.groups is not None:
        given["sensitive_features"] = data.groups
    return given


def kind_of(estimator: Any) -> str:
    """Return the name of an estimator's class; those on collections begin with "dask."."""
    name = type(estimator).__name__
    return f"dask.{name}" if ".dask." in type(estimator).__module__ else name


def fit(estimator: Any, data: Data) -> Any:
    """Fit an estimator to a data set."""
    given = arguments(data)
    if isinstance(estimator, fairconstrained.NeymanPearsonClassifier):
        given.pop("sensitive_features", None)
    if kind_of(estimator) in FITTERS:
        return FITTERS[kind_of(estimator)][0](estimator, data, given)
    return estimator.fit(data.X, data.y, **given)


def _outputs(estimator: Any, data: Data) -> tuple[Array, Any]:
    """Return the scores, and probabilities where there are some."""
    if kind_of(estimator) in FITTERS:
        return FITTERS[kind_of(estimator)][1](estimator, data), None
    scores = estimator.decision_function(data.X)
    known = hasattr(estimator, "predict_proba")
    return scores, estimator.predict_proba(data.X) if known else None


def fit_path(data: Data, **settings: Any) -> Any:
    """Follow a path on a data set."""
    estimator = fairconstrained.FairLogisticClassifier(**settings)
    return fairconstrained.fairness_path(estimator, data.X, data.y, n_kappas=6, **arguments(data))


def _made(case: Case, data: Data) -> Any:
    """Return the estimator of a case."""
    settings = dict(case.chosen.settings)
    if data.sensitive_columns is not None:
        settings["sensitive_columns"] = data.sensitive_columns
    kind: Any = fairconstrained
    for name in case.chosen.estimator.split("."):
        kind = import_module("fairconstrained.dask") if name == "dask" else getattr(kind, name)
    return kind(**settings)


def run(case: Case, data: Data | None = None, *, times: int = 1) -> Outcome:
    """Fit a case, `times` times in a row, and return what the last fit showed."""
    data = make(case.chosen.data) if data is None else data
    settings = case.chosen.settings
    start = time.process_time()
    estimator, error, trace, scores, probabilities = None, None, "", None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited(case.cpu_seconds):
                if case.chosen.estimator == "fairness_path":
                    estimator = fit_path(data, **settings)
                else:
                    estimator = _made(case, data)
                    for _ in range(times):
                        caught.clear()
                        fit(estimator, data)
                    scores, probabilities = _outputs(estimator, data)
        except (Exception, OverBudget) as raised:
            error, trace = raised, traceback.format_exc()
    seconds = time.process_time() - start
    return Outcome(
        estimator, data, settings, error, trace, tuple(caught), seconds, scores, probabilities
    )


def rows_of(outcome: Outcome) -> tuple[Rows, Array]:
    """Return the rows of positive weight as the constraints see them, and where they are."""
    data, estimator = outcome.data, outcome.estimator
    counted = np.flatnonzero(data.weights)
    held = getattr(estimator, "holdout_indices_", None)
    if held is not None:
        counted = np.setdiff1d(counted, held)
    codes = data.codes[counted]
    if estimator.groups_missing == "own_group":
        codes = np.where(codes < 0, codes.max(axis=0) + 1, codes)
    kappa = estimator.kappa if estimator.goal == "accuracy" else 0.0
    rows = Rows(
        np.where(data.positions[counted] == 1, 1, -1),
        data.weights[counted],
        codes,
        estimator.combine,
        kappa,
        estimator.surrogate,
        estimator.loss,
    )
    return rows, counted


def measure(
    outcome: Outcome, scores: Array | None = None, *, decisions: bool = False
) -> Measured | None:
    """Return the violation and the gap by the independent formulas, None without a formula."""
    rows, counted = rows_of(outcome)
    scores = outcome.scores if scores is None else scores
    try:
        return all_measured(outcome.constraints, rows, scores[counted], decisions=decisions)
    except NotMeasured:
        return None


def objective(outcome: Outcome) -> float:
    """Return the mean loss plus the penalty by the independent formulas."""
    rows, counted = rows_of(outcome)
    estimator = outcome.estimator
    loss = mean_loss(estimator.loss, outcome.scores[counted], rows.y, rows.weight)
    return loss + penalty_of(estimator)


def penalty_of(estimator: Any) -> float:
    """Return the penalty of a linear model, whose features are scaled."""
    return penalty(estimator.alpha, estimator.coef_ * estimator.feature_scale_)
