"""Ranking with two constraints per query, on generated data of MSLR's shape (PLADA, D.3)."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.harness.e8_page import write_page
from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, write_table
from fairconstrained import FairRanker, make_biased_ranking
from fairconstrained.constraints import QueryParity
from fairconstrained.estimators.fit import Fit
from fairconstrained.metrics import mean_ndcg, pairwise_error, query_pairwise_errors
from fairconstrained.metrics.ranking import query_gaps
from fairconstrained.models.network import TorchModel
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import PLADA, LagrangianDescentAscent, Solver
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import Rows
from fairconstrained.solvers.multiplier_models import Network

KAPPA = 0.25
DOCUMENTS, ROWS_PER_QUERY = 120, 57
UNCONSTRAINED = "no constraint"
_SEEDS = 20  # draws of the data that are tried for a repetition


@dataclass(frozen=True, eq=False)
class Data:
    """Queries for training and for test."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray
    groups: np.ndarray
    train: np.ndarray

    def part(self, train: bool) -> dict[str, np.ndarray]:
        """Return the rows of a part."""
        rows = self.train if train else ~self.train
        names = ("X", "y", "query", "groups")
        return {name: getattr(self, name)[rows] for name in names}


def generate(options: Namespace, seed: int) -> Data:
    """Return one draw: documents are generated, and queries thinned."""
    n = options.queries + options.test_queries
    X, y, query, groups = make_biased_ranking(
        n,
        options.features,
        n_documents=DOCUMENTS,
        min_positives=10,
        max_documents=ROWS_PER_QUERY,
        group_effect=0.7,
        n_generated=12 * n,
        context=True,
        random_state=seed,
    )
    return Data(X, y, query, groups, query < options.queries)


def measures(rows: dict[str, np.ndarray], scores: np.ndarray) -> Row:
    """Return the measures of a ranking: errors, their differences by query, NDCG."""
    y, query, groups = rows["y"], rows["query"], rows["groups"]
    errors = query_pairwise_errors(y, scores, query=query, sensitive_features=groups)
    gaps = query_gaps(errors)
    return {
        "error": pairwise_error(y, scores, query=query),
        "error (0+, 1-)": float(errors[0, 1].mean()),
        "error (1+, 0-)": float(errors[1, 0].mean()),
        "difference, mean": float(gaps.mean()),
        "median": float(np.median(gaps)),
        "90th percentile": float(np.quantile(gaps, 0.9)),
        "largest": float(gaps.max()),
        "above kappa": float(np.mean(gaps > KAPPA)),
        "NDCG@10": mean_ndcg(y, scores, query=query),
    }


def problem_of(data: Data, options: Namespace, *, average: bool) -> Problem:
    """Return the training of the network, with a constraint per query or with their average."""
    rows = data.part(True)
    ranker = FairRanker(
        QueryParity(KAPPA, average=average), hidden_layer_sizes=(options.hidden,), alpha=1e-4
    )
    fit = Fit.of(ranker, rows["X"], rows["y"], None, rows["groups"], query=rows["query"])
    model = TorchModel.standardized(
        rows["X"], np.ones(len(rows["y"])), hidden_layer_sizes=(options.hidden,), dtype="float32"
    )
    problem = fit.problem
    return replace(
        problem,
        objective=replace(problem.objective, model=model),
        constraints=tuple(replace(part, model=model) for part in problem.constraints),
    )


def query_features(data: Data, options: Namespace) -> np.ndarray:
    """Return the standardised means of the features over the query of every constraint."""
    rows = data.part(True)
    first = np.unique(rows["query"], return_index=True)[1]
    means = rows["X"][first][:, options.features + 1 :]
    means = (means - means.mean(axis=0)) / means.std(axis=0) / np.sqrt(options.features)
    side = np.tile([1.0, -1.0], len(means))[:, None]
    return np.hstack([np.repeat(means, 2, axis=0), side])


Method = Callable[[Data, Namespace, dict[str, Any]], Solver]


def _lagrangian(data: Data, options: Namespace, steps: dict[str, Any]) -> Solver:
    return LagrangianDescentAscent(polish=False, **steps)


def _multiplier_model(data: Data, options: Namespace, steps: dict[str, Any]) -> Solver:
    features = query_features(data, options)
    model = Network(hidden=32)
    return LagrangianDescentAscent(multipliers=model, features=features, polish=False, **steps)


def _plada(data: Data, options: Namespace, steps: dict[str, Any]) -> Solver:
    return PLADA(polish=False, **steps)


METHODS: dict[str, Method] = {
    UNCONSTRAINED: _lagrangian,
    "stochastic PLADA": _plada,
    "one multiplier for all": _lagrangian,
    "one multiplier per query": _lagrangian,
    "multiplier model": _multiplier_model,
}


def weight_step(data: Data, options: Namespace) -> float:
    """Return the step of the weights, one for all methods: one over the curvature of batches."""
    problem = problem_of(data, options, average=False)
    start = Start(problem.start(0), random_state=np.random.RandomState(0))
    rows = Rows(problem, start, options.step_queries * ROWS_PER_QUERY)
    return 1.0 / rows.constants()[0]


def runs(
    data: Data, options: Namespace, name: str, seed: int, eta: float
) -> Iterator[tuple[Row, np.ndarray]]:
    """Yield the measures of the answers of a method, and the differences on the test queries."""
    problem = problem_of(data, options, average=name == "one multiplier for all")
    if name == UNCONSTRAINED:
        problem = problem.with_constraints(())
    per_pass = max(1, options.queries // options.step_queries)
    steps = {
        "eta": eta,
        "batch_size": options.step_queries * ROWS_PER_QUERY,
        "max_iter": options.passes * per_pass,
        "check_every": options.passes * per_pass // options.checks,
    }
    solver = METHODS[name](data, options, steps)
    random_state = np.random.RandomState(seed)
    start = Start(problem.start(random_state), random_state=random_state)
    model, test = problem.objective.model, data.part(False)
    assert isinstance(model, TorchModel)
    held_out, cpu, seen = model.on(test["X"]), time.process_time(), 0.0
    for iterate in solver.iterate(problem, start):
        seen += time.process_time() - cpu
        w, passes = iterate.at.w, iterate.iteration / per_pass
        head = {"method": name, "seed": seed, "passes": passes, "CPU seconds": seen}
        scores = held_out.scores(w)
        for part, values, rows in (
            ("train", model.scores(w), data.part(True)),
            ("test", scores, test),
        ):
            yield {**head, "part": part, **measures(rows, values)}, _gaps(test, scores)
        cpu = time.process_time()


def _gaps(rows: dict[str, np.ndarray], scores: np.ndarray) -> np.ndarray:
    errors = query_pairwise_errors(
        rows["y"], scores, query=rows["query"], sensitive_features=rows["groups"]
    )
    return query_gaps(errors)


def repetition(options: Namespace, number: int) -> tuple[list[Row], dict[str, np.ndarray], Row]:
    """Return all measures of one draw of the data; the unconstrained model decides on the draw."""
    for seed in range(_SEEDS * number, _SEEDS * (number + 1)):
        data = generate(options, seed)
        eta = weight_step(data, options)
        found = list(runs(data, options, UNCONSTRAINED, number, eta))
        if found[-2][0]["90th percentile"] > KAPPA:
            break
    else:
        raise RuntimeError(f"no draw of {_SEEDS} has differences above {KAPPA} in 10% of queries")
    table, gaps = [row for row, _ in found], {UNCONSTRAINED: found[-1][1]}
    for name in list(METHODS)[1:]:
        found = list(runs(data, options, name, number, eta))
        table += [row for row, _ in found]
        gaps[name] = found[-1][1]
        print(f"repetition {number + 1}: {name}, {found[-1][0]['CPU seconds']:.0f} s", flush=True)
    return table, gaps, _shape(data, seed)


def _shape(data: Data, seed: int) -> Row:
    """Return the sizes of a draw."""
    rows = data.part(True)
    high = np.bincount(rows["query"], rows["y"])
    low = np.bincount(rows["query"], 1 - rows["y"])
    return {
        "seed": seed,
        "training rows": len(rows["y"]),
        "columns": rows["X"].shape[1],
        "training queries": len(high),
        "pairs": int(high @ low),
        "positives": float(rows["y"].mean()),
    }


def add_options(parser: ArgumentParser) -> None:
    """Add the sizes of the data and of the runs."""
    for name, full, quick, what in (
        ("repetitions", 3, 1, "draws of the data"),
        ("queries", 1000, 60, "training queries"),
        ("test-queries", 100, 30, "test queries"),
        ("features", 125, 10, "features of a document, without context"),
        ("hidden", 128, 16, "ReLU units"),
        ("passes", 6, 10, "passes over the training queries"),
        ("checks", 2, 2, "measurements of a run"),
        ("step-queries", 5, 2, "queries of a step"),
        ("jobs", 1, 1, "repetitions that run at the same time"),
    ):
        parser.add_argument(f"--{name}", type=int, default=Default(full, quick), help=what)
    parser.add_argument("--docs", type=Path, default=None, help="folder to write e8.md to")


def run(options: Namespace) -> None:
    """Write e8.md, e8.csv, the figures and, with --docs, the page."""
    table: list[Row] = []
    shapes: list[Row] = []
    gaps: list[dict[str, np.ndarray]] = []
    found = Parallel(n_jobs=options.jobs)(
        delayed(repetition)(options, number) for number in range(options.repetitions)
    )
    for rows, differences, shape in found:
        table += rows
        gaps.append(differences)
        shapes.append(shape)
    write_table(table, "e8", "Ranking with two constraints per query", options.out)
    write_table(shapes, "e8_data", "The draws of the data", options.out)
    pooled = {name: np.concatenate([one[name] for one in gaps]) for name in METHODS}
    write_page(table, shapes, pooled, KAPPA, options)
