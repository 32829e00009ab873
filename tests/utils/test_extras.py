"""Optional dependencies: imported late, and a clear error where one is missing."""

import numpy as np
import pytest

from fairconstrained.utils.registry import import_extra


def test_a_module_that_is_installed_is_returned():
    assert import_extra("numpy", "boosting", "this test") is np


def test_the_error_names_what_needs_the_module_and_how_to_install_it():
    with pytest.raises(ImportError, match=r"this test needs absent_module.*\[boosting\]"):
        import_extra("absent_module", "boosting", "this test")


def test_an_import_error_within_a_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import absent_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_module"):
        import_extra("half_installed", "boosting", "this test")
