"""The notebooks run from a clean kernel, and their stored outputs are those of such a run."""

import json
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
SLOW = {  # more than ten seconds
    "02_choosing_kappa.ipynb",
    "06_boosted_trees.ipynb",
    "07_network_with_800_groups.ipynb",
    "11_several_classes.ipynb",
}
GENERATED = {"08_a_ranker.ipynb", "12_a_file_for_the_regulator.ipynb"}  # they never read data
EXTRAS = {"06_boosted_trees.ipynb": "lightgbm", "07_network_with_800_groups.ipynb": "torch"}
RUNS = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES]


def code_cells(name):
    """Return the cells of code as they are stored; json alone will do for that."""
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shape(cells):
    """Return for every cell its place in the run, and the kinds of its outputs in order."""

    def kind(output):
        return output["output_type"], output.get("name", ""), sorted(output.get("data", {}))

    return [(cell["execution_count"], [kind(each) for each in cell["outputs"]]) for cell in cells]


@pytest.fixture
def execute():
    """What notebooks/run.py runs notebooks with."""
    pytest.importorskip("nbclient", reason="nbclient, which runs notebooks, is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel, which runs notebooks, is not installed")
    return runpy.run_path(str(FOLDER / "run.py"))["execute"]


def skip_without_its_extra(name):
    """Skip where the optional dependency of a notebook is not installed."""
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason=f"{EXTRAS[name]} is not installed")


def test_all_are_there():
    assert [name[:3] for name in NAMES] == [f"{k:02d}_" for k in range(1, 13)]
    assert {*SLOW, *GENERATED, *EXTRAS} <= {*NAMES}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", RUNS)
def test_runs_from_a_clean_kernel(name, execute, data_folder):
    skip_without_its_extra(name)
    cells = [cell for cell in execute(FOLDER / name).cells if cell.cell_type == "code"]
    assert shape(cells) == shape(code_cells(name)), "run notebooks/run.py and keep the outputs"


@pytest.mark.slow  # together about a minute
@pytest.mark.parametrize("name", [name for name in NAMES if name not in GENERATED])
def test_runs_on_generated_data(name, execute, monkeypatch, tmp_path):
    skip_without_its_extra(name)
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(tmp_path / "none"))
    cells = [cell for cell in execute(FOLDER / name).cells if cell.cell_type == "code"]
    assert "generated" in cells[0].outputs[0].text


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_stored(name):
    cells = code_cells(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells), "a cell shows nothing"
    outputs = [output for cell in cells for output in cell["outputs"]]
    kinds = {output["output_type"] for output in outputs}
    assert kinds <= {"stream", "execute_result", "display_data"}
    warned = [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert all("GeneralizationWarning" in "".join(text) for text in warned), "something else warned"
    assert bool(warned) == ("warning above" in (FOLDER / name).read_text("utf-8")), "say why"
