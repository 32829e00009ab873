"""Data sets with two attributes, decisions and scores, and the figures of other packages on them.

The figures are those of aedt-audit 0.3.0 and solas-ai 0.6.0; the code that computed them with these
packages is in this file in the commit 53a04b44.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

FILE = Path(__file__).with_name("impact_cases.json")
TOPS = (0.1, 0.25, 0.75)
ATTRIBUTES = ["sex", "race"]


def _generated(seed, n, shares, gap, *, unknown=0.0, decimals=3):
    """Return rows whose races have other rates of selection; scores have ties."""
    rng = np.random.default_rng(seed)
    race = rng.choice([f"r{k}" for k in range(len(shares))], n, p=shares)
    sex = rng.choice(["f", "m"], n)
    signal = gap * np.char.equal(race, "r0") + 0.5 * gap * np.char.equal(sex, "m")
    score = np.round(rng.normal(size=n) + signal, decimals)
    frame = pd.DataFrame({"sex": sex, "race": race, "selected": score > 0.4, "score": score})
    return frame.mask(rng.random(frame.shape) < [unknown, unknown, 0.0, 0.0])


def _loaded(name, score, sex, race):
    """Return a data set of scikit-learn; two of its columns make the attributes."""
    bunch = getattr(datasets, f"load_{name}")()
    X = np.asarray(bunch.data)
    frame = pd.DataFrame({"sex": np.where(X[:, sex] > np.median(X[:, sex]), "f", "m")})
    levels = np.quantile(X[:, race], [0.3, 0.6, 0.985])
    frame["race"] = np.array(["a", "b", "c", "d"])[np.searchsorted(levels, X[:, race])]
    return frame.assign(selected=bunch.target > np.median(bunch.target) - 0.5, score=X[:, score])


CASES = {
    "two even groups": lambda: _generated(0, 1000, [0.5, 0.5], 0.3),
    "small groups": lambda: _generated(1, 3000, [0.6, 0.25, 0.12, 0.018, 0.012], 0.5),
    "few rows": lambda: _generated(2, 60, [0.5, 0.3, 0.2], 0.8),
    "unknown values": lambda: _generated(3, 1500, [0.6, 0.3, 0.1], 0.4, unknown=0.05),
    "many groups": lambda: _generated(4, 6000, [0.4] + [0.05] * 12, 0.2),
    "ties": lambda: _generated(5, 2000, [0.5, 0.3, 0.2], 0.4, decimals=0),
    "breast cancer": lambda: _loaded("breast_cancer", 0, 1, 4),
    "diabetes": lambda: _loaded("diabetes", 2, 1, 0),
    "wine": lambda: _loaded("wine", 12, 0, 1),
    "digits": lambda: _loaded("digits", 10, 20, 28),
}
