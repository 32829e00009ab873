"""Draw the pictures of the documentation.

Usage: python docs/picture.py [PAGE ...]. With names of pages, such as guide/kappa.md, it runs their
code and keeps the pictures that they save. Without, it draws the picture of the landing page and of
README.md; it reads Adult from the folder in FAIRCONSTRAINED_DATA, or OpenML.
"""

import doctest
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairconstrained import FairLogisticClassifier
from fairconstrained.datasets import fetch_adult

KAPPA = 0.02
BEFORE, AFTER, LINE = "#b54708", "#175cd3", "#98a2b3"


def gap_of(decided, groups):
    """Return the difference of the selection rates."""
    rates = [decided[groups == one].mean() for one in np.unique(groups)]
    return max(rates) - min(rates)


def measured():
    """Return gaps and accuracies on test rows for several kappas, and without a constraint."""
    adult = fetch_adult()
    groups = np.asarray(adult.sensitive_features["sex"])
    split = train_test_split(adult.data, adult.target, groups, test_size=0.3, random_state=0)
    X, X_test, y, y_test, z, z_test = split
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
    )
    features = columns.fit(X).transform(X)
    test = columns.transform(X_test)

    def point(constraint, kappa=None):
        clf = FairLogisticClassifier(constraint, kappa=kappa or 0.05, enforce="decision")
        clf.fit(features, y, sensitive_features=None if constraint is None else z)
        favourable = clf.predict(test) == clf.classes_[1]
        return gap_of(favourable, z_test), clf.score(test, y_test)

    kappas = [0.005, KAPPA, 0.04, 0.07, 0.1, 0.13, 0.16]
    return np.array([point("demographic_parity", kappa) for kappa in kappas]), point(None), kappas


def draw(path):
    """Draw the picture."""
    points, free, kappas = measured()
    points, free = 100 * points, 100 * np.array(free)
    fair = points[kappas.index(KAPPA)]
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    axes.plot(*np.vstack([points, free]).T, "o-", color=LINE, markersize=5, linewidth=2)
    for (x, y), colour, text, shift in (
        (free, BEFORE, "before: no constraint", (8, -62)),
        (fair, AFTER, f"after: kappa = {KAPPA}", (10, -30)),
    ):
        axes.plot(x, y, "o", color=colour, markersize=13)
        axes.annotate(
            f"{text}\ngap {x:.1f} points, accuracy {y:.1f}%",
            (x, y),
            shift,
            textcoords="offset points",
            color=colour,
            fontsize=11,
            fontweight="bold",
            ha="left" if colour == AFTER else "right",
        )
    axes.set_xlim(0.0, 1.12 * free[0])
    low, high = points[:, 1].min(), free[1]
    axes.set_ylim(low - 0.35 * (high - low), high + 0.2 * (high - low))
    axes.set_xlabel("difference of selection rates between men and women, in points")
    axes.set_ylabel("accuracy, %")
    axes.set_title("Adult, test rows: one model for each kappa", loc="left", fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}: before {free.round(2)}, after {fair.round(2)}")


def draw_page(page, folder):
    """Run the code of a page, and keep the pictures that it saves."""
    text = "".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M))
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
        for picture in sorted(Path(scratch).glob("*.svg")):
            shutil.copy(picture, folder)
            print(f"wrote {folder / picture.name}")
        os.chdir(folder)


if __name__ == "__main__":
    docs = Path(__file__).resolve().parent
    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "fairconstrained"})
    plt.switch_backend("svg")
    for name in sys.argv[1:]:
        draw_page(docs / name, docs / "_static")
    if not sys.argv[1:]:
        draw(docs / "_static" / "promise.svg")
