"""What README.md and the pages of the documentation show is what happens.

Their Python runs, their output and their names are true, and their links lead somewhere.
"""

import doctest
import importlib
import re
import sys
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import pytest

import fairconstrained as fc
from fairconstrained import datasets
from fairconstrained.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
TOUR = ROOT / "docs" / "tour.md"
GUIDE = ROOT / "docs" / "guide"
PAGES = [README, *sorted([*(ROOT / "docs").glob("*.md"), *GUIDE.glob("*.md")])]
EXECUTED = [page for page in PAGES if ">>> " in page.read_text()]
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]\d+)?")
TOLERANCE = 0.01  # rounding, and a row or two at the threshold, differ between machines
PUBLIC = ["", "constraints", "dask", "datasets", "deployment", "domains", "functions", "metrics"]
PUBLIC += ["model_selection", "objectives", "penalties", "plotting", "solvers"]
TYPES = ["ConstraintLike"]  # aliases in annotations

# Every page, in every run: a change anywhere may make one of them untrue.
pytestmark = pytest.mark.cases(1000)


def blocks(page, language):
    """Return the fenced blocks of a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", page.read_text(), re.S | re.M)
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
    "BoostedScores": "lightgbm",
    "FairNetworkClassifier": "torch",
    "import dask": "dask",
    "savefig": "matplotlib",
    "skore": "skore",
    "skrub": "skrub",
}


def can_run(block):
    """Return whether the optional packages that a block needs are installed."""
    return all(find_spec(package) for word, package in NEEDS.items() if word in block)


def test_the_pages_with_code_are_found():
    assert {"README.md", "tour.md", "constraints.md", "kappa.md"} <= {one.name for one in EXECUTED}
    assert sum(page.read_text().count(">>> ") for page in EXECUTED) > 150


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_python_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(takewhile(can_run, blocks(page, "python")))
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    said = []
    doctest.DocTestRunner(Checker()).run(example, out=said.append)
    assert not said, "".join(said)


def test_output_of_the_first_run(capsys, monkeypatch):
    monkeypatch.setattr(sys, "executable", "python")
    main([])
    printed = capsys.readouterr().out
    shown = blocks(TOUR, "text")[0]
    seconds = re.compile(r"(\d\.\d\d)$", re.M)
    shown = shown.replace(".venv/bin/python", "python")
    assert agree(seconds.sub("0.00", shown), seconds.sub("0.00", printed)), printed


@pytest.mark.parametrize("heading", ["First run", "Run the tests"])
def test_commands_are_one_line(heading):
    section = README.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    first = re.search(r"^```\w*\n(.*?)^```$", section, re.S | re.M)
    assert first is not None
    assert first[1].count("\n") == 1


def test_both_tables_name_every_constraint():
    text = (GUIDE / "constraints.md").read_text()
    decision, everything = text.split("\n## All constraints\n")
    for name in fc.constraints.CONSTRAINTS:
        assert f'`"{name}"`' in decision, name
        assert re.search(rf'^\| `"{name}"` \|', everything, re.M), name


def test_the_table_names_every_solver():
    text = (GUIDE / "solvers.md").read_text()
    for name in fc.solvers.SOLVERS:
        assert re.search(rf'^\| `"{name}"` \|', text, re.M), name


def test_data_sets_are_named():
    text = (GUIDE / "data.md").read_text()
    for name in datasets.__all__:
        assert f"`{name}`" in text, name


@pytest.mark.cases(len(PUBLIC))
@pytest.mark.parametrize("package", PUBLIC)
def test_the_reference_has_every_public_object(package):
    if package == "dask" and not find_spec("dask"):
        pytest.skip("fairconstrained.dask cannot be imported: dask is not installed")
    module = importlib.import_module(f"fairconstrained.{package}".rstrip("."))
    text = (ROOT / "docs" / "api.rst").read_text()
    listed = set()
    for part in text.split(".. currentmodule:: ")[1:]:
        name, rest = part.split("\n", 1)
        if name in (module.__name__, "fairconstrained"):
            listed |= set(re.findall(r"^   (\w+)$", rest, re.M))
    for name in module.__all__:
        if not (name.startswith("_") or name.isupper() or name in TYPES):
            assert name in listed or listed_at_home(getattr(module, name), name, text), name


def listed_at_home(thing, name, text):
    """Return whether a name of the top level is listed in the public package that defines it."""
    home = ".".join(getattr(thing, "__module__", "").split(".")[:2])
    parts = [part for part in text.split(".. currentmodule:: ") if part.startswith(f"{home}\n")]
    return any(re.search(rf"^   {name}$", part, re.M) for part in parts)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page):
    """Return the links of a page within the project."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    elsewhere = ("http:", "https:", "mailto:")
    return [link for link in found if not link.startswith(elsewhere)]


def has_a_target(link, page):
    """Return whether there is what a link of a page leads to."""
    target, _, anchor = link.partition("#")
    if target.endswith("gallery/index"):
        return True
    name = target.replace("../gallery/", "../../notebooks/") if "gallery" in target else target
    found = (page.parent / name).resolve() if target else page
    if not found.exists():
        return False
    return not anchor or found.suffix != ".md" or anchor in anchors(found)


def test_links_have_targets():
    of_pages = [(page, link) for page in PAGES for link in links(page)]
    assert of_pages
    assert [(page.name, link) for page, link in of_pages if not has_a_target(link, page)] == []
