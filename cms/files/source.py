"""A text file as it was read, the places in it, and how errors show what stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from ..errors import FileError
from ..values.names import nearest

StrPath: TypeAlias = "str | os.PathLike[str]"

_NEWLINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name, as the user gave it, and its text: empty of what was never a file."""

    name: str
    text: str = ""
    #: Where the document begins, of several in one JSON text.
    begin: int = 0
    #: Where each value and its key stand, by the path to it, in what is no JSON text.
    places: Mapping[tuple[str | int, ...], tuple[int, int | None]] | None = field(
        default=None, compare=False, repr=False
    )

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into the text into a line and a column, both counted from 1."""
        line, start = 1, 0
        for match in _NEWLINE.finditer(self.text, 0, offset):
            if match.end() <= offset:
                line, start = line + 1, match.end()
        return line, offset - start + 1

    def error(self, what: str, offset: int | None = None, **told: Any) -> FileError:
        """Build the error for something at an offset of this file."""
        line, column = (None, None) if offset is None else self.position(offset)
        return FileError(self.name, what, line=line, column=column, **told)


def read_source(path: StrPath, *, holds: str = "text") -> Source:
    """Read a UTF-8 text file, or standard input if the path is ``-``.

    `holds` says what it should hold ("a JSON document"), for the errors. The byte order mark that
    some editors write is left out; line ends are left as they are.
    """
    name = "<stdin>" if os.fspath(path) == "-" else os.fspath(path)
    data = _read_bytes(path, name, holds)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        before = Source(name, data[: fault.start].decode("utf-8-sig", errors="replace"))
        what, wanted = f"byte 0x{data[fault.start]:02x} is not UTF-8", f"{holds} in UTF-8"
        fix = "save it as UTF-8" + ", it is UTF-16" * (data[:2] in (b"\xff\xfe", b"\xfe\xff"))
        raise before.error(what, len(before.text), expected=wanted, fix=fix) from None
    if not text.strip():
        raise FileError(name, "the file is empty", expected=holds)
    return Source(name, text)


def _read_bytes(path: StrPath, name: str, holds: str) -> bytes:
    is_stdin = os.fspath(path) == "-"
    if is_stdin and sys.stdin is None:
        raise FileError(name, "standard input is closed", expected=holds)
    with telling(path, "read"):
        if is_stdin:
            with suppress(OSError, ValueError):  # a stream without a number
                note_read(sys.stdin.fileno(), name)
            return sys.stdin.buffer.read()
        with Path(path).open("rb") as file:
            note_read(file.fileno(), name)
            return file.read()


#: What the running command has read, by device and number: its name. None outside of a command.
_read: dict[tuple[int, int], tuple[str, str]] | None = None


@contextmanager
def noting_reads() -> Iterator[None]:
    """Take note of every file that is read meanwhile: nothing may be written over it."""
    global _read
    _read = {}
    try:
        yield
    finally:
        _read = None


def note_read(number: int, name: str) -> None:
    """Take note of an open file that is read, under the name by which a user knows it."""
    if _read is not None and stat.S_ISREG((found := os.fstat(number)).st_mode):
        _read[found.st_dev, found.st_ino] = name, os.path.realpath(name)


def read_before(path: StrPath) -> str | None:
    """Return the name under which the running command has read a file, or one in a folder.

    None if it has not. Links and other spellings of a path do not matter.
    """
    if not _read:
        return None
    try:
        there = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(there.st_mode):
        folder = Path(os.path.realpath(path))
        return next((name for name, at in _read.values() if folder in Path(at).parents), None)
    return _read.get((there.st_dev, there.st_ino), (None, ""))[0]


def write_bytes(data: bytes, path: StrPath) -> None:
    """Write a file as a whole, or to standard output if the path is ``-``.

    It is written beside its place first, and renamed when the disk has it: until then the file
    that is there stays as it is. A link stays, and what it leads to is replaced; a file keeps its
    mode. Standard output, pipes and devices are written to as they are.
    """
    if (stream := _stream_of(path)) is not None:
        stream.flush()  # what was printed as text before must stay before
        stream.buffer.write(data)
        stream.buffer.flush()
        return
    with telling(path):
        if (place := _place(path)) is None:
            Path(path).write_bytes(data)
            return
        with beside(place) as new:
            with suppress(FileNotFoundError):
                now = place.stat()
                with suppress(PermissionError, AttributeError):  # not root; not on Windows
                    os.chown(new, now.st_uid, now.st_gid)
                shutil.copystat(place, new)
            write_synced(new, data)
            rename(new, place)


def _place(path: StrPath) -> Path | None:
    """Where the file is that is to be replaced or made; None of what is only written to."""
    place = Path(os.path.realpath(path))
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return place
    if not stat.S_ISREG(there.st_mode):
        return None
    if not (place.exists() and os.path.samestat(there, place.stat())):
        return None  # an open file that has no name any more: /dev/fd/3
    if (name := read_before(path)) is not None:
        raise FileError(
            os.fspath(path), f"is read as {name}, and would be lost", fix="name another file"
        )
    os.close(os.open(place, os.O_WRONLY))  # what may not be written may not be replaced
    return place


def _stream_of(path: StrPath) -> TextIO | None:
    if os.fspath(path) == "-":
        if sys.stdout is None:
            raise FileError("<stdout>", "standard output is closed", fix="name a file to write")
        return sys.stdout
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # none, or one without a number
            if os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
                return stream
    return None


@contextmanager
def telling(path: StrPath, done: str = "written") -> Iterator[None]:
    """Say which file or folder it is that cannot be read or written."""
    name = "<stdin>" if os.fspath(path) == "-" else os.fspath(path)
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        if done == "read":
            folder = Path(path).parent
            others = os.listdir(folder) if os.access(folder, os.R_OK) else ()
            hint = nearest(Path(path).name, others, lead="")
            raise FileError(name, "there is no such file", fix=hint) from None
        meant = os.path.realpath(path) if os.path.islink(path) else path
        what = f"there is no folder {str(Path(meant).parent)!r} to write to"
        raise FileError(name, what, fix="create it first") from None
    except IsADirectoryError:
        raise FileError(name, "this is a folder", expected="a file") from None
    except PermissionError:
        # what is written is made beside its place, and renamed when it is whole
        fix = "check its permissions" + (", and its folder's" if done == "written" else "")
        raise FileError(name, f"this file may not be {done}", fix=fix) from None
    except (OSError, ValueError) as fault:  # a name too long, a device error, a NUL in the name
        # without the name again, which may be the very thing that is long
        reason = getattr(fault, "strerror", None) or fault
        raise FileError(name, f"cannot be {done}: {reason}") from None


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def beside(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield an empty hidden file or folder beside a place; what is not renamed is removed."""
    start = os.fsencode(place.name)[:200]  # a longer one would be too long with what is added
    new = place.with_name(f".{os.fsdecode(start)}.cms-{os.urandom(8).hex()}")
    new.mkdir() if folder else new.open("xb").close()
    try:
        yield new
    finally:
        if new.is_dir():
            shutil.rmtree(new, ignore_errors=True)
        else:
            new.unlink(missing_ok=True)


def rename(new: Path, place: Path) -> None:
    """Rename a file or folder, and wait until the disk has the folder's new list of names."""
    os.replace(new, place)
    sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's list of names, on a file system that can say so."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def quoted(text: str) -> str:
    """Show a text in double quotes, as JSON has it."""
    # A terminal may not be able to print half of a surrogate pair, or may obey a control character.
    return shortened(json.dumps(text, ensure_ascii=not text.isprintable()))


def plain(name: str) -> str:
    """Show a name without quotes, unless it has characters that cannot be printed."""
    return shortened(name) if name.isprintable() else quoted(name)


def shortened(text: str, longest: int = 60) -> str:
    """Cut a text off that is longer than `longest` characters, and say how long it is."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]}... ({len(text)} characters)"


def one_of(names: Iterable[str]) -> str:
    """Word what was expected where only some names are allowed."""
    known = [plain(name) for name in islice(names, 9)]
    if not known:
        return "none: there are no names to choose from"
    return f"one of {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
