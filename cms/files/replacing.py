"""Files and folders that are written beside their place and renamed into it when they are whole.

No full disk, no Ctrl-C and no kill leaves half of one, or takes what was there before. What is not
finished yet is hidden (``.plan.json.cms-1f0c2a9b7e35d846``) and locked by its process for as long
as that lives: what a killed run left behind is removed by the next run that writes there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":  # there, nothing is locked, and nothing taken for a dead run's
    import fcntl

# After the name of the place: as no user calls a file, since what is so called is removed; and of a
# folder moved aside a suffix.
_TAIL = re.compile(r"cms-[0-9a-f]{16}(\.old)?")


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(place: Path, data: bytes) -> None:
    """Write a file beside its place and rename it.

    It has the mode and, where that is allowed, the owner of the file that is there.
    """
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
    _remove_left_behind(place)
    while True:
        new = place.with_name(f"{_beginning(place)}cms-{os.urandom(8).hex()}")
        new.mkdir() if folder else new.open("xb").close()
        number = _locked(new, wait=True)
        if os.path.lexists(new):  # else another run took it for a dead one's before it was locked
            break
        _unlock(number)
    try:
        yield new
    finally:
        _remove(new)
        _unlock(number)


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


def _beginning(place: Path) -> str:
    start = os.fsencode(place.name)[:200]  # a longer one would be too long with what is added
    return f".{os.fsdecode(start)}."


def _locked(path: Path, *, wait: bool = False) -> int | None:
    """Lock a file or folder for as long as the number is open; None if that cannot be."""
    if sys.platform == "win32":
        return None
    number = None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # a run that lives holds it, it is a link, or this file system knows no locks
        _unlock(number)
        return None
    return number


def _unlock(number: int | None) -> None:
    if number is not None:
        os.close(number)


def _remove_left_behind(place: Path) -> None:
    """Remove what runs that no longer live left; a folder that was to come back comes back."""
    beginning = _beginning(place)
    names: list[str] = []
    with suppress(OSError):  # a folder that may not be listed, or that is not there
        names = sorted(name for name in os.listdir(place.parent) if name.startswith(beginning))
    names = [name for name in names if _TAIL.fullmatch(name, len(beginning))]
    for left in map(place.with_name, names):
        is_old = left.suffix == ".old"
        if is_old and left.with_suffix("").exists():  # of a run that lives, between two renames
            continue
        if (number := _locked(left)) is not None:
            with suppress(OSError):  # somebody else's, or gone by now
                left.rename(place) if is_old and not place.exists() else _remove(left)
            _unlock(number)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
