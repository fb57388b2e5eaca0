"""Every theorem file on a few instances, and that it notices a solver that is bad or stuck."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cms import (
    BlockPrices,
    Guarantee,
    GuaranteeVerdict,
    MachineGroup,
    Problem,
    Reference,
    Schedule,
    Solution,
    UnsupportedProblem,
    Verdict,
    solve,
)
from proofs_checks import families, limits, theorems
from proofs_checks.__main__ import main
from proofs_checks.brute_force import optimum
from proofs_checks.finding import Breach, Finding, Tally, require
from proofs_checks.lp import minimise
from proofs_checks.promises import Solver
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


CASES = 2
#: Cases about the ways an algorithm took, which no stand-in goes.
WAYS = ("every branch of", "every way of")


def verified(factor: int, theorem: str) -> GuaranteeVerdict:
    return GuaranteeVerdict(Guarantee(factor, 0, Reference.OPT, theorem), Verdict.VERIFIED)


@cache
def _solved(problem: Problem, time_limit: float) -> Solution:
    """Solve once what every stand-in is asked."""
    return solve(problem, "branch_and_price", time_limit=time_limit)


def optimal(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Answers optimally whatever the method, and refuses what that method has to refuse."""
    if method == "conic" and len(problem.listed_configurations) > 100:
        raise UnsupportedProblem("it lists too many configurations")
    if method in limits.REFUSE and problem.limits:
        raise UnsupportedProblem("there are limits")
    return replace(_solved(problem, time_limit), guarantee=verified(1, "optimal"))


def saying(change: Callable[[Problem, Solution], Solution]) -> Solver:
    """Answers optimally, but for a change to what is said."""

    def answers(
        problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
    ) -> Solution:
        return change(problem, optimal(problem, method, options=options, time_limit=time_limit))

    return answers


def with_groups(problem: Problem, solution: Solution, groups: list[MachineGroup]) -> Solution:
    schedule = Schedule(groups)
    return replace(solution, schedule=schedule, cost=schedule.cost(problem))


def waste(problem: Problem, solution: Solution) -> Solution:
    """Open a thousand machines more than needed."""
    groups = list(solution.schedule.groups)
    idle = [MachineGroup(group.configuration, {}, 1000) for group in groups[:1]]
    return with_groups(problem, solution, [*groups, *idle]) if groups else solution


def leave_out_a_machine(problem: Problem, solution: Solution) -> Solution:
    """And say that nothing is missing."""
    if solution.cost is None:
        return solution
    first, *others = solution.schedule.groups
    fewer = [first._replace(count=first.count - 1)] if first.count > 1 else []
    return with_groups(problem, solution, [*fewer, *others])


def willing(
    problem: Problem, method: str, *, options: Mapping[str, object], time_limit: float
) -> Solution:
    """Takes what has to be refused."""
    return solve(problem, "branch_and_price", time_limit=time_limit)


@pytest.fixture
def _all_but_the_solver_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds without any algorithm is tested above, and named instances are needed no more."""
    for name in RUN_ALGORITHMS:
        monkeypatch.setattr(f"proofs_checks.{name}.named", lambda: (), raising=False)
    # Those of the two others also count the branches that cases take.
    for name in set(RUN_ALGORITHMS) - {"ptas_switch", "limits"}:
        for part in ("_plain", "_claim"):
            stub = f"proofs_checks.{name}.{part}"
            monkeypatch.setattr(stub, lambda *_: Fraction(1), raising=False)


def failures(name: str, solver: Solver) -> list[str]:
    found = theorems.run(name, cases=CASES, solver=solver).failures
    return [one for one in found if not one.startswith(WAYS)]


DEAR = saying(
    lambda p, s: replace(s, certificate=BlockPrices(dict.fromkeys(p.blocks, Fraction(1000))))
)
#: A stand-in, the theorem that must notice it, and what each of its failures says.
BAD: dict[str, tuple[Solver, str, str]] = {
    "promises nothing": (
        saying(lambda _, s: replace(s, guarantee=None)), "t2_tadd", "no guarantee is stated",
    ),
    "promises a thousand times the optimum": (
        saying(lambda _, s: replace(s, guarantee=verified(1000, "no theorem"))),
        "g_int", "more than the theorem",
    ),
    "is wasteful": (saying(waste), "ptas_switch", ""),
    "leaves out a machine": (saying(leave_out_a_machine), "set_cover", ""),
    "claims a bound that its prices do not prove": (DEAR, "prices", "the certificate of"),
    "takes a list that it must refuse": (
        willing, "list_hardness",
        "conic refuses a long list: conic takes a list of 102 configurations",
    ),
    "takes limits": (willing, "limits", "takes a problem with limits"),
}  # fmt: skip


@pytest.mark.usefixtures("_all_but_the_solver_aside")
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_is_a_failure(bad: str) -> None:
    solver, name, words = BAD[bad]
    found = failures(name, solver)
    assert found
    assert all(words in one for one in found if not one.startswith("and "))
