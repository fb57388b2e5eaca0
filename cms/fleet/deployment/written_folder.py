"""Folders of files that are written as a whole, with check sums as ``sha256sum`` writes them.

By these a later run knows what it may replace, and what somebody else has put there or changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ...errors import FileError
from ...files.folders import refuse_place
from ...files.source import StrPath, beside, read_before, rename, sync_folder, telling, write_synced

#: The file of check sums: ``sha256sum -c .cms-sha256``.
SUMS = ".cms-sha256"


def write_folder(files: Mapping[str, str], path: StrPath, *, force: bool = False) -> Path | None:
    """Write a folder of text files, in place of the one that an earlier run wrote there."""
    name, folder = os.fspath(path), Path(os.path.realpath(path))
    for file in files:
        odd = {"", ".", ".."} & set(file.split("/")) or set("\\\0\n") & set(file)
        if odd or file == SUMS:
            raise FileError(name, f"no file in this folder can be called {file!r}")
    refuse_folder(path, force=force)
    with telling(path), beside(folder, folder=True) as new:
        _write_all(files, new)
        return _put(new, folder)


def refuse_folder(path: StrPath, *, force: bool = False) -> None:
    """Say that a folder may not be written, before a long run that is to end with it."""
    name, folder = os.fspath(path), Path(os.path.realpath(path))
    refuse_place(name, folder.parent)
    if not folder.is_dir():
        if folder.exists():
            raise FileError(name, "this is a file", expected="a folder to write")
        return
    if folder in (here := Path.cwd(), *here.parents):
        raise FileError(name, "this folder is in use: it is where you are", fix="name one in it")
    try:
        strange = None if force else next(_not_ours(folder), None)
    except OSError as fault:
        raise FileError(name, f"this folder cannot be read: {fault.strerror}") from None
    if strange is not None:
        raise FileError(
            name,
            f"this folder holds {strange}",
            expected="a new folder, an empty one or one that was written here before",
            fix="name another, or have it moved aside with --force",
        )


def _not_ours(folder: Path) -> Iterator[str]:
    """Name files that `cms` did not write here, or that were changed since."""
    known: dict[str, str] = {}
    with suppress(OSError, ValueError):  # there is no list, or it is of another program
        for line in (folder / SUMS).read_text("utf-8").splitlines():
            digest, inside = line.split("  ", 1)
            known[inside] = digest
    for at, folders, names in os.walk(folder, onerror=_raise):
        links = [name for name in folders if Path(at, name).is_symlink()]
        for name in sorted([*names, *links]):
            file = Path(at, name)
            inside = file.relative_to(folder).as_posix()
            if inside not in known and not (known and inside == SUMS):
                yield f"{inside!r}, which is not ours"
            elif inside != SUMS and (
                file.is_symlink()
                or not file.is_file()
                or hashlib.sha256(file.read_bytes()).hexdigest() != known[inside]
            ):
                yield f"{inside!r}, which has been changed"


def _raise(fault: OSError) -> None:
    raise fault


def _write_all(files: Mapping[str, str], new: Path) -> None:
    sums = []
    for file, text in sorted(files.items()):
        data, target = text.encode(), new / file
        target.parent.mkdir(parents=True, exist_ok=True)
        write_synced(target, data)
        if text.startswith("#!"):
            mode = target.stat().st_mode
            target.chmod(mode | (mode & 0o444) >> 2)
        sums.append(f"{hashlib.sha256(data).hexdigest()}  {file}\n")
    write_synced(new / SUMS, "".join(sums).encode())
    for folder in {(new / file).parent for file in (*files, SUMS)}:
        sync_folder(folder)


def _put(new: Path, folder: Path) -> Path | None:
    """Rename the new folder to its place, after the old one was moved aside.

    The old one is deleted if `cms` wrote it and the running command has read no file in it.
    """
    if not folder.exists():
        rename(new, folder)
        return None
    is_managed = next(_not_ours(folder), None) is None and read_before(folder) is None
    number = 1
    while (old := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    try:
        folder.rename(old)
        rename(new, folder)
    finally:
        if not folder.exists():  # Ctrl-C as well: what was there is there again
            old.rename(folder)
        elif is_managed:
            shutil.rmtree(old, ignore_errors=True)
    return None if is_managed else old
