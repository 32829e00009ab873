"""What a report is made of: constraints measured for every model, and the models of a path."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from fairconstrained.constraints import Constraint, DemographicParity, resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.inspection import assessment
from fairconstrained.inspection.assessment import Finding, assess
from fairconstrained.inspection.collected import Collected, cost_of, overall
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.impact import ComparedRows
from fairconstrained.metrics.intervals import Interval
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.arrays import Array, MatrixLike
from fairconstrained.utils.meta_estimators import final_estimator, last_step, provenance

Asked = tuple[list[tuple[str, Constraint]], bool]
"""Constraints by name, and whether the model was trained with them."""
Constraints = str | Constraint | Sequence[str | Constraint] | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a report shows, as numbers, for a positive class or for all of several."""

    rows: Collected  # rows and outputs of the models
    # the constraints, for each model; of several classes for all of them together
    findings: dict[str, list[Finding]]
    # the groups with those that they are compared with, and the confidence level
    compared: ComparedRows
    # of several classes, the evidence for each
    of_classes: "dict[str, Evidence]" = field(default_factory=dict)
    # the columns from each of which the group can be guessed; see
    # `proxies`
    proxies: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Collected,
        compared: ComparedRows,
        constraint: Constraints,
        pos_label: object,
        X: MatrixLike | None = None,
    ) -> "Evidence":
        """Measure constraints of all models on collected rows, for a class or all of several.

        A model without constraints is measured by those of the last model that has some.
        """
        models = {name: output.model for name, output in rows.outputs.items()}
        asked, hidden = _asked(models, constraint), hidden_columns(list(models.values()))
        columns = proxies(X, rows.rows, rows.groups, hidden)
        if len(rows.classes) > 2 and pos_label is None:
            parts = {
                str(label): cls._of_class(rows.of_class(label), compared, asked)
                for label in rows.classes
            }
            return cls(rows, _together(parts, compared.confidence), compared, parts, columns)
        rows = rows.against_rest(pos_label)
        return replace(cls._of_class(rows, compared, asked), proxies=columns)

    @classmethod
    def _of_class(cls, rows: Collected, compared: ComparedRows, asked: dict[str, Asked]) -> Self:
        """Return the evidence for the positive class of rows."""
        findings = {
            name: _findings(rows, output, asked[name], compared.confidence)
            for name, output in rows.outputs.items()
        }
        return cls(rows, findings, compared)

    confidence = property(attrgetter("compared.confidence"))

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self.rows.outputs)

    @property
    def several_classes(self) -> bool:
        """Whether the report is on all of several classes."""
        return bool(self.of_classes)

    @property
    def classes(self) -> "dict[str, Evidence]":
        """The evidence for each positive class by its name; a single one is called ""."""
        return self.of_classes or {"": self}

    @cached_property
    def overall(self) -> dict[str, dict[str, float]]:
        """The measures on all rows, for each model."""
        return {name: overall(self.rows, output) for name, output in self.rows.outputs.items()}

    @cached_property
    def costs(self) -> dict[str, tuple[Interval, dict[str, int]]]:
        """For all models but the first: the difference from the first; none without labels."""
        first, *others = self.names if self.rows.labels is not None else self.names[:1]
        return {name: cost_of(self.rows, first, name, self.confidence) for name in others}

    @property
    def reference(self) -> Finding | None:
        """The first constraint of the last model that has any: its gap is that of the frontier."""
        return next((some[0] for some in reversed(list(self.findings.values())) if some), None)

    def of_constraint(self, name: str) -> dict[int, Finding]:
        """Return what was found of a constraint, by the positions of the models that have it."""
        every = enumerate(self.findings.values())
        return {m: each for m, some in every for each in some if each.name == name}

    def gap(self, output: Outputs) -> float:
        """Return the largest gap of all classes: of that constraint, of selection rates if None."""
        reference = self.reference
        constraint = DemographicParity(0.0) if reference is None else reference.constraint
        rows = [part.rows for part in self.classes.values()]
        assessed = [part.assessed(output.of_class(part.positive)) for part in rows]
        gaps = [assess(constraint, part, self.confidence).on_predictions for part in assessed]
        return float(max(gaps))

    def frontier(
        self, path: FairnessPath | None = None, X: MatrixLike | None = None, groups: Any = None
    ) -> pd.DataFrame:
        """Return the models of a path, measured on the rows; empty without a path."""
        rows, lines = self.rows, list[list[float]]()
        if path is not None:
            if rows.labels is None:
                raise ValueError("y is None: the frontier of a path needs accuracies. Pass y.")
            if path.pipeline is not None:
                _, X = last_step(path.pipeline, X)
            for kappa, model in zip(path.kappas, path.estimators, strict=True):
                output = Outputs.of(model, X, groups).take(rows.rows)
                accuracy = rows.accuracy(output, self.confidence)
                lines.append([kappa, self.gap(output), *map(float, accuracy)])
        return pd.DataFrame(lines, columns=["kappa", "gap", "accuracy", "low", "high"], dtype=float)

    def origin(self, X: MatrixLike | None) -> dict[str, str]:
        """Return where the models and the rows come from."""
        rows = self.rows
        strata = rows.groups.attributes[0].columns if rows.groups.stratified else ()
        groups = [
            np.array([*map(str, part.names), "unknown"])[part.codes]
            for part in (*rows.groups.columns, *strata)
        ]
        models = {name: output.model for name, output in rows.outputs.items()}
        predicted = [output.labels for output in rows.outputs.values()]
        seen = any(map(self.trained_here, self.names))
        return provenance(
            models, X, rows.labels, *groups, rows.weight, *predicted,
            rows=rows.n_rows, held_out="no, training rows" if seen else "not known",
        )  # fmt: skip

    def trained_here(self, name: str) -> bool:
        """Return whether the gaps of a model are those of its training rows to the last digits."""
        last: Any = final_estimator(self.rows.outputs[name].model)
        trained = [finding for finding in self.findings[name] if finding.trained]
        if not abs(gap := float(getattr(last, "gap_", np.nan))) > 1e-12:  # also if it is nan
            return False
        pairs = {"on_scores": gap, "on_predictions": last.decision_gap_}
        return all(
            any(np.isclose(getattr(each, key), value, rtol=1e-9, atol=0.0) for each in trained)
            for key, value in pairs.items()
        )


def _asked(models: Mapping[str, Any], constraint: Constraints) -> dict[str, Asked]:
    """Return the constraints of every model."""
    if constraint is not None:
        defaults = {"kappa": 0.05, "surrogate": "sigmoid", "loss": "logistic"}
        given = assessment.named(resolve_constraints(constraint, **defaults))
        return dict.fromkeys(models, (given, False))
    lasts = {name: final_estimator(model) for name, model in models.items()}
    trained = {name: assessment.constraints_of(last) for name, last in lasts.items()}
    shared = next((each for each in reversed(list(trained.values())) if each), [])
    return {name: (each or shared, bool(each)) for name, each in trained.items()}


def _findings(
    collected: Collected, output: Outputs, asked: Asked, confidence: float
) -> list[Finding]:
    """Return the constraints measured for one model."""
    constraints, trained = asked
    rows, last = collected.assessed(output), final_estimator(output.model)
    label, others = str(collected.positive), [*collected.classes]
    others.remove(collected.positive)
    names = np.array([str(others[0]) if len(others) == 1 else f"other than {label}", label])
    minimized = trained and assessment.minimizes_gap(last)
    findings = []
    for name, constraint in constraints:
        if collected.labels is None and constraint.rates_compared != ("selection_rate",):
            raise ValueError(
                f"y is None: without labels only constraints on selection rates can be measured, "
                f"and {name} needs labels. Pass y."
            )
        scores = hasattr(last, "result_")
        finding = assess(constraint.naming(names), rows, confidence, scores_known=scores)
        findings.append(replace(finding, name=name, trained=trained, minimized=minimized))
    return findings


def _together(classes: Mapping[str, Evidence], confidence: float) -> dict[str, list[Finding]]:
    """Return the constraints of every model on all classes together.

    The gap is the largest one. Its interval reaches from the largest lower to the largest upper
    limit of the classes, each with a Bonferroni correction for their number.
    """
    level = 1.0 - (1.0 - confidence) / len(classes)
    joint: dict[str, list[Finding]] = {}
    for name in next(iter(classes.values())).names:
        rows = [part.rows.assessed(part.rows.outputs[name]) for part in classes.values()]
        joint[name] = []
        for findings in zip(*(part.findings[name] for part in classes.values()), strict=True):
            pairs = list(zip(findings, rows, strict=True))
            limits = [assessment.interval_of(each.constraint, part, level) for each, part in pairs]
            excess = [each.on_predictions - each.tolerance for each in findings]
            worst = int(np.argmax(np.nan_to_num(excess, nan=-np.inf)))
            label, notes = list(classes)[worst], (each.note for each in findings)
            finding = replace(
                findings[worst],
                on_scores=float(np.max([each.on_scores for each in findings])),
                low=float(np.max([limit.low for limit in limits])),
                high=float(np.max([limit.high for limit in limits])),
                worst=f"class {label}: {findings[worst].worst}",
                note="; ".join(dict.fromkeys(filter(None, notes))),
                of_class=label,
                n_classes=len(findings),
            )
            joint[name].append(finding)
    return joint


_ACCURACY = 0.95
_MOST_ROWS, _MOST_COLUMNS = 5000, 1000  # more rows are sampled; more columns are not examined
_N_BINS = 50  # of the numbers of a column


def proxies(X: Any, rows: Array, groups: Groups, hidden: Collection[str] = ()) -> dict[str, float]:
    """Return the columns from each of which alone an attribute can be guessed.

    The guess is the largest group among the other rows with the same value or, of numbers, in the
    same of 50 bins of equally many rows. It must be right for more than 95 percent of the rows, and
    wrong at most half as often as the guess of the largest group of all rows. At most 5,000 rows
    are used, and tables of more than 1,000 columns, or without any, are not examined. `groups` are
    those of the rows at the positions `rows`. The accuracy of the guess is returned by column, the
    largest one of several attributes.
    """
    table = X if hasattr(X, "columns") or hasattr(X, "tocsc") else np.asarray(X)
    if len(getattr(table, "shape", ())) != 2 or table.shape[1] > _MOST_COLUMNS:
        return {}
    some = np.arange(len(rows))
    if len(rows) > _MOST_ROWS:
        some = np.random.default_rng(0).choice(some, _MOST_ROWS, replace=False)
    table = _safe_indexing(table.tocsr() if hasattr(table, "tocsr") else table, rows[some])
    table = table.toarray() if hasattr(table, "toarray") else table
    names = getattr(table, "columns", [f"column {j}" for j in range(table.shape[1])])
    attributes = [attribute.codes[some] for attribute in groups.columns]
    guessed = {}
    for j, name in enumerate(map(str, names)):
        column = pd.Series(_safe_indexing(table, j, axis=1))
        codings = [] if name in hidden else _codings(column)
        accuracies = [_accuracy(coding, codes) for coding in codings for codes in attributes]
        if max(accuracies, default=0.0) > _ACCURACY:
            guessed[name] = max(accuracies)
    return guessed


def _codings(column: pd.Series) -> list[Array]:
    """Return the values of a column as codes, and those of many numbers as bins."""
    numeric = pd.api.types.is_numeric_dtype(column)
    # pandas cannot factorize long doubles and numbers of the other byte order.
    entries = column.to_numpy(dtype=float, na_value=np.nan) if numeric else column
    try:
        codes, values = pd.factorize(entries, use_na_sentinel=False)
    except TypeError:  # lists and other values that cannot be compared
        return []
    # A value of a single row is guessed by no other one, so that these must be few.
    codings = [codes] if len(values) <= (1.0 - 0.5 * _ACCURACY) * len(codes) else []
    if numeric and len(values) > _N_BINS:
        ends = np.nanquantile(entries, np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1])
        codings.append(np.searchsorted(ends, entries, side="right"))
    return codings


def _accuracy(codes: Array, groups: Array) -> float:
    """Return how often the largest group among the others with a row's code is its group.

    It is 0 unless that guess is wrong at most half as often as that of the largest group.
    """
    codes, groups = codes[groups >= 0], groups[groups >= 0]
    if not len(groups):
        return 0.0
    shape = codes.max() + 1, max(groups.max() + 1, 2)
    counts = np.bincount(codes * shape[1] + groups, minlength=shape[0] * shape[1]).reshape(shape)
    second, first = np.partition(counts, -2, axis=1)[:, -2:].T
    accuracy = float(first[first - 1 > second].sum() / len(groups))
    largest = counts.sum(axis=0).max() / len(groups)
    return accuracy if largest < 1.0 and 1.0 - accuracy <= 0.5 * (1.0 - largest) else 0.0


def hidden_columns(models: Sequence[Any]) -> set[str]:
    """Return the sensitive columns of X that no model may see."""
    hidden = []
    for model in models:
        last: Any = final_estimator(model)
        columns = SensitiveColumns(last)
        names = getattr(last, "feature_names_in_", None)
        known = not columns.sees_all and (model is last or names is not None)
        positions = columns.positions() if known else []
        hidden.append({f"column {k}" if names is None else str(names[k]) for k in positions})
    return set.intersection(*hidden)
