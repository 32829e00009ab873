"""The comparison on a file of one's own: fit, measure on test rows, write report and model."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from fairconstrained.command_line._comparison import Figures, exit_status, table, unit, verdict
from fairconstrained.command_line._examples import EXAMPLES, next_runs
from fairconstrained.command_line._files import DataError, Table, read_table, with_roles
from fairconstrained.constraints import resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.inspection.assessment import constraints_of
from fairconstrained.inspection.collected import collect
from fairconstrained.inspection.proxies import proxies, proxies_in_words
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.reporting.report import FairnessReport, fairness_report
from fairconstrained.utils.extras import import_extra
from fairconstrained.utils.files import check_writable, whole_file

_OUTPUTS = ("report", "model", "json", "path")  # the options that name files to write
_SHOWN_GROUPS = 6  # more groups make the table too wide
_LEAST_STRATUM = 4  # rows of a group and a label, for test rows of the same shares
_IN_TEXT = " The model's labels are text, since classifiers do not take fractions."
_ON_SCORES = (
    "\n{} bounds the gap on scores of the training rows. To bound that of the predictions, use "
    "--enforce decision."
)


def run_own_data(options: Namespace) -> int:
    """Print the comparison on a file and write what was asked for; return the exit status."""
    if options.target is None or not options.sensitive:
        raise DataError(
            "Name the column to predict with --target, and the columns of groups with --sensitive."
        )
    _check_kappa(options)
    _check_extras(options)
    _check_outputs(options)
    example = EXAMPLES.get(options.data)
    frame = read_table(options.file) if example is None else example.table()
    data = with_roles(frame, options.target, options.positive, options.sensitive)
    run = _Run(options, data)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        found, models = _compared(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would repeat the notes
        written, status = run.write(found, models)  # also if nobody reads what is printed
    shown = table(found, [str(one) for one in run.shown_groups])
    fair = models["fair"][-1]
    empty = [f"On the {rows} rows: {one.note}." for (_, rows), one in found.items() if one.note]
    notes = dict.fromkeys([*(str(one.message) for one in noted), *empty])
    end = "\n".join([run.conclusion(found, models), *(f"Note: {one}" for one in notes), *written])
    parts = [verdict(fair), run.introduction(), shown, end]
    _print("\n\n".join(parts if example is None else [*parts, next_runs()]))
    return status or exit_status(fair, options.check)


def _print(text: str) -> None:
    """Print a text; that its reader, such as `head`, stops is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush


def _compared(run: _Run) -> tuple[dict[tuple[str, str], Figures], dict[str, Pipeline]]:
    """Return what `_Run.compare` does; data that the models refuse are a DataError."""
    try:
        return run.compare()
    except ValueError as error:
        raise DataError(f"{run.options.file}: the models cannot be fitted: {error}") from error


class _Run:
    """One comparison: the rows, split, and the two models."""

    def __init__(self, options: Namespace, data: Table):
        self.options, self.data = options, data
        given = {} if options.kappa is None else {"kappa": options.kappa}
        (asked,) = resolve_constraints(options.constraint, **given)
        self.classifier = FairLogisticClassifier(
            asked if given else options.constraint,
            enforce=options.enforce,
            sensitive_columns=list(options.sensitive),
            pos_label=data.positive,
            random_state=options.seed,
        )
        groups = Groups.encode(data.X[options.sensitive])
        self.names = groups.labels
        positive = (data.y == data.positive).to_numpy()
        strata = 2 * groups.codes + positive
        if np.bincount(strata)[strata].min() < _LEAST_STRATUM:
            strata = positive
        try:
            split = train_test_split(
                data.X,
                data.y,
                test_size=options.test_size,
                random_state=options.seed,
                stratify=strata,
            )
        except ValueError as error:
            raise DataError(
                f"{options.file}: its {len(data.y)} rows cannot be split into training and test "
                f"rows: {error}"
            ) from error
        self.X_train, self.X_test, self.y_train, self.y_test = split
        self.groups = {
            "training": Groups.encode(self.X_train[options.sensitive]),
            "test": Groups.encode(self.X_test[options.sensitive]),
        }
        self.proxies = proxies(
            self.X_train,
            np.arange(len(self.X_train)),
            self.groups["training"],
            options.sensitive,
        )

    @property
    def shown_groups(self) -> list[Any]:
        """The groups whose rates are shown; none if they are many."""
        return self.names if len(self.names) <= _SHOWN_GROUPS else []

    @property
    def tolerance(self) -> dict[str, float]:
        """The name and the value of the tolerance that is used."""
        (asked,) = resolve_constraints(self.options.constraint)
        if asked.takes_kappa:
            kappa = self.options.kappa
            return {"kappa": self.classifier.kappa if kappa is None else kappa}
        labels = np.where(self.y_train == self.data.positive, 1.0, -1.0)
        bound = asked.as_bound(asked.bind(labels, self.groups["training"], np.ones(len(labels))))
        return {bound.tolerance: getattr(bound, bound.tolerance)}

    def introduction(self) -> str:
        """Return what the rows, the groups and the constraint are."""
        data, options = self.data, self.options
        ((name, value),) = self.tolerance.items()
        (bound,) = resolve_constraints(options.constraint)
        columns = "this column" if len(options.sensitive) == 1 else "these columns"
        sizes = self.groups["training"]
        counts = [
            f"{name} ({int((sizes.codes == k).sum())})" for k, name in enumerate(sizes.labels)
        ]
        lines = [
            f"{options.file}: {len(data.y)} rows, {len(data.numbers)} numeric and "
            f"{len(data.categories)} categorical features; {len(self.y_test)} rows are test rows.",
            f"Positive class: {options.target} = {str(data.positive).strip()} "
            f"({(data.y == data.positive).mean():.1%} of the rows); the other value is "
            f"{str(data.negative).strip()}.{_IN_TEXT if data.labels_in_text else ''}",
            f"Groups by {' and '.join(options.sensitive)}, with their training rows: "
            f"{', '.join(counts)}. Neither model has {columns}.",
            f"Constraint: {options.constraint.replace('_', ' ')} with {name} = {value:g}, "
            f"on {'predictions' if options.enforce == 'decision' else 'scores'}.",
            unit(bound),
        ]
        if self.proxies:
            lines.insert(
                3,
                "Both models can know the group: it can be guessed with an accuracy above 0.95 "
                f"from each of these features alone: {proxies_in_words(self.proxies)}.",
            )
        if data.left_out:
            lines.append(
                f"Left out, since almost every row has another text: {', '.join(data.left_out)}."
            )
        if data.no_values:
            lines.append(
                "Left out, since their values are neither numbers nor text: "
                f"{', '.join(data.no_values)}."
            )
        if data.n_without_target:
            lines.append(f"Left out: {data.n_without_target} rows without a target.")
        return "\n".join(lines)

    def _model(self, **changes: Any) -> Pipeline:
        """Return the pipeline of encoder and classifier, with other parameters of the latter."""
        return make_pipeline(self.data.encoder(), clone(self.classifier).set_params(**changes))

    def compare(self) -> tuple[dict[tuple[str, str], Figures], dict[str, Pipeline]]:
        """Return the figures of both models on training and test rows, and the models."""
        free = self._model(constraint=None, kappa=0.05, enforce="score")
        models, seconds = {"unconstrained": free, "fair": self._model()}, {}
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(self.X_train, self.y_train)
            seconds[name] = time.perf_counter() - start
        ((_, constraint),) = constraints_of(models["fair"][-1])
        constraint = constraint.naming(np.array([self.data.negative, self.data.positive]))
        found = {}
        for rows, X, y in (
            ("training", self.X_train, self.y_train),
            ("test", self.X_test, self.y_test),
        ):
            collected = collect(models, X, y, X[list(self.options.sensitive)])
            for name, output in collected.outputs.items():
                spent = seconds[name] if rows == "training" else None
                figures = Figures.of(
                    collected.assessed(output), constraint, self.shown_groups, spent
                )
                found[name, rows] = figures
        return {(name, rows): found[name, rows] for name in models for rows in self.groups}, models

    def conclusion(self, found: dict[tuple[str, str], Figures], models: dict[str, Pipeline]) -> str:
        """Return what the constraint has changed."""
        before, after = (found[name, "test"] for name in ("unconstrained", "fair"))
        status = models["fair"][-1].result_.status.value
        gap = f"changes from {before.decision_gap:.3f} to {after.decision_gap:.3f}"
        what = "" if self.options.enforce == "decision" else _ON_SCORES.format(*self.tolerance)
        if np.isnan(after.decision_gap):
            gap = "cannot be measured"
        return (
            f"On the test rows the gap of the predictions {gap}. The accuracy changes from "
            f"{before.accuracy:.3f} to {after.accuracy:.3f}. The solver ended: {status}.{what}"
        )

    def write(
        self, found: dict[tuple[str, str], Figures], models: dict[str, Pipeline]
    ) -> tuple[list[str], int]:
        """Write the report, the model, the figures and the picture that were asked for.

        Returns
        -------
        written : list of str
            A line for every file.
        status : int
            1 if a file could not be written, else 0.
        """
        fair, status, written = models["fair"], 0, []
        writers: dict[str, Callable[[Path], object]] = {
            "report": lambda file: file.write_text(self._report(models).to_html(), "utf-8"),
            "model": lambda file: _write_model(fair, file),
            "json": lambda file: file.write_text(_json(self._as_json(found, fair))),
            "path": self._draw_path,
        }
        for name, write in writers.items():
            path = getattr(self.options, name)
            if path is None:
                continue
            try:
                with whole_file(path) as temporary:
                    write(temporary)
                written.append(f"Written: {path}")
            except OSError as error:
                print(f"--{name} {error.strerror}", file=sys.stderr)
                status = 1
        return written, status

    def _report(self, models: dict[str, Pipeline]) -> FairnessReport:
        groups = self.X_test[list(self.options.sensitive)]
        return fairness_report(models, self.X_test, self.y_test, groups)

    def _as_json(self, found: dict[tuple[str, str], Figures], fair: Pipeline) -> dict[str, Any]:
        options, result = self.options, fair[-1].result_
        return {
            "bound_met": fair[-1].bound_met_,
            "bound_violation": fair[-1].bound_violation_,
            "data": {
                "file": options.file,
                "target": options.target,
                "positive": self.data.positive,
                "negative": self.data.negative,
                "sensitive": list(options.sensitive),
                "proxies": self.proxies,
                "groups": [str(one) for one in self.names],
                "training_rows": len(self.y_train),
                "test_rows": len(self.y_test),
                "left_out": [*self.data.left_out, *self.data.no_values],
            },
            "constraint": {
                "name": options.constraint,
                **self.tolerance,
                "enforce": options.enforce,
            },
            "solver": {
                "status": result.status.value,
                "objective": result.objective,
                "violation": result.violation,
                "kkt_residual": result.kkt_residual,
                "data_passes": result.data_passes,
            },
            "models": [
                {"model": model, "rows": rows, **figures.as_json()}
                for (model, rows), figures in found.items()
            ],
        }

    def _draw_path(self, file: Path) -> None:
        from fairconstrained.plotting.path import FairnessPathDisplay

        model = self._model(constraint=self.options.constraint, enforce="score")
        validation = {"X_val": self.X_test, "y_val": self.y_test}
        followed = fairness_path(model, self.X_train, self.y_train, **validation)
        figure: Any = FairnessPathDisplay.from_path(followed).figure_
        figure.savefig(file, bbox_inches="tight")


def _check_kappa(options: Namespace) -> None:
    """Raise a DataError if kappa is given or varied, and the constraint does not take it."""
    (constraint,) = resolve_constraints(options.constraint)
    given = [f"--kappa {options.kappa:g}"] if options.kappa is not None else []
    given += [f"--path {options.path}"] if options.path else []
    if given and not constraint.takes_kappa:
        raise DataError(
            f"{' and '.join(given)}: the constraint {options.constraint} does not take kappa; its "
            f"tolerance is {constraint.tolerance}, which programs can change and the command line "
            "cannot. Leave this out, or name another constraint."
        )


def _check_extras(options: Namespace) -> None:
    """Raise an ImportError, before anything is fitted, if an output needs an extra."""
    if options.path:
        import_extra("matplotlib", "plot", f"--path {options.path}")
    if options.model and Path(options.model).suffix == ".skops":
        import_extra("skops.io", "deploy", f"--model {options.model}")


def _check_outputs(options: Namespace) -> None:
    """Raise a DataError, before anything is fitted, if a file cannot be written."""
    taken = {os.path.realpath(options.file): "the file with data"}
    for name in _OUTPUTS:
        text = getattr(options, name)
        if text is None:
            continue
        if os.path.isdir(text) or not os.path.isdir(Path(text).parent):
            raise DataError(
                f"--{name} {text}: this must be a file in a folder that exists. Create the folder, "
                "or name another file."
            )
        try:
            check_writable(text)
        except OSError as error:
            raise DataError(f"--{name} {error.strerror}") from error
        place = os.path.realpath(text)
        if place in taken:
            raise DataError(f"--{name} {text}: this is {taken[place]} too. Name another file.")
        taken[place] = f"the file of --{name}"
    endings = {"model": [".skops", ".joblib"], "path": _picture_endings(options.path)}
    for name, valid in endings.items():
        text = getattr(options, name)
        if text is not None and Path(text).suffix not in valid:
            raise DataError(f"--{name} {text}: the ending must be one of {', '.join(valid)}.")


def _picture_endings(path: str | None) -> list[str]:
    """Return the endings of the formats that Matplotlib writes; none if no picture is asked for."""
    if path is None:
        return []
    figures = import_extra("matplotlib.figure", "plot", f"--path {path}")
    return [f".{one}" for one in sorted(figures.Figure().canvas.get_supported_filetypes())]


def _write_model(model: Pipeline, path: Path) -> None:
    """Write a model as a skops file, or with joblib."""
    module = "skops.io" if path.suffix == ".skops" else "joblib"  # scikit-learn brings joblib
    import_module(module).dump(model, path)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"
