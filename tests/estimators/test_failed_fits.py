"""A fit that fails or is interrupted leaves an estimator as it was."""

import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from _support.every_estimator import MODELS, arguments, generated_rows, model_needs_groups, needed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import fairconstrained

PACKAGE = str(Path(fairconstrained.__file__).parent)
FRACTIONS = (0.01, 0.5, 0.9)  # of the calls of a fit: checks, the solver, what is stored


@pytest.fixture(scope="module")
def rows():
    return generated_rows()


def attempted(fit, calls=None):
    """Run a fit, interrupted after a number of calls of functions; return how many it made."""
    made = 0

    def count(frame, event, _):
        nonlocal made
        code = frame.f_code
        closing = code.co_flags & inspect.CO_GENERATOR  # what a generator raises then is ignored
        if event == "call" and code.co_filename.startswith(PACKAGE) and not closing:
            made += 1
            if made == calls:
                raise KeyboardInterrupt

    with warnings.catch_warnings():  # small models, few iterations
        warnings.simplefilter("ignore")
        sys.setprofile(count)
        try:
            fit()
        finally:
            sys.setprofile(None)
    return made


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_fit_that_does_not_end_leaves_the_estimator_as_it_was(name, rows):
    needed(name)
    X, y, given = arguments(name, rows)
    model = clone(MODELS[name])
    before, narrow = dict(vars(model)), np.ascontiguousarray(X[:, :3])
    other = clone(model)
    n_calls = min(attempted(lambda: other.fit(narrow, y, **given)) for _ in "12")  # warmed up

    def is_left_alone():
        wrong = np.append(narrow[1:], np.full((1, 3), np.inf), axis=0)
        with pytest.raises(ValueError):
            model.fit(wrong, y, **given)
        assert vars(model) == before
        for fraction in FRACTIONS:
            with pytest.raises(KeyboardInterrupt):
                attempted(lambda: model.fit(narrow, y, **given), int(fraction * n_calls))
            assert vars(model).keys() == before.keys()
            assert all(vars(model)[key] is before[key] for key in before)

    is_left_alone()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    attempted(lambda: model.fit(X, y, **given))
    before = dict(vars(model))
    by_group = {key: given[key] for key in ("sensitive_features",) if model_needs_groups(model)}
    predicted = model.predict(X, **by_group)
    is_left_alone()
    np.testing.assert_array_equal(model.predict(X, **by_group), predicted)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(narrow, **by_group)
