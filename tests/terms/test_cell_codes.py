"""Codes of the cells that rows belong to."""

import numpy as np
import pytest

from fairconstrained.terms.cell_means import cell_codes, cell_matrix


@pytest.mark.parametrize("outside", [0, 7])
def test_codes_are_equal_for_rows_of_the_same_cells(outside):
    codes = np.random.default_rng(0).integers(0, 4, 60)
    codes[:outside] = -1
    found = cell_codes(cell_matrix(codes, np.ones(60), 4))
    for one in np.unique(found):
        assert len(np.unique(codes[found == one])) == 1
    assert len(np.unique(found)) == len(np.unique(codes))
