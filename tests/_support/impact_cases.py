"""Data sets with two attributes, decisions and scores, and the figures of other packages on them.

``python -m tests._support.impact_cases`` computes these figures anew. It needs the packages whose
versions are in the file, and pandas.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

FILE = Path(__file__).with_name("impact_cases.json")
VERSIONS = {"aedt-audit": "0.3.0", "solas-ai": "0.6.0"}
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


def _of_aedt(frame, kind):
    """Return the tables of aedt-audit: rates, ratios, standard deviations, people."""
    from aedt_audit import ll144_summary

    how = {"outcome": "selected"} if kind == "selected" else {"score": "score"}
    summary = ll144_summary(frame, race="race", significance=True, **how)
    tables = {}
    for name, table in zip(("sex", "race", "sex, race"), summary.tables.values(), strict=True):
        columns = ["n", "rate", "share", "excluded", "impact_ratio", "z_score"]
        columns += ["selections_to_four_fifths"]
        groups = table[name.split(", ")].apply(list, axis=1).tolist()
        tables[name] = [
            [*row] for row in zip(groups, *table[columns].to_numpy(object).T, strict=True)
        ]
    return tables


def _of_solas(frame, attribute):
    """Return the tables of solas-ai, of all groups against the one of the most rows."""
    import solas_disparity as sd

    known = frame[frame[attribute].notna()].reset_index(drop=True)
    sizes = known[attribute].value_counts()
    reference, others = sizes.index[0], sorted(sizes.index[1:])
    given = {
        "group_data": pd.get_dummies(known[attribute]).astype(float),
        "protected_groups": others,
        "reference_groups": [reference] * len(others),
        "group_categories": [attribute] * len(others),
    }
    limits = {"air_threshold": 0.8, "percent_difference_threshold": 0.0, "max_for_fishers": 10**9}
    ratio = sd.adverse_impact_ratio(**given, **limits, outcome=known["selected"].astype(float))
    table = ratio.summary_table.loc[others]
    heads = {"ratio": "AIR", "p_value": "P-Values", "shortfall": "Shortfall"}
    figures = {name: table[head].tolist() for name, head in heads.items()}
    difference = sd.standardized_mean_difference(
        **given,
        outcome=known["score"],
        smd_threshold=-30.0,
        lower_score_favorable=False,
        smd_denominator=sd.types.SMDDenominator.POPULATION,
    )
    figures["difference"] = difference.summary_table.loc[others, "SMD"].tolist()
    tops = sd.adverse_impact_ratio_by_quantile(
        **given,
        **limits,
        outcome=known["score"],
        quantiles=list(TOPS),
        lower_score_favorable=False,
        merge_bins=False,
    ).summary_table
    for top in TOPS:
        figures[f"top {top}"] = tops.xs(top, level="Quantile").loc[others, "AIR"].tolist()
    return {"reference": reference, "groups": others, **figures}


def main():
    """Write the file."""
    content = {"versions": VERSIONS}
    for name, make in CASES.items():
        frame = make()
        content[name] = {
            "selected": _of_aedt(frame, "selected"),
            "score": _of_aedt(frame, "score"),
            **{attribute: _of_solas(frame, attribute) for attribute in ATTRIBUTES},
        }
    FILE.write_text(json.dumps(content, separators=(",", ":"), default=float) + "\n")


if __name__ == "__main__":
    main()
