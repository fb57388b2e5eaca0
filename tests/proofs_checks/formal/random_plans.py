"""Random problems, schedules and trees of prices, of every kind that a document may have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from tests.proofs_checks.documents import Document, problem

F = Fraction


@dataclass(frozen=True)
class Draw:
    """A problem document, groups of a schedule if there is one, and a tree."""

    problem: Document
    groups: list[Document] | None
    tree: Document


class Random:
    """A source of small plans; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def plan(self) -> Draw:
        """One plan; many of them are wrong."""
        of = self.problem()
        groups = self._groups(of) if self._rng.random() < 0.4 else None
        scale = self._rng.choice([F(1, 60), F(1, 20), F(1, 10), F(1, 6), F(1, 3)])
        return Draw(of, groups, self.tree(of, 0, scale))

    def _amount(self, top: int, zero: float = 0.2, below: Sequence[int] = (1, 1, 2, 3, 7)) -> F:
        rng = self._rng
        return F(0) if rng.random() < zero else F(rng.randint(1, top), rng.choice(below))

    def problem(self) -> Document:
        """A problem of up to three jobs."""
        rng = self._rng
        blocks = [f"b{i}" for i in range(rng.randint(1, 4))]
        free = rng.random() < 0.1  # costs that are all 0
        types = [
            {
                "name": f"m{m}",
                "cost": "0" if free else str(self._amount(6, 0.05, (1, 1, 1, 2, 3))),
                "limit": rng.choice([None, None, None, 0, 1, 3]),
            }
            for m in range(rng.randint(1, 3))
        ]
        configurations: list[Document] = []
        for _ in range(rng.randint(1, 4)):
            machine = rng.choice(types)["name"]
            if rng.random() < 0.5:
                counts = {i: rng.randint(0, 3) for i in blocks}
                counts[rng.choice(blocks)] = rng.randint(1, 3)
                configurations.append({"machine": machine, "blocks": counts})
            else:
                some = rng.sample(blocks, rng.randint(1, len(blocks)))
                configurations.append(
                    {
                        "machine": machine,
                        "sizes": {i: str(self._amount(5, 0)) for i in some},
                        "capacity": str(self._amount(12, 0.1)),
                        "max_blocks": rng.choice([None, None, 1, 2, 4]),
                    }
                )
        jobs = {
            f"j{j}": (str(self._amount(30, 0.1)), {i: str(self._amount(9, 0.3)) for i in blocks})
            for j in range(rng.randint(0, 3))
        }
        return {**problem(configurations, jobs, types), "blocks": blocks}

    def _content(self, of: Document) -> tuple[str, Document]:
        """A machine type and blocks that it may have, as likely as not."""
        rng = self._rng
        c = rng.choice(of["configurations"])
        if "blocks" in c:
            return c["machine"], dict(c["blocks"])
        return c["machine"], {i: rng.randint(0, 2) for i in c["sizes"]}

    def _groups(self, of: Document) -> list[Document]:
        rng = self._rng
        groups = []
        for _ in range(rng.randint(0 if not of["jobs"] else 1, 4)):
            machine, counts = self._content(of)
            if not any(counts.values()):
                counts[rng.choice(list(counts))] = 1
            assignment = []
            for i, n in counts.items():
                left = n + (rng.random() < 0.03)
                for job in rng.sample(of["jobs"], len(of["jobs"])):
                    number = rng.randint(0, left)
                    left -= number
                    if number or rng.random() < 0.01:
                        assignment.append([i, job["name"], number])
            groups.append(
                {
                    "machine": machine,
                    "configuration": counts,
                    "count": rng.choice([0, *[1, 2, 3, 5, 9, 40] * 6]),
                    "assignment": assignment,
                }
            )
        return groups

    def _quantity(self, of: Document) -> Document:
        rng = self._rng
        kind = rng.choice(["types", "of", "with", "blocks", "job"])
        listed = [c for c in of["configurations"] if "blocks" in c]
        if kind == "of" and listed:
            c = rng.choice(listed)
            return {"machines_of": {"machine": c["machine"], "blocks": c["blocks"]}}
        if kind == "job" and of["jobs"]:
            job = rng.choice(of["jobs"])["name"]
            return {"blocks_of_job": {"block": rng.choice(of["blocks"]), "job": job}}
        if kind == "blocks":
            return {"blocks_of": rng.choice(of["blocks"])}
        if kind == "with":
            some = rng.sample(of["blocks"], rng.randint(1, min(2, len(of["blocks"]))))
            content = {i: rng.randint(1, 3) for i in some}
            machine = rng.choice(of["machine_types"])["name"]
            return {"machines_with": {"machine": machine, "blocks": content}}
        some = rng.sample(of["machine_types"], rng.randint(1, len(of["machine_types"])))
        if rng.random() < 0.5:
            return {"machines_of_type": some[0]["name"]}
        return {"machines_of_type": {m["name"]: rng.randint(1, 3) for m in some}}

    def tree(self, of: Document, above: int, scale: F) -> Document:
        rng = self._rng
        if rng.random() < (0.65 if above == 0 else 0.4) and above < 3:
            return {
                "branch": self._quantity(of),
                "at_most": rng.randint(-1, 5),
                "below": self.tree(of, above + 1, scale),
                "above": self.tree(of, above + 1, scale),
            }
        limit_prices = {
            m["name"]: str(self._amount(12) * scale)
            for m in of["machine_types"]
            if rng.random() < (0.5 if m["limit"] is not None else 0.02)
        }
        leaf: dict[str, Any] = {
            "prices": {i: str(self._amount(6, 0.3) * scale) for i in of["blocks"]},
            "limit_prices": limit_prices,
            "multipliers": [str(self._amount(4, 0.5) * scale) for _ in range(above)],
        }
        if rng.random() < 0.4:
            leaf["proper"] = {
                i: max(0, _use(of, i) + rng.choice([0, 0, 0, 0, 1, 2, 3, *[-1] * (above == 0)]))
                for i in rng.sample(of["blocks"], rng.randint(1, len(of["blocks"])))
            }
        return leaf


def _use(of: Document, block: str) -> int:
    """How many blocks of a type all jobs can use."""
    found = 0
    for job in of["jobs"]:
        supply = F(job["demand_function"][block])
        found += ceil(F(job["demand"]) / supply) if supply else 0
    return found
