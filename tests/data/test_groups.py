"""Encoding of groups: every container that users hold sensitive features in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fairconstrained.data.attributes import in_order
from fairconstrained.data.groups import Groups, check_groups

WORDS = ["m", "f", "x", "f", "m"]
CODES = [1, 0, 2, 0, 1]

ONE_COLUMN = {
    "list": WORDS,
    "array of str": np.array(WORDS),
    "array of object": np.array(WORDS, dtype=object),
    "one column": np.array(WORDS)[:, None],
    "list of lists": [[word] for word in WORDS],
    "Series": pd.Series(WORDS, index=[9, 8, 7, 7, 5]),
    "Series of string": pd.Series(WORDS, dtype="string"),
    "Categorical": pd.Categorical(WORDS, categories=["x", "m", "f", "unused"]),
    "Series of category": pd.Series(pd.Categorical(WORDS, categories=["x", "unused", "m", "f"])),
    "DataFrame": pd.DataFrame({"sex": WORDS}),
    "polars Series": pl.Series(WORDS),
    "polars Categorical": pl.Series(WORDS, dtype=pl.Categorical),
    "polars DataFrame": pl.DataFrame({"sex": WORDS}),
}
NUMBERS = {
    "list of int": ([3, 1, 7, 1, 3], [1, 3, 7]),
    "uint8": (np.array([3, 1, 200, 1], dtype="uint8"), [1, 3, 200]),
    "float": (np.array([0.5, -2.0, 0.5]), [-2.0, 0.5]),
    "float16": (np.array([3.0, 1.0], "float16"), [1, 3]),
    "bool": (np.array([True, False]), [False, True]),
    "object": (np.array([3, 1, 2], dtype=object), [1, 2, 3]),
    "Int64": (pd.Series([3, 1, 2], dtype="Int64"), [1, 2, 3]),
    "boolean": (pd.Series([True, False], dtype="boolean"), [False, True]),
    "polars bool": (pl.Series([True, False]), [False, True]),
    "dates": ([pd.Timestamp(0), pd.Timestamp(1)],) * 2,
    "no masked entries": (np.ma.masked_array([3, 1, 2], mask=[0, 0, 0]), [1, 2, 3]),
    "sparse": (sp.csr_array(np.array([[0], [2], [0]])), [0, 2]),
}
SEX, AGE = ["m", "f", "m", "f", "m"], [30, 30, 50, 30, 30]
SEVERAL_COLUMNS = {
    "DataFrame": pd.DataFrame({"sex": SEX, "age": AGE}, index=[5, 3, 3, 1, 0]),
    "DataFrame of category": pd.DataFrame({"sex": pd.Categorical(SEX), "age": AGE}),
    "polars DataFrame": pl.DataFrame({"sex": SEX, "age": AGE}),
    "array of object": np.array([SEX, AGE], dtype=object).T,
    "list of lists": [list(row) for row in zip(SEX, AGE, strict=True)],
    "list of tuples": list(zip(SEX, AGE, strict=True)),
}
MISSING = {
    "list": ["a", None, "b", None],
    "float": np.array([0.0, np.nan, 1.0, np.nan]),
    "Series of string": pd.Series(["a", pd.NA, "b", pd.NA], dtype="string"),
    "Series of category": pd.Series(["a", None, "b", None], dtype="category"),
    "Int64": pd.Series([1, pd.NA, 2, pd.NA], dtype="Int64"),
    "DataFrame": pd.DataFrame({"one": [1, 2, 3, 4], "two": ["a", None, "b", None]}),
    "masked": np.ma.masked_array([0.5, 1.0, 2.0, 3.0], [0, 1, 0, 1]),
    "masked text": np.ma.masked_array(list("abcd"), [0, 1, 0, 1]),
    "masked table": np.ma.masked_array([[1, 1], [2, 2], [3, 3], [4, 4]], [[0, 0], [0, 1]] * 2),
    "polars str": pl.Series(["a", None, "b", None]),
    "polars DataFrame": pl.DataFrame({"one": [1, 2, 3, 4], "two": [True, None, False, None]}),
}


def each(cases):
    """Run all cases of a table, also by default."""

    def mark(function):
        every = pytest.mark.parametrize("case", cases.values(), ids=cases)
        return pytest.mark.cases(len(cases))(every(function))

    return mark


@each(ONE_COLUMN)
def test_one_column(case):
    groups = Groups.encode(case)
    assert groups.names.tolist() == ["f", "m", "x"]
    assert groups.codes.tolist() == CODES
    assert len(groups) == 3


@each(NUMBERS)
def test_numbers_and_bools_keep_their_values(case):
    values, names = case
    groups = Groups.encode(values)
    assert groups.names.tolist() == names
    plain = values.toarray() if sp.issparse(values) else values
    assert groups.names[groups.codes].tolist() == np.ravel(plain).tolist()


@each(SEVERAL_COLUMNS)
def test_several_columns_are_intersected(case):
    groups = Groups.encode(case)
    assert groups.names.tolist() == [("f", 30), ("m", 30), ("m", 50)]
    assert groups.codes.tolist() == [1, 0, 2, 0, 1]


@each(MISSING)
def test_missing_values_are_counted_or_grouped_or_left_out(case):
    with pytest.raises(ValueError, match="sensitive_features has missing values in 2 of 4 rows"):
        Groups.encode(case)
    with pytest.raises(ValueError, match="race has missing values"):
        Groups.encode(case, name="race")
    own = Groups.encode(case, missing="own_group")
    last = np.atleast_1d(own.names[own.codes[1]])[-1]
    assert last == "missing" and own.codes.min() == 0
    ignored = Groups.encode(case, missing="ignore_in_constraint")
    assert ignored.codes.tolist() == [0, -1, 1, -1]
    assert ignored.known.tolist() == [True, False, True, False]
    assert ignored.take(np.array([1, 2])).codes.tolist() == [-1, 0]


RECORDS = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])
RECORD_ARRAY = (
    r"^race is a record array with the fields \['a', 'b'\]: pass a table with these "
    r"columns, `pandas.DataFrame\(race\)`\.$"
)
SEVERAL_TYPES = "race has values of several types .*({}).*astype"
BAD = {
    "numbers and strings": ([1, "1", 2.0], SEVERAL_TYPES.format("numbers, strings")),
    "bools and numbers": ([True, 1, 0], SEVERAL_TYPES.format("bools, numbers")),
    "strings and tuples": (["a", ("a",)], SEVERAL_TYPES.format("strings, tuple")),
    "missing as well": (pd.Series(["a", 1, None]), SEVERAL_TYPES.format("numbers, strings")),
    "a mapping": ({"sex": [0, 1]}, "a table with a column per attribute; got dict"),
    "three dimensions": (np.zeros((2, 2, 2)), "a column per attribute; got 3 dim"),
    "an empty table": (pd.DataFrame(index=[0, 1]), "no columns"),
    "an empty array": (np.zeros((2, 0)), "no columns"),
    "records": (RECORDS, RECORD_ARRAY),
    "recarray": (RECORDS.view(np.recarray), RECORD_ARRAY),
    "a group of that name": (["missing", None], r"a group called 'missing'.*rename"),
}


@each(BAD)
def test_bad_values(case):
    values, message = case
    with pytest.raises(ValueError, match=message):
        Groups.encode(values, name="race", missing="own_group")


def test_the_length_is_checked():
    assert check_groups(WORDS, 5).codes.tolist() == CODES
    for groups in (WORDS, Groups.encode(WORDS)):
        with pytest.raises(ValueError, match="sensitive_features has 5 rows, X has 6"):
            check_groups(groups, 6)


@given(st.lists(st.sampled_from("abcd"), min_size=1), st.randoms())
def test_the_order_of_rows_does_not_matter(values, random):
    groups, shuffled = Groups.encode(values), list(values)
    random.shuffle(shuffled)
    assert_array_equal(Groups.encode(shuffled).names, groups.names)
    assert groups.names.tolist() == sorted(set(values))
    assert groups.names[groups.codes].tolist() == values


def test_take_forgets_groups_without_rows():
    taken = Groups.encode(WORDS).take(np.array([2, 0, 4]))
    assert taken.names.tolist() == ["m", "x"]
    assert taken.codes.tolist() == [1, 0, 0]
    pairs = Groups.encode(SEVERAL_COLUMNS["DataFrame"]).take(np.array([2, 1]))
    assert pairs.names.tolist() == [("f", 30), ("m", 50)]


@pytest.mark.parametrize("dtype", [">i8", ">f4", ">u2", ">U2", ">M8[s]"])
def test_values_in_another_byte_order(dtype):
    values = np.array([3, 1, 3, 2]).astype(dtype)
    native = values.astype(values.dtype.newbyteorder("="))
    table = np.column_stack([values, values])
    for given_ in (values, pd.Series(values), pd.DataFrame({"a": values}), table[:, :1]):
        groups = Groups.encode(given_)
        assert_array_equal(groups.codes, [2, 0, 2, 1])
        assert_array_equal(groups.names, native[[1, 3, 0]])
    assert_array_equal(Groups.encode(table).codes, [2, 0, 2, 1])


def test_a_table_of_pyarrow():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"sex": WORDS, "age": [1, 2, 1, 2, 1]})
    expected = Groups.encode(frame)
    for table in (pa.Table.from_pandas(frame), pa.RecordBatch.from_pandas(frame)):
        groups = Groups.encode(table)
        assert_array_equal(groups.codes, expected.codes)
        assert groups.names.tolist() == expected.names.tolist()
        assert groups.column_names == ("sex", "age")
        assert_array_equal(Groups.encode(table.select(["sex"])).codes, CODES)
        turned = in_order(table.select(["age", "sex"]), ("sex", "age"), "groups")
        assert_array_equal(Groups.encode(turned).codes, expected.codes)
