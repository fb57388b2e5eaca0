"""The files beside a document: bytes with their SHA-256, arrays, and lines of long integers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proofs_checks.checker.reading import Fault, as_a, show

Integers: TypeAlias = NDArray[np.signedinteger[Any]]
Bits: TypeAlias = NDArray[np.bool_]

_TYPES = ("|i1", "<i2", "<i4", "<i8")
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': (?P<type>'[^']*'|\[.*\]), 'fortran_order': (?P<order>True|False), "
    r"'shape': \((?P<shape>[0-9, ]*)\), \} *\n"
)
_SHA256 = re.compile("[0-9a-f]{64}")
_LINE = re.compile(r"(?:0|[1-9][0-9]*)(?::(?:0|[1-9][0-9]*))*")
_MOST_DIGITS = 4300
_BEYOND = 2**63


def read_sha256(value: object, what: str) -> str:
    """Read 64 hexadecimal digits."""
    text = as_a(str, value, what)
    if not _SHA256.fullmatch(text):
        raise Fault(f"{what} is {show(text)}, not 64 hexadecimal digits")
    return text


def refuse_strangers(folder: Path, prefix: str, known: Mapping[str, str], kinds: str) -> None:
    """Refuse a file that the document does not name: another reader might take it."""
    for kind in kinds.split():
        if kind not in known and (folder / f"{prefix}.{kind}").exists():
            raise Fault(f"{folder.name}/{prefix}.{kind} is there, and has no SHA-256")


def _read(folder: Path, name: str, sha256: str) -> bytes:
    data = (folder / name).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise Fault(f"{folder.name}/{name} has the SHA-256 {found}, not {sha256}")
    return data


def read_array(folder: Path, name: str, sha256: str, shape: tuple[int, ...]) -> Integers:
    """Read an array of this shape as ``numpy.save`` writes it: integers, row by row."""
    what = f"{folder.name}/{name}"
    data = _read(folder, name, sha256)
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10:start].decode("latin-1"))
    if data[:8] != _MAGIC or header is None:
        raise Fault(f"{what} is not an array in the format .npy, version 1.0")
    kind = header["type"].strip("'")
    if kind not in _TYPES:
        raise Fault(f"{what} has numbers of the type {show(kind)}, not of {', '.join(_TYPES)}")
    lengths = tuple(header["shape"].replace(" ", "").removesuffix(",").split(","))
    if lengths != tuple(map(str, shape)):
        raise Fault(f"{what} has the shape ({', '.join(lengths)}), not {shape}")
    if len(shape) > 1 and header["order"] != "False":
        raise Fault(f"{what} is written column by column, not row by row")
    dtype: np.dtype[np.signedinteger[Any]] = np.dtype(kind)
    size = dtype.itemsize * prod(shape)
    if len(data) - start != size:
        raise Fault(f"{what} has {len(data) - start} bytes of numbers, not {size}")
    array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    if array.size and array.min() < 0:
        raise Fault(f"{what} has the negative number {array.min()}")
    return array


def read_lines(
    folder: Path, name: str, sha256: str, jobs: range, length: int
) -> dict[int, tuple[int, ...]]:
    """Read lines ``j:…`` of so many integers, by the place of job j; one of them is beyond 64 bits.

    Lines are sorted by j, and integers are written in one way only.
    """
    what = f"{folder.name}/{name}"
    found: dict[int, tuple[int, ...]] = {}
    *lines, end = _read(folder, name, sha256).decode("latin-1").split("\n")
    if end or not lines:
        raise Fault(f"{what} does not end with a line")
    last = -1
    for line in lines:
        texts = line.split(":")
        shown = show(line[:60])
        if not _LINE.fullmatch(line) or max(map(len, texts)) > _MOST_DIGITS:
            raise Fault(f"{what} has the line {shown}, not integers with colons between them")
        job, *numbers = map(int, texts)
        if len(numbers) != length:
            raise Fault(f"{what} has {len(numbers)} numbers of job j{show(job)}, not {length}")
        if job <= last or job not in jobs:
            raise Fault(f"{what} has a line of job j{show(job)} at a wrong place")
        if not numbers or max(numbers) < _BEYOND:
            raise Fault(f"{what} has numbers of job j{show(job)} that fit into 64 bits")
        found[job - jobs.start] = tuple(numbers)
        last = job
    return found


def refuse_numbers(array: Integers, wide: Mapping[int, object], what: str, first: int) -> None:
    """Refuse numbers of jobs that are written as lines; in the array they are 0."""
    for place in wide:
        if array[place].any():
            raise Fault(f"{what} has numbers of job j{first + place}, which are in its lines")


def exact_sum(numbers: Integers) -> int:
    """Add up; no sum of fewer than 2^31 parts of 32 bits leaves 64 bits."""
    if numbers.dtype.itemsize < 8:
        return int(numbers.sum(dtype=np.int64))
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())
