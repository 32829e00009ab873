"""Fits with groups that are known in probability: true gaps, beside those of fits with true groups.

5% of the training rows have their true group. A proxy, a logistic regression on half the features
of these rows, gives all others probabilities. Gaps of decisions are those of the true groups.
"Covered" is how often the interval of `rate_gaps` on new rows, 5% of them of known group, contains
the gap of the true groups.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.alternatives import MODELS, TASKS, gap, load
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.results import Row, Rows, at_most, write_table
from fairconstrained import GroupProbabilities, InputWarning
from fairconstrained.metrics import rate_gaps

_KNOWN = 0.05  # of the training rows
_DEFAULTS = TASKS[:2] + TASKS[3:4] + TASKS[5:6] + TASKS[8:9]


def rows_of(options) -> Rows:
    """Yield a row for every task and model, means over the draws."""
    for task in options.tasks:
        X, y, groups = load(task)
        names = np.unique(groups).tolist()
        records = list[Row]()
        for draw in range(options.draws):
            split = {"test_size": 0.3, "random_state": draw, "stratify": y}
            training, test = train_test_split(np.arange(len(y)), **split)
            given, true = X[training], groups[training]
            known = np.random.default_rng(draw).random(len(training)) < _KNOWN
            half = np.random.default_rng(draw).permutation(X.shape[1])[: X.shape[1] // 2]
            proxy = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
            P = proxy.fit(given[known][:, half], true[known]).predict_proba(given[:, half])
            some, inputs = np.where(known, true, None), np.column_stack([given, y[training]])
            passed = {
                "true groups": true,
                "likeliest": np.asarray(names)[P.argmax(axis=1)],
                "probabilities": GroupProbabilities(P, names),
                "corrected": GroupProbabilities(P, names, known=some, given=inputs),
            }
            P = proxy.predict_proba(X[test][:, half])
            seen = np.random.default_rng(draw).random(len(test)) < _KNOWN
            new = np.where(seen, groups[test], None)
            measured = GroupProbabilities(P, names, known=new, given=X[test])
            for name, model in MODELS.items():
                record: Row = {"model": name}
                for what, each in passed.items():
                    fair = clone(model).set_params(kappa=options.kappa)
                    fair.fit(given, y[training], sensitive_features=each)
                    decided = np.asarray(fair.predict(X[test]))
                    record[what] = gap(decided, groups[test])
                table = rate_gaps(y[test], decided, sensitive_features=measured)
                low, high = table.loc["selection_rate", ["low", "high"]]
                records.append({**record, "covered": low <= record[what] <= high})
        means = pd.DataFrame(records).groupby("model", sort=False).mean()
        for row in means.reset_index().to_dict("records"):
            met = at_most(row["corrected"], 1.5 * row["true groups"])
            yield {"task": task, **row, "corrected at most 1.5 of true": met}


def add_options(parser) -> None:
    """Add the tasks."""
    add_choice(parser, "--tasks", _DEFAULTS, quick=_DEFAULTS[2:3], help="tasks")
    text = "divisions of the rows, and draws of known groups"
    parser.add_argument("--draws", type=int, default=Default(5, 1), help=text)
    parser.add_argument("--kappa", type=float, default=0.02, help="the bound")


def run(options) -> None:
    """Write proxies.md and proxies.csv."""
    title = "True gaps on new rows, by what the fit was given"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of proxies that guess badly
        write_table(rows_of(options), "proxies", title, options.out)
