"""The independent checker on documents: hand-derived verdicts, bad documents, its command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import solve
from cms.certificate.certificate import LARGEST_DEPTH, LARGEST_LEAVES
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem, plan_to_json
from proofs_checks import checker
from proofs_checks.checker import Fault, certificate_bound
from proofs_checks.checker import certificate as certificate_module
from proofs_checks.checker.__main__ import main
from proofs_checks.checker.bundles import cheapest_bundle
from tests.proofs_checks.documents import (
    INFEASIBLE,
    NOTHING,
    ONE_IS_TOO_FEW,
    PAIRS,
    SERVICES,
    SLICES,
    SOLUTION,
    WEAK,
    Document,
    branch,
    changed,
    group,
    leaf,
    problem,
    solution,
)
from tests.samples import refusal


@pytest.mark.parametrize(
    ("document", "path", "to", "sentence"),
    [
        (SOLUTION, ["problem_sha256"], "0" * 64, "the problem_sha256 is not this problem's"),
        (SOLUTION, ["machine_count"], 2, "recomputed, they are 3, 3, 0"),
        (SOLUTION, ["cost"], "5/2", "recomputed, they are 3, 3, 0"),
        (SOLUTION, ["lower_bound"], 4, "proves 17/7, rounded up to the costs' step: 3"),
        (SOLUTION, ["lower_bound"], None, "lower_bound is None, not an exact number"),
        (SOLUTION, ["lower_bound"], 2, "the lower_bound 2 is not the cost 3"),
        (SOLUTION, ["certificate", "tree", "prices", "4g"], "5/7", "s[1] is worth 8/7"),
        # with a 3g at 2/7, four of them serve bert for 8/7 and two vgg for 4/7
        (SOLUTION, ["certificate", "tree", "prices", "3g"], "2/7", "the certificate proves 12/7"),
        (SOLUTION, ["claimed_bound"], 4, "the claimed_bound 4 exceeds the cost 3"),
        (SOLUTION, ["schedule", "groups", 2], ..., "job 'vgg' has 60 of its demand 100 covered"),
        (SOLUTION, ["status"], "feasible", "the status feasible has the proof 'checked', not none"),
        (SOLUTION, ["status"], "perfect", "the status is 'perfect', not one of optimal"),
        (SOLUTION, ["proof"], "solver", "the claimed_bound None is not the cost 3"),
        (SOLUTION, ["proof"], "none", "the status optimal has the proof 'none'"),
        (WEAK, ["stop_reason"], "proved", "the stop_reason is proved, but the proof is 'none'"),
        (NOTHING, ["status"], "infeasible", "the status infeasible has the proof 'none'"),
        (NOTHING, ["cost"], 3, "recomputed, they are None, None, None"),
        (SOLUTION, ["format"], "cms-problem", "the format is 'cms-problem', not 'cms-solution'"),
        (SOLUTION, ["schema"], 1, "this checker knows version 2"),
    ],
)
def test_a_false_claim_is_named(
    document: Document, path: list[Any], to: Any, sentence: str
) -> None:
    faults = checker.check_solution(SERVICES, changed(document, *path, to=to))
    assert any(sentence in fault for fault in faults), faults


def test_without_a_ray_infeasibility_is_not_proved() -> None:
    no_ray = changed(INFEASIBLE, "certificate", "tree", to={"prices": {"a": 1}})
    assert checker.check_solution(ONE_IS_TOO_FEW, no_ray) == [
        "the certificate does not prove that there is no schedule"
    ]


def test_a_bound_is_rounded_up_to_the_costs_common_step() -> None:
    # Costs 3/2 and 5/2 are multiples of 1/2. A price of 5/4 proves 15/4 for three blocks, so 4: one
    # machine of each kind costs 4 and has three.
    two_kinds = problem(
        [{"machine": "m", "blocks": {"a": 1}}, {"machine": "n", "blocks": {"a": 2}}],
        {"j": (3, {"a": 1})},
        [{"name": "m", "cost": "3/2"}, {"name": "n", "cost": "2.5"}],
    )
    groups = [
        group({"a": 1}, [["a", "j", 1]], machine="m"),
        group({"a": 2}, [["a", "j", 2]], machine="n"),
    ]
    document = solution(two_kinds, groups, {"prices": {"a": "5/4"}}, cost=4, lower_bound=4)
    assert checker.check_solution(two_kinds, document) == []
    higher = {**document, "lower_bound": "4.5", "gap": "-1/2"}
    faults = checker.check_solution(two_kinds, higher)
    assert "the certificate proves 15/4, rounded up to the costs' step: 4" in faults[0]


F = Fraction


def refused(of: Document, tree: Any) -> str:
    return refusal(Fault, certificate_bound, of, tree)


# Three blocks are needed. Machines with two cost 2; machines with one of a useless kind cost 5, so
# that all costs have no common step but 1. A price of 1 proves 3. One machine has too few blocks,
# so the optimum is 4.
HARD = problem(
    [{"machine": "m", "blocks": {"a": 2}}, {"machine": "n", "blocks": {"b": 1}}],
    {"j": (3, {"a": 1})},
    [{"name": "m", "cost": 2}, {"name": "n", "cost": 5}],
)


@pytest.mark.parametrize(
    ("on", "at_most", "below", "above"),
    [
        # at most 1: free machines are worth 2 * 1 - 2 <= 0, and 3 - 2 * 1 > 0: impossible
        # at least 2: the machine's cost itself is the multiplier, 2 * 2
        ({"machines_of": {"machine": "m", "blocks": {"a": 2}}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        ({"machines_of_type": "m"}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # the same with those of n counted twice as well, which have no block of a: 2 * 2 <= 5
        ({"machines_of_type": {"m": 1, "n": 2}}, 1, leaf({"a": 1}, 2), leaf({}, 2)),
        # at most 2 blocks are worth nothing: impossible; at least 3 are worth 1 each
        ({"blocks_of": "a"}, 2, leaf({"a": 1}, 1), leaf({}, 1)),
        ({"blocks_of_job": {"block": "a", "job": "j"}}, 2, leaf({}, 1), leaf({"a": 1}, 1)),
    ],
)
def test_each_quantity_can_be_branched_on(
    on: Document, at_most: int, below: Document, above: Document
) -> None:
    proves = 4 if any(kind.startswith("machines") for kind in on) else 3
    assert certificate_bound(HARD, branch(on, at_most, below, above)) == proves
    # The least leaf counts: a leaf that proves only 0 leaves 0.
    assert certificate_bound(HARD, branch(on, at_most, leaf({}, 0), above)) == 0


def test_both_checkers_take_as_many_branches_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file holds for one of them alone."""

    def chain(depth: int) -> Document:
        tree = leaf({}, *[0] * depth)
        for above in range(depth - 1, -1, -1):
            tree = branch({"blocks_of": "a"}, above, tree, leaf({}, *[0] * (above + 1)))
        return tree

    assert certificate_module._DEEPEST == LARGEST_DEPTH
    assert certificate_module._MOST_LEAVES == LARGEST_LEAVES
    assert certificate_bound(HARD, chain(LARGEST_DEPTH)) == 0
    said = refused(HARD, chain(LARGEST_DEPTH + 1))
    assert f"more than {LARGEST_DEPTH} branches above one another" in said
    monkeypatch.setattr(certificate_module, "_MOST_LEAVES", 20)
    assert certificate_bound(HARD, chain(19)) == 0
    assert "more than 20 leaves" in refused(HARD, chain(20))


def test_leaves_that_prove_the_same_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a tree that the package judges in a second takes minutes, as a side is written often."""
    asked = []

    def counted(*arguments: Any) -> int | None:
        asked.append(arguments)
        return cheapest_bundle(*arguments)

    monkeypatch.setattr(certificate_module, "cheapest_bundle", counted)
    listed = {"blocks": {"a": 2}}
    document = problem([listed], {"x": (3, {"a": 1})})
    kinds: list[Document] = [
        {"blocks_of": "a"},
        {"machines_of": listed},
        {"blocks_of_job": {"block": "a", "job": "x"}},
    ]
    tree = leaf({"a": F(1, 4)}, *[0] * 12)
    for number in range(12):
        tree = branch(kinds[number % 3], number, tree, tree)
    assert certificate_bound(document, tree) == F(3, 4)
    assert len(asked) <= 2  # for the job's own prices, and for those of all others
    # A multiplier that counts tells leaves apart.
    quarter, half = leaf({"a": F(1, 4)}, F(1, 2)), leaf({"a": F(1, 2)}, 0)
    assert certificate_bound(document, branch(kinds[1], 1, quarter, quarter)) == F(7, 4)
    assert certificate_bound(document, branch(kinds[1], 1, half, quarter)) == F(3, 2)


ROOT = Path(__file__).resolve().parents[2]


def test_one_problem_written_in_two_ways_has_one_hash() -> None:
    plain = problem([{"blocks": {"b": 2, "a": 1}}], {"j": (1, {"a": "0.50"})})
    other = {
        **problem(
            [{"machine": "machine", "blocks": {"a": 1, "b": 2, "c": 0}}],
            {"j": ("2/2", {"b": 0, "a": "1/2"})},
            [{"name": "machine", "cost": "1.0", "limit": None}],
        ),
        "x-note": "mine",
    }
    assert checker.problem_sha256(plain) == checker.problem_sha256(other)
    # one more block that nobody uses makes another problem
    one_more = {**other, "blocks": ["b", "a", "c"]}
    assert checker.problem_sha256(plain) != checker.problem_sha256(one_more)


@pytest.mark.parametrize(
    ("path", "to", "sentence"),
    [  # what a schema cannot tell; what it can is in test_schemas
        (["jobs", 0, "demand"], 0.5, "the demand of job 'j' is 0.5, not an exact number"),
        (["jobs", 0, "demand"], "1e999999999", "has an exponent beyond 400"),
        (["jobs", 0, "demand_function"], {"b": 1}, "'b', which the problem does not have"),
        (["jobs"], [PAIRS["jobs"][0]] * 2, "the job 'j' is there 2 times"),
        (["blocks"], ["a", "a"], "the block 'a' is there 2 times"),
        (["blocks"], [], "a key of configurations[0] is 'a', which the problem does not have"),
        (["configurations", 0, "blocks"], {"a": 0}, "configurations[0] has no blocks"),
        (["configurations", 0, "machine"], "m", "the machine type of configurations[0] is 'm'"),
        (["configurations", 0], {"sizes": {"a": 0}, "capacity": 1}, "needs sizes > 0"),
        (["machine_types"], [{"name": "m"}] * 2, "the machine type 'm' is there 2 times"),
        (["machine_types"], [{"name": "m"}, {"name": "n"}], "type of configurations[0]"),
    ],
)
def test_a_problem_that_is_none_is_refused(path: list[Any], to: Any, sentence: str) -> None:
    assert checker.check_problem(PAIRS) == []
    (fault,) = checker.check_problem(changed(PAIRS, *path, to=to))
    assert sentence in fault


def write(path: Path, document: Any) -> str:
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return str(path)


def test_the_command_line_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem_file = write(tmp_path / "problem.json", SERVICES)
    wrong = write(tmp_path / "wrong.json", changed(SOLUTION, "lower_bound", to=4))
    assert main([problem_file, wrong]) == 1
    assert f"{wrong}: the lower_bound is 4" in capsys.readouterr().err
    plan = {"format": "cms-plan", "schema": 2, "problem": SERVICES}
    assert main([write(tmp_path / "plan.json", plan)]) == 1
    assert "the solution document is None" in capsys.readouterr().err


def test_a_plan_demands_the_rates_of_its_services_with_the_margin(tmp_path: Path) -> None:
    points = [OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 1, 60, 17)]
    serving = build_problem([Service("chat", "bert", 40, 100)], points, rate_margin="0.1")
    document = plan_to_json(Plan(serving, solve(serving.problem)))
    assert main([write(tmp_path / "plan.json", document)]) == 0
    for path, to in ((("services", 0, "rate_rps"), 400), (("rate_margin",), 0)):
        assert main([write(tmp_path / "plan.json", changed(document, *path, to=to))]) == 1


def test_a_small_file_does_not_fill_the_memory_with_zeros() -> None:
    blocks = {f"b{n}": 1 for n in range(4_000)}
    empty = problem([{"blocks": blocks}], {f"j{n}": (0, {}) for n in range(4_000)})
    (fault,) = checker.check_problem(empty)
    assert "make a table of which only 0 entries are given" in fault


@pytest.mark.parametrize("text", ["1" * 5000, "1." + "0" * 4300, "1/" + "7" * 4301, "1e400"])
def test_numbers_have_at_most_as_many_digits_as_the_first_reader_takes(text: str) -> None:
    faults = checker.check_problem(changed(SERVICES, "jobs", 0, "demand", to=text))
    assert bool(faults) is (text != "1e400")


def test_a_file_that_cannot_be_read_is_refused_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.json", "binary.json", "."):
        assert main([str(tmp_path / name)]) == 2


def test_the_command_imports_nothing_from_the_folder_where_it_runs(tmp_path: Path) -> None:
    write(tmp_path / "problem.json", SERVICES)
    write(tmp_path / "s.json", SOLUTION)
    for name in ("argparse", "fractions", "json", "numpy", "proofs_checks", "re"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    command = Path(sys.executable).with_name("cms-check")
    run = subprocess.run(
        [command, "problem.json", "s.json"], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert "the schedule is valid" in run.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--theorems", "rounding_lemma", "--cases", "2"], 0, "ok  "),
        (["--loads", "missing.json"], 2, "missing.json"),
        (["--proved", "missing.json"], 2, "missing.json"),
        (["--shards", "0:1", "missing"], 2, "missing"),
        ([str(ROOT)], 2, "problem.json"),
    ],
)  # fmt: skip
def test_one_command_leads_to_every_checker(
    words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from proofs_checks.command import main as command

    assert command(words) == code
    assert says in "".join(capsys.readouterr())


def test_the_documents_shown_in_the_documentation_hold() -> None:
    text = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8")
    shown, shared, solved = (
        checker.parse_document(block)
        for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    )
    assert checker.check_solution(shown, solved) == []
    assert checker.check_problem(shared) == []
    # SLICES without the profiles that the documentation leaves out
    prices = {name: SLICES[name] for name in ("1g", "3g", "4g")}
    assert checker.certificate_bound(shown, {"prices": prices}) == Fraction(12, 7)
