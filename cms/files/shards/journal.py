"""What whole passes over the jobs have found, for a search that is cut off; never for a check."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...running.code import code_digest
from ..source import beside, rename, telling, write_synced


class Journal:
    """What is known of a problem, a JSON value ``[asked, found, digest]`` a line."""

    def __init__(self, folder: Path, sha256: str) -> None:
        self._path = folder / "journal.jsonl"
        self._known: dict[str, Any] = {}
        head = {"format": "cms-journal", "schema": 2, "problem_sha256": sha256}
        if folder.exists() and not folder.is_dir():
            raise FileError(str(folder), "this is a file", expected="a folder")
        with telling(self._path):
            folder.mkdir(exist_ok=True)
            there = self._path.read_bytes() if self._path.exists() else b""
            lines = [head | {"code": code_digest()}, *self._read(there, head)]
            with beside(self._path) as new:
                write_synced(new, b"".join(map(_line, lines)))
                rename(new, self._path)

    def _read(self, data: bytes, head: Mapping[str, Any]) -> Iterator[list[Any]]:
        """Yield the entries of this code's journal up to one that was torn."""
        values = []
        with suppress(ValueError, RecursionError):
            for line in data.splitlines():
                values.append(json.loads(line))
        first = values[0] if values else None
        code = first.pop("code", None) if isinstance(first, dict) else None
        if data and first != head:
            raise FileError(
                str(self._path),
                "is not the journal of this problem",
                expected=f"a journal of the problem {head['problem_sha256']}",
                fix="name another folder, or remove this one",
            )
        for entry in values[1:] if code == code_digest() else ():
            if not isinstance(entry, list) or len(entry) != 3 or entry != _entry(*entry[:2]):
                return
            self._known[_line(entry[0]).decode()] = entry[1]
            yield entry

    def recall(self, asked: Sequence[Any], work_out: Callable[[], Any]) -> Any:
        """Return what is known, or else work it out, and write it down."""
        key = _line(asked).decode()
        if key not in self._known:
            self._known[key] = work_out()
            with telling(self._path), self._path.open("ab") as file:
                file.write(_line(_entry(asked, self._known[key])))
        return self._known[key]


def _entry(asked: Any, found: Any) -> list[Any]:
    return [asked, found, hashlib.sha256(_line([asked, found])).hexdigest()[:16]]


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
