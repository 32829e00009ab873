"""Callbacks of scikit-learn, which it has from version 1.9 on."""

import threading

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


X, Y, GROUPS = fc.make_biased_classification(300, 5, gap=0.4, random_state=0)


TABLE = pd.DataFrame(X).add_prefix("x").assign(sex=np.where(GROUPS > 0, "m", "f"))


class Recorder:
    """A callback that records its calls and decisions, and stops after `limit` iterations."""

    def __init__(self, limit=np.inf):
        self.limit = limit
        self.calls = []
        self.decisions = {}

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, metadata):
        self.calls.append(f"begin {context.task_name}")
        assert metadata is None and (X is not None or context.task_name != "fit")

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.calls.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.decisions[context.task_name] = fitted_estimator.predict(X)
        return self.calls.count("end iteration") >= self.limit


PATHS, POINTS = ["fold 1 of 2", "fold 2 of 2"], ["kappa=0.2", "kappa=0.05"]
PER_GROUP = {"sensitive_columns": "sex", "per_group": True, "random_state": 0}
OF_FOLDS = fc.FairThresholds(LogisticRegression(), cv=2, **PER_GROUP)
TASKS = {  # a name stands for a task, (name, names) for a task with others inside
    "cv": (
        fc.FairLogisticClassifierCV(kappas=[0.2, 0.05], cv=2, max_gap=0.5, sensitive_columns="sex"),
        [*((path, POINTS) for path in PATHS), "refit"],
    ),
    "thresholds": (OF_FOLDS, [*PATHS, "refit", "thresholds"]),
    "thresholds, a split": (clone(OF_FOLDS).set_params(cv=0.5), ["refit", "thresholds"]),
    "thresholds, prefit": (clone(OF_FOLDS).set_params(cv="prefit"), ["thresholds"]),
}


@pytest.mark.cases(8)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", TASKS)
def test_tasks_of_folds_and_points(name, n_jobs):
    (model, tasks), recorder = TASKS[name], Recorder()
    without = clone(model)
    if "prefit" in name:
        without.estimator = LogisticRegression().fit(TABLE.drop(columns="sex"), Y)
    clf = clone(without).set_params(n_jobs=n_jobs)
    clf.set_params(**{"estimator": without.estimator} if hasattr(model, "estimator") else {})
    with joblib.parallel_config("threading"):  # processes would import the library anew
        clf.set_callbacks(recorder).fit(TABLE, Y)
    inside = []
    for task in tasks:
        outer, inner = (task, []) if isinstance(task, str) else task
        steps = [f"{what} {step}" for step in inner for what in ("begin", "end")]
        inside += [f"begin {outer}", *steps, f"end {outer}"]
    assert recorder.calls == ["setup", "begin fit", *inside, "end fit", "teardown"]
    assert_array_equal(recorder.decisions["fit"], clf.predict(TABLE))
    assert_array_equal(without.fit(TABLE, Y).predict(TABLE), clf.predict(TABLE))


def test_one_task_per_outer_iteration():
    recorder = Recorder()
    classifier = fc.FairLogisticClassifier(kappa=0.02, tol=1e-6).set_callbacks(recorder)
    classifier.fit(X, Y, sensitive_features=GROUPS)
    tasks = ["begin iteration", "end iteration"] * classifier.n_iter_
    assert classifier.n_iter_ > 1
    assert recorder.calls == ["setup", "begin fit", *tasks, "end fit", "teardown"]
    assert_array_equal(recorder.decisions["fit"], classifier.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_can_stop():
    classifier = fc.FairLogisticClassifier(kappa=0.02, tol=1e-9).set_callbacks(Recorder(limit=1))
    classifier.fit(X, Y, sensitive_features=GROUPS)
    assert classifier.result_.status.name == "STOPPED"
    assert classifier.n_iter_ == len(classifier.result_.trace) == 1


def test_an_error_ends_the_progress_bar():
    stop = Recorder()
    stop.on_fit_task_end = lambda estimator, context: 1 / 0
    classifier = fc.FairLogisticClassifier().set_callbacks(callback.ProgressBar(), stop)
    with pytest.raises(ZeroDivisionError):
        classifier.fit(X, Y, sensitive_features=GROUPS)
    assert not any("Monitor" in type(one).__name__ for one in threading.enumerate())
    assert stop.calls[-1] == "teardown"
