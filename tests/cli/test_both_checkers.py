"""``cms check`` and the second checker have one opinion of every solution document."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from cms.cli.app import run
from proofs_checks import checker
from tests.proofs_checks.documents import (
    BY_WORD,
    INFEASIBLE,
    INFEASIBLE_BY_WORD,
    NOTHING,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    WEAK,
    Document,
    changed,
)


def complete(problem: Document) -> Document:
    """Our own reader wants every key of a problem; the second checker has defaults for some."""
    supplies = problem["configurations"], problem["jobs"]
    blocks = sorted({block for shape in supplies[0] for block in shape["blocks"]})
    types = problem.get("machine_types", [{"name": "machine"}])
    return problem | {
        "blocks": blocks,
        "machine_types": [{"cost": 1, "limit": None, **each} for each in types],
        "configurations": [{"machine": "machine", **each} for each in supplies[0]],
    }


def with_tree(solution: Document) -> Document:
    leaf: Document = {"prices": {}, "limit_prices": {}, "multipliers": []}
    return changed(solution, "certificate", "tree", to=leaf | solution["certificate"]["tree"])


def line(seconds: float, cost: int | None, bound: int) -> Document:
    return {
        "seconds": seconds, "cost": cost, "lower_bound": bound, "claimed_bound": None,
        "source": "auto",
    }  # fmt: skip


SERVED, FEW = complete(SERVICES), complete(ONE_IS_TOO_FEW)
PROVED = with_tree(SOLUTION) | {
    "guarantee": {
        "factor": 2, "additive": 1, "against": "OPT", "theorem": "T-1", "verdict": "verified",
    },
    "history": [line(0.1, None, 0), line(0.2, 4, 2), line(0.3, 3, 3)],
}  # fmt: skip
TRUE: dict[str, tuple[Document, Document]] = {
    "proved": (SERVED, PROVED),
    "weak": (SERVED, with_tree(WEAK)),
    "by a solver's word": (SERVED, with_tree(BY_WORD)),
    "nothing": (SERVED, with_tree(NOTHING)),
    "infeasible": (FEW, with_tree(INFEASIBLE)),
    "infeasible by a solver's word": (FEW, with_tree(INFEASIBLE_BY_WORD)),
}


def opinions(problem: Document, solution: Document) -> tuple[bool, bool]:
    """Whether ``cms check`` passes the documents, and whether the second checker does."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("problem.json", "solution.json")]
        for path, document in zip(paths, (problem, solution), strict=True):
            path.write_text(json.dumps(document), "utf-8")
        code = run(["check", *map(str, paths), "-q"])
        ours, theirs = (checker.parse_document(path.read_text("utf-8")) for path in paths)
    assert code in (0, 1)
    return code == 0, not checker.check_solution(ours, theirs)


@pytest.mark.parametrize("name", TRUE)
def test_both_pass_what_is_true(name: str) -> None:
    assert opinions(*TRUE[name]) == (True, True)


FALSE: list[tuple[str, Document]] = [
    ("proved", {"proof": "none"}),
    ("proved", {"proof": "solver", "stop_reason": "finished", "claimed_bound": None}),
    ("proved", {"lower_bound": 2, "gap": 1}),
    ("proved", {"lower_bound": "2.5", "gap": "0.5"}),
    ("proved", {"lower_bound": 4, "gap": -1, "cost": 4}),
    ("proved", {"claimed_bound": 4}),
    ("proved", {"status": "feasible"}),
    ("proved", {"stop_reason": "finished", "proof": "none"}),
    ("proved", {"history": [line(0.1, 2, 0)]}),
    ("proved", {"history": [line(0.1, 4, 0), line(0.2, 5, 0)]}),
    ("proved", {"history": [line(0.1, 4, 2), line(0.2, 3, 1)]}),
    ("proved", {"history": [line(0.1, None, 4)]}),
    ("proved", {"guarantee": PROVED["guarantee"] | {"factor": "1/2", "additive": 0}}),
    ("proved", {"problem_sha256": "0" * 64}),
    ("weak", {"stop_reason": "proved"}),
    ("weak", {"proof": "checked"}),
    ("weak", {"claimed_bound": "3.5"}),
    ("by a solver's word", {"claimed_bound": None}),
    ("by a solver's word", {"claimed_bound": 2}),
    ("by a solver's word", {"stop_reason": "proved"}),
    ("nothing", {"status": "infeasible"}),
    ("nothing", {"status": "infeasible", "proof": "checked"}),
    ("nothing", {"history": [line(0.1, 4, 0)]}),
    ("nothing", {"history": [line(0.1, None, 5)]}),
    ("nothing", {"lower_bound": 4}),
    ("nothing", {"guarantee": PROVED["guarantee"]}),
    ("infeasible", {"proof": "none"}),
    ("infeasible by a solver's word", {"proof": "checked"}),
]


@pytest.mark.parametrize(("name", "changes"), FALSE)
def test_what_one_refuses_the_other_refuses(name: str, changes: Document) -> None:
    problem, solution = TRUE[name]
    ours, theirs = opinions(problem, solution | changes)
    assert ours == theirs
    if changes != {"status": "infeasible"}:
        assert not ours
