"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, which replaces the file at the end.

    The file that was there is unchanged if the body raises an error or is interrupted. The
    temporary file has the same ending, and the permissions of the file that it replaces. A device
    or a pipe is not replaced but yielded itself.

    Parameters
    ----------
    path : str or PathLike
        The file to write. Links are followed.

    Raises
    ------
    OSError
        If the file cannot be written. `strerror` is a sentence that says which file, and why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairconstrained.utils.files import whole_file
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
            _store(temporary)
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                temporary.unlink()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError of :func:`whole_file` if its temporary file cannot be made.

    Parameters
    ----------
    path : str or PathLike
        The file that is to be written after a long computation.
    """
    with _named(path):
        if _is_replaced(path):
            trial = _beside(Path(os.path.realpath(path)))
            trial.touch(exist_ok=False)
            trial.unlink()


def _is_replaced(path: str | os.PathLike[str]) -> bool:
    """Return whether a file can be replaced: it is a file, or there is nothing."""
    return Path(path).is_file() or not Path(path).exists()


def _beside(target: Path) -> Path:
    return target.with_name(f".{token_hex(8)}{target.suffix}")


def _store(file: Path) -> None:
    """Wait until a file is stored: only then do some disks report that they are full."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in an OSError which file cannot be written."""
    try:
        yield
    except OSError as error:
        why = f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        raise OSError(error.errno, why) from error
