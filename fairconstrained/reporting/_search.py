"""The candidates of a search for alternatives: fitted, chosen among, and measured."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import accuracy_score, check_scoring, get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.exceptions import warn
from fairconstrained.inspection.assessment import assess, minimizes_gap
from fairconstrained.inspection.collected import collect, collect_predictions
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.model_selection.path_fitting import fairness_path, grid, strictest
from fairconstrained.reporting.comparison import compared
from fairconstrained.reporting.forms import sentence
from fairconstrained.utils.arguments import brief
from fairconstrained.utils.arrays import Array, at_most
from fairconstrained.utils.meta_estimators import final_estimator, fitted_steps

_LEAST_GAP = 1e-3  # of bounds, where a model without constraints has hardly any gap


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows; weights and groups may be None."""

    X: Any
    y: Any
    sample_weight: Any
    sensitive_features: Any

    def take(self, some: Array) -> "Rows":
        """Return some rows."""
        parts = {k: part for k, part in vars(self).items() if part is not None}
        return replace(self, **{k: _safe_indexing(part, some) for k, part in parts.items()})


@dataclass(eq=False)
class Candidate:
    """A fitted model, with its labels and scores of the validation and the test rows."""

    name: str
    estimator: str
    share: float
    kappa: float
    seconds: float
    model: Any
    status: str
    labels: Sequence[Array] = ()
    scores: Sequence[float] = ()


def fitted(
    rows: Rows, name: str, estimator: Any, shares: Array | None, pos_label: Any
) -> list[Candidate]:
    """Return the model without constraints, and one for every share of its gap as the bound.

    Without shares the estimator is fitted as it is.
    """
    began = time.process_time()
    pipeline = estimator if hasattr(estimator, "steps") else make_pipeline(estimator)
    given = {key: value for key, value in vars(rows).items() if key != "X"}
    (steps, X, given), said = heard(fitted_steps, clone(pipeline), rows.X, given)
    *before, (step, last) = steps.steps
    given = {key: value for key, value in given.items() if value is not None}
    if not has_fit_parameter(last, "sensitive_features"):
        given.pop("sensitive_features", None)
    names, kappas, free = [name], [np.nan], {} if shares is None else {"constraint": None}
    fits = [heard(clone(last).set_params(**free).fit, X, **given)]
    if shares is not None:
        widest = np.clip(_widest(fits[0][0], last, X, given, pos_label), _LEAST_GAP, 1.0)
        kappas += (widest * shares).tolist()
        digits = max([0, *np.ceil(-np.log10(-100.0 * np.diff(shares))).astype(int)])
        percents = [f"{name}, {k:.{digits}%} of the gap" for k in shares]
        names = [f"{name}, without constraints", *percents]
        on_path = isinstance(last, FairEstimator) and last.enforce == "score"
        if len(shares) and on_path and "kappa" in tolerance(last):
            bounds: Any = {"kappas": kappas[1:], "bound": last.bound}
            path, of_path = heard(fairness_path, last, X, **given, **bounds)
            # These warnings are of single points, whose status and gap the table has.
            of_path = [w for w in of_path if not ("ConvergenceWarning" in w or "The bound" in w[1])]
            fits += [(model, of_path) for model in path.estimators]
        else:
            each = [clone(last).set_params(**tolerance(last, kappa)) for kappa in kappas[1:]]
            fits += [heard(model.fit, X, **given) for model in each]
    seconds, candidates = (time.process_time() - began) / len(fits), []
    every = zip(names, [np.nan, *([] if shares is None else shares)], kappas, fits, strict=True)
    for title, share, kappa, (model, of_fit) in every:
        status = sentence("status", final_estimator(model), dict([*said, *of_fit]))
        if pipeline is estimator:
            model = type(steps)([*before, (step, model)])
        candidates.append(Candidate(title, name, share, kappa, seconds, model, status))
    return candidates


def _widest(free: Any, last: Any, X: Any, given: dict[str, Any], pos_label: Any) -> float:
    """Return the smallest bound that the model without constraints meets on these rows."""
    constraints = resolve_constraints(clone(last).set_params(**tolerance(last)).constraint)
    varied = [each for each in constraints if each.takes_kappa] or constraints
    collected = collect(free, X, **given).against_rest(pos_label)
    rows = collected.assessed(*collected.outputs.values())
    gaps = [assess(each, rows, 0.95) for each in resolve_constraints(varied, kappa=0.0)]
    widest = np.fmax.reduce([gap.on_predictions - gap.tolerance for gap in gaps])
    if np.isnan(widest) and isinstance(last, FairEstimator):  # only the rows of the fit tell it
        others = [given.get(name) for name in ("y", "sample_weight", "sensitive_features")]
        widest = grid(strictest(last, (X, *others)), None, 2)[0]
    return float(widest)


def tolerance(estimator: Any, kappa: float = 0.0) -> dict[str, float]:
    """Return the parameter that a bound is: kappa, or the ratio of a single constraint."""
    ranks = getattr(estimator, "needs_queries", False)
    if ranks or hasattr(estimator, "kappas") or minimizes_gap(estimator):
        return {}
    constraints = resolve_constraints(getattr(estimator, "constraint", None))
    if any(constraint.takes_kappa for constraint in constraints):
        return {"kappa": kappa}
    ratio = [constraint.tolerance for constraint in constraints] == ["ratio"]
    return {"constraint__ratio": 1.0 - kappa} if ratio else {}


def heard(function: Any, *args: Any, **options: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return what a function returns, and the class and beginning of each warning of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = function(*args, **options)
    said = []
    for warning in caught:
        warn(text := str(warning.message), warning.category)
        said.append((warning.category.__name__, text.split(":")[0].split(". ")[0]))
    return result, said


def measured(part: Sequence[Rows], score: Any, *varied: Any) -> list[Candidate]:
    """Return what is :func:`fitted` to the first rows, with labels and scores of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the status says what they mean
        candidates = fitted(part[0], *varied)
    for each in candidates:
        for rows in part[1:]:
            weight = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
            groups = rows.sensitive_features
            labels = Outputs.of(each.model, rows.X, groups, methods=["predict"]).labels
            each.labels = [*each.labels, np.asarray(labels)]
            if score is None:
                value = accuracy_score(rows.y, labels, **weight)
            else:
                try:
                    value = score(each.model, rows.X, rows.y, **weight)
                except ValueError as error:
                    if "pos_label" not in str(error):
                        raise
                    raise ValueError(
                        f"score: {error}. A scorer has a favourable label of its own: pass "
                        "sklearn.metrics.make_scorer(metric, pos_label=...)."
                    ) from error
            each.scores = [*each.scores, value]
    return candidates


def checked_score(score: Any, estimator: Any, rows: Rows) -> Any:
    """Return the scorer; None for the accuracy, also of models that need groups to predict."""
    if isinstance(score, str) and score == "accuracy":
        return None
    scorer = check_scoring(estimator, get_scorer(score))
    taken = signature(getattr(scorer, "_score_func", scorer)).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    if rows.sample_weight is not None and "sample_weight" not in taken and not open_ended:
        raise ValueError(
            f"score: {brief(score)} takes no sample_weight, and sample_weight is given. Pass a "
            "function score(estimator, X, y, sample_weight=None), or a scorer of a metric with "
            "sample_weight, or leave out the weights."
        )
    return scorer


def compared_groups(groups: Groups) -> Groups:
    """Return the groups, two or more."""
    if max(map(len, groups.separate)) < 2:
        raise ValueError(
            f"sensitive_features: all rows are of one group, {groups.labels[0]}, and a gap needs "
            "two groups. Pass rows of two groups or more."
        )
    return groups


@dataclass(frozen=True, eq=False)
class Search:
    """All candidates of a search."""

    rows: Rows
    groups: Groups
    # the training, validation and test rows, once or several times
    parts: Sequence[Sequence[Array]]
    runs: Sequence[dict[str, Candidate]]  # the candidates of each part, by name
    baselines: list[str]  # those that may be the baseline
    # see :func:`find_alternatives`
    max_loss: float
    criterion: Constraint
    pos_label: Any
    confidence: float

    def taken(self, k: int, parts: Sequence[int]) -> tuple[Rows, Groups]:
        """Return the validation rows (k = 0) or the test rows (k = 1) of some parts."""
        some = np.concatenate([self.parts[part][k + 1] for part in parts])
        return self.rows.take(some), self.groups.take(some)

    def figures(self, k: int, parts: Sequence[int], reference: str | None = None) -> pd.DataFrame:
        """Return the figures of all candidates on these rows."""
        rows, groups = self.taken(k, parts)
        every = {name: [self.runs[part][name] for part in parts] for name in self.runs[0]}
        labels = {n: np.concatenate([each.labels[k] for each in s]) for n, s in every.items()}
        collected = collect_predictions(rows.y, labels, None, groups, rows.sample_weight)
        positive = collected.against_rest(self.pos_label)
        table = compared(positive, reference, self.criterion, self.confidence)
        scores = {n: np.mean([each.scores[k] for each in s]) for n, s in every.items()}
        return table.assign(score=pd.Series(scores))

    def chosen(self, parts: Sequence[int]) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return the figures on the validation rows, and the names of the two models chosen."""
        table = self.figures(0, parts)
        baseline = str(table["score"][self.baselines].idxmax())
        least = table["score"][baseline] - self.max_loss
        table["allowed"] = at_most(least, table["score"]) & (table["gap"] >= 0.0)
        order = table[table["allowed"]].sort_values(["gap", "score"], ascending=[True, False])
        if not len(order):
            groups = self.taken(0, parts)[1]
            sizes = zip(groups.labels, np.bincount(groups.codes[groups.known]), strict=False)
            raise ValueError(
                f"criterion: the gap of {type(self.criterion).__name__} cannot be measured on the "
                "validation rows, of these groups: "
                f"{', '.join(f'{name} ({n} rows)' for name, n in sizes)}. Pass more rows of each "
                "group and class, or merge groups, or name a constraint on predictions."
            )
        no_better = bool(at_most(table["gap"][baseline], order["gap"].iloc[0]))
        recommended = baseline if no_better else str(order.index[0])
        return table, {"baseline": baseline, "recommended": recommended}

    def labels(self) -> dict[str, Array]:
        """Return what the two models chosen in each part predict for the test rows."""
        picks = [self.chosen([part])[1] for part in range(len(self.parts))]
        runs = list(zip(self.runs, picks, strict=True))
        return {k: np.concatenate([run[pick[k]].labels[1] for run, pick in runs]) for k in picks[0]}

    def table(self, choice: pd.DataFrame, baseline: str) -> pd.DataFrame:
        """Return all figures of all candidates."""
        names = ["name", "estimator", "share", "kappa", "seconds", "status"]
        fits = pd.DataFrame([vars(each) for run in self.runs for each in run.values()])[names]
        of_each = fits.groupby("name", sort=False)
        table = of_each.first().assign(**of_each[["kappa"]].mean(), **of_each[["seconds"]].sum())
        by = choice[["score", "gap"]].add_prefix("choice_").assign(allowed=choice["allowed"])
        figures = self.figures(1, range(len(self.parts)), baseline)
        known = figures.dropna(axis="columns", how="all")  # labels have no AUC
        return table.join([by, known]).rename_axis("candidate")
