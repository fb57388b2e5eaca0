"""A journal: an engine that remembers passes, so that a search that was cut off goes on.

It holds what whole passes over all jobs found (prices, what jobs pay and buy), under problem,
function, arguments and code; whoever finds it does what one does who computes it. What is part of a
check is never read from it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import FileError
from ...running.code import code_digest
from ...shards.engine import Narrowed

if TYPE_CHECKING:
    from ...shards.engine import Engine, Watch, Work


class Journal:
    """An engine that keeps what another one has worked out on a problem, in a folder."""

    def __init__(self, engine: Engine, folder: Path, sha256: str) -> None:
        self._engine = engine
        self._path = folder / "journal.jsonl"
        self._known: dict[str, Any] = {}
        #: How many passes were worked out.
        self.worked_out = 0
        head = {"format": "cms-journal", "schema": 1, "problem_sha256": sha256}
        if folder.exists() and not folder.is_dir():
            raise FileError(str(folder), "this is a file", expected="a folder")
        with self._telling("cannot be used", "name another"):
            folder.mkdir(exist_ok=True)
            if self._path.exists() and self._path.stat().st_size:
                self._read(head)
            else:
                self._path.write_text(json.dumps(head) + "\n")

    @contextmanager
    def _telling(self, what: str, fix: str) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            what = f"{what}: {fault.strerror or fault}"
            raise FileError(str(self._path), what, fix=fix) from None

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
        """Yield what the function returns for each shard: what is known, or else work it out."""
        if not work.kept:
            yield from self._engine.map(work)
            return
        key = _key(work)
        if key not in self._known:
            line = json.dumps(_entry(key, sorted(self._engine.map(work))), separators=(",", ":"))
            with (
                self._telling("cannot be written", "free some space, or go on without it"),
                self._path.open("a", encoding="ascii") as file,
            ):
                file.write(line + "\n")
            self.worked_out += 1
            self._known[key] = json.loads(line)[1]  # as it will be read: tuples are lists
        yield from map(tuple, self._known[key])


def _entry(key: Any, value: Any) -> list[Any]:
    """Return what a line says, which ends with a digest of the rest."""
    text = json.dumps([key, value], separators=(",", ":"))
    return [key, value, hashlib.sha256(text.encode()).hexdigest()[:16]]


def _key(work: Work) -> str:
    parts: list[Any] = [code_digest(), work.function.__module__, work.function.__qualname__]
    for number, shard in enumerate(work.shards):
        columns = []
        while isinstance(shard, Narrowed):
            columns.append(shard.columns)
            shard = shard.shard
        parts += [number, columns, tuple(work.arguments(number))]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
