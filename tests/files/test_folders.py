"""Folders are written as a whole, and never over what somebody else has made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cms.errors import FileError
from cms.fleet.deployment.written_folder import SUMS, refuse_folder, write_folder

FILES = {"run.sh": "#!/bin/sh\necho done\n", "steps/07.json": "{}\n", "README.md": "It runs.\n"}


def held(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def own(folder: Path) -> dict[str, str]:
    return {name: text for name, text in held(folder).items() if name != SUMS}


def test_what_was_written_before_makes_way_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()  # an empty folder is nobody's
    write_folder(FILES, out)
    write_folder({"a/b.txt": ""}, out)
    assert own(out) == {"a/b.txt": ""}
    (out / "a" / "b.txt").unlink()
    write_folder(FILES, out)
    assert own(out) == FILES
    assert os.listdir(tmp_path) == ["out"]


def foreign_file(out: Path) -> None:
    (out / "steps" / "notes.txt").write_text("mine")


def changed_file(out: Path) -> None:
    (out / "run.sh").write_text("#!/bin/sh\necho changed\n")


def pipe_for_a_file(out: Path) -> None:
    (out / "README.md").unlink()
    os.mkfifo(out / "README.md")


def other_sums(out: Path) -> None:
    (out / SUMS).write_text("something else\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (foreign_file, "'steps/notes.txt', which is not ours"),
        (changed_file, "'run.sh', which has been changed"),
        (pipe_for_a_file, "'README.md', which has been changed"),
        (other_sums, f"'{SUMS}', which is not ours"),
    ],
)
def test_what_somebody_else_made_stays(
    tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    out = tmp_path / "out"
    write_folder(FILES, out)
    change(out)
    before = sorted(path.name for path in out.rglob("*"))
    asks: list[Callable[[], object]] = [
        lambda: refuse_folder(out),
        lambda: write_folder({"new": ""}, out),
    ]
    for ask in asks:
        with pytest.raises(FileError) as error:
            ask()
        assert str(error.value) == (
            f"{out}: this folder holds {words}, expected a new folder, an empty one or one that "
            "was written here before; name another, or have it moved aside with --force"
        )
    assert sorted(path.name for path in out.rglob("*")) == before
    kept = write_folder({"new": ""}, out, force=True)
    assert kept == tmp_path / "out.1"
    assert sorted(path.name for path in kept.rglob("*")) == before
    assert own(out) == {"new": ""}
    assert sorted(os.listdir(tmp_path)) == ["out", "out.1"]


@pytest.mark.parametrize("broken", ["mkdir", "write_bytes", "rename"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("lucky", range(4))
@pytest.mark.parametrize("there", [None, "ours", "theirs"])
def test_whatever_goes_wrong_everything_is_as_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    fault: BaseException,
    lucky: int,
    there: str | None,
) -> None:
    """The call to `broken` that follows some lucky ones fails."""
    out = tmp_path / "out"
    if there == "ours":
        write_folder({"old.txt": "old"}, out)
    elif there == "theirs":
        out.mkdir()
        (out / "old.txt").write_text("old")
    before = held(tmp_path)
    works, calls = getattr(Path, broken), 0

    def fails(self: Path, *arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == lucky + 1:
            raise fault
        return works(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, broken, fails)
        said: BaseException | None = None
        try:
            write_folder(FILES, out, force=True)
        except (FileError, KeyboardInterrupt) as error:
            said = error
    if said is None:
        assert calls <= lucky
        assert own(out) == FILES
    else:
        assert held(tmp_path) == before
        assert said is fault or str(said) == f"{out}: cannot be written: {fault.args[1]}"


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../x", "", "a//b", "./a", "a\\b", "a\nb", ".", SUMS]
)
def test_a_file_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match="no file in this folder can be called"):
        write_folder({name: ""}, tmp_path / "out")
    assert not os.listdir(tmp_path)
