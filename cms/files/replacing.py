"""Files and folders are written beside their place and renamed into it when they are whole.

No full disk, no Ctrl-C and no kill leaves half of one, or takes what was there before. What is not
finished yet is hidden (``.plan.json.cms-1f0c2a9b7e35d846``); a killed run leaves it there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(place: Path, data: bytes) -> None:
    """Write a file with the mode and, where that is allowed, the owner of the one that is there."""
    with beside(place) as new:
        with suppress(FileNotFoundError):
            now = place.stat()
            with suppress(PermissionError, AttributeError):  # not root; not on Windows
                os.chown(new, now.st_uid, now.st_gid)
            shutil.copystat(place, new)
        write_synced(new, data)
        rename(new, place)


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
