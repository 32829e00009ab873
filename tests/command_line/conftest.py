"""The file of most tests of the command line."""

import pytest
from _support.command_line import table_of_a_user


@pytest.fixture
def table():
    return table_of_a_user()


@pytest.fixture
def file(table, tmp_path):
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    return str(path)
