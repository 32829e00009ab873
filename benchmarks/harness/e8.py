"""Ranking with two constraints per query, on generated data of MSLR's shape (PLADA, D.3)."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.harness.tables import Row, write_table
from fairconstrained import FairRanker, make_biased_ranking
from fairconstrained.constraints import QueryParity
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
FREE, ONE, PER_QUERY, MODEL, OURS = METHODS = (
    "no constraint", "one multiplier for all", "one multiplier per query", "multiplier model",
    "stochastic PLADA",
)  # fmt: skip
_SEEDS = 20  # draws of the data that are tried for a repetition
Part = dict[str, np.ndarray]


def generate(options: Namespace, seed: int) -> dict[str, Part]:
    """Return the training and the test rows of a draw: documents are generated, queries thinned."""
    n = options.queries + options.test_queries
    shape = {"n_documents": DOCUMENTS, "max_documents": ROWS_PER_QUERY, "n_generated": 12 * n}
    columns = make_biased_ranking(
        n, options.features, min_positives=10, group_effect=0.7, context=True, random_state=seed,
        **shape,
    )  # fmt: skip
    table = dict(zip(("X", "y", "query", "groups"), columns, strict=True))
    train = table["query"] < options.queries
    parts = {"train": train, "test": ~train}
    return {name: {k: v[rows] for k, v in table.items()} for name, rows in parts.items()}


def measures(rows: Part, scores: np.ndarray) -> Row:
    """Return the measures of a ranking: errors, their differences by query, NDCG.

    They are nan where training has diverged.
    """
    if not np.all(np.isfinite(scores)):
        return dict.fromkeys(measures(rows, np.zeros(len(scores))), np.nan)
    y, query = rows["y"], rows["query"]
    errors = query_pairwise_errors(y, scores, query=query, sensitive_features=rows["groups"])
    gaps = query_gaps(errors)
    return {
        "error": pairwise_error(y, scores, query=query),
        "error (0+, 1-)": errors[0, 1].mean(),
        "error (1+, 0-)": errors[1, 0].mean(),
        "difference, mean": gaps.mean(),
        "median": np.median(gaps),
        "90th percentile": np.quantile(gaps, 0.9),
        "largest": gaps.max(),
        "above kappa": np.mean(gaps > KAPPA),
        "NDCG@10": mean_ndcg(y, scores, query=query),
    }


def problem_of(rows: Part, options: Namespace, *, average: bool) -> Problem:
    """Return the training of the network, with a constraint per query or with their average."""
    layers = {"hidden_layer_sizes": (options.hidden,)}
    ranker = FairRanker(QueryParity(KAPPA, average=average), alpha=1e-4, **layers)
    fit = ranker.bind(rows["X"], rows["y"], None, rows["groups"], query=rows["query"])
    model = TorchModel.standardized(rows["X"], np.ones(len(rows["y"])), dtype="float32", **layers)
    return replace(
        fit.problem,
        objective=replace(fit.problem.objective, model=model),
        constraints=tuple(replace(part, model=model) for part in fit.problem.constraints),
    )


def query_features(rows: Part, options: Namespace) -> np.ndarray:
    """Return the standardised means of the features over the query of every constraint."""
    first = np.unique(rows["query"], return_index=True)[1]
    means = rows["X"][first][:, options.features + 1 :]
    means = (means - means.mean(axis=0)) / means.std(axis=0) / np.sqrt(options.features)
    side = np.tile([1.0, -1.0], len(means))[:, None]
    return np.hstack([np.repeat(means, 2, axis=0), side])


def solver_of(name: str, rows: Part, options: Namespace, eta: float) -> Solver:
    """Return a method: all have the same steps of the weights, and passes over the queries."""
    steps = {
        "eta": eta,
        "batch_size": options.step_queries * ROWS_PER_QUERY,
        "max_iter": options.passes * per_pass(options),
        "check_every": options.passes * per_pass(options) // options.checks,
        "polish": False,
    }
    if name == OURS:  # as rankers do: the default alpha is for rates; pairwise errors vary far more
        return PLADA(alpha=None, **steps)
    if name == MODEL:
        network = {"multipliers": Network(hidden=32), "features": query_features(rows, options)}
        return LagrangianDescentAscent(**network, **steps)
    return LagrangianDescentAscent(**steps)


def per_pass(options: Namespace) -> int:
    """Return the steps of a pass over the queries."""
    return max(1, options.queries // options.step_queries)


def weight_step(rows: Part, options: Namespace) -> float:
    """Return the step of the weights, one for all methods: one over the curvature of batches."""
    problem = problem_of(rows, options, average=False)
    start = Start(problem.start(0), random_state=np.random.RandomState(0))
    return 1.0 / Rows(problem, start, options.step_queries * ROWS_PER_QUERY).constants.curvature


def runs(parts: dict[str, Part], options: Namespace, name: str, seed: int, eta: float) -> list[Row]:
    """Return the measures of the answers of a method."""
    problem = problem_of(parts["train"], options, average=name == ONE)
    problem = problem.with_constraints(()) if name == FREE else problem
    solver, random_state = (
        solver_of(name, parts["train"], options, eta),
        np.random.RandomState(seed),
    )
    start = Start(problem.start(random_state), random_state=random_state)
    model = problem.objective.model
    assert isinstance(model, TorchModel)
    models = {part: model.on(rows["X"]) for part, rows in parts.items()}
    table, clock, seconds = [], time.process_time(), 0.0
    for iterate in solver.iterate(problem, start):
        seconds += time.process_time() - clock
        head = {"method": name, "seed": seed, "passes": iterate.iteration / per_pass(options)}
        for part, rows in parts.items():
            figures = measures(rows, models[part].forward(iterate.at.w)[0])
            table.append({**head, "CPU seconds": seconds, "part": part, **figures})
        clock = time.process_time()
    return table


def repetition(options: Namespace, number: int) -> Iterator[Row]:
    """Yield all measures of one draw of the data; the unconstrained model decides on the draw."""
    for seed in range(_SEEDS * number, _SEEDS * (number + 1)):
        parts = generate(options, seed)
        eta = weight_step(parts["train"], options)
        free = runs(parts, options, FREE, number, eta)
        if free[-2]["90th percentile"] > KAPPA:
            break
    else:
        raise RuntimeError(f"no draw of {_SEEDS} has differences above {KAPPA} in 10% of queries")
    yield from free
    for name in METHODS[1:]:
        yield from runs(parts, options, name, number, eta)


SIZES = ("queries", "test_queries", "features", "hidden", "passes", "checks", "step_queries")
FULL, QUICK = (1000, 100, 125, 128, 6, 2, 5), (60, 30, 10, 16, 10, 2, 2)


def run(options: Namespace) -> None:
    """Write the measures of three draws of the data; of one with --quick."""
    sizes = Namespace(**dict(zip(SIZES, QUICK if options.quick else FULL, strict=True)))
    draws = range(1 if options.quick else 3)
    table = [row for number in draws for row in repetition(sizes, number)]
    write_table(table, "papers-E8", "E8: ranking with two constraints per query", options.out)
