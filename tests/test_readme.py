"""What README.md shows is what happens: its Python runs, its output and its names are true."""

import doctest
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairconstrained import datasets
from fairconstrained.__main__ import main
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.solvers import SOLVERS

README = Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]\d+)?")
TOLERANCE = 0.01  # rounding, and a row or two at the threshold, differ between machines


def blocks(language):
    """Return the fenced blocks of a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", README.read_text(), re.S | re.M)
    return [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, text in found]


def agree(shown, printed):
    """Return whether two texts have the same words, and numbers that differ little."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return super().check_output(want, got, optionflags) or agree(want, got)


NEEDS = {  # what a block imports, and the optional package that this needs
    "FairBoostingClassifier": "lightgbm",
    "FairNetworkClassifier": "torch",
    "import dask": "dask",
}


def can_run(block):
    """Return whether the optional packages that a block needs are installed."""
    return all(find_spec(package) for word, package in NEEDS.items() if word in block)


def test_python_blocks():
    text = "\n".join(filter(can_run, blocks("python")))
    assert text.count(">>> ") > 20
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    said = []
    doctest.DocTestRunner(Checker()).run(example, out=said.append)
    assert not said, "".join(said)


def test_output_of_the_first_run(capsys, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / ".venv" / "bin" / "python"))
    main([])
    printed = capsys.readouterr().out
    shown = blocks("text")[0]
    seconds = re.compile(r"(\d\.\d\d)$", re.M)
    assert agree(seconds.sub("0.00", shown), seconds.sub("0.00", printed)), printed


@pytest.mark.parametrize("heading", ["First run", "Run the tests"])
def test_commands_are_one_line(heading):
    section = README.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    first = re.search(r"^```\w*\n(.*?)^```$", section, re.S | re.M)
    assert first is not None
    assert first[1].count("\n") == 1


@pytest.mark.parametrize("name", [*CONSTRAINTS, *SOLVERS])
def test_tables_name_everything(name):
    assert re.search(rf'^\| `"{name}"` \|', README.read_text(), re.M)


@pytest.mark.parametrize("name", datasets.__all__)
def test_data_sets_are_named(name):
    assert f"`{name}`" in README.read_text()


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
