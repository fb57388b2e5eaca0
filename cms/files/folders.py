"""Folders of files that are written as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import FileError
from .source import StrPath, beside, rename, sync_folder, telling


@contextmanager
def new_folder(path: StrPath, part: str) -> Iterator[Path]:
    """Yield a folder with a `part` in it; at the end it appears in its place, where nothing is."""
    refuse_existing(Path(path))
    with ExitStack() as stack:
        with telling(path):
            aside = stack.enter_context(beside(Path(path).absolute(), folder=True))
            (aside / part).mkdir()
        yield aside
        with telling(path):
            sync_folder(aside)
            sync_folder(aside / part)
            rename(aside, Path(path).absolute())


def refuse_existing(path: Path) -> None:
    """Say that a new folder cannot be written, before a long run that is to end with it."""
    refuse_place(os.fspath(path), path.parent)
    if os.path.lexists(path):
        raise FileError(str(path), "is there already", fix="name another folder, or remove it")


def refuse_place(name: str, parent: Path) -> None:
    """Say that a folder cannot be written there."""
    if name == "-":
        raise FileError("<stdout>", "a folder cannot be printed", fix="name a folder to write")
    if not parent.is_dir():
        what = f"there is no folder {str(parent)!r} to write to"
        raise FileError(name, what, fix="create it first")
