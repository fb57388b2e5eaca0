"""A journal: an engine that remembers, so that a search that was cut off goes on where it was.

It holds values of pure functions under problem, function, arguments, shard and code; whoever finds
a value does what one does who computes it (the search's path is a function of these values). What
is part of a check is never read from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import FileError
from ...running.code import code_digest
from ...shards.shard import Narrowed

if TYPE_CHECKING:
    from ...shards.engine import Engine, Watch, Work


class Journal:
    """An engine that keeps what another one has worked out.

    Parameters
    ----------
    engine : Engine
    folder : Path
        Made if it is not there.
    sha256 : str
        The problem's.
    """

    def __init__(self, engine: Engine, folder: Path, sha256: str) -> None:
        self._engine = engine
        self._path = folder / "journal.jsonl"
        self._known: dict[str, Any] = {}
        #: How many values were worked out, and how many found.
        self.worked_out, self.found = 0, 0
        head = {"format": "cms-journal", "schema": 1, "problem_sha256": sha256}
        if folder.exists() and not folder.is_dir():
            raise FileError(str(folder), "this is a file", expected="a folder")
        try:
            folder.mkdir(exist_ok=True)
            if self._path.exists() and self._path.stat().st_size:
                self._read(head)
            else:
                self._path.write_text(json.dumps(head) + "\n")
        except OSError as fault:
            raise FileError(
                str(self._path), f"cannot be used: {fault.strerror or fault}", fix="name another"
            ) from None

    def _read(self, head: Mapping[str, Any]) -> None:
        """Read what is known; lines that were torn or spoiled are left out."""
        text = self._path.read_text("ascii", errors="replace")
        whole = text.rfind("\n") + 1
        lines = text[:whole].split("\n")[:-1]
        if not lines or _parsed(lines[0]) != head:
            raise FileError(
                str(self._path),
                "is not the journal of this problem",
                expected=f"a journal of the problem {head['problem_sha256']}",
                fix="name another folder, or remove this one",
            )
        for line in lines[1:]:
            entry = _parsed(line)
            if isinstance(entry, list) and len(entry) == 3 and entry == _entry(*entry[:2]):
                self._known[entry[0]] = entry[1]
        if whole < len(text):
            os.truncate(self._path, len(text[:whole].encode("ascii", errors="replace")))

    @property
    def watch(self) -> Watch:
        """Whoever is told of every shard that is through."""
        return self._engine.watch

    @watch.setter
    def watch(self, watch: Watch) -> None:
        self._engine.watch = watch

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Yield what the function returns for each shard: first what is known."""
        if work.checking:
            yield from self._engine.map(work)
            return
        keys = {
            number: _key(work.function, shard, number, work.arguments(number))
            for number, shard in work.shards.items()
        }
        left = {n: shard for n, shard in work.shards.items() if keys[n] not in self._known}
        for number in work.shards:
            if number not in left:
                self.found += 1
                yield number, self._known[keys[number]]
        if not left:
            return
        found = self._engine.map(work._replace(shards=left))
        for number, value in found:
            line = json.dumps(_entry(keys[number], value), separators=(",", ":"))
            try:
                with self._path.open("a", encoding="ascii") as file:
                    file.write(line + "\n")
            except OSError as fault:
                raise FileError(
                    str(self._path),
                    f"cannot be written: {fault.strerror or fault}",
                    fix="free some space, or go on without it",
                ) from None
            self.worked_out += 1
            # As it will be read: tuples are lists.
            self._known[keys[number]] = json.loads(line)[1]
            yield number, self._known[keys[number]]


def _entry(key: Any, value: Any) -> list[Any]:
    """Return what a line says, which ends with a digest of the rest."""
    text = json.dumps([key, value], separators=(",", ":"))
    return [key, value, hashlib.sha256(text.encode()).hexdigest()[:16]]


def _key(function: Callable[..., Any], shard: Any, number: int, arguments: Any) -> str:
    columns = []
    while isinstance(shard, Narrowed):
        columns.append(shard.columns)
        shard = shard.shard
    parts = (
        code_digest(), function.__module__, function.__qualname__, number, columns, tuple(arguments)
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
