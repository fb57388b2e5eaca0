"""Every theorem file on a few instances, and the plain parts that all of them rest on."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from proofs_checks import families, theorems
from proofs_checks.__main__ import main
from proofs_checks.brute_force import optimum
from proofs_checks.finding import Breach, Finding, Tally, require
from proofs_checks.lp import minimise
from proofs_checks.tiny import Tiny, check_cost
from tests import oracle
from tests.references.programs import minimum
from tests.samples import so_many

ROOT = Path(__file__).resolve().parent.parent.parent
#: Instances for each file where its own number would take more than a few seconds.
FEW = {
    "bound_chain": 7, "rounding_lemma": 10, "t2_tadd": 10, "inner_problem": 5, "g_int": 7,
    "g_real": 4, "g_alone": 7, "huge_demands": 4, "set_cover": 5, "theorem_a": 10,
    "few_configurations": 4, "theorem_b": 14, "ptas_switch": 9, "structure_theorem": 7,
    "list_hardness": 20, "prices": 7, "limits": 5, "monotone": 4, "queueing": 30,
    "parallel_order": 25, "time_sharing": 8, "assignment": 25, "monitor": 20, "launch_gate": 40,
}  # fmt: skip
#: Those whose default solver runs algorithms of the package.
RUN_ALGORITHMS = [name for name in FEW if theorems.runs_algorithms(name)]


def test_every_theorem_file_is_listed_and_says_what_stays_on_paper() -> None:
    files = {path.stem: path.read_text("utf-8") for path in (ROOT / "proofs_checks").glob("*.py")}
    checks = {name for name, text in files.items() if "\ndef check(" in text}
    assert checks == set(theorems.CHECKS) == set(FEW)
    for name in checks:
        for part in ("**Statement.**", "**Machine-checked.**", "**On paper.**"):
            assert part in files[name], name


@pytest.mark.parametrize("name", FEW)
def test_a_theorem_and_the_algorithms_it_speaks_of_hold(name: str) -> None:
    cases = so_many(-(-FEW[name] // 8), FEW[name])
    finding = theorems.run(name, cases=cases)
    assert finding.ok, finding.failures
    assert finding.cases >= cases or name in ("set_cover", "structure_theorem")
    assert finding.worst is not None


@pytest.mark.parametrize("name", ["theorem_b", "t2_tadd", "monotone"])
def test_another_seed_takes_other_instances(name: str) -> None:
    one, two = (list(map(str, families.stream(seed, 5))) for seed in (0, 1))
    assert not set(one) & set(two)
    options = {"solver": None} if name in RUN_ALGORITHMS else {}
    findings = [theorems.CHECKS[name](seed=seed, cases=5, **options) for seed in (3, 3, 4)]
    assert findings[0].worst == findings[1].worst
    assert all(finding.ok for finding in findings)


def random_program(rng: random.Random) -> tuple[list[int], list[list[int]], list[int]]:
    columns, rows = rng.randint(1, 6), rng.randint(1, 5)
    return (
        [rng.randint(0, 4) for _ in range(columns)],
        [[rng.randint(-2, 3) for _ in range(columns)] for _ in range(rows)],
        [rng.randint(-3, 5) for _ in range(rows)],
    )


def test_exact_linear_programs_have_the_value_scipy_finds() -> None:
    rng, feasible, number = random.Random(4), 0, so_many(30, 300)
    for _ in range(number):
        costs, rows, rights = random_program(rng)
        found = minimise(costs, rows, rights)
        known = minimum(costs, -np.array(rows), [-right for right in rights])
        assert (found is None) == (known is None), (costs, rows, rights)
        if found is None:
            continue
        feasible += 1
        assert float(found.value) == pytest.approx(known.fun, abs=1e-7)
        assert min(found.point) >= 0
        assert min(found.duals) >= 0
        for row, right in zip(rows, rights, strict=True):
            assert sum(a * x for a, x in zip(row, found.point, strict=True)) >= right
        for column, cost in enumerate(costs):
            weights = (y * row[column] for y, row in zip(found.duals, rows, strict=True))
            assert sum(weights) <= cost
        assert sum(y * b for y, b in zip(found.duals, rights, strict=True)) == found.value
    assert feasible > number // 3


@pytest.mark.parametrize("family", [family.__name__ for family in families.ALL])
def test_enumeration_agrees_with_the_other_oracle(family: str) -> None:
    for number in range(8):
        tiny = families.instance(family, number).tiny
        best = optimum(tiny)
        assert best.cost == oracle.optimum(tiny.problem()), number
        check_cost(tiny, best.machines, best.given)
        assert tiny.cost(best.machines) == best.cost


@pytest.mark.parametrize(
    ("machines", "given", "words"),
    [
        ([1], [[1], [2]], "3 blocks of type 0 are given, there are 2"),
        ([2], [[1], [0]], "job 1 is given 0 of 1"),
        ([-1], [[1], [1]], "no numbers of machines"),
        ([1], [[2], [-1]], "no numbers of blocks"),
        ([1], [[Fraction(1, 2)], [1]], "no numbers of blocks"),
    ],
)
def test_what_is_no_schedule_is_refused(
    machines: list[int], given: list[list[int]], words: str
) -> None:
    with pytest.raises(Breach, match=words):
        check_cost(Tiny.of([1, 1], [[1], [1]], [[2]]), machines, given)


def test_a_check_without_cases_is_no_success() -> None:
    assert not Tally("none", "nothing", ratio="", proved="").finding().ok


def test_a_failure_or_an_error_fails_its_case_and_the_others_go_on() -> None:
    tally = Tally("many", "all", ratio="", proved="")
    for number in range(9):
        with tally.case(number):
            require(number > 0, "too small")
            assert [1, 2][9 - number]
    finding = tally.finding()
    assert (finding.ok, finding.cases) == (False, 9)
    assert finding.failures[:2] == ("0: too small", "1: IndexError: list index out of range")
    assert finding.failures[-1] == "and 3 more"


def test_ctrl_c_is_no_failure_of_a_case() -> None:
    tally = Tally("one", "all", ratio="", proved="")
    with pytest.raises(KeyboardInterrupt), tally.case("first"):
        raise KeyboardInterrupt


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monotone", "--cases", "1", "--seed", "5", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["ok"] is True
    assert row["failures"] == []
    assert set(row) == {*Finding.__dataclass_fields__, "ok"}


def test_the_command_fails_and_names_the_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proofs_checks.rounding_lemma.rounds_up", lambda owner: True)
    assert main(["rounding_lemma", "--cases", "9"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAILED  Rounding lemma")
    assert lines[1].startswith("Rounding lemma: ")
    family, number = lines[1].split(": ")[1].split()
    assert families.instance(family, int(number)).family == family


@pytest.mark.parametrize("wrong", [["no_such_theorem"], ["--seed", "-1"], ["--cases", "x"]])
def test_bad_usage_ends_with_2(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(wrong)
    assert stop.value.code == 2
