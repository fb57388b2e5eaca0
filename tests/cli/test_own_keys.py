"""Keys of one's own, and whole numbers written as decimals, are fine in every document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import BlocksOfJob, Branch, MachinesOfConfiguration, solve
from cms.certificate.certificate import BlockPrices
from cms.cli.app import run
from cms.files import problem_to_json, solution_to_json
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem, plan_to_json
from cms.infeasibility.shortage import explain_infeasibility
from cms.solving.solution import Proof, Status, StopReason
from proofs_checks.checker.__main__ import main as second_checker

Document = dict[str, Any]
# Objects whose keys are names of the user's, or one quantity.
TABLES = {
    *("blocks", "sizes", "demand_function", "configuration", "prices", "limit_prices", "extra"),
    *("unservable", "more_machines", "branch", "machines_of", "blocks_of_job"),
}
NAMES = ["plan", "branches", "shortage"]
VALUES: list[Any] = [
    0.5, 8.0, 1e300, -0.0, None, True, "text \u2028 \x00", 10**4000, [1.5, {"x-x": [[[]]]}],
    {"format": 0.25, "": {"x-": 1.0}},
]  # fmt: skip


def documents() -> dict[str, list[Document]]:
    """A plan; and pairs of a problem and a solution, with branches, and with a shortage."""
    service = Service("chat", "bert", 100, 100, ["1g.10gb", "2g.20gb"], {"team": "a"})
    points = [
        OperatingPoint("bert", "a100-80gb", profile, 1, 2, rate, 33)
        for profile, rate in (("1g.10gb", 20), ("2g.20gb", "45.5"))
    ]
    serving = build_problem([service], points, max_processes=2, rule="parvagpu")
    solution = solve(serving.problem)
    plan = plan_to_json(Plan(serving, solution))
    shape = serving.problem.listed_configurations[0]
    leaf = BlockPrices(multipliers=[0, 0])
    inner = Branch(BlocksOfJob("1g.10gb", "chat"), 3, leaf, leaf)
    proving_nothing = replace(
        solution, status=Status.FEASIBLE, proof=Proof.NONE, stop_reason=StopReason.FINISHED,
        certificate=Branch(MachinesOfConfiguration(shape), 1, inner, inner),
        lower_bound=Fraction(0),
        history=(),
    )  # fmt: skip
    few = build_problem([service], points, limits={"a100-80gb": 0}, rule="parvagpu").problem
    return {
        "plan": [plan],
        "branches": [problem_to_json(serving.problem), solution_to_json(proving_nothing)],
        "shortage": [
            problem_to_json(few),
            solution_to_json(solve(few), explain_infeasibility(few)),
        ],
    }


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The documents as text: every test changes a copy of its own."""
    return {name: json.dumps(parts) for name, parts in documents().items()}


def objects(value: Any, key: str = "") -> Iterator[Document]:
    """Every object with fixed keys in a document."""
    if isinstance(value, list):
        for entry in value:
            yield from objects(entry, key)
    elif isinstance(value, dict):
        # "blocks" is a list in a problem and a table in a configuration
        if key not in TABLES:
            yield value
        for name, entry in value.items():
            yield from objects(entry, name)


def as_decimals(value: Any) -> Any:
    """The same document with its whole numbers written as 8.0."""
    if isinstance(value, dict):
        return {key: as_decimals(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [as_decimals(entry) for entry in value]
    return float(value) if type(value) is int else value


def verdicts(parts: list[Document], folder: Path) -> tuple[int, int]:
    """What ``cms check`` and the second checker return."""
    paths = [folder / f"{number}.json" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.write_text(json.dumps(part), "utf-8")
    names = [str(path) for path in paths]
    return run(["check", *names, "--quiet"]), second_checker(names)


@pytest.mark.parametrize("name", NAMES)
def test_own_keys_may_hold_anything(name: str, texts: dict[str, str], tmp_path: Path) -> None:
    for value in VALUES:
        parts = json.loads(texts[name])
        for number, found in enumerate(list(objects(parts))):
            found[f"x-own-{number}"] = value
        assert verdicts(parts, tmp_path) == (0, 0), value


@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_may_be_decimals(name: str, texts: dict[str, str], tmp_path: Path) -> None:
    assert verdicts(as_decimals(json.loads(texts[name])), tmp_path) == (0, 0)
