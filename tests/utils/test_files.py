"""Files are written whole or not at all, at every door that writes one."""

import errno
import os
from pathlib import Path

import pytest

from fairconstrained import FairLogisticClassifier, fairness_report, make_biased_classification
from fairconstrained.utils.execution import check_writable, whole_file

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def report():
    X, y, groups = make_biased_classification(120, random_state=0)
    model = FairLogisticClassifier().fit(X, y, sensitive_features=groups)
    return fairness_report(model, X, y, groups)


@pytest.fixture(params=["to_html", "to_markdown", "to_json"])
def write(report, request):
    return getattr(report, request.param)


def full_disk(monkeypatch):
    """Let all text files break off after some characters, as on a full disk."""

    def cut(self, text, **_):
        with self.open("w") as stream:
            stream.write(text[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", cut)


def test_a_full_disk_leaves_the_report_that_was_there(write, tmp_path, monkeypatch):
    (tmp_path / "report.x").write_text("the report of last year")
    full_disk(monkeypatch)
    with pytest.raises(OSError, match=r"report\.x cannot be written: No space left on device\.$"):
        write(tmp_path / "report.x")
    assert (tmp_path / "report.x").read_text() == "the report of last year"
    assert os.listdir(tmp_path) == ["report.x"]


WRITTEN = [
    ("none/report.html", FileNotFoundError, "No such file or directory"),
    ("file/report.html", NotADirectoryError, "Not a directory"),
    ("", IsADirectoryError, "Is a directory"),
]


@pytest.mark.parametrize(("name", "error", "reason"), WRITTEN)
def test_one_sentence_says_what_failed(write, tmp_path, name, error, reason):
    (tmp_path / "file").touch()
    with pytest.raises(error) as failed:
        write(tmp_path / name)
    assert failed.value.strerror == f"{tmp_path / name} cannot be written: {reason}."


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_device_is_written_to_and_stays(write):
    with pytest.raises(OSError, match="/dev/full cannot be written: No space left on device"):
        write(FULL)
    assert FULL.is_char_device()
    write("/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_written_to(report):
    reader, writer = os.pipe()
    with open(reader) as stream:
        text = report.to_json(f"/dev/fd/{writer}")
        os.close(writer)
        assert stream.read() == text


def test_no_permission(write, tmp_path):
    write()  # imports what it needs
    user = os.geteuid()
    tmp_path.chmod(0o500)
    if user == 0:  # the superuser may write everywhere
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError, match=r"cannot be written: Permission denied\.$"):
            write(tmp_path / "report.html")
    finally:
        os.seteuid(user)
    assert not os.listdir(tmp_path)


def test_links_and_permissions_stay(tmp_path):
    file, link = tmp_path / "file.txt", tmp_path / "link.txt"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    with whole_file(link) as temporary:
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_writing_can_be_tried_before(tmp_path):
    check_writable(tmp_path / "new.json")
    assert not os.listdir(tmp_path)
    with pytest.raises(OSError, match="cannot be written"):
        check_writable(tmp_path / "none" / "new.json")
