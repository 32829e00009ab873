"""Bounds of rankers on queries that were not used for training: linear scores and boosted trees.

Queries are generated (`make_biased_ranking`, 10 features). The constraint is
``QueryParity(kappa, average=True)``: the average over the queries of the difference of pairwise
losses is at most kappa on the training queries. Figures are means over the repetitions, on 500
other queries; the gap on new queries of scores that do not depend on the training rows is also
larger than kappa by chance, the more so the fewer queries there are.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

import numpy as np

from benchmarks.harness.options import Default, add_choice, add_seeds
from benchmarks.harness.tables import Row, write_table
from fairconstrained import BoostedScores, FairRanker, make_biased_ranking
from fairconstrained.constraints import QueryParity
from fairconstrained.utils.typing import Array

_SMALL = {"num_leaves": 4, "min_child_samples": 500}
SCORES = {
    "linear": FairRanker(),
    "trees": FairRanker(model=BoostedScores()),
    "trees with 4 leaves of 500 rows": FairRanker(model=BoostedScores(**_SMALL)),
    "trees, constraint_fraction=0.3": FairRanker(model=BoostedScores(constraint_fraction=0.3)),
    "trees, constraint_fraction=0.3, n_fitted_trees=5": FairRanker(
        model=BoostedScores(constraint_fraction=0.3, n_fitted_trees=5)
    ),
    "trees with 4 leaves of 500 rows, constraint_fraction=0.3": FairRanker(
        model=BoostedScores(constraint_fraction=0.3, **_SMALL)
    ),
}


def add_options(parser: ArgumentParser) -> None:
    """Add --scores, --queries, --new-queries, --kappa, --trees and --seeds."""
    add_choice(parser, "--scores", SCORES, quick=[*SCORES], help="rankers")
    parser.add_argument(
        "--queries", type=int, nargs="+", default=Default([200, 1000], [60]), help="for training"
    )
    parser.add_argument("--new-queries", type=int, default=Default(500, 60), help="for the figures")
    parser.add_argument("--kappa", type=float, default=0.02, help="the tolerance")
    parser.add_argument("--trees", type=int, default=Default(100, 10), help="trees of a ranker")
    add_seeds(parser, full=(0, 1, 2))


@dataclass(frozen=True)
class Rows:
    """Documents of queries."""

    X: Array
    y: Array
    query: Array
    groups: Array

    def of(self, kept: Array) -> Rows:
        """Return some of them."""
        return Rows(self.X[kept], self.y[kept], self.query[kept], self.groups[kept])


def measure(ranker: FairRanker, seen: Rows, new: Rows, options: Namespace, seed: int) -> Row:
    """Return the figures of a fit."""
    constraint = QueryParity(options.kappa, average=True)
    ranker.set_params(constraint=constraint, random_state=seed)
    if isinstance(ranker.model, BoostedScores):
        ranker.set_params(model__n_estimators=options.trees, model__n_jobs=1)
    start = time.process_time()
    ranker.fit(seen.X, seen.y, query=seen.query, sensitive_features=seen.groups)
    seconds = time.process_time() - start
    weight = np.ones(len(new.y))
    term = constraint.bind(2.0 * new.y - 1.0, new.groups, weight, new.query)
    scores = ranker.predict(new.X)
    return {
        "gap in fit": ranker.gap_,
        "gap on scores": float(term.gap(scores).max()),
        "gap of errors": float(term.zero_one().gap(scores).max()),
        "NDCG@10": ranker.score(new.X, new.y, query=new.query),
        "CPU seconds": seconds,
    }


def run(options: Namespace) -> None:
    """Write new_queries.md and new_queries.csv."""
    table = []
    for n_queries in options.queries:
        for label in options.scores:
            ranker, found = SCORES[label], []
            for seed in options.seeds:
                size = n_queries + options.new_queries
                rows = Rows(*make_biased_ranking(size, 10, random_state=seed))
                first = rows.query < n_queries
                found.append(measure(ranker, rows.of(first), rows.of(~first), options, seed))
            means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
            table.append({"training queries": n_queries, "scores": label, **means})
            print(*table[-1].values(), flush=True)
    write_table(table, "new_queries", "Bounds of rankers on new queries", options.out)
