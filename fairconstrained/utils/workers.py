"""Worker processes of searches and of cross-validation."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils.parallel import Parallel

from fairconstrained.utils.validation import is_number

_FEW_ROWS = 100_000


def check_jobs(n_jobs: object) -> None:
    """Check a number of jobs.

    Raises
    ------
    ValueError
        If it is not None or an integer other than 0.
    """
    if n_jobs is not None and (not is_number(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0; got {n_jobs!r}.")


def workers(n_jobs: int | None, n_rows: int, **options: Any) -> Parallel:
    """Return what runs functions of the rows in worker processes.

    Joblib lets workers share arrays of more than 1 MB in files, and may take 0.1 s to remove these
    files. With at most 100,000 rows, arrays of up to 16 MB are copied to the workers instead.

    Parameters
    ----------
    n_jobs : int or None
        The number of workers, as in joblib.
    n_rows : int
        The number of rows.
    **options
        Further options of :class:`sklearn.utils.parallel.Parallel`.
    """
    least_shared = "16M" if n_rows <= _FEW_ROWS else "1M"
    return Parallel(n_jobs=n_jobs, max_nbytes=least_shared, **options)
