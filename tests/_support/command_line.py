"""A table as users have them in files, the arguments about it, and what is printed of it."""

import numpy as np
import pandas as pd

from fairconstrained import make_biased_classification

N_ROWS = 600


def table_of_a_user():
    """Return a table with text, gaps and an identifier."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.4, random_state=0)
    frame = pd.DataFrame(np.asarray(X)[:, :4], columns=["a", "b", "c", "d"])
    frame["kind"] = np.where(frame["a"] > 0, "high", "low")
    frame.loc[::20, "b"] = np.nan
    frame.loc[::30, "kind"] = None
    frame["name"] = [f"person {k}" for k in range(N_ROWS)]
    frame["group"] = np.where(np.asarray(groups) == 1, "x", "y")
    frame["granted"] = np.where(np.asarray(y) == 1, "yes", "no")
    return frame


def asked(file, *more):
    return [file, "--target", "granted", "--positive", "yes", "--sensitive", "group", *more]


def printed_table(text):
    """Return {(model, rows): [accuracy, rate, rate, gap of decisions, gap of probabilities]}."""
    table = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 6 and words[1] in ("training", "test"):
            table[words[0], words[1]] = [float(word) for word in words[2:7]]
    assert len(table) == 4, text
    return table
