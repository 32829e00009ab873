"""Bounds on decisions beside other methods: accuracy and gaps on training and on new rows.

Splits are 70:30, stratified by group and label. Gaps on new rows are of rates of all splits
together, with half the 95% interval of a jackknife. Methods with a bound have five of them; the
gaps of two methods are compared at equal accuracy. *fits* is CPU time in units of our fit on
scores. `ExponentiatedGradient` and `ThresholdOptimizer` are fairlearn's, with logistic regression;
both make random decisions, whose expectations are measured, and the latter sees the groups of new
rows and asks for equal rates whatever the bound is.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.harness import frontier
from benchmarks.harness.data import Data, load
from benchmarks.harness.frontier import accuracy_at, counts, jackknife_half_width
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.peer_fits import FAIRLEARN
from benchmarks.harness.results import Page, Row, boxes, constants, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import DisparateImpact

MOMENTS: dict[str, tuple[str, str | None]] = {
    **FAIRLEARN,
    "error_rate_parity": ("ErrorRateParity", None),
    "disparate_impact": FAIRLEARN["demographic_parity"],
}
CASES = constants("cases", "case").T.to_dict("list")  # the data, the constraint, its bound

SEVERAL = (0.25, 0.5, 1.0, 2.0, 4.0)
TIMES = {  # the multiples of the bound of a case
    "scores": (1.0,),
    "decisions": SEVERAL,
    "ExponentiatedGradient": SEVERAL,
    "ThresholdOptimizer": (1.0,),
}
TEST_TO_TRAIN = 3.0 / 7.0


def fit(method: str, rule: str, kappa: float, train: Data):
    """Return the chances of positive decisions on rows, for a method fitted to training rows."""
    X, y, groups = train
    moment, post = MOMENTS[rule]
    if method in ("scores", "decisions"):
        bound = DisparateImpact(kappa) if rule == "disparate_impact" else rule
        options = {} if rule == "disparate_impact" else {"kappa": kappa}
        ours = FairLogisticClassifier(bound, enforce=method[:-1], **options)
        ours.fit(X, y, sensitive_features=groups)
        return lambda X, groups: ours.predict(X)
    from fairlearn import postprocessing, reductions

    plain = LogisticRegression(max_iter=1000)
    if method == "ExponentiatedGradient":
        name = "ratio_bound" if rule == "disparate_impact" else "difference_bound"
        bounds = getattr(reductions, moment)(**{name: kappa})
        model = reductions.ExponentiatedGradient(plain, bounds)
        model.fit(X, y, sensitive_features=groups)
        return lambda X, groups: model._pmf_predict(X)[:, 1]
    options = {"constraints": post, "predict_method": "predict_proba"}
    optimizer = postprocessing.ThresholdOptimizer(estimator=plain, **options)
    optimizer.fit(X, y, sensitive_features=groups)
    return lambda X, groups: optimizer._pmf_predict(X, sensitive_features=groups)[:, 1]


def gap(rule: str, rates: list) -> float:
    """Return the largest gap of rates of all splits together, or 1 less the smallest ratio."""
    together = np.sum(rates, axis=0)
    if rule != "disparate_impact":
        return frontier.gap(together)
    shares = together[..., 0] / together[..., 1]
    return float(1.0 - (shares.min(axis=1) / shares.max(axis=1)).min())


@dataclass
class Measured:
    """A method with a bound on the splits of a case: a row, and what it is made of, by split."""

    rule: str
    row: Row
    accuracy: np.ndarray  # on new rows
    rates: list  # of new rows

    def point(self, some) -> tuple[float, float]:
        """Return accuracy and gap on the new rows of some splits."""
        return float(self.accuracy[some].mean()), gap(self.rule, [self.rates[k] for k in some])


def measured(case: str, method: str, times: float, splits: int) -> Measured:
    """Return the figures of a method on the splits of a case, with a multiple of its bound."""
    name, rule, kappa = CASES[case]
    X, y, groups = load(name)
    bound = times * (1.0 - kappa if rule == "disparate_impact" else kappa)
    kappa = 1.0 - bound if rule == "disparate_impact" else bound
    cells, seconds, accuracy, rates = np.char.add(groups, y.astype(str)), [], [], []
    for seed in range(splits):
        ends = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=cells)
        clock = time.process_time()
        chances = fit(method, rule, kappa, (X[ends[0]], y[ends[0]], groups[ends[0]]))
        seconds.append(time.process_time() - clock)
        each = [(rows, chances(X[rows], groups[rows])) for rows in ends]
        wrong = [(rows, np.abs(chance - y[rows])) for rows, chance in each]
        notion = "equalized_odds" if rule == "equalized_odds" else "demographic_parity"
        compared = wrong if rule == "error_rate_parity" else each
        accuracy.append([1.0 - float(each.mean()) for _, each in wrong])
        rates.append([counts(y[rows], groups[rows], some, notion) for rows, some in compared])
    on_new = Measured(rule, {}, np.array(accuracy)[:, 1], [new for _, new in rates])
    on_new.row = {
        "case": case,
        "bound": bound,
        "method": method,
        "met": float(np.mean([gap(rule, [training]) <= bound + 1e-9 for training, _ in rates])),
        "train accuracy": float(np.mean(accuracy, axis=0)[0]),
        "accuracy": on_new.point(range(splits))[0],
        "gap": on_new.point(range(splits))[1],
        "+-": jackknife_half_width(lambda some: on_new.point(some)[1], splits, TEST_TO_TRAIN),
        "times": times,
        "seconds": float(np.median(seconds)),
    }
    return on_new


def at_equal_accuracy(ours: list[Measured], theirs: list[Measured], splits: int) -> Row:
    """Return how much larger our gap is at equal accuracy on new rows, with half its interval.

    It is the mean over five accuracies that both reach. Methods are interpolated between their
    points; a more accurate point serves where less is asked.
    """

    def difference(some) -> float:
        (mine, my_gaps), (their, their_gaps) = (
            np.transpose([each.point(some) for each in method]) for method in (ours, theirs)
        )
        high = min(mine.max(), their.max())
        at = np.linspace(min(max(mine.min(), their.min()), high), high, 5)
        return float(np.mean(accuracy_at(at, their, -their_gaps) - accuracy_at(at, mine, -my_gaps)))

    width = jackknife_half_width(difference, splits, TEST_TO_TRAIN)
    return {"larger at equal accuracy": difference(range(splits)), "+- of it": width}


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for every case: accuracies in per cent, gaps on new rows, cost in fits."""
    accuracy = {"train accuracy": "train", "accuracy": "new"}
    rows = rows[rows.times == 1.0]
    shown = rows.assign(**{name: (100.0 * rows[name]).round(1) for name in accuracy})
    shown = shown.assign(gap=rows.gap.round(3), fits=rows.fits.round(1)).rename(columns=accuracy)
    columns = ["train", "new", "gap", "fits"]
    by_method = shown.set_index(["case", "bound", "method"])[columns].unstack()
    order = [(c, m) for m in ("decisions", "ExponentiatedGradient") for c in columns]
    order += [(c, m) for m in ("ThresholdOptimizer", "scores") for c in columns[1:3]]
    by_method = by_method[order].loc[list(dict.fromkeys(zip(rows.case, rows.bound, strict=True)))]
    by_method.columns = pd.Index([f"{method}: {column}" for column, method in order])
    equal = rows[rows.method == "decisions"].set_index(["case", "bound"])
    text = (1000.0 * equal[["larger at equal accuracy", "+- of it"]]).map("{:.0f}".format)
    by_method["decisions: at equal accuracy, in 1/1000"] = (
        text.iloc[:, 0] + " +- " + text.iloc[:, 1]
    )
    return by_method.reset_index()


def draw(left, right, rows: pd.DataFrame) -> None:
    """Draw the gaps on new rows in units of the bound, and the cost."""
    rows = rows[rows.times == 1.0]
    boxes(left, rows.gap / rows.bound, rows.method, "gap on new rows / bound", ("decisions",))
    left.set_xscale("log")
    priced = rows[rows.method != "ThresholdOptimizer"]
    boxes(right, priced.fits, priced.method, "CPU time in fits on scores", ("decisions",))
    right.set_xscale("log")


PAGES = (Page("decisions", table, draw, ("decisions",)),)


def add_options(parser) -> None:
    """Add cases and splits."""
    add_choice(parser, "--cases", CASES, quick=["compas, races"], help="data and constraint")
    parser.add_argument("--splits", type=int, default=Default(5, 2), help="train and test splits")


def run(options) -> None:
    """Write decisions.md and decisions.csv, again after every case."""
    warnings.simplefilter("ignore")  # of constant decisions and of few rows: the table tells
    rows: list[Row] = []
    methods = ("scores", "decisions", "ExponentiatedGradient", "ThresholdOptimizer")
    with threadpool_limits(1):
        for case in options.cases:
            asked = [m for m in methods if MOMENTS[CASES[case][1]][1] or m != methods[-1]]
            curves = {
                method: [measured(case, method, times, options.splits) for times in TIMES[method]]
                for method in asked
            }
            equal = at_equal_accuracy(curves[methods[1]], curves[methods[2]], options.splits)
            unit = curves["scores"][0].row["seconds"]
            for method, points in curves.items():
                for point in points:
                    of_it = equal if method == methods[1] and point.row["times"] == 1.0 else {}
                    rows.append({**point.row, "fits": point.row["seconds"] / unit, **of_it})
            write_table(rows, "decisions", "Bounds on decisions", options.out)
