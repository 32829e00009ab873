"""Callbacks of scikit-learn on a cross-validation: folds and points are tasks."""

import pytest
from numpy.testing import assert_array_equal

from fairconstrained import FairLogisticClassifierCV, make_biased_classification

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


@pytest.fixture(scope="module")
def data():
    return make_biased_classification(900, 5, gap=0.4, random_state=0)


PATHS = ("fold 1 of 2", "fold 2 of 2")


class Recorder:
    """A callback that notes the tasks and the models that it sees."""

    def __init__(self):
        self.calls, self.models = [], {}

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.calls.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.models[context.task_name] = fitted_estimator.predict(X)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_see_folds_and_points(data, n_jobs):
    X, y, groups = data
    recorder = Recorder()
    clf = FairLogisticClassifierCV(kappas=[0.2, 0.05], cv=2, max_gap=0.3, n_jobs=n_jobs)
    clf.set_callbacks(recorder).fit(X, y, sensitive_features=groups)
    points = [(what, f"kappa={k}") for k in (0.2, 0.05) for what in ("begin", "end")]
    expected = [("setup", "fit"), ("begin", "fit")]
    for path in PATHS:
        expected += [("begin", path), *points, ("end", path)]
    expected += [("begin", "refit"), ("end", "refit"), ("end", "fit"), ("teardown", "fit")]
    assert recorder.calls == expected
    assert_array_equal(recorder.models["fit"], clf.predict(X))


def test_the_progress_bar_shows_the_iterations_of_the_last_fit(data, capsys):
    X, y, groups = data
    clf = FairLogisticClassifierCV(kappas=[0.2, 0.05], cv=2, max_gap=0.3)
    clf.set_callbacks(callback.ProgressBar()).fit(X, y, sensitive_features=groups)
    shown = capsys.readouterr().out
    assert all(path in shown for path in PATHS)
    assert "refit | FairLogisticClassifier - fit" in shown
    assert not hasattr(clf.best_estimator_, "_skl_callbacks")
