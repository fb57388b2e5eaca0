"""``cms check`` and ``cms-check``: true documents pass, others do not, both have one opinion."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import BlocksOfJob, Branch, MachinesOfConfiguration, solve
from cms.certificate.certificate import BlockPrices
from cms.cli.app import run
from cms.files import problem_to_json, solution_to_json
from cms.fleet.deployment import Instance
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem, plan_to_json
from cms.infeasibility.shortage import explain_infeasibility
from cms.solving.solution import Proof, Status, StopReason
from proofs_checks.checker.__main__ import main as second_checker
from tests.cli.shared import TABLES, Cms, fleet, written
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

Change = Callable[[Any], object]
CHECK = "check problem.json solution.json"


def tampered(file: str, change: Change) -> None:
    document = json.loads(Path(file).read_text("utf-8"))
    change(document)
    Path(file).write_text(json.dumps(document), "utf-8")


def kinds(cms: Cms, file: str) -> list[str]:
    found = cms("check", file, "--json", code=1).json
    assert not found["valid"]
    return [fault["kind"] for fault in found["faults"]]


def test_plan_goes_through_a_pipe(here: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("", "--json", "-q"):
        out, err = cms("plan", TABLES, "-o -", extra)
        assert json.loads(out)["format"] == "cms-plan"
        assert err == ""
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode()), "utf-8"))
        assert cms("check -").out.startswith("valid: 1 GPU, ")


@pytest.mark.parametrize(
    "typed", ["problem solve problem.json", CHECK, "gpus", "problem algorithms"]
)
def test_document_for_a_pipe_is_printed_once(typed: str, here: Path, cms: Cms) -> None:
    assert isinstance(cms(typed, "-o -").json, dict)


def drop_a_block(document: dict[str, Any]) -> None:
    for group in document["schedule"]["groups"]:
        group["assignment"] = [entry for entry in group["assignment"] if entry[1] != "vgg"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (drop_a_block, "demand"),
        (lambda it: it["certificate"]["tree"].update(prices={"7g": "5/4"}), "certificate"),
        (lambda it: it["certificate"]["tree"].update(prices={}), "bound"),
    ],
)  # fmt: skip
def test_altered_solution_fails_the_check(change: Change, kind: str, here: Path, cms: Cms) -> None:
    tampered("solution.json", change)
    assert kind in kinds(cms, CHECK.removeprefix("check "))
    assert cms(CHECK, code=1).out.startswith("not valid: ")


def test_deployment_is_checked_with_the_plan_in_it(here: Path, cms: Cms) -> None:
    said = cms("check target.json").out
    assert said.startswith("valid: 3 GPUs on 2 nodes, 2 instances; its plan: 1 GPU, lower bound 1")
    tampered("target.json", lambda it: it["nodes"][0]["gpus"][0]["instances"].pop(0))
    assert kinds(cms, "target.json") == ["capacity"]
    written(fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]]), here / "bad.json")
    assert "3g.40gb@0 and 4g.40gb@0 on memory slice 0" in cms("check bad.json", code=1).out


def test_transition_that_was_tampered_with_is_found_out(here: Path, cms: Cms) -> None:
    found = cms("apply then.json --current now.json --dry-run -o -").out
    (here / "way.json").write_text(found, "utf-8")
    assert "all floors hold" in cms("check way.json").out
    tampered("way.json", lambda it: it["actions"][1].update(after=[]))
    assert "floor" in kinds(cms, "way.json")


# Objects whose keys are names of the user's, or one quantity.
NAMED = {
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
        if key not in NAMED:
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


@pytest.mark.parametrize("name", TRUE)
def test_both_pass_what_is_true(name: str, tmp_path: Path) -> None:
    assert verdicts([*TRUE[name]], tmp_path) == (0, 0)


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
def test_what_one_refuses_the_other_refuses(name: str, changes: Document, tmp_path: Path) -> None:
    problem, solution = TRUE[name]
    ours, theirs = verdicts([problem, solution | changes], tmp_path)
    assert ours == theirs
    assert ours == 1 or changes == {"status": "infeasible"}
