"""Programs for other solvers: what SCIP finds in the file is what we find in the problem."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    solve,
    write_program,
)
from cms.cli.app import run
from cms.presolver.presolve import presolve
from tests.cli.shared import error_of
from tests.fleet.plans import NASTY
from tests.samples import few

ENDINGS = (".mps", ".lp")


def least(path: Path, step: Fraction) -> Fraction | None:
    """Have SCIP read a file and solve it; None if it has no solution."""
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    if model.getStatus() == "infeasible":
        return None
    assert model.getStatus() == "optimal"
    return Fraction(round(model.getObjVal())) * step


def toy(random: Random) -> Problem:
    """Listed and size-bounded sets, limits, costs in tenths, names that no file holds."""
    blocks = {"a": random.randint(1, 3), "b b": random.randint(2, 5), NASTY: random.randint(3, 7)}
    kinds = [
        MachineType("one", cost=Fraction(random.randint(1, 30), 10)),
        MachineType("two", cost=random.randint(1, 3), limit=random.choice([None, 1, 4])),
    ]
    listed = {block: random.randint(0, 3) for block in blocks} | {"a": 1}
    return Problem(
        machine_types=kinds,
        configurations=[
            Configuration({b: n for b, n in listed.items() if n}, "two"),
            SizeBoundedConfigurations(blocks, random.randint(7, 12), "one"),
        ],
        jobs=[
            Job(
                f"{NASTY} {j}",
                Fraction(random.randint(0, 40), random.choice([1, 3, 7])),
                {block: Fraction(random.randint(0, 9), random.choice([1, 3])) for block in blocks},
            )
            for j in range(random.randint(1, 4))
        ],
    )


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("seed", few(6, range(300)))
def test_the_least_objective_is_the_least_cost(seed: int, ending: str, tmp_path: Path) -> None:
    problem = toy(Random(seed))
    path = tmp_path / f"program{ending}"
    solution = solve(problem, time_limit=None)
    assert solution.status in ("optimal", "infeasible")
    small = presolve(problem).problem
    if not small.n_jobs or not small.configurations:
        assert solution.cost in (0, None)
        with pytest.raises(UnsupportedProblem, match="nothing to decide"):
            write_program(problem, path)
        return
    written = write_program(problem, path)
    assert path.read_bytes().isascii()
    assert least(path, written.step) == solution.cost


@pytest.mark.parametrize("seed", few(2, range(50)))
def test_arc_flow_has_the_same_least_cost(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    sizes = {f"s{i}": random.randint(2, 9) for i in range(5)}
    problem = Problem(
        configurations=SizeBoundedConfigurations(sizes, 17),
        jobs=[Job(block, random.randint(1, 5), {block: 1}) for block in sizes],
    )
    monkeypatch.setattr("bench.peers.compact.MOST_SHAPES", 1)
    path = tmp_path / "program.mps"
    written = write_program(problem, path)
    assert written.program == "arc flow"
    assert least(path, written.step) == solve(problem).cost


def test_large_demands_are_exact_or_refused(tmp_path: Path) -> None:
    def posed(demand: int) -> Problem:
        job = Job("x", demand, {"b": Fraction(1, 3)})
        return Problem(configurations=Configuration({"b": 10**6}), jobs=[job])

    path = tmp_path / "program.lp"
    written = write_program(posed(10**12), path)
    assert least(path, written.step) == 3 * 10**6 == solve(posed(10**12)).cost
    path.unlink()
    with pytest.raises(UnsupportedProblem, match=r"2\^53"):
        write_program(posed(10**16 + 1), path)
    assert not path.exists()


def test_the_command_takes_problems_and_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.mps"
    assert run(["problem", "program", "--published", "non-irup", "-o", str(program)]) == 0
    assert "compact program of 14 variables and 6 rows" in capsys.readouterr().out
    plan = tmp_path / "plan.json"
    assert run(["plan", "--published", "S1", "-q", "-o", str(plan)]) == 0
    assert run(["problem", "program", str(plan), "-o", str(program), "--json"]) == 0
    assert '"step": 1' in capsys.readouterr().out
    assert least(program, Fraction(1)) == 2
    assert run(["problem", "program", str(plan), "-o", str(tmp_path / "program.txt")]) != 0
    assert "installed are lp, mps" in error_of(capsys)
    assert run(["problem", "program", "-o", str(program)]) == 2
    assert "give a problem file" in error_of(capsys)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_reader_sees_every_coefficient_up_to_2_to_the_53(ending: str, tmp_path: Path) -> None:
    scip = pytest.importorskip("pyscipopt")
    random = Random(5)
    values = [random.randint(10 ** (n - 1), 10**n) for n in range(7, 16)] + [2**53 - 1]
    problem = Problem(
        configurations=[Configuration({f"b{n}": 1}) for n in range(len(values))],
        jobs=[Job("x", 2**53 - 1, {f"b{n}": value for n, value in enumerate(values)})],
    )
    path = tmp_path / f"program{ending}"
    write_program(problem, path)
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(path))
    (job,) = (row for row in model.getConss() if row.name == "job0")
    assert sorted(map(int, model.getValsLinear(job).values())) == sorted(values)
    assert int(model.getLhs(job)) == 2**53 - 1
    assert all(variable.vtype() == "INTEGER" for variable in model.getVars())
    assert max(map(len, path.read_text("utf-8").splitlines())) <= 250
