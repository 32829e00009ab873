"""Callbacks of scikit-learn on the fit of thresholds: folds and the search are tasks."""

import joblib
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, FairThresholds, make_biased_classification

X, Y, GROUPS = make_biased_classification(240, 4, gap=0.4, random_state=0)
callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


class Recorder:
    """A callback that notes the tasks, and what the fitted models predict."""

    def __init__(self):
        self.calls, self.decided = [], {}

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, metadata):
        self.calls.append(f"begin {context.task_name}")
        assert X is not None and metadata is None

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.calls.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.decided[context.task_name] = fitted_estimator.predict(X, GROUPS)


TASKS = {
    "folds": (2, ["fold 1 of 2", "fold 2 of 2", "refit", "thresholds"]),
    "split": (0.5, ["refit", "thresholds"]),
    "prefit": ("prefit", ["thresholds"]),
}


@pytest.mark.parametrize("kind, n_jobs", [*((kind, None) for kind in TASKS), ("folds", 2)])
def test_tasks(kind, n_jobs):
    cv, tasks = TASKS[kind]
    inner, recorder = LogisticRegression().fit(X, Y), Recorder()
    clf = FairThresholds(inner, cv=cv, per_group=True, n_jobs=n_jobs, random_state=0)
    with joblib.parallel_config("threading"):  # processes would import the library anew
        clf.set_callbacks(recorder).fit(X, Y, sensitive_features=GROUPS)
    inside = [f"{what} {task}" for task in tasks for what in ("begin", "end")]
    assert recorder.calls == ["setup", "begin fit", *inside, "end fit", "teardown"]
    assert_array_equal(recorder.decided["fit"], clf.predict(X, GROUPS))
    without = FairThresholds(inner, cv=cv, per_group=True, random_state=0)
    without.fit(X, Y, sensitive_features=GROUPS)
    assert_array_equal(without.thresholds_, clf.thresholds_)


def test_the_progress_bar_shows_the_iterations_of_the_classifier(capsys):
    clf = FairThresholds(FairLogisticClassifier(), cv=2).set_callbacks(callback.ProgressBar())
    clf.fit(X, Y, sensitive_features=GROUPS)
    shown = capsys.readouterr().out
    assert "refit | FairLogisticClassifier - fit" in shown
    assert not hasattr(clf.estimator_, "_skl_callbacks")
