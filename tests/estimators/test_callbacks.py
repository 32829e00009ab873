"""Callbacks of scikit-learn, which it has from version 1.9 on."""

import threading

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from fairconstrained import FairLogisticClassifier, make_biased_classification

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


@pytest.fixture
def data():
    return make_biased_classification(300, 5, gap=0.4, random_state=0)


@pytest.fixture
def numbers(data):
    """A table with the sensitive attribute as a column."""
    X, y, groups = data
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
    return table.assign(sex=np.where(groups > 0, "m", "f")), y


class Recorder:
    """A callback that records its calls, and stops after `limit` iterations."""

    def __init__(self, limit=np.inf):
        self.limit = limit
        self.calls = []
        self.decisions = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.calls.append(f"end {context.task_name}")
        self.decisions.append(fitted_estimator.predict(X))
        return self.calls.count("end iteration") >= self.limit


def monitors():
    """Return the threads of progress bars that are still drawn."""
    return [one for one in threading.enumerate() if "Monitor" in type(one).__name__]


class TestCallbacks:
    def test_one_task_per_outer_iteration(self, data):
        X, y, groups = data
        recorder = Recorder()
        classifier = FairLogisticClassifier(kappa=0.02, tol=1e-6).set_callbacks(recorder)
        classifier.fit(X, y, sensitive_features=groups)
        tasks = ["begin iteration", "end iteration"] * classifier.n_iter_
        assert classifier.n_iter_ > 1
        assert recorder.calls == ["setup", "begin fit", *tasks, "end fit", "teardown"]
        assert_array_equal(recorder.decisions[-1], classifier.predict(X))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_callback_can_stop(self, data):
        X, y, groups = data
        classifier = FairLogisticClassifier(kappa=0.02, tol=1e-9).set_callbacks(Recorder(limit=1))
        classifier.fit(X, y, sensitive_features=groups)
        assert classifier.result_.status.name == "STOPPED"
        assert classifier.n_iter_ == len(classifier.result_.trace) == 1

    def test_progress_bar(self, data, capsys):
        X, y, groups = data
        classifier = FairLogisticClassifier().set_callbacks(callback.ProgressBar())
        classifier.fit(X, y, sensitive_features=groups)
        assert "FairLogisticClassifier" in capsys.readouterr().out
        assert monitors() == []

    def test_an_error_ends_the_progress_bar(self, data):
        X, y, groups = data
        stop = Recorder()
        stop.on_fit_task_end = lambda estimator, context: 1 / 0
        classifier = FairLogisticClassifier().set_callbacks(callback.ProgressBar(), stop)
        with pytest.raises(ZeroDivisionError):
            classifier.fit(X, y, sensitive_features=groups)
        assert monitors() == [] and stop.calls[-1] == "teardown"

    def test_scoring_monitor(self, data):
        X, y, groups = data
        monitor = callback.ScoringMonitor(scoring="accuracy")
        classifier = FairLogisticClassifier().set_callbacks(monitor)
        classifier.fit(X, y, sensitive_features=groups)
        log = monitor.get_logs().data_as_pandas
        assert len(log) == classifier.n_iter_ + 1
        assert log.iloc[-1]["accuracy"] == classifier.score(X, y)

    def test_in_a_grid_search(self, numbers, capsys):
        table, y = numbers
        classifier = FairLogisticClassifier(sensitive_columns=["sex"])
        search = GridSearchCV(classifier, {"kappa": [0.05, 0.2]}, cv=2, error_score="raise")
        search.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(table, y)
        assert search.best_params_["kappa"] in (0.05, 0.2)
        assert "GridSearchCV" in capsys.readouterr().out

    def test_a_recorder_inside_a_grid_search(self, numbers):
        table, y = numbers
        recorder = Recorder()
        classifier = FairLogisticClassifier(sensitive_columns=["sex"]).set_callbacks(recorder)
        search = GridSearchCV(classifier, {"kappa": [0.05, 0.2]}, cv=2, error_score="raise")
        search.fit(table, y)
        assert search.best_estimator_.result_.converged
