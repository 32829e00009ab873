"""Tests of fairconstrained.datasets."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file

import fairconstrained as fc
from fairconstrained.datasets import _fetch as datasets

FETCHERS = [  # of files whose names are known
    getattr(fc.datasets, name)
    for name in fc.datasets.__all__
    if name.startswith("fetch_") and name != "fetch_mslr"
]
N_TRAIN, N_TEST, TRAIN_POSITIVES, TEST_POSITIVES = 32561, 16281, 7841, 3846


@pytest.fixture
def openml(monkeypatch):
    """A replacement of OpenML that records its arguments in `asked` and returns `answer`."""
    fake = SimpleNamespace(answer=None, asked=None)

    def fetch_openml(**asked):
        fake.asked = asked
        return fake.answer

    monkeypatch.delenv("FAIRCONSTRAINED_DATA", raising=False)
    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return fake


# Real data: sizes and rates are those of the README in the data folder, measured independently.


# The names of functions follow "fetch_".
FIGURES = json.loads(Path(__file__).with_name("figures_of_data.json").read_text())


@pytest.mark.parametrize(("name", "options", "shape", "rate"), FIGURES["sizes and rates"])
def test_sizes_and_rates(data_folder, name, options, shape, rate):
    bunch = getattr(fc.datasets, f"fetch_{name}")(**options)
    assert list(bunch.data.shape) == shape
    assert_allclose(bunch.target.mean(), rate, atol=5e-5)
    assert pd.api.types.is_integer_dtype(bunch.target)
    assert set(bunch.target) == {0, 1}
    assert len(bunch.target) == len(bunch.sensitive_features) == shape[0]
    assert len(bunch.feature_names) == shape[1]
    assert len(bunch.target_names) == 2
    assert bunch.frame is None
    assert bunch.target.name not in bunch.feature_names
    assert "licence" in bunch.DESCR and "https://" in bunch.DESCR
    tables = [bunch.target, bunch.sensitive_features]
    if not sp.issparse(bunch.data):
        tables.append(bunch.data)
        assert list(bunch.data.columns) == bunch.feature_names
        assert {dtype.kind for dtype in bunch.data.dtypes} <= {"i", "f", "O"}
        levels = bunch.data.select_dtypes(exclude="number").dtypes
        assert all(isinstance(dtype, pd.CategoricalDtype) for dtype in levels)
    for table in tables:
        assert_array_equal(table.index, np.arange(len(table)))


@pytest.mark.cases(1)
@pytest.mark.parametrize("fetcher", [fc.datasets.fetch_compas, fc.datasets.fetch_a9a])
def test_return_X_y(data_folder, fetcher):
    bunch = fetcher()
    X, y = fetcher(return_X_y=True)
    assert_series_equal(y, bunch.target)
    if sp.issparse(X):
        assert abs(bunch.data - X).nnz == 0
    else:
        assert_frame_equal(X, bunch.data)


def test_adult(data_folder):
    raw = pd.read_csv(data_folder / "adult.csv.gz")
    bunch = fc.datasets.fetch_adult()
    assert_array_equal(bunch.split, raw["split"])
    assert_array_equal(bunch.target, raw["income"] == ">50K")
    assert list(bunch.sensitive_features.columns) == ["sex", "race"]
    assert bunch.data.isna().any(axis=1).sum() == 3620
    assert "?" not in bunch.data["workclass"].cat.categories
    # Numbers stay numbers, and parts have the levels of all rows.
    assert bunch.data["education-num"].dtype.kind == "i"
    test = fc.datasets.fetch_adult(subset="test")
    assert (test.split == "test").all()
    part = bunch.data[bunch.split == "test"].reset_index(drop=True)
    assert_frame_equal(test.data, part)


def test_a9a(data_folder):
    bunch = fc.datasets.fetch_a9a()
    assert sp.issparse(bunch.data) and bunch.data.format == "csr"
    expected, labels = load_svmlight_file(data_folder / "a9a.svmlight.gz", n_features=123)
    assert abs(bunch.data - expected).nnz == 0
    assert_array_equal(bunch.target, labels > 0)
    assert set(bunch.split) == {"train"}
    assert bunch.sensitive_features.name == "sex"


@pytest.mark.cases(14)
@pytest.mark.parametrize(
    ("name", "options", "column", "group", "share"), FIGURES["shares of groups"]
)
def test_shares_of_groups(data_folder, name, options, column, group, share):
    groups = getattr(fc.datasets, f"fetch_{name}")(**options).sensitive_features
    groups = groups if column is None else groups[column]
    assert_allclose((groups == group).mean(), share, atol=5e-5)


def test_bank(data_folder):
    data = fc.datasets.fetch_bank().data
    assert "unknown" in data["job"].cat.categories
    assert not data.isna().any(axis=None)
    assert data["duration"].dtype.kind == "i"


def test_communities(data_folder):
    raw = pd.read_csv(data_folder / "communities.csv.gz")
    bunch = fc.datasets.fetch_communities()
    assert_array_equal(bunch.target, raw["ViolentCrimesPerPop"] > 0.28)
    assert not bunch.data.isna().any(axis=None)
    everything = fc.datasets.fetch_communities(drop_missing=False).data
    assert everything["OtherPerCap"].isna().sum() == 1
    assert everything["PolicCars"].isna().sum() == 1675
    assert {dtype.kind for dtype in everything.dtypes} == {"f"}
    not_predictive = {"state", "county", "community", "communityname", "fold"}
    assert not not_predictive & set(everything.columns)
    assert_frame_equal(everything[bunch.feature_names], bunch.data)


# The folder and its errors.


@pytest.mark.parametrize("fetcher", FETCHERS)
def test_missing_file(monkeypatch, tmp_path, fetcher):
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"gz'.*FAIRCONSTRAINED_DATA.*https://") as caught:
        fetcher()
    assert str(tmp_path) in str(caught.value)


def test_file_with_another_separator(monkeypatch, tmp_path):
    file = tmp_path / "bank-full.csv.gz"
    pd.DataFrame({"age": [30], "y": ["no"]}).to_csv(file, sep=";", index=False)
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"bank-full.csv.gz must be comma-separated.*'age;y'"):
        fc.datasets.fetch_bank()


INVALID_OPTIONS = [
    (fc.datasets.fetch_adult, {"subset": "both"}, r"'subset' parameter .*'train'.* Got 'both'"),
    (fc.datasets.fetch_a9a, {"subset": None}, r"'subset' parameter .* Got None"),
    (fc.datasets.fetch_bank, {"version": 2}, r"'version' parameter .*'additional'.* Got 2"),
    (fc.datasets.fetch_adult, {"return_X_y": "yes"}, "'return_X_y' parameter .* Got 'yes'"),
    (fc.datasets.fetch_compas, {"filtered": None}, "'filtered' parameter .* Got None"),
    (fc.datasets.fetch_communities, {"drop_missing": 2}, "'drop_missing' parameter .* Got 2"),
]


@pytest.mark.parametrize(("fetcher", "options", "message"), INVALID_OPTIONS)
def test_invalid_options_raise(fetcher, options, message):
    with pytest.raises(ValueError, match=message):
        fetcher(**options)


# OpenML: small tables with the columns and values of the copies on OpenML.


def adult_like(test_first):
    """Return rows with the sizes and rates of UCI; the capital gain numbers the rows."""
    label = np.full(N_TRAIN + N_TEST, "<=50K")
    label[:TRAIN_POSITIVES] = ">50K"
    label[N_TRAIN : N_TRAIN + TEST_POSITIVES] = ">50K"
    rows = np.arange(len(label))
    frame = pd.DataFrame(
        {
            "age": rows % 70,
            "workclass": pd.Categorical(np.where(rows % 7, "Private", None)),
            "race": pd.Categorical(np.where(rows % 5, "White", "Black"), ["White", "Black"]),
            "sex": pd.Categorical(np.where(rows % 3, "Male", "Female"), ["Male", "Female"]),
            "capital-gain": rows,
        }
    )
    target = pd.Series(pd.Categorical(label), name="class")
    if test_first:
        order = np.r_[N_TRAIN : len(rows), :N_TRAIN]
        frame = frame.iloc[order].reset_index(drop=True)
        target = target.iloc[order].reset_index(drop=True)
    return SimpleNamespace(data=frame, target=target)


@pytest.mark.parametrize("test_first", [True, False])
def test_openml_adult(openml, test_first):
    openml.answer = adult_like(test_first)
    bunch = fc.datasets.fetch_adult(data_home="cache")
    assert openml.asked == {"name": "adult", "version": 2, "data_home": "cache", "as_frame": True}
    assert_array_equal(bunch.data["capital-gain"], np.arange(N_TRAIN + N_TEST))
    assert (bunch.target.name, bunch.target.sum()) == ("income", TRAIN_POSITIVES + TEST_POSITIVES)
    assert_array_equal(bunch.split == "train", np.arange(N_TRAIN + N_TEST) < N_TRAIN)
    assert bunch.data["workclass"].isna().sum() == len(range(0, N_TRAIN + N_TEST, 7))
    assert list(bunch.data["sex"].cat.categories) == ["Female", "Male"]
    assert list(bunch.sensitive_features.columns) == ["sex", "race"]
    test = fc.datasets.fetch_adult(subset="test")
    assert_array_equal(test.data["capital-gain"], np.arange(N_TRAIN, N_TRAIN + N_TEST))


def test_openml_adult_with_unknown_order(openml):
    openml.answer = adult_like(test_first=False)
    openml.answer.target = openml.answer.target.sort_values(ignore_index=True)
    said = r"32561 training rows, 7841 of them positive.*found 48842"
    with pytest.raises(ValueError, match=said):
        fc.datasets.fetch_adult()


def test_openml_bank_has_column_names(openml):
    table = {f"V{i}": [i, i + 1] for i in range(1, 17)}
    table["V1"] = [24, 25]
    table["V3"] = pd.Categorical(["single", "married"])
    openml.answer = SimpleNamespace(
        data=pd.DataFrame(table), target=pd.Series(pd.Categorical(["1", "2"]), name="Class")
    )
    bunch = fc.datasets.fetch_bank()
    assert openml.asked == {"data_id": 1461, "data_home": None, "as_frame": True}
    names = "age job marital education default balance housing loan contact day month duration "
    names += "campaign pdays previous poutcome"
    assert bunch.feature_names == names.split()
    assert bunch.data["previous"].tolist() == [15, 16]
    assert_series_equal(bunch.target, pd.Series([0, 1], name="y"))
    assert bunch.sensitive_features["age"].tolist() == ["other", "25-60"]
    assert bunch.sensitive_features["marital"].tolist() == ["single", "not single"]


def test_openml_communities(openml):
    frame = pd.DataFrame(
        {
            "state": range(10),
            "communityname": [f"town{i}" for i in range(10)],
            "racepctblack": np.arange(10) / 100,
            "OtherPerCap": pd.Categorical(["0.5", None] * 5),
        }
    )
    rate = pd.Series(np.arange(10) / 10, name="ViolentCrimesPerPop")
    openml.answer = SimpleNamespace(data=frame, target=rate)
    bunch = fc.datasets.fetch_communities()
    assert openml.asked == {"name": "us_crime", "version": 1, "data_home": None, "as_frame": True}
    assert bunch.feature_names == ["racepctblack"]
    assert bunch.target.tolist() == [0] * 7 + [1] * 3
    assert bunch.sensitive_features.tolist() == ["low"] * 7 + ["high"] * 3
    assert fc.datasets.fetch_communities(drop_missing=False).data["OtherPerCap"].dtype.kind == "f"


def test_openml_a9a(openml):
    label = adult_like(test_first=True).target.map({"<=50K": "-1", ">50K": "1"}).to_numpy()
    male = np.arange(len(label)) % 3 > 0
    data = sp.lil_matrix((len(label), 123))
    data[:, 71] = (~male)[:, None]
    data[:, 72] = male[:, None]
    openml.answer = SimpleNamespace(data=data.tocsr(), target=label.astype(object))
    bunch = fc.datasets.fetch_a9a(subset="all")
    assert openml.asked == {"name": "a9a", "version": 1, "data_home": None, "as_frame": False}
    assert bunch.data.shape == (len(label), 123)
    assert bunch.target[:N_TRAIN].sum() == TRAIN_POSITIVES
    assert_array_equal(bunch.sensitive_features == "Male", np.roll(male, -N_TEST))
    assert bunch.feature_names[-1] == "x123"
    openml.answer.data = sp.csr_matrix((len(label), 123))
    with pytest.raises(ValueError, match="features 72"):
        fc.datasets.fetch_a9a()


NOT_ON_OPENML = [
    (fc.datasets.fetch_compas, {}),
    (fc.datasets.fetch_law_school, {}),
    (fc.datasets.fetch_bank, {"version": "additional"}),
]


@pytest.mark.parametrize(("fetcher", "options"), NOT_ON_OPENML)
def test_not_on_openml(openml, fetcher, options):
    advice = r"OpenML has no usable copy.*\.csv\.gz.*FAIRCONSTRAINED_DATA.*https://"
    with pytest.raises(FileNotFoundError, match=advice):
        fetcher(**options)
    assert openml.asked is None


def test_no_network(monkeypatch):
    def unreachable(**asked):
        raise OSError("no route to host")

    monkeypatch.delenv("FAIRCONSTRAINED_DATA", raising=False)
    monkeypatch.setattr(datasets, "fetch_openml", unreachable)
    with pytest.raises(OSError, match="no route") as caught:
        fc.datasets.fetch_adult()
    assert "FAIRCONSTRAINED_DATA" in caught.value.__notes__[0]


def test_folder_and_openml_give_equal_data(data_folder, openml, monkeypatch):
    raw = pd.read_csv(data_folder / "adult.csv.gz", na_values=["?"])
    raw = raw.drop(columns="split").iloc[np.r_[N_TRAIN : len(raw), :N_TRAIN]]
    raw = raw.reset_index(drop=True)
    text = raw.select_dtypes(exclude="number").columns
    raw[text] = raw[text].astype("category")
    target = raw.pop("income").rename("class")
    openml.answer = SimpleNamespace(data=raw, target=target)
    from_openml = fc.datasets.fetch_adult()
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(data_folder))
    from_folder = fc.datasets.fetch_adult()
    assert_frame_equal(from_openml.data, from_folder.data)
    assert_series_equal(from_openml.target, from_folder.target)
    assert_frame_equal(from_openml.sensitive_features, from_folder.sensitive_features)


# A user's own copy of MSLR-WEB10K.


def test_mslr(tmp_path):
    path = tmp_path / "train.txt"
    lines = [f"{k % 3} qid:{k // 4} 1:{k}.5 132:{k} 136:0\n" for k in range(10)]
    path.write_text("".join(lines))
    bunch = fc.datasets.fetch_mslr(path)
    assert bunch.data.shape == (10, len(bunch.feature_names)) == (10, 136)
    assert_array_equal(bunch.data[:, 0].toarray()[:, 0], np.arange(10) + 0.5)
    assert bunch.target.tolist() == [0, 1, 2] * 3 + [0]
    assert bunch.query.tolist() == [0] * 4 + [1] * 4 + [2] * 2
    assert bunch.sensitive_features.tolist() == ["low"] * 4 + ["high"] * 6


@pytest.mark.parametrize("line", ["", "1 qid:1 137:0.5", "1,2,3", "1 1:0.5"])
def test_mslr_of_another_form(tmp_path, line):
    path = tmp_path / "train.txt"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match=r"query|137 features|convert") as caught:
        fc.datasets.fetch_mslr(path)
    assert "path=" in caught.value.__notes__[0] and "LETOR" in caught.value.__notes__[0]
    with pytest.raises(FileNotFoundError, match=r"absent.txt' is not a file.*https://"):
        fc.datasets.fetch_mslr(tmp_path / "absent.txt")
