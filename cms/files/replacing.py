"""Files and folders that are written beside their place and renamed into it when they are whole.

No full disk, no Ctrl-C and no kill leaves half of one, or takes what was there before. What is not
finished yet is hidden (``.plan.json.1f0c2a9b``) and locked by its process for as long as that
lives: what a killed run left behind is removed by the next run that writes to the same place.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":  # there, nobody's leftovers are known to be a dead run's
    import fcntl

#: Longer names would be too long with what is added to them.
_LONGEST_NAME = 200


def write_synced(path: Path, data: bytes, mode: str = "xb") -> None:
    """Write a file, which by default is not there yet, and wait until the disk has it."""
    with path.open(mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def written_beside(place: Path, data: bytes) -> Iterator[Path]:
    """Yield a file with this content beside its place, to be renamed; it goes if it is not.

    It has the mode and, where that is allowed, the owner of the file that is there.
    """
    with beside(place) as new:
        with suppress(FileNotFoundError):
            _take_after(new, place)
        write_synced(new, data, "wb")
        yield new


@contextmanager
def beside(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield an empty hidden file or folder beside a place.

    If it is still called so in the end, it is removed.
    """
    _clear(place)
    with ExitStack() as stack:
        while True:  # until no other run took it for a dead one's before it was held
            new = place.with_name(f"{_beginning(place)}{os.urandom(4).hex()}")
            new.mkdir() if folder else new.open("xb").close()
            if stack.enter_context(held(new, wait=True)):
                break
        stack.callback(_remove, new)
        yield new


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a file or folder meanwhile: no other run takes it for a dead one's. False: it is gone.

    On Windows, and where a file system knows no locks, none is held, and none is taken for dead.
    """
    if sys.platform == "win32":
        yield True
        return
    try:
        number = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        _lock(number, wait=wait)
        try:
            there = os.path.samestat(os.fstat(number), os.lstat(path))
        except FileNotFoundError:
            there = False
        yield there
    finally:
        os.close(number)


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


def _take_after(new: Path, place: Path) -> None:
    now = os.stat(place)
    with suppress(PermissionError, AttributeError):  # only root gives files away; not on Windows
        if (now.st_uid, now.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(new, now.st_uid, now.st_gid)
    shutil.copystat(place, new)


def _beginning(place: Path) -> str:
    return f".{os.fsdecode(os.fsencode(place.name)[:_LONGEST_NAME])}."


def _lock(number: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another run holds it, or this file system knows no locks
        return False
    return True


def _clear(place: Path) -> None:
    """Remove what runs that no longer live left; a folder that was to come back comes back."""
    pattern = re.compile(re.escape(_beginning(place)) + r"[0-9a-f]{8}(\.old)?", re.ASCII)
    if sys.platform == "win32":
        return
    with suppress(OSError):  # a folder that may not be listed, or that is not there
        for name in os.listdir(place.parent):
            if pattern.fullmatch(name):
                with suppress(OSError):  # somebody else's, or gone by now
                    _clear_one(place.with_name(name), place)


def _clear_one(left: Path, place: Path) -> None:
    number = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mode = os.fstat(number).st_mode
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and _lock(number, wait=False):
            if left.suffix == ".old" and not os.path.lexists(place):
                left.rename(place)  # the run was killed between two renames
            else:
                _remove(left)
    finally:
        os.close(number)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
