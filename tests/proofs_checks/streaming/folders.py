"""Folders written plainly, from documents: by the definitions, with no code of either checker."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

from tests.proofs_checks.documents import Document

LEAF = 65_536
Row = tuple[int, int, list[int]]


def rows_of(document: Document) -> list[Row]:
    """q, q·d and the q·f in the order of ``blocks``."""
    blocks = document["blocks"]
    tables = ((job["demand"], job["demand_function"]) for job in document["jobs"])
    return [_row(demand, *(table.get(block, 0) for block in blocks)) for demand, table in tables]


@cache
def _row(*values: Any) -> Row:
    numbers = [Fraction(value) for value in values]
    q = lcm(*(number.denominator for number in numbers))
    demand, *supply = (int(number * q) for number in numbers)
    return q, demand, supply


def leaf_of(
    rows: list[Row], blocks: list[str], first: int, names: Sequence[str] | None = None
) -> bytes:
    names = names or [f"j{first + at}" for at in range(len(rows))]
    order = sorted(range(len(blocks)), key=lambda at: blocks[at])
    data, late = bytearray("".join(f"{name}\n" for name in names).encode() + b"\n"), b""
    for at, (q, demand, supply) in enumerate(rows):
        numbers = [q, demand, *(supply[i] for i in order)]
        if max(numbers) < 2**63:
            data += struct.pack(f"<{len(numbers)}q", *numbers)
        else:
            data += bytes(8 * len(numbers))
            late += ":".join(map(str, [first + at, *numbers])).encode() + b"\n"
    return hashlib.sha256(data + late).digest()


def narrowest(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    array = np.array(numbers, dtype="<i8").reshape(shape)
    largest = array.max(initial=0)
    return array.astype(next(f"<i{size}" for size in (1, 2, 4, 8) if largest < 2 ** (8 * size - 1)))


def saved(path: Path, array: Any) -> str:
    np.save(path, array)
    return sha256_of(path)


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lines(path: Path, rows: dict[int, list[int]]) -> str:
    path.write_bytes(
        b"".join(":".join(map(str, [j, *row])).encode() + b"\n" for j, row in rows.items())
    )
    return sha256_of(path)


def write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, default=str), "utf-8")


def write_problem(path: Path, document: Document, in_a_shard: int = 16 * LEAF) -> str:
    """Write a problem folder; return the problem's hash."""
    (path / "jobs").mkdir(parents=True)
    blocks, rows = document["blocks"], rows_of(document)
    shards, digests = [], []
    for number, first in enumerate(range(0, len(rows), in_a_shard)):
        part = rows[first : first + in_a_shard]
        wide = {
            first + at: [q, d, *supply]
            for at, (q, d, supply) in enumerate(part)
            if max(q, d, *supply) >= 2**63
        }
        short = [
            (0, 0, [0] * len(blocks)) if first + at in wide else row for at, row in enumerate(part)
        ]
        file, n = path / "jobs" / f"{number:06d}", len(part)
        sha256 = {
            "demand.npy": saved(
                Path(f"{file}.demand.npy"), narrowest([d for _, d, _ in short], (n,))
            ),
            "supply.npy": saved(
                Path(f"{file}.supply.npy"), narrowest([f for *_, f in short], (n, len(blocks)))
            ),
        }
        if any(q != 1 for q, *_ in short):
            scales = narrowest([q for q, *_ in short], (n,))
            sha256["denominator.npy"] = saved(Path(f"{file}.denominator.npy"), scales)
        if wide:
            sha256["wide"] = lines(Path(f"{file}.wide"), wide)
        leaves = [leaf_of(part[at : at + LEAF], blocks, first + at) for at in range(0, n, LEAF)]
        digests += leaves
        shards.append(
            {
                "file": f"{number:06d}",
                "jobs": n,
                "sha256": sha256,
                "leaves": [leaf.hex() for leaf in leaves],
            }
        )
    keys = ("blocks", "machine_types", "configurations", "group_limits")
    head = {key: document[key] for key in keys if key in document}
    write_json(
        path / "problem.json",
        {
            "format": "cms-problem-folder",
            "schema": 2,
            **head,
            "jobs": {"count": len(rows), "in_a_shard": in_a_shard, "shards": shards},
        },
    )
    return hashed(document, digests)


def hashed(document: Document, leaves: list[bytes]) -> str:
    """The problem's hash, by its leaves."""
    shapes = []
    for shape in document["configurations"]:
        each: Document = {"machine": shape["machine"]}
        if "blocks" in shape:
            each["blocks"] = {i: n for i, n in shape["blocks"].items() if n}
        else:
            each["sizes"] = {i: str(Fraction(size)) for i, size in shape["sizes"].items()}
            each["capacity"] = str(Fraction(shape["capacity"]))
            each["max_blocks"] = shape.get("max_blocks")
        shapes.append(each)
    head: Document = {
        "blocks": sorted(document["blocks"]),
        "configurations": shapes,
        "machine_types": [
            {"name": m["name"], "cost": str(Fraction(m["cost"])), "limit": m["limit"]}
            for m in document["machine_types"]
        ],
    }
    if groups := document.get("group_limits"):
        for group in groups:
            weights = {m: str(Fraction(n)) for m, n in group["weights"].items()}
            numbers = {"weights": weights, "at_most": str(Fraction(group["at_most"]))}
            head.setdefault("group_limits", []).append({"name": group["name"], **numbers})
    text = json.dumps(head, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(f"cms-problem-2\n{text}\n".encode() + b"".join(leaves)).hexdigest()


def write_plan(path: Path, solution: Document, of: Document, in_a_shard: int = 16 * LEAF) -> None:
    """Write a solution folder: the machines of all groups, and what each job gets of them."""
    (path / "counts").mkdir(parents=True)
    groups = solution["schedule"]["groups"]
    place = {block: at for at, block in enumerate(of["blocks"])}
    counts = [[0] * len(place) for _ in of["jobs"]]
    for group in groups:
        for block, job, amount in group["assignment"]:
            counts[int(job[1:])][place[block]] += amount * group["count"]
    entries: list[Document] = []
    scheduled = solution["status"] in ("optimal", "feasible")
    for number, first in enumerate(range(0, len(counts) if scheduled else 0, in_a_shard)):
        part = counts[first : first + in_a_shard]
        wide = {first + at: row for at, row in enumerate(part) if max(row, default=0) >= 2**63}
        short = [[0] * len(row) if first + at in wide else row for at, row in enumerate(part)]
        file = path / "counts" / f"{number:06d}"
        array = narrowest(short, (len(part), len(place)))
        sha256 = {"npy": saved(Path(f"{file}.npy"), array)}
        if wide:
            sha256["wide"] = lines(Path(f"{file}.wide"), wide)
        entries.append({"file": f"{number:06d}", "sha256": sha256})
    machines: dict[str, Document] = {}
    for group in groups:
        key = f"{group['machine']} {sorted(group['configuration'].items())}"
        kept = {"machine": group["machine"], "configuration": group["configuration"], "count": 0}
        machines.setdefault(key, kept)["count"] += group["count"]
    write_json(
        path / "solution.json",
        {
            **solution,
            "format": "cms-solution-folder",
            "schedule": {"machines": [*machines.values()], "counts": entries},
        },
    )
