"""Bad values for every argument of every public class and function: errors that name the argument.

Each table names what is called, its arguments, and values of different kinds that are not valid.
"""

import importlib.util
import inspect
import re
from functools import cache

import numpy as np
import pytest
from _support import bad_values as bad
from _support.bad_values import GROUPS, N, X, Y

import fairconstrained as fc
from fairconstrained import metrics, solvers

LIGHTGBM, TORCH = (importlib.util.find_spec(name) for name in ("lightgbm", "torch"))
MODEL = fc.FairLogisticClassifier().fit(X, Y, sensitive_features=GROUPS)
QUERY = np.arange(N) % 4
ROWS = {"X": bad.MATRIX, "y": bad.LABELS}
ROWS |= {"sample_weight": bad.WEIGHTS, "sensitive_features": bad.MEMBERS}
NEEDED = {  # other options without which an argument is not used
    "confidence": {"enforce": "decision"},
    "holdout": {"enforce": "decision", "confidence": 0.9},
    "max_loss_increase": {"goal": "fairness"},
    "beta": {"solver": "3s-econ"},
    "activation": {"hidden_layer_sizes": (3,)},
}


def fitted(kind, name, value, **rows):
    """Fit an estimator with one bad option, or to one bad argument."""
    options = {"cv": 2, "n_kappas": 2} if kind is fc.FairLogisticClassifierCV else {"max_iter": 2}
    if isinstance(value, solvers.Solver):
        options = {}  # the estimator's max_iter would take the place of the solver's
    arguments = {"X": X, "y": Y, **rows}
    if name in ROWS:
        arguments[name] = value
    else:
        options = {**options, **NEEDED.get(name, {}), name: value}
    if name == "sensitive_columns":
        del arguments["sensitive_features"]
    kind(**options).fit(**arguments)


@cache
def of_ranker():
    return fc.FairRanker(max_iter=20).fit(X, Y, query=QUERY, sensitive_features=GROUPS)


def ranker(name, value):
    rows = {"X": X, "y": Y, "query": QUERY, "sensitive_features": GROUPS}
    if name == "sensitive_columns":
        del rows["sensitive_features"]
    options = {} if name in rows else {**NEEDED.get(name, {}), name: value}
    fc.FairRanker(**options).fit(**(rows | {name: value} if name in rows else rows))


def calling(function, *first, **arguments):
    """Return what calls a function with one of its arguments replaced."""
    return lambda name, value: function(*first, **(arguments | {name: value}))


def thresholds(name, value):
    rows = {} if name == "sensitive_columns" else {"sensitive_features": GROUPS}
    needed = {"confidence": 0.9} if name == "holdout" else {}
    model = fc.FairThresholds(**{"estimator": fc.FairLogisticClassifier(), **needed, name: value})
    model.fit(X, Y, **rows)


def fair(kind):
    return lambda name, value: fitted(kind, name, value, sensitive_features=GROUPS)


def path(name, value):
    arguments = {
        "estimator": fc.FairLogisticClassifier(), "X": X, "y": Y, "sensitive_features": GROUPS,
        "n_kappas": 2,
    }  # fmt: skip
    if name.endswith("_val"):
        arguments |= {"X_val": X, "y_val": Y, "sensitive_features_val": GROUPS}
    fc.fairness_path(**{**arguments, name: value})


def scorer(name, value):
    made = fc.make_fairness_scorer(**{"metric": metrics.group_auc_difference, name: value})
    made(MODEL, X, Y, **({} if name == "sensitive_columns" else {"sensitive_features": GROUPS}))


def predicted(method):
    return lambda name, value: getattr(MODEL, method)(value)


def constraint(kind):
    def call(name, value):
        options = {name: value}
        if name == "thresholds" and "membership" in kind().get_params():
            options["membership"] = "thresholds"
        if name == "reference":
            options["reference_groups"] = GROUPS
        if name == "reference_groups":
            options["reference"] = X
        fitted(fc.FairLogisticClassifier, "constraint", kind(**options), sensitive_features=GROUPS)

    return call


def solver(kind):
    return lambda name, value: fitted(
        fc.FairLogisticClassifier, "solver", kind().set_params(**{name: value}),
        sensitive_features=GROUPS,
    )  # fmt: skip


def metric(function):
    scores = 1.0 / (1.0 + np.exp(-X[:, 0]))
    predicted = scores if function.__name__ not in OF_LABELS else (X[:, 0] > 0) * 1

    def call(name, value):
        rows = {"y_true": Y, "y_pred": predicted, "sensitive_features": GROUPS, "query": QUERY}
        taken = inspect.signature(function).parameters
        rows = {key: value for key, value in rows.items() if key in taken}
        function(**{**rows, name: value})

    return call


OF_LABELS = (
    "class_error_rates", "group_rates", "impact_ratios", "neyman_pearson_error", "rate_gaps",
    "predictive_parity_difference",
)  # fmt: skip
UNLABELLED = {"impact_ratios", "score_impact_ratios"}  # labels may be None
OPTIONAL = {"class_error_rates", "neyman_pearson_error"}  # groups may be None
ESTIMATORS = [getattr(fc, name) for name in fc.__all__ if hasattr(getattr(fc, name), "fit")]
NOT_INSTALLED = {"FairBoostingClassifier": LIGHTGBM, "FairNetworkClassifier": TORCH}
CALLS = {
    "NeymanPearsonClassifier": lambda *bad: fitted(fc.NeymanPearsonClassifier, *bad),
    "FairRanker": ranker,
    "FairThresholds": thresholds,
}
OF_ROWS = {
    "FairLogisticClassifier": ROWS,
    "FairLogisticClassifierCV": ROWS,
    "NeymanPearsonClassifier": {k: v for k, v in ROWS.items() if k != "sensitive_features"},
    "FairRanker": bad.OF_RANKERS,
}
TABLES = {
    **{
        kind.__name__: (
            CALLS.get(kind.__name__, fair(kind)),
            bad.of_estimator(kind) | OF_ROWS.get(kind.__name__, {}),
        )
        for kind in ESTIMATORS
        if NOT_INSTALLED.get(kind.__name__, True)
    },
    "FairRanker.score": (
        calling(of_ranker().score, X=X, y=Y, query=QUERY),
        {**bad.OF_RANKERS, "y": [*bad.LABELS, Y + 5]},
    ),
    "compare_rankers": (
        calling(
            fc.compare_rankers,
            models={"a": of_ranker()}, X=X, y=Y, sensitive_features=GROUPS, query=QUERY,
        ),
        {
            "models": [
                "a", None, 3, {}, {"a": 3}, {3: of_ranker(), "3": of_ranker()}, [of_ranker()],
                MODEL, fc.FairRanker,
            ],
            **bad.OF_RANKERS,
        },
    ),
    "predict": (predicted("predict"), {"X": [*bad.MATRIX, X[:, :2]]}),
    "predict_proba": (predicted("predict_proba"), {"X": bad.MATRIX}),
    "decision_function": (predicted("decision_function"), {"X": bad.MATRIX}),
    "to_sklearn": (calling(MODEL.to_sklearn), {"sensitive": [*bad.CHOICE, None]}),
    "fairness_path": (
        path,
        {
            "estimator": ["a", None, 3, fc.FairLogisticClassifier, fc.NeymanPearsonClassifier()],
            "kappas": bad.NUMBERS,
            "n_kappas": [1, *bad.COUNT, None],
            "min_ratio": [*bad.OPEN_SHARE, None],
            **ROWS,
            "X_val": ["a", 3, X[:, 0], np.full((N, 3), bad.NAN), X[:, :2]],
            "y_val": [*bad.LABELS, Y + 5],
            "sample_weight_val": bad.WEIGHTS,
            "sensitive_features_val": [*bad.MEMBERS, None],
        },
    ),
    "fairness_report": (
        calling(fc.fairness_report, estimator=MODEL, X=X, y=Y, sensitive_features=GROUPS),
        {
            **ROWS,
            "estimator": ["a", None, 3, fc.FairLogisticClassifier(), {}],
            "y": [one for one in [*bad.LABELS, X[:, 0], Y + 5] if one is not None],
            "confidence": [*bad.OPEN_SHARE, None],
        },
    ),
    "make_fairness_scorer": (
        scorer,
        {
            "metric": ["a", None, 3, lambda y_true, y_pred: 0.0, [1]],
            "response_method": ["a", 3, None, ["a"], bad.THING],
            "greater_is_better": ["a", 3, 0.5, [], bad.THING],
            "sensitive_columns": ["zz", 0.5, [None], bad.THING, [9]],
            "requested": [3, None, [1], bad.THING, 1.5],
        },
    ),
    "scorer": (
        calling(
            fc.make_fairness_scorer(metrics.group_auc_difference), MODEL,
            X=X, y_true=Y, sensitive_features=GROUPS,
        ),
        {"X": bad.MATRIX, "y_true": [*bad.LABELS, Y + 5], "sensitive_features": bad.MEMBERS,
         "sample_weight": bad.WEIGHTS},
    ),
    "best_score_within": (
        calling(fc.best_score_within, gap="gap", limit=0.1),
        {
            "gap": [3, None, ["a"], bad.THING, 1.5],
            "limit": ["a", -1, bad.NAN, None, True],
            "score": [3, None, ["a"], bad.THING, 1.5],
            "at_least": bad.SWITCH,
        },
    ),
    "make_biased_classification": (
        calling(fc.make_biased_classification),
        {
            "n_samples": [*bad.COUNT, None],
            "n_features": [*bad.COUNT, None],
            "n_groups": [1, *bad.COUNT, None],
            "gap": ["a", -1, 1, bad.NAN, None, True],
            "n_informative": [0, -1, 11, 1.5, "a", True],
            "class_sep": ["a", -1, bad.NAN, None, True],
            "flip_y": ["a", -1, 0.5, bad.NAN, None, True],
            "sparse": bad.SWITCH,
            "return_coef": bad.SWITCH,
            "random_state": bad.SEED,
        },
    ),
    **{
        title: (
            solver(kind),
            {key: bad.OF_SOLVERS[key] for key in kind().get_params(deep=False)},
        )
        for title, kind in solvers.SOLVERS.items()
    },
    **{
        kind.__name__: (
            constraint(kind),
            {name: bad.OF_CONSTRAINTS[name] for name in kind().get_params(deep=False)},
        )
        for kind in fc.constraints.CLASSIFIER_CONSTRAINTS.values()
    },
    **{
        name: (
            metric(getattr(metrics, name)),
            {
                one: [
                    value
                    for value in bad.OF_METRICS[one]
                    if value is not None or one != "y_true" or name not in UNLABELLED
                ]
                for one in inspect.signature(getattr(metrics, name)).parameters
            },
        )
        for name in metrics.__all__
    },
}  # fmt: skip
SAID = {"y": ("y_true",)}  # what else may stand for an argument


MOST_VALUES = max(len(values) for _, table in TABLES.values() for values in table.values())


# A group column of numbers and tiny groups are warned of before some of the errors.
@pytest.mark.filterwarnings("ignore::fairconstrained.InputWarning")
@pytest.mark.parametrize("k", range(MOST_VALUES))
def test_the_error_names_the_argument(k):
    """Every argument of everything gets the value at position k of its list."""
    for title, (call, table) in TABLES.items():
        for name, values in table.items():
            if k >= len(values):
                continue
            with pytest.raises((ValueError, TypeError)) as raised:
                call(name, values[k])
            said, case = str(raised.value), f"{title}({name}={values[k]!r}): {raised.value}"
            words = "|".join((name, *SAID.get(name, ())))
            assert re.search(rf"\b({words})\b", said), case
            assert len(said) > 20 and not isinstance(raised.value, UnicodeError), case


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_groups_that_may_be_left_out(name):
    measure, predictions = getattr(metrics, name), (X[:, 0] > 0) * 1
    all_rows = measure(Y, predictions, sensitive_features=None)
    one_group = measure(Y, predictions, sensitive_features=np.zeros(N))
    assert np.ravel(all_rows).tolist() == np.ravel(one_group).tolist()
    assert np.max(all_rows) == max(np.mean(predictions[k == Y] != k) for k in (0, 1))
