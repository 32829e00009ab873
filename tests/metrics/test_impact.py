"""Impact ratios: the figures of other packages, coverage of intervals, groups left out, weights.

The figures are those of aedt-audit 0.3.0 and solas-ai 0.6.0; the code that computed them with these
packages is in tests/_support/impact_cases.py in the commit 53a04b44.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn import datasets

from fairconstrained import GroupProbabilities
from fairconstrained.metrics import impact_ratios, score_impact_ratios
from fairconstrained.metrics.exact_tests import ratio_interval

FILE = Path(__file__).with_name("figures_of_peers.json")
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
PEERS = json.loads(FILE.read_text())


def _group(values):
    """Return the name of a group of aedt-audit, with its attributes if there are two."""
    return values[0] if len(values) == 1 else ", ".join(map("{}={}".format, ATTRIBUTES, values))


@pytest.mark.parametrize("kind", ["selected", "score"])
@pytest.mark.parametrize("case", CASES)
def test_rates_and_ratios_are_those_of_aedt_audit(case, kind):
    frame = CASES[case]()
    measure = impact_ratios if kind == "selected" else score_impact_ratios
    table = measure(None, frame[kind], sensitive_features=frame[ATTRIBUTES])
    rate = "selection_rate" if kind == "selected" else "scoring_rate"
    columns = ["rows", rate, "share", "ratio", "to_four_fifths"]
    for title, lines in PEERS[case][kind].items():
        ours = table.loc[title].loc[[_group(values) for values, *_ in lines]]
        assert len(table.loc[title]) == len(lines)
        _, rows, rates, shares, excluded, ratios, z, needed = zip(*lines, strict=True)
        theirs = np.column_stack([rows, rates, shares, ratios, needed])
        np.testing.assert_allclose(ours[columns], theirs, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours["z"].fillna(0.0), z, rtol=1e-12, atol=1e-12)
        assert (ours["status"].str.startswith("fewer") <= list(excluded)).all()
        compared = [not out and "unknown" not in values for values, *_, out, _, _, _ in lines]
        assert (ours["status"].isin(["", "reference", "below four fifths"]) == compared).all()


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("case", CASES)
def test_tests_and_differences_are_those_of_solas_ai(case, attribute):
    frame, theirs = CASES[case]().dropna(subset=[attribute]), PEERS[case][attribute]
    given = {"sensitive_features": frame[attribute], "reference": theirs["reference"]}
    decided = impact_ratios(None, frame["selected"], **given).loc[attribute].loc[theirs["groups"]]
    scored = score_impact_ratios(None, frame["score"], tops=TOPS, **given)
    scored = scored.loc[attribute].loc[theirs["groups"]]
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(decided["ratio"], theirs["ratio"], **close)
    np.testing.assert_allclose(decided["p_value"], theirs["p_value"], **close)
    differences = 100.0 * scored["standardized_difference"]
    np.testing.assert_allclose(differences, theirs["difference"], **close)
    for top in TOPS:
        ratios = np.array(theirs[f"top {top}"])  # ours are nan where theirs are x / 0
        ratios[np.isinf(ratios)] = np.nan
        np.testing.assert_allclose(scored[f"ratio_top_{100.0 * top:g}"], ratios, **close)
    shortfall = np.array(theirs["shortfall"])  # nan where a difference is not significant
    given = ~np.isnan(shortfall)
    assert (decided["to_parity"][given] == np.ceil(shortfall[given] - 1e-9)).all()


@pytest.mark.parametrize(("n", "m"), [(4, 4), (9, 6)])
def test_the_interval_of_a_ratio_covers_for_all_rates(n, m):
    """By enumeration of all counts; it is not much wider than it must be."""
    limits = np.array(
        [[ratio_interval((x, n), (y, m), 0.9) for y in range(m + 1)] for x in range(n + 1)]
    )
    coverages = []
    for ratio in (0.05, 0.3, 0.8, 1.0, 2.0, 20.0):
        inside = (limits[:, :, 0] <= ratio) & (ratio <= limits[:, :, 1])
        for rate in min(1.0, 1.0 / ratio) * np.linspace(0.05, 1.0, 20):
            first = binom.pmf(range(n + 1), n, min(ratio * rate, 1.0))
            coverages.append(first @ inside @ binom.pmf(range(m + 1), m, rate))
    assert 0.9 <= min(coverages) < 0.94


def test_a_reference_is_the_highest_rate_of_a_known_group_of_enough_rows_or_a_named_one():
    groups = np.repeat(["tiny", "most", "least", None], [10, 600, 390, 100])
    selected = np.concatenate([np.arange(n) < k for n, k in ((10, 9), (600, 300), (390, 117))])
    selected = np.append(selected, np.ones(100, dtype=bool))
    table = impact_ratios(None, selected, sensitive_features=groups).loc["sensitive features"]
    assert table["status"].to_dict() == {
        "tiny": "fewer than 2% of the rows",
        "most": "reference",
        "least": "below four fifths",
        "unknown": "unknown",
    }
    ratios = {"tiny": 1.8, "most": 1.0, "least": 0.6, "unknown": 2.0}
    assert table["ratio"].to_dict() == pytest.approx(ratios)
    every = impact_ratios(None, selected, sensitive_features=groups, least_share=0.0)
    assert every.loc[("sensitive features", "tiny"), "status"] == "reference"
    named = impact_ratios(None, selected, sensitive_features=groups, reference="least")
    assert named.loc[("sensitive features", "most"), "ratio"] == pytest.approx(5 / 3)
    assert named.loc[("sensitive features", "least"), ["z", "p_value", "ratio_low"]].isna().all()


def test_the_share_of_a_group_known_in_probability_is_its_mean_probability():
    selected = np.arange(200) < 80
    likely = np.where(selected, 0.02, 0.005)
    P = np.column_stack([likely, np.where(selected, 0.3, 0.6), np.where(selected, 0.68, 0.395)])
    groups = GroupProbabilities(P, ["tiny", "b", "c"])
    table = impact_ratios(None, selected, sensitive_features=groups).loc["sensitive features"]
    assert table["share"].to_dict() == pytest.approx(dict(zip(groups, P.mean(axis=0), strict=True)))
    assert table["status"].to_dict() == {
        "tiny": "fewer than 2% of the rows",
        "b": "below four fifths",
        "c": "reference",
    }


def test_references_are_named_by_attribute_and_crossed():
    frame = CASES["two even groups"]()
    given = {"sensitive_features": frame[ATTRIBUTES]}
    table = impact_ratios(None, frame["selected"], reference={"race": "r1"}, **given)
    assert table.loc[("race", "r1"), "status"] == "reference"
    assert table.loc[("sex", "m"), "status"] == "reference"
    table = impact_ratios(None, frame["selected"], reference={"race": "r1", "sex": "f"}, **given)
    assert table.loc[("sex, race", "sex=f, race=r1"), "status"] == "reference"
    for wrong in ("f", {"sex": "x"}, {"age": "f"}):
        with pytest.raises(ValueError, match="reference"):
            impact_ratios(None, frame["selected"], reference=wrong, **given)


def test_weights_are_free_of_units_and_equal_ones_are_none():
    frame = CASES["small groups"]()
    given = {"sensitive_features": frame["race"], "y_true": None}
    weight = np.random.default_rng(2).integers(1, 3, len(frame))  # halves are reached exactly
    plain = impact_ratios(y_pred=frame["selected"], **given)
    tiny = impact_ratios(y_pred=frame["selected"], sample_weight=np.full(len(frame), 1e-9), **given)
    pd.testing.assert_frame_equal(plain, tiny)
    rows = {"sensitive_features": list("aaabbbb"), "sample_weight": [1, 2, 1, 1, 1, 2, 2]}
    assert impact_ratios(None, np.arange(7) % 2, **rows)["z"].dropna().tolist() == [0.0]
    given["y_pred"] = frame["score"]
    tables = [score_impact_ratios(sample_weight=unit * weight, **given) for unit in (1.0, 0.7)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["to_parity"].isna().all()
    wider = tables[0]["ratio_high"] - tables[0]["ratio_low"]
    table = score_impact_ratios(**given)
    assert (wider.dropna() > (table["ratio_high"] - table["ratio_low"]).dropna()).all()


@pytest.mark.parametrize("measure", [impact_ratios, score_impact_ratios])
def test_strata_have_the_tables_of_their_rows_below_those_of_all_rows(measure):
    frame = CASES[next(iter(CASES))]()
    values = frame["selected" if measure is impact_ratios else "score"]
    band = np.where(np.arange(len(frame)) % 3, "low", "high")
    groups, control = frame[ATTRIBUTES], pd.Series(band, name="band")
    table = measure(None, values, sensitive_features=groups, control_features=control)
    parts = {"": measure(None, values, sensitive_features=groups)}
    for stratum in ("high", "low"):
        some = np.flatnonzero(band == stratum)
        alone = measure(None, values.iloc[some], sensitive_features=groups.iloc[some])
        parts[f" | band={stratum}"] = alone
    joined = pd.concat(
        [part.rename(index=lambda title, of=of: title + of, level=0) for of, part in parts.items()]
    )
    pd.testing.assert_frame_equal(table, joined)


def test_a_stratum_without_the_reference_group_has_no_ratios():
    groups, strata, selected = list("aabbbb"), list("xxxxyy"), [1, 0, 1, 1, 0, 1]
    given = {"sensitive_features": groups, "control_features": strata}
    table = impact_ratios(None, selected, reference="a", **given)
    alone = table.loc["sensitive features | stratum=y"]
    assert alone["ratio"].isna().all()
    assert alone["status"].tolist() == [""]
    assert table.loc[("sensitive features | stratum=x", "b"), "ratio"] == 2.0
