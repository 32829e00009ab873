"""Run notebooks from a clean kernel and keep the outputs: python notebooks/run.py [name ...]."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent


def execute(path: Path, timeout: float = 120.0) -> nbformat.NotebookNode:
    """Return the notebook as a clean kernel, started in its folder, leaves it.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises.
    nbclient.exceptions.CellTimeoutError
        If a cell takes more seconds than `timeout`.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        allow_errors=False,
        coalesce_streams=True,  # how often a cell's output is flushed depends on the machine
        record_timing=False,  # times of the day would change the file with every run
        resources={"metadata": {"path": str(FOLDER)}},
    )
    return client.execute()


def main(names: list[str]) -> None:
    """Execute notebooks in place: those named, or all."""
    for path in [FOLDER / name for name in names] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(execute(path), path)
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
