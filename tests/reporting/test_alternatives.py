"""The record of a search for alternatives, and where reports come from."""

import json
from importlib.metadata import version

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.command_line import asked, table_of_a_user
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained.__main__ import main
from fairconstrained.deployment import provenance, trusted_types

N = 1500
CLF = fc.FairLogisticClassifier()
DATA = fc.make_biased_classification(N, gap=0.3, random_state=0)


@pytest.fixture(scope="module")
def record():
    models = {
        "linear": make_pipeline(StandardScaler(), fc.FairLogisticClassifier()),
        "thresholds": fc.FairThresholds(LogisticRegression(), per_group=True),
    }
    return fc.find_alternatives(models, *DATA, max_loss=0.02, n_kappas=3)


def test_the_fairest_candidate_of_nearly_the_score_of_the_baseline_is_recommended(record):
    table = record.candidates
    free = table[table["share"].isna()]
    assert record.baseline == free["choice_score"].idxmax()
    allowed = table["choice_score"] >= free["choice_score"].max() - 0.02 - 1e-12
    assert table["allowed"].tolist() == allowed.tolist()
    assert record.recommended == table[allowed]["choice_gap"].idxmin()
    assert table.loc[record.recommended, "gap"] < table.loc[record.baseline, "gap"]


def test_figures_are_those_of_the_model_on_rows_that_chose_nothing(record):
    row, after = record.candidates.loc[record.recommended], record.report.summary["recommended"]
    assert [sum(each) for each in record.sizes.values()] == [900, 300, 300]
    assert row["accuracy"] == pytest.approx(after["accuracy"])
    assert row["gap"] == pytest.approx(after["gap: demographic_parity"])
    before = record.report.summary["baseline"]["accuracy"]
    assert row["cost"] == pytest.approx(before - row["accuracy"])
    assert set(record.candidates["status"]) <= {"converged", ""}
    assert len(record.report._evidence.rows.weight) == 300


def test_labels_of_the_rows_for_the_figures_choose_nothing():
    X, y, groups = DATA
    part = [(np.arange(N - 300), np.arange(N - 300, N))]
    others = np.where(np.arange(N) < N - 300, y, 1 - y)
    model, options = fc.FairLogisticClassifier(bound=True), {"n_kappas": 3, "cv": part}
    found = [fc.find_alternatives(model, X, each, groups, **options) for each in (y, others)]
    assert found[0].recommended == found[1].recommended
    same = ["choice_score", "choice_gap", "allowed", "kappa"]
    assert found[0].candidates[same].equals(found[1].candidates[same])
    assert not found[0].candidates["score"].equals(found[1].candidates["score"])
    assert found[0].model.optimality_gap_ < 0.01
    assert found[0].model.result_.optimality in found[0].reasons[-1]


@pytest.mark.parametrize("constraint", ["demographic_parity", "disparate_impact"])
def test_with_several_parts_every_row_is_measured_once_and_the_model_is_fitted_to_all(constraint):
    X, y, groups = DATA
    model = fc.FairLogisticClassifier(constraint, enforce="decision")
    options = {"score": "roc_auc", "max_loss": 0.3, "n_kappas": 4, "cv": 3}
    record = fc.find_alternatives(model, X, y, pd.Index(groups.astype(str)), **options)
    assert sum(record.sizes["measure"]) == N
    assert record.report.groups.loc["baseline", "rows"].iloc[-1] == N
    kappa, given = record.candidates["kappa"][record.recommended], record.model.get_params()
    bound = given["kappa"] if constraint == "demographic_parity" else 1 - given["constraint__ratio"]
    assert bound == pytest.approx(kappa, rel=0.2)
    assert record.model.decision_gap_ <= bound < record.candidates["gap"][record.baseline]
    again = clone(record.model).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(record.model.coef_, again.coef_)


def test_a_baseline_of_another_library_and_seeds():
    X, y, groups = DATA
    trees = fc.FairBoostingClassifier(n_estimators=5, subsample=0.5, subsample_freq=1, n_jobs=1)
    options = {"baseline": LogisticRegression(), "n_kappas": 1, "n_seeds": 2}
    record = fc.find_alternatives({"trees": trees}, X, y, groups, max_loss=0.3, **options)
    assert record.baseline == "baseline"
    assert set(record.candidates["estimator"]) == {"trees, seed 0", "trees, seed 1", "baseline"}
    assert len(record.candidates[["choice_gap", "gap"]].drop_duplicates()) > 3
    assert record.model.random_state in (0, 1)


def test_a_baseline_of_this_library_is_fitted_as_it_is():
    X, y, groups = DATA
    clf = fc.FairLogisticClassifier(kappa=0.05)
    record = fc.find_alternatives(clf, X, y, groups, baseline=clf, n_kappas=1)
    assert record.candidates.index[-1] == record.baseline == "baseline"
    assert record.candidates["gap"].iloc[-1] < record.candidates["gap"].iloc[0]
    baseline, recommended = record.plot().ax_.lines[-3:-1]
    assert baseline.get_marker() != recommended.get_marker()


def test_no_change_is_recommended_where_none_has_a_smaller_gap():
    options = {"baseline": fc.FairLogisticClassifier(None), "max_loss": 0.0, "n_kappas": 1}
    record = fc.find_alternatives(CLF, *DATA, **options)
    table = record.candidates
    assert table["choice_gap"].iloc[0] == table.loc["baseline", "choice_gap"]
    assert record.recommended == "baseline"
    assert record.reasons[0].startswith("No change is") and "between 1 (" in record.reasons[1]


@pytest.mark.parametrize(
    "constraint", [["demographic_parity", "error_rate_parity"], "balanced_rate"]
)
def test_the_first_bound_is_the_smallest_that_a_model_without_constraints_meets(constraint):
    X, y, groups = DATA
    several = np.where(X[:, 0] > 1.0, 2, y)
    options = {"n_kappas": 1, "pos_label": 1, "criterion": "demographic_parity"}
    models = [fc.FairLogisticClassifier(each) for each in ("demographic_parity", constraint)]
    two = [fc.find_alternatives(clf, X, several, groups, **options) for clf in models]
    assert two[0].report.to_dict()["positive_class"] == 1
    assert two[0].candidates["kappa"].iloc[1] == pytest.approx(two[1].candidates["kappa"].iloc[1])


def test_the_record_as_text_json_and_html(record, tmp_path):
    found = json.loads(record.to_json(tmp_path / "record.json"))
    assert found["recommended"] == record.recommended
    assert found["reasons"] == record.reasons
    assert found["report"]["verdict"]["state"]
    assert len(found["candidates"]) == len(record.candidates)
    for text in (str(record), record.to_markdown(), record.to_html()):
        assert all(name in text for name in record.candidates.index)
        assert "900 training rows, chosen on 300 validation rows, and measured on 300 test" in text


def test_the_picture_has_all_candidates_and_the_least_score(record):
    lines = record.plot().ax_.lines
    drawn = {p for line in lines for p in zip(*map(np.ravel, line.get_data()), strict=False)}
    assert set(record.candidates[["gap", "score"]].itertuples(index=False, name=None)) <= drawn
    least = record.candidates["score"][record.baseline] - 0.02
    assert lines[-1].get_ydata()[0] == pytest.approx(least)


NOT_SEARCHED = [
    (LogisticRegression(), {}, "LogisticRegression has no tolerance to vary"),
    (fc.FairLogisticClassifierCV(), {}, "FairLogisticClassifierCV has no tolerance to vary"),
    (fc.FairRanker(), {}, "FairRanker has no tolerance to vary. Pass classifiers"),
    (fc.FairLogisticClassifier(fc.DemographicParity(0.1)), {}, "has no tolerance to vary"),
    (fc.FairLogisticClassifier(goal="fairness"), {}, "has no tolerance to vary"),
    ({"recommended": CLF}, {}, "estimator: 'recommended' is a name of the record"),
    (CLF, {"max_loss": -0.1}, "max_loss"),
    (CLF, {"criterion": "roc_parity"}, "cannot be measured"),
    (CLF, {"criterion": "parity"}, "criterion='parity' is unknown"),
    (CLF, {"score": accuracy_score}, "looks like it is a metric"),
    (CLF, {"score": lambda *_: 1.0, "sample_weight": np.ones(N)}, "takes no sample_weight, and"),
    (CLF, {"cv": [(np.arange(900), np.arange(900, N))] * 2}, "has rows twice: a row may be a t"),
    (CLF, {"cv": [(np.arange(N), np.arange(900))]}, "has rows twice: a row may be a test"),
]


@pytest.mark.parametrize(("estimator", "options", "message"), NOT_SEARCHED)
def test_what_cannot_be_searched_is_refused(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        fc.find_alternatives(estimator, *DATA, n_kappas=1, **options)


def test_rows_that_cannot_be_searched_are_refused_with_what_to_do():
    X, y, groups = DATA
    with pytest.raises(ValueError, match=r"all rows are of one group, all, .* two groups or more"):
        fc.find_alternatives(CLF, X, y, ["all"] * N)
    with pytest.raises(ValueError, match=r"y has missing values \(NaN or None\) in 2 of 1500 rows"):
        fc.find_alternatives(CLF, X, np.where(np.arange(N) < 2, np.nan, y), groups)
    with pytest.raises(ValueError, match=r"rows cannot be split.*one class only. Pass more"):
        fc.find_alternatives(CLF, X, y, groups, cv=[(np.arange(N), np.flatnonzero(y))])
    with pytest.raises(ValueError, match=r"False \(300 rows\). Pass more rows of each group"):
        fc.find_alternatives(CLF, X, y, np.arange(N) < 2, n_kappas=1)


def test_a_score_of_your_own_and_warnings_in_words():
    X, y, groups = (part[:400] for part in DATA)
    clf, weight = fc.FairLogisticClassifier(enforce="decision"), 1.0 + np.arange(400) % 2

    def score(model, X, y, sample_weight):
        return np.average(model.predict(X) == y, weights=sample_weight)

    record = fc.find_alternatives(clf, X, y, groups, score=score, sample_weight=weight, n_kappas=2)
    table = record.candidates
    assert table["score"].to_numpy() == pytest.approx(table["accuracy"].to_numpy())
    assert [*table["status"]] == ["converged"] * 2 + ["converged; bound likely missed on new rows"]
    few = [part[:40] for part in DATA]  # the warning of one point is not that of the others
    assert {*fc.find_alternatives(CLF, *few, n_kappas=2).candidates["status"]} == {"converged"}
    table = fc.find_alternatives(clf, X, y, np.arange(400) % 40, n_kappas=1).candidates
    assert "; a fit warned: The sensitive features make 40 groups of" in table["status"].iloc[-1]


X, Y, GROUPS = fc.make_biased_classification(300, 3, gap=0.4, random_state=0)


MODEL = fc.FairLogisticClassifier(kappa=0.1, random_state=4).fit(X, Y, sensitive_features=GROUPS)


def test_a_report_says_where_it_comes_from():
    report = fc.fairness_report(MODEL, X, Y, GROUPS)
    origin = report.provenance
    assert origin["fairconstrained"] == fc.__version__
    assert origin["scipy"] == version("scipy") and origin["seeds"] == "random_state=4"
    assert (origin["rows"], origin["held out"]) == ("300", "no, training rows")
    for text in (report.to_html(), report.to_markdown()):
        assert all(origin[name] in text for name in ("data", "parameters", "date"))
    assert json.loads(report.to_json())["provenance"] == origin
    again = fc.fairness_report({"a": MODEL}, X, Y, GROUPS).provenance
    assert again["data"] == origin["data"] and again["parameters of a"] == origin["parameters"]
    others = [
        fc.fairness_report(MODEL, X + np.eye(300, 3), Y, GROUPS),
        fc.fairness_report(MODEL, X, 1 - Y, GROUPS),
        fc.fairness_report(MODEL, X, Y, GROUPS.astype("M8[Y]")),
        fc.fairness_report(MODEL, X, Y, GROUPS, sample_weight=np.arange(1, 301)),
        *(fc.fairness_report(MODEL, X, Y, GROUPS, control_features=k < X) for k in (0.0, 0.1)),
    ]
    assert len({origin["data"], *(other.provenance["data"] for other in others)}) == 7


def test_rows_are_hashed_by_their_values():
    frame = pd.DataFrame(X, columns=list("abc"))
    tables = [frame, frame.set_axis(frame.index + 7), np.asfortranarray(X), X]
    hashes = [provenance(None, rows)["data"] for rows in tables]
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]
    by_row, by_column = map(provenance, [None] * 2, [sp.csr_array(X), sp.csc_array(X)])
    assert by_row["data"] == by_column["data"] != provenance(None, sp.csr_array((2, 3)))["data"]
    table = {"a": [1.0, 2.0], "b": ["x", "y"]}
    polars = pytest.importorskip("polars")
    tables = [library.DataFrame(table) for library in (pd, polars)]
    tables.append(tables[1].rename({"a": "c"}))
    hashes = [provenance(None, rows)["data"] for rows in tables]
    assert hashes[0] == hashes[1] != hashes[2]
    models = [fc.FairLogisticClassifier(kappa=kappa) for kappa in (0.1, 0.1, 0.2)]
    parameters = [provenance(model)["parameters"] for model in models]
    assert parameters[0] == parameters[1] != parameters[2]
    with pytest.raises(TypeError, match="sensitive_features is not text: rows are passed by posi"):
        provenance(MODEL, X, sensitive_features=GROUPS)


@pytest.mark.parametrize("ending", ["joblib", "skops"])
def test_a_model_file_says_where_it_comes_from(ending, tmp_path):
    file, stored = tmp_path / "data.csv", tmp_path / f"model.{ending}"
    table_of_a_user().head(200).to_csv(file, index=False)
    outputs = ["--model", str(stored), "--json", str(tmp_path / "out.json")]
    assert main(asked(str(file), "--seed", "3", *outputs)) == 0
    if ending == "skops":
        import skops.io

        model = skops.io.load(stored, trusted=[*trusted_types(), "numpy.dtype"])
    else:
        model = joblib.load(stored)
    origin = model.provenance_
    assert json.loads((tmp_path / "out.json").read_text())["provenance"] == origin
    assert (origin["training rows"], origin["held out rows"]) == ("150", "50")
    assert origin["seed of the split"] == "3" and len(origin["data"]) == 64
