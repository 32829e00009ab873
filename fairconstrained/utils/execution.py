"""How work is run: threads of BLAS, workers, splits of rows, callbacks of scikit-learn.

What it leaves, attributes and files, is written whole or not at all.
"""

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import metadata_routing as routing
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import _num_samples
from threadpoolctl import ThreadpoolController

from fairconstrained.utils.arguments import brief
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike

_OF_SOME_FITS = (
    *("holdout_indices_", "pos_label_", "score_threshold_", "sensitive_names_in_"),
    *("threshold_", "validation_indices_", "_by_group"),
    *("booster_", "coef_", "feature_mean_", "feature_scale_", "weights_"),  # of rankers' models
)
_OF_CALLBACKS = ("_callback", "_skl_callback")  # scikit-learn ends its callbacks after a failure
_SMALL = 1 << 24  # with fewer multiplications than this, threads cost more than they gain


_controller = cache(ThreadpoolController)  # finding the libraries takes milliseconds


def limited_threads(X: object) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread unless X, as it is passed to `fit`, is dense and large.

    A fit enters it once: that takes as long as a few steps of a solver.
    """
    shape = () if hasattr(X, "nnz") else getattr(X, "shape", ())
    counted = all(isinstance(size, int) for size in shape)  # dask does not know its rows
    many = counted and math.prod(shape) > _SMALL
    return _controller().limit(limits=None if many else 1, user_api="blas")


_FEW_ROWS = 100_000


def workers(n_jobs: int | None, n_rows: int, **options: Any) -> Parallel:
    """Return what runs functions of the rows in worker processes.

    Joblib lets workers share arrays of more than 1 MB in files, and may take 0.1 s to remove these
    files. With at most 100,000 rows, arrays of up to 16 MB are copied to the workers instead.
    """
    least_shared = "16M" if n_rows <= _FEW_ROWS else "1M"
    return Parallel(n_jobs=n_jobs, max_nbytes=least_shared, **options)


_OF_FOLDS = {  # what scikit-learn calls for every fold; estimators are not told in another way
    "_fit_and_score",
    "_fit_and_predict",
    "_fit_and_score_over_thresholds",
    "_permutation_test_score",
}


def splits_of(
    cv: Any, X: Any, y: Any, params: Mapping[str, Any] | None = None, also: Any = ()
) -> list[tuple[Array, Array]]:
    """Return the positions of the training fold and of the test fold of every split.

    `also` are the labels of rows that will be added to every training fold.
    """
    rows, given = np.arange(_num_samples(X)), params or {}
    try:
        splits = check_cv(cv, y, classifier=True).split(X, y, **given)
        folds = [(rows[training], rows[test]) for training, test in splits]  # they may be masks
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} needs groups to split the rows by: pass them to fit, groups=..., or pass "
            f"the splits themselves, cv=list({type(cv).__name__}(...).split(X, y, groups))."
        ) from error
    if not folds:
        raise ValueError(f"cv={cv!r} has no splits: pass at least one, or a number of folds.")
    for k, (training, _) in enumerate(folds):
        for label in np.setdiff1d(np.setdiff1d(y, y[training]), also).tolist():
            raise ValueError(
                f"cv={brief(cv)}: fold {k + 1} of {len(folds)} has no training row with the label "
                f"{label!r}. Shuffle the rows, or use StratifiedKFold."
            )
    return folds


def in_fold() -> bool:
    """Return whether scikit-learn fits or scores a fold, as searches and cross-validation do.

    What a fold brings by chance is no error, and what is said of all its fits is said once, by the
    fit to all rows.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in _OF_FOLDS:
        frame = frame.f_back
    return frame is not None


def with_splitter(router: routing.MetadataRouter, cv: Any) -> routing.MetadataRouter:
    """Return a router that passes metadata of `fit` on to the splitter of an estimator's `cv`."""
    mapping = routing.MethodMapping().add(caller="fit", callee="split")
    return router.add(splitter=cv, method_mapping=mapping)


def splitter_params(estimator: Any, params: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    """Return what `split` gets of the further arguments of an estimator's `fit`."""
    if routing._routing_enabled():
        passed = {name: value for name, value in given.items() if value is not None}
        return dict(routing.process_routing(estimator, "fit", **passed, **params).splitter.split)
    unknown = sorted(set(params) - {"groups"})
    if unknown:
        raise TypeError(
            f"{type(estimator).__name__}.fit got the argument {unknown[0]!r}, which nothing takes. "
            "Without metadata routing a splitter gets `groups` only."
        )
    return dict(params)


T = TypeVar("T")


class _NoCallbacks:
    """A task of a fit that nothing watches."""

    def subcontext(self, **options: Any) -> "_NoCallbacks":
        """Return a task within this one."""
        return self

    def call_on_fit_task_begin(self, **options: Any) -> None:
        """Begin or end the task; no callback wants to stop."""

    call_on_fit_task_end = call_on_fit_task_begin

    def propagate_callback_context(self, sub_estimator: object) -> AbstractContextManager[None]:
        """Return a context that passes nothing to the estimator of a subtask."""
        return nullcontext()


class _WithoutCallbacks:
    """Estimators of a scikit-learn that has no callbacks."""

    def _init_callback_context(self, **options: Any) -> _NoCallbacks:
        return _NoCallbacks()


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:
    CallbackSupportMixin = _WithoutCallbacks

    def with_callbacks(method: T) -> T:
        """Return a method that no callback watches, as it is."""
        return method


Passed = tuple[MatrixLike, ArrayLike, ArrayLike | None]
"""X, y and sample_weight as they were passed to `fit`."""


class FitTasks:
    """The fit of an estimator as a task of callbacks, and its parts as subtasks."""

    def __init__(self, estimator: Any, passed: Passed, n_tasks: int | None = None):
        self.estimator, (X, y, sample_weight) = estimator, passed
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.data = {"X": X, "y": y, "metadata": metadata}
        self.fit_task = estimator._init_callback_context(max_subtasks=n_tasks)
        self.fit_task.call_on_fit_task_begin(estimator=estimator, **self.data)

    @contextmanager
    def task(self, name: str, inner: Any = None) -> Iterator[None]:
        """Report a part of the fit; callbacks that propagate see the fit of `inner`."""
        task, data = self.fit_task.subcontext(task_name=name), self.data
        takes = hasattr(inner, "set_callbacks")
        with task.propagate_callback_context(inner) if takes else nullcontext():
            task.call_on_fit_task_begin(estimator=self.estimator, **data)
            yield
        task.call_on_fit_task_end(estimator=self.estimator, **data)

    def say(self, text: str) -> None:
        """Print a line, if the estimator is to."""
        if self.estimator.verbose:
            print(f"[{type(self.estimator).__name__}] {text}")

    def close(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """End the task of the fit; `attributes` returns what `predict` uses."""
        self.fit_task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=attributes
        )


class Progress(FitTasks):
    """A solver's callback that prints lines and calls the estimator's callbacks.

    Every measured iterate is a task of the fit. The number of iterates is not known in advance, so
    that the begin of a task is reported just before its end; its `init_time` is when it began.
    """

    def __init__(self, estimator: Any, passed: Passed, attributes: Callable[[Any], Any]):
        super().__init__(estimator, passed)
        self.attributes = attributes
        self.iteration = self.fit_task.subcontext(task_name="iteration")

    def __call__(self, measured: Any) -> bool:
        """Report an iterate; return whether a callback wants to stop."""
        text = (
            f"iteration {measured.iterate.iteration}: objective {measured.objective:.6f}, "
            f"violation {measured.violation:.2e}, KKT residual {measured.kkt_residual:.2e}"
        )
        return self.report(text, measured.iterate.at.w)

    def report(self, text: str, w: Array) -> bool:
        """Report a step and the variables after it; return whether a callback wants to stop."""
        self.say(text)
        if not getattr(self.estimator, "_skl_callbacks", ()):  # a fit has many iterates
            return False
        self.iteration.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        stop: bool = self.iteration.call_on_fit_task_end(
            estimator=self.estimator,
            **self.data,
            reconstruction_attributes=lambda: self.attributes(w),
        )
        self.iteration = self.fit_task.subcontext(task_name="iteration")
        return stop


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before its fit, if the fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        now = vars(estimator).items()
        ending = {name: value for name, value in now if name.startswith(_OF_CALLBACKS)}
        estimator.__dict__ = before | ending
        raise


def set_fitted(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """Set the fitted attributes of an estimator.

    Some attributes exist only after some fits: a model of more than two classes has no threshold,
    for instance. Those that an earlier fit has left are removed.
    """
    kept = {name: vars(estimator)[name] for name in vars(estimator) if name not in _OF_SOME_FITS}
    estimator.__dict__ = {**kept, **attributes}


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return the fitted attributes of an estimator: those whose names end with an underscore."""
    attributes = vars(estimator)
    return {name: attributes[name] for name in attributes if name.endswith("_") and name[0] != "_"}


def coefficients(estimator: Any) -> Array:
    """Return the coefficients of a linear model as an ndarray, also after `sparsify`."""
    coef: Any = getattr(estimator, "coef_", np.empty(0))
    return coef.toarray() if hasattr(coef, "toarray") else coef


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, which replaces the file at the end.

    The file that was there is unchanged if the body raises an error or is interrupted. The
    temporary file has the same ending, and the permissions of the file that it replaces. A device
    or a pipe is not replaced but yielded itself.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairconstrained.utils.execution import whole_file
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/page.html") as temporary:
    ...         written = temporary.write_text("text")
    ...     print(*(file.name for file in Path(folder).iterdir()))
    page.html
    """
    with _named(path):
        if not _is_replaced(path):
            yield Path(path)
            return
        target = Path(os.path.realpath(path))
        temporary = _beside(target)
        try:
            yield temporary
            with temporary.open("rb+") as stream:  # only then some disks report that they are full
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                temporary.unlink()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError of :func:`whole_file` if its temporary file cannot be made."""
    with _named(path):
        if _is_replaced(path):
            trial = _beside(Path(os.path.realpath(path)))
            trial.touch(exist_ok=False)
            trial.unlink()


def _is_replaced(path: str | os.PathLike[str]) -> bool:
    return Path(path).is_file() or not Path(path).exists()


def _beside(target: Path) -> Path:
    return target.with_name(f".{token_hex(8)}{target.suffix}")


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in an OSError which file cannot be written."""
    try:
        yield
    except OSError as error:
        why = f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        raise OSError(error.errno, why) from error
