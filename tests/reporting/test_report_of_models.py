"""Reports of several models, of many groups, of a path, and in all forms."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.tree import DecisionTreeClassifier

import fairconstrained as fc
from fairconstrained.metrics import group_calibration
from fairconstrained.metrics.intervals import accuracy_change

N = 1200
X, Y, Z = fc.make_biased_classification(2 * N, 4, gap=0.3, n_groups=3, random_state=0)
Z = np.array(["a", "b", "c"])[Z]
TRAIN, TEST = np.arange(N), np.arange(N, 2 * N)


@pytest.fixture(scope="module")
def models():
    fair = fc.FairLogisticClassifier(kappa=0.05, enforce="decision")
    return {
        "before": LogisticRegression().fit(X[TRAIN], Y[TRAIN]),
        "after": fair.fit(X[TRAIN], Y[TRAIN], sensitive_features=Z[TRAIN]),
    }


def report(models, rows=TEST, groups=Z, **options):
    return fc.fairness_report(models, X[rows], Y[rows], groups[rows], **options)


def test_the_verdict_is_about_the_last_model(models):
    first, last = report(models), report(dict(reversed(models.items())))
    assert first.verdict.sentence != last.verdict.sentence
    gap = 100.0 * last.summary.loc["gap: demographic_parity", "before"]
    assert last.verdict.state == "not met"
    assert f"selection rates differ by {gap:.1f} percentage points" in last.verdict.sentence
    assert "at most 5 allowed" in last.verdict.sentence


VERDICTS = [
    (0.9, "holds", "Met on these rows"),
    (0.001, "not met", "Not met on these rows"),
    (None, "met", "In the population at most"),
]


@pytest.mark.parametrize(("tolerance", "state", "words"), VERDICTS)
def test_verdict_with_interval_for_new_rows(tolerance, state, words, models):
    found = report(models["after"], constraint=fc.DemographicParity(0.05))
    row = found.constraints.iloc[0]
    if tolerance is None:
        tolerance = 0.5 * (row["decisions"] + row["high"])
    found = report(models["after"], constraint=fc.DemographicParity(tolerance))
    assert found.verdict.state == state and words in found.verdict.sentence
    assert ("In the population between" in found.verdict.sentence) == (state == "not met")
    assert f"{100.0 * row['high']:.1f} with 95% confidence" in found.verdict.sentence
    page = found.to_html()
    look = {"holds": "good", "met": "warn", "not met": "bad"}[state]
    assert f'class="verdict {look}"' in page and found.verdict.sentence in page


def test_several_constraints_have_a_sentence_each(models):
    found = report(models, constraint=[fc.DemographicParity(0.9), fc.EqualizedOdds(1e-4)])
    assert found.verdict.sentence == "1 of 2 constraints are met on these rows."
    assert found.verdict.state == "not met" and len(found.verdict.details) == 2
    assert "true positive rates and false positive rates differ by" in found.verdict.details[1]
    ratio = report(models, constraint=fc.DisparateImpact(0.8)).verdict.sentence
    assert "the lowest of the selection rates is" in ratio and "at least 0.8 required" in ratio
    stored = {"sensitive_features": np.arange(60000) < 30000, "constraint": fc.DisparateImpact(0.8)}
    nearly = fc.FairnessReport.from_predictions(None, np.arange(60000) > 6000, **stored)
    assert "is 0.79997 times the highest, at least 0.8 required" in nearly.verdict.sentence
    assert "0.79997 [0.795, 0.805]  below four fifths" in str(nearly)


def test_cost_is_the_difference_on_the_same_rows(models):
    cost = report(models).cost.loc["after"]
    before, after = (model.predict(X[TEST]) for model in models.values())
    assert cost["accuracy"] == pytest.approx(np.mean(after == Y[TEST]) - np.mean(before == Y[TEST]))
    assert cost["low"] < cost["accuracy"] < cost["high"]
    assert cost["newly_selected"] == np.sum((after == 1) & (before == 0))
    assert cost["no_longer_selected"] == np.sum((after == 0) & (before == 1))
    assert "Against before, after has this cost: accuracy" in str(report(models))


@pytest.mark.parametrize("w", [1.0, 9.0])  # with the variance of all rows 0.80 for 9
def test_interval_of_the_cost_covers_where_a_tenth_of_weight_w_changes(w, rng):
    n, covered = 200, []
    for _ in range(400):
        changes, first = rng.random(n) < 0.1, rng.random(n) < 0.8
        second = np.where(changes, rng.random(n) < 0.6, first)
        _, low, high = accuracy_change(first, second, np.where(changes, w, 1.0), 0.9)
        covered.append(low <= (0.6 - 0.8) * w / (w + 9.0) <= high)
    assert 0.86 <= np.mean(covered) <= 0.96


def test_intervals_of_the_calibration_cover_rare_labels_and_single_rows(rng):
    p = np.append(rng.beta(1.0, 29.0, 400 * 60), 0.3)
    table = group_calibration(
        np.append(rng.random(400 * 60) < p[:-1], True), p,
        sensitive_features=np.append(np.repeat(np.arange(400), 60), 400),
    )  # fmt: skip
    low, high = table["calibration_low"].iloc[:-1], table["calibration_high"].iloc[:-1]
    assert np.mean((low <= 0.0) & (high >= 0.0)) > 0.93  # Student's: 0.87
    assert low["400"] < 0.0 and high["400"] > 0.9


def test_which_rows_decide_and_what_kappa_means(models):
    found = report(models["before"], constraint=fc.DemographicParity(0.02))
    decided = models["before"].predict(X[TEST])
    rates = {group: decided[Z[TEST] == group].mean() for group in "abc"}
    sizes = {group: int(np.sum(Z[TEST] == group)) for group in "abc"}
    high, low = max(rates, key=rates.get), min(rates, key=rates.get)
    counts = {group: int(decided[Z[TEST] == group].sum()) for group in "abc"}
    text = found.to_markdown()
    for group in (high, low):
        assert f"{group} ({counts[group]} of {sizes[group]} rows are selected" in text
    changes = np.ceil((rates[high] - rates[low] - 0.02) * min(sizes[high], sizes[low]))
    assert f"At least {changes:.0f} predictions in one of them would have to change" in text
    smallest = min(sizes, key=sizes.get)
    assert f"The smallest cell, {smallest} with {sizes[smallest]} rows" in text
    assert "allows the rates that are compared to differ by 2 in 100" in text


def test_a_gap_of_zero_is_described_as_equal():
    everybody = DummyClassifier(strategy="constant", constant=1)
    found = report(everybody.fit(X, Y), constraint="demographic_parity")
    assert found.constraints["worst"].tolist() == ["all equal"]
    gaps = found.gaps.loc[["selection_rate", "true_positive_rate"]]
    assert (gaps[["highest", "lowest"]] == "all equal").all(axis=None)
    assert "selection rates are all equal" in found.verdict.sentence
    assert found.to_html().count("all equal") >= 4


def test_many_groups_show_extremes_the_largest_and_others(models, rng):
    many = np.array([f"region {k:02d}" for k in rng.integers(0, 40, len(Z))])
    many[rng.random(len(Z)) < 0.2] = "large one"
    found = report(models, groups=many)
    page = found.to_html()
    assert 'type="search"' in page and "33 others" in page
    rates = found.groups.loc["after", "selection_rate"].iloc[:-1]
    panel, *others = page[page.index("<caption>Selection rate") :].split("</table>")
    assert re.search(r"all rows</th><td[^>]*>\d+<br>\d+</td>", others[3])  # selected by each model
    shown = [one for one in panel.split("<tr")[1:] if "hidden" not in one[:60]]
    for group in (rates.idxmax(), rates.idxmin(), "large one"):
        assert any(f'data-group="{group}"' in one for one in shown)
    assert sum("data-group" in one for one in shown) == 8
    assert sum("data-group" in one for one in panel.split("<tr")) == 41
    markdown = found.to_markdown()
    assert "(33 others)" in markdown and markdown.count("| region") < 40
    few = report(models).to_html().split("<script>")[0].split("</style>")[1]
    assert 'type="search"' not in few and "others" not in few


def test_frontier_of_a_path_on_these_rows(models):
    path = fc.fairness_path(
        fc.FairLogisticClassifier(), X[TRAIN], Y[TRAIN], sensitive_features=Z[TRAIN], n_kappas=4
    )
    found = report(models, path=path)
    for row, model in zip(found.frontier.itertuples(), path.estimators, strict=True):
        decided = model.predict(X[TEST])
        rates = [decided[Z[TEST] == group].mean() for group in "abc"]
        assert row.gap == pytest.approx(np.ptp(rates))
        assert row.accuracy == pytest.approx(np.mean(decided == Y[TEST]))
        assert row.low < row.accuracy < row.high
    page = found.to_html()
    assert "<h2>Frontier</h2>" in page and "after is the chosen one" in page
    assert f"kappa {path.kappas[0]:.3g}: gap {found.frontier['gap'][0]:.3f}" in page
    assert "<h2>Frontier</h2>" not in report(models).to_html()
    with pytest.raises(ValueError, match="path must be a FairnessPath"):
        report(models, path=[1, 2])


def test_scores_and_calibration_by_group(models):
    page = report(models).to_html()
    probability = models["after"].predict_proba(X[TEST])[:, 1]
    for group in "abc":
        rows = Z[TEST] == group
        median = np.median(probability[rows])
        assert f"{group} by after, {rows.sum()} rows: median {median:.3f}" in page
        assert f"Calibration of {group}, {rows.sum()} rows." in page
        assert f"observed {Y[TEST][rows].mean():.3f}" in page
    coarse, by_label = DecisionTreeClassifier(max_depth=1).fit(X, Y), TEST[np.argsort(Y[TEST])]
    page, other = report(coarse), report(coarse, by_label, sample_weight=np.full(N, 0.3))
    bins = [re.findall(r"[\d.]+ observed", each.to_html()) for each in (page, other)]
    assert bins[0] == bins[1] != [] and page.notes == other.notes
    scores_only = report(Perceptron().fit(X, Y)).to_html()
    assert "Score distribution" in scores_only and "Calibration of" not in scores_only


def test_axes_of_the_calibration_reach_as_far_as_the_points():
    rare = (np.arange(2 * N) % 30 == 0).astype(int)
    model = LogisticRegression().fit(X[TRAIN], rare[TRAIN])
    page = fc.fairness_report(model, X[TEST], rare[TEST], Z[TEST]).to_html()
    (end,) = re.findall(r"both from 0 to ([\d.]+), in bins", page)
    assert float(end) <= 0.3
    assert "both from 0 to 1, in bins" in report(LogisticRegression().fit(X, Y)).to_html()


def test_marginal_groups_are_the_same_in_tables_and_pictures():
    both = pd.DataFrame({"sex": Z, "old": np.arange(len(Y)) % 3 == 0})
    fair = fc.FairLogisticClassifier(kappa=0.2, combine="marginal")
    fair.fit(X[TRAIN], Y[TRAIN], sensitive_features=both.iloc[TRAIN])
    found = fc.fairness_report(fair, X[TEST], Y[TEST], both.iloc[TEST])
    names = [str(one) for one in found.groups.index[:-1]]
    assert names == ["sex=a", "sex=b", "sex=c", "old=False", "old=True"]
    assert [name.split(": ")[0] for name in found.gaps.index] == ["sex"] * 6 + ["old"] * 6
    page = found.to_html()
    for part in ("<caption>Selection rate", "<caption>Score distribution", "<h3>Calibration"):
        text = page[page.index(part) :]
        text = text[: text.index("</table>" if "caption" in part else "<h2>")]
        assert all(name in text for name in names)
        assert "a, False" not in text


def test_dictionary_and_json_hold_the_tables(models, tmp_path):
    found = report(models)
    text = found.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == text
    loaded = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert loaded == found.to_dict()
    assert loaded["verdict"]["sentence"] == found.verdict.sentence
    assert loaded["models"] == ["before", "after"] and loaded["rows"] == N
    assert len(loaded["groups"]) == len(found.groups)
    first = loaded["groups"][0]
    assert (first["model"], first["group"]) == ("before", "a")
    assert first["selection_rate"] == found.groups["selection_rate"].iloc[0]
    assert loaded["constraints"][0]["scores"] is None


def test_markdown_is_a_section_of_a_model_card(models, tmp_path):
    groups = np.where(Z == "a", "<b>|a", Z)
    found = report(models, groups=groups)
    text = found.to_markdown(tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == text
    assert text.startswith(f"## Fairness\n\n**{found.verdict.sentence}**")
    assert "<b>" not in text and "&lt;b>\\|a" in text and "expected on new rows |" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.replace("\\|", "").count("|") for line in tables}
    assert len(tables) > 10 and widths <= {3, 4, 6, 7, 9, 10, 11}


def test_what_a_bound_on_few_rows_is_worth(models):
    few = np.concatenate([TEST[Z[TEST] == "a"][:20], TEST[Z[TEST] != "a"]])
    found = report(models["after"], few, constraint=fc.DemographicParity(0.05)).to_markdown()
    selected = models["after"].predict(X[few[:20]]).sum()
    interval = binomtest(int(selected), 20).proportion_ci(0.95, "exact")
    low, high = (f"{100.0 * end:.1f}%" for end in interval)
    assert f"it may be anywhere between {low} and {high} (95% confidence)" in found
    rate = (selected + 2.0) / 24.0
    needed = np.ceil(rate * (1.0 - rate) * (1.959964 / 0.05) ** 2)
    assert f"it takes about {needed:.0f} rows to know this rate" in found
    wide = report(models["after"], few, constraint=fc.DemographicParity(0.6)).to_markdown()
    assert "may be anywhere" not in wide
