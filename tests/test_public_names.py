"""Public names are imported on first use."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import fairconstrained


def test_every_public_name_is_found():
    for name in fairconstrained.__all__:
        types = getattr(getattr(fairconstrained, name), "__annotations__", None)
        assert "_typing." not in repr(types) and name in dir(fairconstrained)  # `help` shows them


def test_type_checkers_see_the_public_names():
    tree = ast.parse(Path(fairconstrained.__file__).with_suffix(".pyi").read_text())
    listed = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert set(ast.literal_eval(listed)) == set(fairconstrained.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'FairThing'"):
        _ = fairconstrained.FairThing


def test_packages_are_attributes_and_nothing_is_imported_before_it_is_used():
    """NumPy and scikit-learn with the first name, optional dependencies not with an estimator."""
    code = (
        "import sys, fairconstrained\n"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)\n"
        "assert fairconstrained.penalties.L2(1.0) is not None\n"
        "assert fairconstrained.exceptions.InputWarning is fairconstrained.InputWarning\n"
        "import fairconstrained.constraints, fairconstrained.solvers, fairconstrained.plotting\n"
        "import fairconstrained.deployment, fairconstrained.dask, fairconstrained.models.network\n"
        "fairconstrained.FairNetworkClassifier(), fairconstrained.FairBoostingClassifier()\n"
        "extras = {'dask', 'distributed', 'lightgbm', 'matplotlib', 'skops', 'torch'}\n"
        "assert not extras & set(sys.modules), extras & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("of", [b"estimators.linear.logistic", b"reporting._verdict"])
def test_what_version_0_2_has_saved_says_why_it_does_not_load(of):
    with pytest.raises(AttributeError, match=r"of fairconstrained 0.2, whose files do not load"):
        pickle.loads(b"\x80\x04cfairconstrained." + of + b"\nVerdict\n.")
