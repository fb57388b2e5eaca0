"""A text file as it was read: its name for errors, its text, and lines and columns in it."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..errors import FileError
from ..values.names import nearest

StrPath: TypeAlias = "str | os.PathLike[str]"

_NEWLINE = re.compile(r"\r\n|\n|\r")
_SIGNATURES = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it first: gunzip"),
    (b"PK\x03\x04", "is a zip archive (or a spreadsheet)", "unpack it, or export it as text"),
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name and text.

    Parameters
    ----------
    name : str
        The path as the user gave it, ``<stdin>``, or what stands for it in errors.
    text : str or None
        What the file holds. None for a document that was never a file: its errors have no line.

    Examples
    --------
    >>> Source("a.json", "{\\n  1}").position(4)
    (2, 3)
    """

    name: str
    text: str | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into the text into a line and a column, both counted from 1."""
        line, start = 1, 0
        for match in _NEWLINE.finditer(self.text or "", 0, offset):
            if match.end() <= offset:
                line, start = line + 1, match.end()
        return line, offset - start + 1

    def error(
        self,
        what: str,
        offset: int | None = None,
        *,
        expected: str | None = None,
        fix: str | None = None,
    ) -> FileError:
        """Build the error for something at an offset of this file."""
        line, column = (None, None) if offset is None else self.position(offset)
        return FileError(self.name, what, line=line, column=column, expected=expected, fix=fix)


def read_source(path: StrPath, *, holds: str = "text") -> Source:
    """Read a UTF-8 text file, or standard input if the path is ``-``.

    Parameters
    ----------
    path : str or path-like
        The file.
    holds : str
        What it should hold ("a JSON document"), for the errors.

    Returns
    -------
    Source
        Without the byte order mark that some editors write. Line ends are left as they are.

    Raises
    ------
    FileError
        If it does not exist, is a folder, may not be read, is empty, is compressed or not UTF-8.
    """
    name = "<stdin>" if os.fspath(path) == "-" else os.fspath(path)
    data = _read_bytes(path, name, holds)
    for signature, what, fix in _SIGNATURES:
        if data.startswith(signature):
            raise FileError(name, what, expected=f"{holds} in UTF-8", fix=fix)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        before = Source(name, data[: fault.start].decode("utf-8-sig", errors="replace"))
        raise Source(name, before.text).error(
            f"byte 0x{data[fault.start]:02x} is not UTF-8",
            len(before.text or ""),
            expected=f"{holds} in UTF-8",
            fix="save it as UTF-8",
        ) from None
    if not text.strip():
        raise FileError(name, "the file is empty", expected=holds)
    return Source(name, text)


def _read_bytes(path: StrPath, name: str, holds: str) -> bytes:
    is_stdin = os.fspath(path) == "-"
    if is_stdin and sys.stdin is None:
        raise FileError(name, "standard input is closed", expected=holds)
    try:
        if is_stdin:
            return sys.stdin.buffer.read()
        return Path(path).read_bytes()
    except FileNotFoundError:
        hint = nearest(Path(path).name, _names_in(Path(path).parent), lead="")
        raise FileError(name, "there is no such file", fix=hint) from None
    except IsADirectoryError:
        raise FileError(name, "this is a folder", expected="a file") from None
    except PermissionError:
        raise FileError(name, "this file may not be read", fix="check its permissions") from None
    except (OSError, ValueError) as fault:  # a name too long, a device error, a NUL in the name
        raise FileError(name, f"cannot be read: {_reason(fault)}") from None


def _names_in(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:  # no such folder, or not ours to list: then there is no hint
        return []


def write_bytes(data: bytes, path: StrPath) -> None:
    """Write a file as a whole, or to standard output if the path is ``-``.

    Raises
    ------
    FileError
        If the folder does not exist or the file may not be written.
    """
    if os.fspath(path) == "-":
        if sys.stdout is None:
            raise FileError("<stdout>", "standard output is closed", fix="name a file to write")
        sys.stdout.flush()  # what was printed as text before must stay before
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    name = os.fspath(path)
    try:
        Path(path).write_bytes(data)
    except FileNotFoundError:
        folder = str(Path(path).parent)
        raise FileError(
            name, f"there is no folder {folder!r} to write to", fix="create it first"
        ) from None
    except IsADirectoryError:
        raise FileError(name, "this is a folder", expected="a file to write") from None
    except PermissionError:
        raise FileError(name, "this file may not be written", fix="check its permissions") from None
    except (OSError, ValueError) as fault:
        raise FileError(name, f"cannot be written: {_reason(fault)}") from None


def _reason(fault: OSError | ValueError) -> str:
    """What the system says, without the name again, which may be the very thing that is long."""
    return getattr(fault, "strerror", None) or str(fault)
