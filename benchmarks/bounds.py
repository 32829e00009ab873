"""How far fits are from the best linear model, at most, and what knowing it costs.

"within the fit" is `optimality_gap_`, which takes at most half the data passes of the fit; its cost
is the CPU time of a fit with `bound=True` over that of one with `bound=False`. "certified" is the
gap after `certify`, with a limit of 10 seconds and a gap of .5% that suffices.
"""

import time
from functools import partial
from itertools import product

import pandas as pd

from benchmarks.harness.data import DATA, load, scenarios
from benchmarks.harness.options import Default, add_choice, add_numbers
from benchmarks.harness.processes import in_turns, ratio
from benchmarks.harness.results import Row, Rows, write_table
from fairconstrained import FairLogisticClassifier

CONSTRAINTS = ("demographic_parity", "equal_opportunity", "equalized_odds")
WITHIN, CERTIFIED = "gap within the fit, %", "gap certified, %"


def gaps(options) -> Rows:
    """Yield a row for every problem."""
    for name, *bound in product(options.data, options.constraints, options.kappas):
        X, y, groups = load(name)
        given, clf = {"X": X, "y": y, "sensitive_features": groups}, FairLogisticClassifier(*bound)
        plain = FairLogisticClassifier(*bound, bound=False)
        runs = {"with": partial(clf.fit, **given), "without": partial(plain.fit, **given)}
        seconds = in_turns(runs, options.repeats)
        within = percent(clf.optimality_gap_)
        began = time.perf_counter()
        certified = clf.certify(**given, seconds=options.seconds)
        yield {
            "data": name,
            "features": X.shape[1],
            "constraint": bound[0],
            "kappa": bound[1],
            WITHIN: within,
            "cost": ratio(seconds["with"], seconds["without"]),
            CERTIFIED: percent(certified.gap),
            "seconds": time.perf_counter() - began,
        }


def percent(gap: float | None) -> float:
    """Return a gap in per cent; 100 where no bound above zero is known."""
    return 100.0 if gap is None else 100.0 * gap


def add_options(parser) -> None:
    """Add the problems."""
    data = (*DATA, *scenarios())
    add_choice(parser, "--data", data, quick=["compas"], help="data sets and scenarios")
    add_choice(parser, "--constraints", CONSTRAINTS, quick=CONSTRAINTS[:1], help="constraints")
    add_numbers(parser, "--kappas", [0.05, 0.02, 0.005], [0.05], "tolerances")
    parser.add_argument("--seconds", type=float, default=Default(10.0, 1.0), help="to certify")
    parser.add_argument("--repeats", type=int, default=Default(3, 1), help="timed runs of each")


def run(options) -> None:
    """Write bounds.md and bounds.csv."""
    title = "How far fits are from the best linear model, at most"
    rows = write_table(gaps(options), "bounds", title, options.out)
    write_table(by_data(rows), "bounds_by_data", "The same, by data", options.out)


def by_data(rows: list[Row]) -> list[Row]:
    """Return the number of problems and quantiles of both gaps, for each data set and for all."""
    frame = pd.DataFrame(rows)
    grouped = pd.concat([frame, frame.assign(data="all", features="")]).groupby("data", sort=False)
    table = pd.DataFrame({"features": grouped.features.first(), "problems": grouped.size()})
    table["cost"] = grouped.cost.median()
    for name in (WITHIN, CERTIFIED):
        for quantile, word in ((0.5, "median"), (0.9, "90%"), (1.0, "worst")):
            table[f"{name}: {word}"] = grouped[name].quantile(quantile)
    return table.reset_index().to_dict("records")
