"""The command that lists and runs benchmarks. What they measure is not tested, and no time is."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from benchmarks.__main__ import listing, main, parser_of
from benchmarks.harness.options import Default, parse
from benchmarks.registry import _TABLE, BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = ("matplotlib", "fairlearn", "skops")


def test_names_are_unique():
    assert len(BENCHMARKS) == len(_TABLE)


def test_the_listing_has_a_line_for_every_benchmark(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, one in BENCHMARKS.items():
        assert f"  {name}" in listing()
        assert sum(line.split()[:1] == [name] for line in lines) == 1
        assert one.description and "\n" not in one.description


def test_an_unknown_name_is_an_error(capsys):
    assert main(["no_such_benchmark"]) == 2
    assert "no_such_benchmark" in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHMARKS)
def test_options_have_defaults_and_quick_ones(name, tmp_path):
    for arguments in ([], ["--quick"]):
        options = parse(parser_of(name), [*arguments, "--out", str(tmp_path)])
        assert options.quick is bool(arguments)
        assert options.out == tmp_path
        assert not any(isinstance(value, Default) for value in vars(options).values())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_help_describes_every_option(name, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(parser_of(name), ["--help"])
    assert ended.value.code == 0
    assert "--quick" in capsys.readouterr().out


def test_quick_changes_the_defaults_and_nothing_that_is_given():
    def options(*arguments):
        parser = ArgumentParser()
        parser.add_argument("--rows", type=int, default=Default(1000, quick=10))
        return parse(parser, arguments)

    assert options().rows == 1000
    assert options("--quick").rows == 10
    assert options("--quick", "--rows", "7").rows == 7


def test_options_do_not_import_optional_packages():
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"  # importing them raises
        "from benchmarks.__main__ import parser_of\n"
        "from benchmarks.registry import BENCHMARKS\n"
        "for name in BENCHMARKS: parser_of(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
