"""A results file: one row a line, appended as the runs end; safe to kill at any point."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from .row import RunRow


class ResultsError(Exception):
    """A results file cannot be used; the message says why and what to do."""


class Results:
    """The rows of one suite in a folder, ``SUITE.jsonl``; a context manager.

    A row is one line and reaches the disk before the next is written. A last line without an end
    was cut off by a kill; it is dropped, and its task runs again. Until the context is entered
    nothing is written. Without ``resume`` a file with rows is refused, never overwritten.
    """

    def __init__(self, folder: Path, suite: str, *, resume: bool) -> None:
        self.path = folder / f"{suite}.jsonl"
        self.rows: list[RunRow] = []
        self._file: BinaryIO | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._whole = self._read() if self.path.exists() else 0
        except (FileExistsError, NotADirectoryError):
            raise ResultsError(f"--out: {folder} is no folder; give one, or a new name") from None
        except OSError as fault:
            raise ResultsError(f"{self.path}: {fault.strerror or fault}") from None
        if self.rows and not resume:
            raise ResultsError(
                f"{self.path} has {len(self.rows)} rows of an earlier run; give --resume to go on "
                "with it, or --out another folder"
            )

    def _read(self) -> int:
        """Read the rows; return how many bytes of the file are whole lines."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                self.rows.append(RunRow.from_line(line.decode()))
            except ValueError as fault:
                raise ResultsError(
                    f"{self.path}:{number}: this is no row of a benchmark ({fault}); give --out "
                    "another folder"
                ) from None
        return whole

    def add(self, row: RunRow) -> None:
        """Append a row; it is on the disk when this returns."""
        if self._file is None:
            raise ValueError("the results file is closed")
        self._file.write(row.to_line().encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows.append(row)

    def __enter__(self) -> Results:
        try:
            self._file = self.path.open("ab")
            self._file.truncate(self._whole)
        except OSError as fault:
            raise ResultsError(f"{self.path}: {fault.strerror or fault}") from None
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
