"""Reading a table, and checking and writing the files that are asked for."""

import codecs
import csv
import lzma
import os
import re
import sys
import zlib
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_float_dtype, is_numeric_dtype

from fairconstrained.utils.arguments import import_extra
from fairconstrained.utils.execution import check_writable, whole_file

_DELIMITERS = ",;\t|"  # a header without them may have spaces, or one column
_DECIMAL_COMMA = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?"
_DOTS = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)"
_COMMAS = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?"
_MARKS = {  # the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OUTPUTS = ("report", "model", "json", "path")  # the options that name files to write


class DataError(Exception):
    """The file, or an argument about it, is not usable; the message says why and what to do."""


def read_table(path: str, encoding: str | None = None) -> tuple[pd.DataFrame, str]:
    """Return the table of a CSV or Parquet file, and how it was read."""
    file = Path(path)
    try:
        if {".parquet", ".pq"} & set(file.suffixes):
            frame, read_as = pd.read_parquet(file), "Read as Parquet."
            frame = frame.reset_index([name for name in frame.index.names if name is not None])
        else:
            frame, read_as = _read_csv(file, encoding)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}: check the path.") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path} is empty: give a file with the names of its columns.") from error
    except ImportError as error:
        raise DataError(
            f"{path}: Parquet files need pyarrow, which is not installed. Install it with: "
            "pip install pyarrow"
        ) from error
    except (OSError, EOFError, ValueError, csv.Error, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as CSV or Parquet: {str(error).strip()}") from error
    if not len(frame):
        raise DataError(f"{path} has no rows below the names of its columns.")
    return frame, read_as


def _read_csv(file: Path, encoding: str | None) -> tuple[pd.DataFrame, str]:
    """Return the table with the names that the file has: pandas numbers repeated ones."""
    text, encoding = _decoded(file, encoding)
    text = re.sub(r"\A\s*sep=.\r?\n", "", text)  # Excel's first line: the header shows it as well
    delimiter = "\t" if ".tsv" in file.suffixes else _delimiter(text)
    read: Any = partial(pd.read_csv, sep=delimiter, low_memory=False, na_values=["?", " ?"])
    frame: pd.DataFrame = read(StringIO(text))
    if frame.iloc[:, -1].isna().all():  # perhaps rows end with separators, and names do not
        read = partial(read, index_col=False, usecols=range(frame.shape[1]))
        frame = read(StringIO(text))
    header = read(StringIO(text), header=None, nrows=1, dtype=str, na_filter=False)
    names = header.iloc[0].str.strip()
    names = names.where(names != "", frame.columns.to_numpy())
    read_as = f"Read as {encoding} text with the separator {delimiter!r}."
    thousands = [name for name in frame if _written_as(frame[name], _COMMAS, ",")]
    # 1,234 may be 1.234. Between commas that is unlikely, and fits do not depend on the unit.
    if delimiter != ",":
        thousands = [k for k in thousands if frame[k].str.contains(".", regex=False).any()]
    others = [name for name in frame if name not in thousands]
    commas = [name for name in others if _written_as(frame[name], _DECIMAL_COMMA, ",")]
    # Where the decimal mark is a comma, pandas has read 950 and 1.700 as 950.0 and 1.7.
    marked = bool(commas) or delimiter == ";"
    texts = read(StringIO(text), dtype=str).set_axis(frame.index) if marked else frame
    written = {k: (texts if is_float_dtype(frame[k]) else frame)[k] for k in others}
    dots = [k for k in others if k not in commas and _written_as(written[k], _DOTS, ".")]
    for name in thousands:
        frame[name] = frame[name].str.replace(",", "", regex=False).astype(float)
    for name in (*commas, *dots):
        plain = written[name].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        frame[name] = plain.astype(float)
    marks = _missing_marks(frame, partial(read, StringIO(text)))
    between = {"dots between thousands": dots, "commas between thousands": thousands}
    for what, columns in {"a decimal comma": commas, **between}.items():
        if columns:
            read_as += f" Numbers with {what}: {', '.join(names[frame.columns.isin(columns)])}."
    for mark, columns in marks.items():
        read_as += (
            f" {mark!r} is read as missing in {', '.join(names[frame.columns.isin(columns)])}: "
            "rename it in the file if it is a value."
        )
    return frame.reset_index(drop=True).set_axis(names.to_list(), axis=1), read_as


def _missing_marks(frame: pd.DataFrame, read: Callable[..., Any]) -> dict[str, list[Any]]:
    """Return the columns of text that have missing values by what is written for these."""
    texts = [k for k in frame if infer_dtype(frame[k]) == "string" and frame[k].isna().any()]
    marks: dict[str, list[Any]] = {}
    if texts:
        written = read(dtype=str, na_filter=False).set_axis(frame.index)
        for name in texts:
            for mark in sorted({*written[name][frame[name].isna()].str.strip()} - {"", "?"}):
                marks.setdefault(mark, []).append(name)
    return marks


def _written_as(column: pd.Series, pattern: str, mark: str) -> bool:
    """Return whether a column of text has only numbers of a pattern, some with a mark."""
    text = column.dropna().astype(str).str.strip()
    if is_numeric_dtype(column) or not text.str.contains(mark, regex=False).any():
        return False
    return bool(text.str.fullmatch(pattern).all())


def _decoded(file: Path, encoding: str | None) -> tuple[str, str]:
    """Return the text of a file, perhaps a compressed one, and its encoding."""
    with np.lib.npyio.DataSource(None).open(os.fspath(file), "rb") as stream:
        content = stream.read()
    marked = [name for mark, name in _MARKS.items() if content.startswith(mark)][:1]
    for name in [encoding] if encoding else marked or ["utf-8", "cp1252"]:
        with suppress(UnicodeDecodeError, LookupError):
            text = content.decode(name).removeprefix("\ufeff")
            if "\0" not in text:  # spreadsheets and archives have it
                return text, name
    raise DataError(f"{file} is not text in {name}. Name its --encoding; save spreadsheets as CSV.")


def _delimiter(text: str) -> str:
    """Return what separates the columns: of the usual characters, the one that the header has."""
    begin = re.sub(r'"[^"]*"', "", text[:100_000].lstrip())  # names may have several lines
    header = next(iter(begin.splitlines()), "").strip(" ")
    usual = max(_DELIMITERS, key=header.count)
    return " " if usual not in header and " " in header else usual


def _asked_for(options: Namespace) -> list[tuple[str, str]]:
    """Return the options that name files to write, and the files."""
    return [(name, path) for name in _OUTPUTS if (path := getattr(options, name)) is not None]


def check_outputs(options: Namespace) -> None:
    """Raise an error, before anything is fitted, if a file cannot be written or needs an extra."""
    taken = {os.path.realpath(options.file): "the file with data"}
    for name, text in _asked_for(options):
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
        valid = _endings(name, text)
        if valid and Path(text).suffix not in valid:
            raise DataError(f"--{name} {text}: the ending must be one of {', '.join(valid)}.")


def _endings(name: str, path: str) -> list[str]:
    """Return the endings that an output may have, or none if it may have any."""
    if name == "path":
        import_extra("matplotlib", "plot", f"--path {path}")
        figure = import_module("matplotlib.figure").Figure()
        return [f".{name}" for name in figure.canvas.get_supported_filetypes()]
    if Path(path).suffix == ".skops":
        import_extra("skops.io", "deploy", f"--{name} {path}")
    return {"model": [".skops", ".joblib"], "report": [".html", ".htm", ".md"]}.get(name, [])


def write_outputs(
    options: Namespace, writers: Mapping[str, Callable[[Path], object]]
) -> tuple[list[str], int]:
    """Write the files that were asked for, each by its writer; return what was, and the status.

    The status is 1 if a file could not be written, else 0.
    """
    status, written = 0, []
    for name, path in _asked_for(options):
        try:
            with whole_file(path) as temporary:
                writers[name](temporary)
            written.append(f"Written: {path}")
        except OSError as error:
            print(f"--{name} {error.strerror}", file=sys.stderr)
            status = 1
    return written, status


def write_model(model: object, file: Path) -> None:
    """Write a model as a skops file, or with joblib."""
    module = "skops.io" if file.suffix == ".skops" else "joblib"  # scikit-learn brings joblib
    import_module(module).dump(model, file)


def print_text(text: str) -> None:
    """Print a text. That the reader stops, as `head` does, or lacks a character, is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
