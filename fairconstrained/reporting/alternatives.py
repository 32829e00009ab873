"""The search for a model with a smaller gap at nearly the same score, with its record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import indexable
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _num_samples

from fairconstrained.constraints import CONSTRAINTS, Constraint, resolve_constraints
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.inputs import check_labels, check_same_rows
from fairconstrained.inspection.collected import groups_of
from fairconstrained.plotting.path import FairnessPathDisplay
from fairconstrained.plotting.style import Axes
from fairconstrained.reporting import _search as search
from fairconstrained.reporting._pictures import frontier_picture
from fairconstrained.reporting._tables import costs_in_words
from fairconstrained.reporting.forms import Report, sentence
from fairconstrained.reporting.report import FairnessReport
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import as_frame, brief, check_confidence, resolve
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike, RandomState
from fairconstrained.utils.execution import splits_of, workers
from fairconstrained.utils.meta_estimators import final_estimator, named_models, provenance

_FOLDS = 5
_TO_CHOOSE = 0.25  # of the training rows: as many as the rows for the figures
_LEAST_SHARE = 0.1  # of the gap without constraints: the strictest bound


@dataclass(frozen=True, eq=False)
class Alternatives(Report):
    """The result of :func:`find_alternatives`, a report as :class:`FairnessReport` is.

    Attributes
    ----------
    title : str
        What was compared.
    candidates : DataFrame
        A row for each candidate. `share` is its bound as a share of the gap without constraints and
        `kappa` the bound, of ratios 1 minus the ratio. `choice_score` and `choice_gap` are measured
        on the validation rows, and `allowed` says whether that score is high enough. All others are
        measured on the test rows: `score`, `gap`, and the figures of :func:`compare` with their
        intervals. `seconds` is the CPU time of its fits, and `status` how the solver ended, with
        what the fit warned of.
    recommended, baseline : str
        The names of the recommended candidate, and of the one that it is compared with.
    model : estimator
        The recommended model, fitted.
    report : FairnessReport
        The baseline and the recommended model on the test rows.
    score : str
        The name of the score.
    max_loss : float
        The loss of score that was allowed.
    criterion : str
        The constraint whose gap was to be small.
    sizes : dict of str to list of int
        The numbers of rows to "train", "choose" and "measure", for each part.
    confidence : float
        The confidence level of the intervals.
    provenance : dict of str to str
        Versions, date, command, hashes of data and parameters.
    """

    _tables = ("candidates",)
    _template = "alternatives"

    candidates: pd.DataFrame
    recommended: str
    baseline: str
    model: Any
    report: FairnessReport
    score: str
    max_loss: float
    criterion: str
    sizes: dict[str, list[int]]

    @property
    def reasons(self) -> list[str]:
        """Why it is recommended, what remains, what figures cover, and what the search cost."""
        proved = getattr(getattr(final_estimator(self.model), "result_", None), "optimality", "")
        costs, findings = costs_in_words(self.report._evidence), self.report._evidence.findings
        gaps = {name: each[0] for name, each in findings.items()}
        return sentence("alternatives", self, gaps, costs, proved).split("\n")

    @property
    def frontier(self) -> pd.DataFrame:
        """The candidates that none exceeds in both score and gap, by their gap."""
        by_gap = self.candidates.sort_values(["gap", "score"], ascending=[True, False])
        best = by_gap["score"].cummax().shift(fill_value=-np.inf)
        return by_gap[by_gap["score"] > best]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as dictionaries, lists, strings and numbers; nan becomes None."""
        names = ("recommended", "baseline", "reasons", "score", "max_loss", "criterion", "sizes")
        record = {name: getattr(self, name) for name in names}
        return super().to_dict() | record | {"report": self.report.to_dict()}

    def plot(self, ax: Axes | None = None) -> FairnessPathDisplay:
        """Draw score and gap of all candidates on the test rows, and the loss allowed.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure.
        """
        table, line, places = self.candidates, self.frontier, ["gap", "score"]
        apart = {*line.index, self.baseline, self.recommended}
        others = table.drop(list(apart)).groupby("estimator", sort=False)
        points = {str(name): part[places].to_numpy() for name, part in others}
        names: Any = {"gap_name": f"gap of {self.criterion}", "accuracy_name": self.score}
        display = FairnessPathDisplay(line["gap"], line["score"], points=points, **names)
        display.plot(ax=ax, line_kw={"label": "frontier"})
        for name in ("baseline", "recommended"):
            place = table.loc[getattr(self, name), places].to_numpy(float)
            display.add_points(name, place, markersize=11.0)
        display.ax_.axhline(self._least, color="0.35", linestyle="--", linewidth=1.0)
        return display

    @property
    def _least(self) -> float:
        """The lowest score allowed on the test rows."""
        return float(self.candidates["score"][self.baseline]) - self.max_loss

    def _content(self) -> dict[str, Any]:
        line, two = self.frontier, list(dict.fromkeys((self.baseline, self.recommended)))
        path = line[["kappa", "gap"]].assign(accuracy=line["score"], low=np.nan, high=np.nan)
        if self.score == "accuracy":
            path = path.assign(low=line["accuracy_low"], high=line["accuracy_high"])
        models = [(name, *self.candidates.loc[name, ["gap", "score"]]) for name in two]
        table = self.candidates.drop(columns=["score"] * (self.score == "accuracy"))
        plot = frontier_picture(path, models, self.criterion, self.score, least=self._least)
        return {"names": two, "frontier": plot, "candidates": table}


def find_alternatives(
    estimator: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | None = None,
    *,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    baseline: Classifier | None = None,
    criterion: str | Constraint | None = None,
    score: str | Callable[..., float] = "accuracy",
    max_loss: valid.Strength = 0.005,
    n_kappas: valid.Count = 7,
    n_seeds: valid.Count = 1,
    cv: valid.Splits = None,
    confidence: float = 0.95,
    pos_label: object = None,
    random_state: RandomState = 0,
    n_jobs: valid.Jobs = None,
) -> Alternatives:
    r"""Search for a model with a smaller gap at nearly the same score, and keep the record.

    Every estimator is fitted to the training rows without constraints, and with bounds of 100% to
    10% of the gap that its predictions then have. Where :func:`fairness_path` takes the estimator,
    these fits are the points of a path. On the validation rows, the candidate with the smallest gap
    is recommended among those whose score is at most `max_loss` below that of the baseline. All
    figures are measured again on the test rows, which neither training nor the choice has seen.

    Parameters
    ----------
    estimator : classifier or mapping of str to classifier
        The classifiers of this library to vary, or pipelines that end in one; several by name, such
        as ``{"linear": FairLogisticClassifier(), "trees": FairBoostingClassifier()}``, with the
        constraints that are to be tried. Their `kappa`, or a ratio, is not used.
    X, y, sensitive_features, control_features, sample_weight, confidence
        See :func:`fairness_report`.
    baseline : classifier or None, default=None
        The model that the candidates are compared with, a classifier of any library. It is cloned,
        and fitted to the same rows. None takes the best of the estimators without constraints.
    criterion : str, Constraint or None, default=None
        The constraint whose gap of predictions is to be small; None takes the first constraint of
        the first estimator.
    score : str or callable, default="accuracy"
        The score of which `max_loss` may be lost: a scorer of scikit-learn, or its name; higher is
        better. With several splits it is the mean. If weights are given, it must accept them.
    max_loss : float, default=0.005
        The largest loss of score allowed.
    n_kappas : int, default=7
        The number of bounds of every estimator.
    n_seeds : int, default=1
        The number of seeds with which estimators that have a `random_state` are fitted; each makes
        candidates of its own.
    cv : int, splitter, iterable or None, default=None
        The splits into training and test rows, as in scikit-learn; a quarter of the training rows
        of every split are the validation rows. None takes the first of five folds, so that all
        figures are those of the recommended model. With several splits, the figures of candidates
        are means over their models, those of the recommended model are of the choice in every
        split, and the model is fitted to all rows. For test rows of your own, pass
        ``[(training, test)]``, positions of rows. No row may be twice in a split, or a test row of
        two splits.
    pos_label : label or None, default=None
        The favourable class; None takes that of the estimators. Required with more than two
        classes.
    random_state : int, RandomState or None, default=0
        The source of randomness of the split of the rows.
    n_jobs : int or None, default=None
        The number of fits that run in parallel, as in scikit-learn.

    Returns
    -------
    alternatives : Alternatives
        The candidates, the recommended model and the reasons. See its methods ``to_html``,
        ``to_json``, ``to_markdown`` and ``plot``.

    Raises
    ------
    ValueError
        If an argument is not valid, an estimator has no tolerance to vary, the rows cannot be
        split or are of one group, or the gap of the criterion cannot be measured.

    See Also
    --------
    fairness_path : The models of one estimator, by kappa.
    fairness_report : All figures of given models.

    Notes
    -----
    The disparate impact law of the United States, such as New Jersey's N.J.A.C. 13:16, asks for a
    search for less discriminatory alternatives. Whether a search is sufficient is a question of
    law.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, find_alternatives
    >>> from fairconstrained import make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, gap=0.2, random_state=0)
    >>> model = FairLogisticClassifier(enforce="decision")
    >>> record = find_alternatives(model, X, y, groups, max_loss=0.02)
    >>> record.recommended
    'FairLogisticClassifier, 68% of the gap'
    >>> record.candidates.loc[[record.baseline, record.recommended], ["score", "gap"]].round(2)
                                                 score   gap
    candidate
    FairLogisticClassifier, without constraints   0.78  0.22
    FairLogisticClassifier, 68% of the gap        0.77  0.19
    """
    counts: Any = {"n_kappas": n_kappas, "n_seeds": n_seeds, "cv": cv, "n_jobs": n_jobs}
    valid.check_arguments(find_alternatives, max_loss=max_loss, **counts)
    both = with_strata(sensitive_features, control_features)
    check_same_rows(X=X, y=y, sensitive_features=both, sample_weight=sample_weight)
    labels = check_labels("y", y, _num_samples(X))
    rows = search.Rows(*indexable(X, labels, as_frame(sample_weight), as_frame(both)))
    families = _families(estimator, n_seeds)
    leading = next(iter(families.values()))
    score_of = search.checked_score(score, leading, rows)
    confidence = check_confidence(confidence)
    if criterion is None:
        criterion = resolve_constraints(final_estimator(leading).constraint)[0]
    wanted = resolve("criterion", criterion, CONSTRAINTS, Constraint)
    groups = None if both is None else search.compared_groups(groups_of(leading, X, both))
    for name in {"baseline", "recommended"} & set(families):
        raise ValueError(f"estimator: {name!r} is a name of the record: use another.")
    bounds: dict[str, Any] = dict.fromkeys(families, np.geomspace(1.0, _LEAST_SHARE, n_kappas))
    if baseline is not None:
        families["baseline"], bounds["baseline"] = baseline, None
    parts = _parts(rows, cv, random_state)
    jobs = [
        delayed(search.measured)(
            [rows.take(some) for some in part], score_of, name, each, bounds[name], pos_label
        )
        for part in parts
        for name, each in families.items()
    ]
    done = iter(workers(n_jobs, len(rows.y))(jobs))
    runs = [{each.name: each for _ in families for each in next(done)} for _ in parts]
    free = [name for name, each in runs[0].items() if np.isnan(each.share)]
    free = free if baseline is None else ["baseline"]
    first = next(iter(runs[0].values())).model
    groups = groups or search.compared_groups(groups_of(first, X, None))
    label = getattr(final_estimator(first), "pos_label_", None) if pos_label is None else pos_label
    tried = search.Search(rows, groups, parts, runs, free, max_loss, wanted, label, confidence)
    choice, names = tried.chosen(range(len(parts)))
    best = runs[0][names["recommended"]]
    if len(parts) > 1:
        shares = bounds[best.estimator]
        shares = shares if shares is None else shares[shares == best.share]
        best = search.fitted(rows, best.name, families[best.estimator], shares, pos_label)[-1]
    others, members = tried.taken(1, range(len(parts)))
    given: Any = {"sensitive_features": members, "sample_weight": others.sample_weight}
    given |= {"confidence": confidence, "constraint": wanted, "pos_label": label}
    report = FairnessReport.from_predictions(others.y, tried.labels(), **given)
    title = report._evidence.findings["baseline"][0].name.replace("_", " ")
    uses = zip(("train", "choose", "measure"), zip(*parts, strict=True), strict=True)
    return Alternatives(
        title=f"{len(runs[0])} candidates for a smaller gap of {title}",
        confidence=confidence,
        candidates=tried.table(choice, names["baseline"]),
        **names,
        model=best.model,
        report=report,
        score=score if isinstance(score, str) else "score",
        max_loss=max_loss,
        criterion=title,
        sizes={use: list(map(len, some)) for use, some in uses},
        provenance=provenance(families, *vars(rows).values()),
    )


def _parts(rows: search.Rows, cv: Any, random_state: Any) -> list[tuple[Array, Array, Array]]:
    """Return the training, validation and test rows, once or several times."""
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=random_state)
    parts = []
    try:
        splits = splits_of(folds if cv is None else cv, rows.X, rows.y)
        for training, test in splits[: 1 if cv is None else None]:
            options = {"random_state": random_state, "stratify": rows.y[training]}
            parts.append((*train_test_split(training, test_size=_TO_CHOOSE, **options), test))
        if min(len(np.unique(rows.y[some])) for part in parts for some in part) < 2:
            raise ValueError("some of these would have rows of one class only.")
    except ValueError as error:
        raise ValueError(
            f"X: its {len(rows.y)} rows cannot be split, with the same shares of the classes, "
            f"into training, validation and test rows: {error} Pass more rows of each class, or "
            "splits as cv."
        ) from error
    for used in (np.concatenate([test for *_, test in parts]), *map(np.concatenate, parts)):
        if len(np.unique(used)) < len(used):
            raise ValueError(
                f"cv={brief(cv)} has rows twice: a row may be a test row of one search only, which "
                "has not seen it. Pass folds, such as cv=5, or splits without common rows."
            )
    return parts


def _families(estimator: Any, n_seeds: int) -> dict[str, Any]:
    """Return the estimators by name, with each seed."""
    families: dict[str, Any] = {}
    for name, each in named_models(estimator, type(final_estimator(estimator)).__name__).items():
        last = final_estimator(each)
        if not search.tolerance(last):
            raise ValueError(
                f"estimator: {name} has no tolerance to vary. Pass classifiers of this library "
                "with a constraint whose kappa is None, or one on a ratio, or pipelines that end "
                "in one; others may be passed as baseline."
            )
        seeds = range(n_seeds) if n_seeds > 1 and hasattr(last, "random_state") else [None]
        for seed in seeds:
            families[name if seed is None else f"{name}, seed {seed}"] = copy = clone(each)
            if seed is not None:
                final_estimator(copy).set_params(random_state=seed)
    return families
