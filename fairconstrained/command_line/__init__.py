"""The command ``python -m fairconstrained``: fits without and with a constraint, and reports.

What belongs here: arguments, files, what is printed. What does not: anything that a program would
call.
"""

import json
import re
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from fairconstrained.command_line import _files as files
from fairconstrained.command_line._files import DataError, print_text
from fairconstrained.command_line._roles import Table, same_value, with_roles
from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.estimators.logistic import FairLogisticClassifier
from fairconstrained.inspection.assessment import constraints_of, minimizes_gap
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.reporting.forms import aligned, number, plain, render
from fairconstrained.reporting.report import FairnessReport, fairness_report
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.meta_estimators import provenance

__all__ = ["OPTION_OF", "DataError", "print_text", "run"]

NOT_MET = 3
"""The exit status of ``--check`` where the bound is not met; errors have 1 and 2."""

OPTION_OF = {
    "combine": "--combine",
    "confidence": "--confidence",
    "constraint": "--constraint",
    "enforce": "--enforce",
    "kappa": "--kappa",
    "pos_label": "--positive",
    "random_state": "--seed",
    "ratio": "--ratio",
    "sensitive_columns": "--sensitive",
}
"""The options for parameters of the classifier; ``--set`` is for the others."""

_FREE = {"constraint": None, "enforce": "score", "confidence": None, "goal": "accuracy"}
_SHOWN_GROUPS = 6  # more groups make the table too wide
_LEAST_STRATUM = 4  # rows of a group and a label, for test rows of the same shares


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both models, and the reports on them."""

    options: Namespace
    rows: dict[str, Table]  # the training and the test rows
    models: dict[str, Pipeline]
    seconds: dict[str, float]  # the times of their fits
    reports: dict[str, FairnessReport]  # the reports on the rows

    @property
    def fair(self) -> Any:
        """The classifier with the constraint."""
        return self.models["fair"][-1]

    @cached_property
    def constraint(self) -> Constraint:
        """The constraint, with what it chose on the training rows."""
        return constraints_of(self.fair)[0][1]

    @cached_property
    def documented(self) -> Pipeline:
        """The fair model, which says in `provenance_` where it comes from."""
        train, test = self.rows.values()
        model, seed = self.models["fair"], self.options.seed
        model.provenance_ = provenance(
            model, train.X, train.y, train.groups, train.control, train.weight,
            training_rows=len(train.y), held_out_rows=len(test.y), seed_of_the_split=seed,
        )  # fmt: skip
        return model

    def figures(self) -> list[dict[str, Any]]:
        """Return accuracy, selection rates and gaps, for each model and its rows.

        None stands for what could not be measured.
        """
        rates = {
            rows: report.groups["selection_rate"].groupby("model").head(-1).unstack()
            for rows, report in self.reports.items()
        }
        groups = pd.concat(rates, sort=True).columns  # test rows may lack some
        return [
            {
                "model": model,
                "rows": rows,
                "accuracy": report.summary.at["accuracy", model],
                "rates": {name: plain(rates[rows].loc[model].get(name)) for name in groups},
                "decision_gap": plain(gaps["decisions"]),
                "score_gap": plain(gaps["scores"]),
                "seconds": seconds if rows == "training" else None,
            }
            for model, seconds in self.seconds.items()
            for rows, report in self.reports.items()
            for gaps in [report.constraints.droplevel("constraint").loc[model]]
        ]

    def table(self) -> str:
        """Return the figures as a table in plain text."""
        figures = self.figures()
        groups = list(map(str, figures[0]["rates"]))
        groups = groups if len(groups) <= _SHOWN_GROUPS else []
        lines: list[list[str]] = [["", "", "", *["selected"] * len(groups), "gap of", "gap on", ""]]
        lines += [["model", "rows", "accuracy", *groups, "predictions", "scores", "seconds"]]
        for line in figures:
            rates = [*line["rates"].values()][: len(groups)]
            shown = [line["accuracy"], *rates, line["decision_gap"], line["score_gap"]]
            spent = "" if line["seconds"] is None else f"{line['seconds']:.2f}"
            numbers = (number(np.nan if value is None else float(value)) for value in shown)
            lines.append([line["model"], line["rows"], *numbers, spent])
        return "\n".join(aligned(lines, n_left=2))

    @property
    def tolerance(self) -> tuple[str, float]:
        """The name and the value of what bounds the gap, or the loss."""
        if minimizes_gap(self.fair):
            return "max_loss_increase", self.fair.max_loss_increase
        given = {k: v for k, v in self.constraint.get_params(deep=False).items() if v is not None}
        name = next(name for name in ("ratio", "kappa", self.constraint.tolerance) if name in given)
        return name, float(given[name])

    @property
    def scores_title(self) -> str:
        """What the constraint averages on scores in place of predictions."""
        title, fair = self.constraint.scores_title, self.fair
        centred = self.constraint.surrogate == "sigmoid" and fair.threshold is None
        if title is not Constraint.scores_title or (centred and hasattr(fair, "predict_proba")):
            return title
        return f"{self.constraint.surrogate}s of scores minus the threshold"

    def text(self, read_as: str) -> str:
        """Return whether the bound is met, what was compared, and what the constraint changed."""
        train, test = self.rows.values()
        return render(
            "command.txt.j2",
            comparison=self,
            file=Path(self.options.file).name,
            read_as=read_as,
            n_positive=sum(int((rows.y == train.positive).sum()) for rows in (train, test)),
            sizes=self.reports["training"].groups.xs("fair")["rows"].iloc[:-1],
            hidden=set(self.options.sensitive).isdisjoint(train.X),
        )

    def as_json(self) -> str:
        """Return the options and all measures."""
        options, (train, test), result = self.options, self.rows.values(), self.fair.result_
        figures = self.figures()
        measures = ("objective", "violation", "kkt_residual", "data_passes")
        content = {
            "bound_met": self.fair.bound_met_,
            "bound_violation": self.fair.bound_violation_,
            "data": {
                "file": options.file,
                "target": options.target,
                "positive": train.positive,
                "negative": train.negative,
                "sensitive": options.sensitive,
                "control": options.control,
                "training_rows": len(train.y),
                "test_rows": len(test.y),
                "left_out": train.left_out,
            },
            "constraint": {
                "name": options.constraint,
                **dict([self.tolerance]),
                "enforce": options.enforce,
            },
            "solver": {"status": result.status.value, **{k: getattr(result, k) for k in measures}},
            "groups": [*map(str, figures[0]["rates"])],
            "models": [{**line, "rates": [*line["rates"].values()]} for line in figures],
            "provenance": self.documented.provenance_,
            **{rows: report.to_dict() for rows, report in self.reports.items()},
        }
        return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"

    def draw_path(self, file: Path) -> None:
        """Draw accuracy against the gap for many kappas."""
        from fairconstrained.plotting.path import FairnessPathDisplay

        train, test = self.rows.values()
        free = {"classifier__constraint": self.options.constraint, "classifier__enforce": "score"}
        model = clone(self.models["fair"]).set_params(**free, classifier__confidence=None)
        held_out = {f"{name}_val": values for name, values in test.row_data().items()}
        held_out |= {"X_val": test.X, "y_val": test.y}
        path = fairness_path(model, train.X, train.y, **train.row_data(), **held_out)
        FairnessPathDisplay.from_path(path).figure_.savefig(file, bbox_inches="tight")


def _references(asked: list[tuple[str, str]], table: Table) -> dict[str, str]:
    """Return the reference group of each column that has one."""
    references: dict[str, str] = {}
    groups = {str(name): sorted(part.dropna().unique()) for name, part in table.groups.items()}
    for column, text in asked:
        if column in references:
            wrong = f"{column} has another reference; choose one."
            raise DataError(f"--reference {column}={text}: {wrong}")
        value = same_value(text, groups.get(column, []))
        if value not in groups.get(column, []):
            valid = ", ".join(f"{name}={each}" for name, some in groups.items() for each in some)
            wrong = f"give a column of --sensitive and one of its values: {valid}."
            raise DataError(f"--reference {column}={text}: {wrong}")
        references[column] = value
    return references


def run(options: Namespace) -> int:
    """Print the comparison on a file and write what was asked for; return the exit status."""
    if options.target is None or not options.sensitive:
        raise DataError(
            "Name the column to predict with --target, and the columns of groups with --sensitive."
        )
    classifier = _classifier(options)
    files.check_outputs(options)
    frame, read_as = files.read_table(options.file, options.encoding)
    try:
        table = with_roles(frame, options, classifier)
    except DataError as error:  # it may be that the file was not read as it was meant
        raise DataError(f"{error} {read_as}") from error
    options.reference = _references(options.reference, table)
    rows = dict(zip(("training", "test"), map(table.take, _split(table, options)), strict=True))
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            result = _compared(options, classifier, rows)
        except (TypeError, ValueError) as error:
            why = in_options(str(error))
            raise DataError(f"{options.file}: the models cannot be fitted: {why}") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would repeat the notes
        page = result.reports["test"]
        writers: dict[str, Callable[[Path], object]] = {
            "report": lambda file: {".md": page.to_markdown}.get(file.suffix, page.to_html)(file),
            "model": partial(files.write_model, result.documented),
            "json": lambda file: file.write_text(result.as_json(), "utf-8"),
            "path": result.draw_path,
        }
        # before anything is printed: it may be that nobody reads it
        written, status = files.write_outputs(options, writers)
    notes = [*(str(warning.message) for warning in noted), *page.notes]
    end = [f"Note: {in_options(note)}" for note in dict.fromkeys(notes)]
    print_text("\n".join([result.text(read_as), *end, *written]))
    return status or (NOT_MET if options.check and not result.fair.bound_met_ else 0)


def in_options(text: str) -> str:
    """Return a message of the library with the options of the command line for parameters."""
    names = list(FairLogisticClassifier().get_params())
    alone = [name for name in names if "_" in name or name == "tol"]  # others are plain words too

    def given(match: re.Match[str]) -> str:
        name, value = match[1] or match[3], (match[2] or "").strip("'\"")
        if name in OPTION_OF:
            option = OPTION_OF[name]
            return f"no {option}" if value == "None" else f"{option} {value}".rstrip()
        return f"--set {name}={value or 'VALUE'}"

    text = text.replace(", decision_gap_,", "")  # the table has it
    value = r"'\w*'|\"\w*\"|[\w.]*\w"
    return re.sub(rf"(?<!')\b(?:({'|'.join(names)})=({value})|({'|'.join(alone)})\b)", given, text)


def _classifier(options: Namespace) -> FairLogisticClassifier:
    """Return the classifier with the parameters that the options give."""
    (constraint,) = resolve_constraints(options.constraint)
    takes_kappa, takes_ratio = constraint.takes_kappa, "ratio" in constraint.get_params()
    for name, valid in (("kappa", takes_kappa), ("path", takes_kappa), ("ratio", takes_ratio)):
        value = getattr(options, name)
        if value is not None and not valid:
            tolerance = constraint.tolerance
            raise DataError(
                f"--{name} {value}: the constraint {options.constraint} does not take "
                f"{'ratio' if name == 'ratio' else 'kappa'}; its tolerance is {tolerance}, set by "
                f"{OPTION_OF.get(tolerance, f'--set constraint__{tolerance}')}. Leave this out, or "
                "name another constraint."
            )
    if options.ratio is not None:
        constraint.set_params(ratio=options.ratio)
    classifier = FairLogisticClassifier(
        constraint.with_defaults(kappa=options.kappa),
        enforce=options.enforce,
        confidence=options.confidence,
        combine=options.combine,
        groups_missing="own_group",
        random_state=options.seed,
    )
    try:
        return classifier.set_params(**dict(options.set))
    except ValueError as error:
        raise DataError(f"--set: {error}") from error


def _split(table: Table, options: Namespace) -> tuple[Array, Array]:
    """Return the training and the test rows, with the same shares of groups and labels."""
    positive = (table.y == table.positive).to_numpy()
    groups = table.groups.groupby(list(table.groups), dropna=False).ngroup()
    strata = 2 * groups.to_numpy() + positive
    if np.bincount(strata)[strata].min() < _LEAST_STRATUM:
        strata = positive
    how = {"test_size": options.test_size, "random_state": options.seed, "stratify": strata}
    try:
        train, test = train_test_split(np.arange(len(positive)), **how)
    except ValueError as error:
        raise DataError(
            f"{options.file}: its {len(positive)} rows cannot be split into training and test "
            f"rows: {error}"
        ) from error
    return train, test


def _compared(
    options: Namespace, classifier: FairLogisticClassifier, rows: dict[str, Table]
) -> Comparison:
    """Fit both models to the training rows, and report on both."""
    train = rows["training"]
    # The encoder has made features of the sensitive columns.
    columns = {"sensitive_columns": train.passed or None, "use_sensitive": False}
    classifier.set_params(pos_label=train.positive, **columns)
    free = clone(classifier).set_params(**_FREE)
    fit_params = {f"classifier__{name}": values for name, values in train.row_data().items()}
    models, seconds = {}, {}
    for name, last in (("unconstrained", free), ("fair", classifier)):
        if "constraint__previous" in last.get_params():  # without it reports cannot measure churn
            last.set_params(constraint__previous=free)
        models[name] = Pipeline([("encoder", train.encoder()), ("classifier", last)])
        start = time.perf_counter()
        models[name].fit(train.X, train.y, **fit_params)
        seconds[name] = time.perf_counter() - start
    asked = {
        "confidence": options.confidence or 0.95,
        "reference": options.reference or None,
        "least_share": options.least_share,
    }
    reports = {
        name: fairness_report(models, part.X, part.y, **asked, **part.row_data())
        for name, part in rows.items()
    }
    return Comparison(options, rows, models, seconds, reports)
