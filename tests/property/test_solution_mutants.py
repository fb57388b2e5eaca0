"""``cms check`` and the second checker, on solution files whose claims were tampered with.

A solution says many things twice: its cost, its bound, its status and proof, its history. Each
mutant changes one or two of them; both commands must give the same verdict on the files.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import solve
from cms.cli.app import run
from cms.files import number_to_json, problem_to_json, solution_to_json
from proofs_checks.checker.__main__ import main as second_checker
from tests.families import FAMILIES, instance
from tests.samples import spread

Document = dict[str, Any]
FEW, MANY = 6, 120  # mutants of a family


def exact(value: Any) -> Fraction:
    return Fraction(0 if value is None else value)


def shift(document: Document, key: str, off: Fraction) -> None:
    """Change a number; the gap goes with cost and bound, as a careful liar would have it."""
    document[key] = number_to_json(exact(document[key]) + off)
    if document["cost"] is not None:
        gap = exact(document["cost"]) - exact(document["lower_bound"])
        document["gap"] = number_to_json(gap)


#: What a key may be said to be, whatever it is.
WORDS: dict[str, list[Any]] = {
    "status": ["optimal", "feasible", "infeasible", "no_schedule", "best"],
    "proof": ["checked", "solver", "none", "sure"],
    "stop_reason": ["proved", "finished", "gap", "time_limit", "interrupted", "bored"],
    "machine_count": [None, 0, 1, 2, -1, "2", 1.5, True],
    "gap": [None, 0, 1, "1/3", "-1/3"],
    "problem_sha256": ["0" * 64, ""],
}


def of_words(rng: random.Random, document: Document) -> None:
    key = rng.choice(sorted(WORDS))
    part = document["certificate"] if key == "problem_sha256" and rng.random() < 0.5 else document
    part[key] = rng.choice(WORDS[key])


def of_cost(rng: random.Random, document: Document) -> None:
    if rng.random() < 0.2:
        document["cost"] = rng.choice([None, "x", -1])
    else:
        shift(document, "cost", Fraction(rng.choice([-1, 1]), rng.choice([1, 2, 10**30])))


def of_lower_bound(rng: random.Random, document: Document) -> None:
    shift(document, "lower_bound", Fraction(rng.choice([-1, 1]), rng.choice([1, 2, 10**30])))


def of_claimed_bound(rng: random.Random, document: Document) -> None:
    cost = exact(document["cost"])
    document["claimed_bound"] = rng.choice(
        [None, number_to_json(cost), number_to_json(cost + 1), number_to_json(cost - 1)]
    )


def of_history(rng: random.Random, document: Document) -> None:
    history = document["history"]
    kind = rng.randrange(5)
    if not history or kind == 0:
        document["history"] = []
    elif kind == 1:
        history.reverse()
    elif kind == 2:
        rng.choice(history)["lower_bound"] = rng.choice([0, 10**6, "1/2"])
    elif kind == 3:
        rng.choice(history)["cost"] = rng.choice([None, 0, 10**6])
    else:
        history.append(dict(history[-1], cost=rng.choice([None, 0, 5])))


def of_schedule(rng: random.Random, document: Document) -> None:
    groups = document["schedule"]["groups"]
    if groups and rng.random() < 0.7:
        group = rng.choice(groups)
        if rng.random() < 0.5:
            group["assignment"] = group["assignment"][1:]
        else:
            group["count"] += rng.choice([-1, 1])
    else:
        document["schedule"] = {"groups": []}


def of_certificate(rng: random.Random, document: Document) -> None:
    tree = document["certificate"]["tree"]
    if tree.get("prices") and rng.random() < 0.7:
        block = rng.choice(sorted(tree["prices"]))
        tree["prices"][block] = number_to_json(
            exact(tree["prices"][block]) * rng.choice([Fraction(1, 2), Fraction(11, 10)])
        )
    else:
        document["certificate"]["tree"] = {"prices": {}}


def of_guarantee(rng: random.Random, document: Document) -> None:
    document["guarantee"] = {
        "factor": rng.choice([1, 2, "1/2"]),
        "additive": rng.choice([0, 1]),
        "against": rng.choice(["OPT", "optimum", "LP_DW"]),
        "theorem": "T-2",
        "verdict": rng.choice(["verified", "open", "breached"]),
    }


def of_shape(rng: random.Random, document: Document) -> None:
    key = rng.choice(sorted(document))
    if rng.random() < 0.5:
        del document[key]
    else:
        document[f"{key}s"] = document[key]


CHANGES = [*[of_words] * 6, *(f for n, f in list(globals().items()) if n.startswith("of_"))]


def mutants(family: str, numbers: range) -> Iterator[tuple[str, Document, Document]]:
    """A true solution of each problem, then mutants of it by one change or by two."""
    rng = random.Random(f"solutions {family} {numbers}")
    for number in numbers:
        problem = instance(family, number)
        documents = problem_to_json(problem), solution_to_json(solve(problem, "cp_sat", threads=1))
        yield "no change", *documents
        for _ in range(FEW):
            changes = rng.sample(CHANGES, rng.randint(1, 2))
            changed = copy.deepcopy(documents[1])
            try:
                for change in changes:
                    change(rng, changed)
            except (LookupError, TypeError, ValueError):
                continue  # the first left nothing for the second to change
            yield " and ".join(change.__name__ for change in changes), documents[0], changed


def judge(family: str, numbers: range, folder: Path) -> tuple[int, int]:
    """Compare both commands; return how many files passed and how many did not."""
    files = folder / "problem.json", folder / "solution.json"
    found = [0, 0]
    for name, *documents in mutants(family, numbers):
        for path, document in zip(files, documents, strict=True):
            path.write_text(json.dumps(document), "utf-8")
        mine = run(["check", *map(str, files), "--quiet"]) == 0
        theirs = second_checker(list(map(str, files))) == 0
        assert mine == theirs, (family, name, documents[1])
        assert mine or name != "no change", (family, documents)
        found[not mine] += 1
    return found[0], found[1]


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_both_commands_say_the_same_of_a_solution(family: str, tmp_path: Path) -> None:
    passed, _ = judge(family, range(1), tmp_path)
    assert passed


@pytest.mark.long
def test_both_commands_say_the_same_of_thousands_of_solutions(tmp_path: Path) -> None:
    passed, refused = map(
        sum, zip(*(judge(family, range(1, 1 + MANY), tmp_path) for family in FAMILIES), strict=True)
    )
    assert passed + refused > 10_000
