"""A folder of two shards: it holds, and every change to it is refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cms import FileError, InvalidProblem, open_problem, read_solution
from cms.solving.recheck import faults_of
from proofs_checks import checker
from proofs_checks.checker.certificate import least_bound, read_leaves
from proofs_checks.streaming import check_folders
from proofs_checks.streaming.__main__ import main
from proofs_checks.streaming.check import read_document
from proofs_checks.streaming.problem import read_folder
from proofs_checks.streaming.totals import Totals
from tests.proofs_checks.documents import Document, group, problem, solution
from tests.proofs_checks.streaming.folders import (
    LEAF,
    hashed,
    leaf_of,
    lines,
    saved,
    sha256_of,
    write_json,
    write_plan,
    write_problem,
)

# Prices of 1/2 a block: each job takes one of a or one of b, the last two 2^62 and 2^63 of them.
N = LEAF + 40
LONG = 2**63
OF: Document = {
    **problem(
        [{"machine": "m", "blocks": {"b": 1, "a": 1}}],
        {f"j{at}": (2, {"a": 2, "b": 3}) for at in range(N - 2)},
        [{"name": "m", "cost": 1, "limit": 2 * LONG}],
    ),
    "blocks": ["b", "a"],
}
OF["jobs"] += [
    {"name": f"j{N - 2}", "demand": f"{LONG}/3", "demand_function": {"a": "2/3", "b": "1/3"}},
    {"name": f"j{N - 1}", "demand": LONG, "demand_function": {"b": 1}},
]
TREE = {"prices": {"a": "1/2", "b": "1/2"}}
GROUPS = [
    *(
        group({"a": 1, "b": 1}, [["a", f"j{at}", 1], ["b", f"j{at + 1}", 1]], 1, "m")
        for at in range(0, N - 2, 2)
    ),
    group({"a": 1, "b": 1}, [["b", f"j{N - 1}", 1]], LONG // 2, "m"),
    group({"a": 1, "b": 1}, [["b", f"j{N - 1}", 1], ["a", f"j{N - 2}", 1]], LONG // 2, "m"),
]
COST = (N - 2) // 2 + LONG
BOUND = -(-((N - 2) + LONG // 2 + LONG) // 2)
HELD = {"lower_bound": BOUND, "gap": COST - BOUND, "status": "feasible", "proof": "none"}


class Folders(NamedTuple):
    """A problem folder and a solution folder, to be changed."""

    fleet: Path
    plan: Path

    def edit(self, change: Callable[[Document], None], *, of_plan: bool = False) -> None:
        path = self.plan / "solution.json" if of_plan else self.fleet / "problem.json"
        document = json.loads(path.read_text("utf-8"))
        change(document)
        write_json(path, document)

    def restore(self, name: str, sha256: str) -> None:
        folder, _, file = name.rpartition("/")
        number, _, kind = file.partition(".")

        def change(document: Document) -> None:
            jobs = folder == "jobs"
            parts = document["jobs"]["shards"] if jobs else document["schedule"]["counts"]
            parts[int(number)]["sha256"][kind] = sha256

        self.edit(change, of_plan=folder == "counts")

    def path(self, name: str) -> Path:
        return (self.plan if name.startswith("counts") else self.fleet) / name

    def exchange(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change an array, and its SHA-256 with it."""
        array = np.load(self.path(name))
        self.restore(name, saved(self.path(name), change(array)))

    def bytes(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Change a file's bytes, and its SHA-256 with it."""
        self.path(name).write_bytes(change(self.path(name).read_bytes()))
        self.restore(name, sha256_of(self.path(name)))


Change = Callable[[Folders], None]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    path = tmp_path_factory.mktemp("folders")
    write_problem(path / "fleet", OF, LEAF)
    claims = solution(OF, GROUPS, TREE, **HELD, stop_reason="finished")
    claims |= {"machine_count": COST, "cost": COST}
    write_plan(path / "plan", claims, OF, LEAF)
    return Folders(path / "fleet", path / "plan")


@pytest.fixture
def folders(written: Folders, tmp_path: Path) -> Folders:
    for path in written:
        shutil.copytree(path, tmp_path / path.name)
    return Folders(tmp_path / "fleet", tmp_path / "plan")


def test_what_is_right_is_accepted(written: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, plan = map(str, written)
    assert (written.fleet / "jobs" / "000001.wide").exists()
    assert (written.plan / "counts" / "000001.wide").exists()
    assert not (written.fleet / "jobs" / "000000.denominator.npy").exists()
    assert main([fleet]) == main([fleet, plan]) == main([fleet, plan, "--shards", "0:1"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert f"with the SHA-256 {checker.problem_sha256(OF)}" in first
    assert f"{COST} machines, cost {COST}; the certificate proves" in second
    assert second.endswith(f"every schedule costs at least {BOUND}")
    assert "from 0 to 0 were read; not checked: the files of the others, whether all" in third
    assert "and the lower bound" in third
    assert not [*faults_of(open_problem(fleet), read_solution(plan))]


def test_a_branch_on_jobs_of_several_shards_proves_what_it_proves_of_the_document(
    written: Folders,
) -> None:
    leaf = {"prices": {"a": "1/2", "b": "1/4"}, "proper": {"a": 10**20}}

    def branch(job: int, below: Document, above: Document) -> Document:
        quantity = {"blocks_of_job": {"block": "a", "job": f"j{job}"}}
        return {"branch": quantity, "at_most": 3, "below": below, "above": above}

    one, other = ({**leaf, "multipliers": [of, "1/5"]} for of in ("1/3", "1/7"))
    tree = branch(7, branch(LEAF + 1, one, other), branch(J, other, one))
    folder = read_folder(written.fleet, read_document(written.fleet / "problem.json"))
    leaves = read_leaves(checker.parse_document(json.dumps(tree)), folder.head)
    totals = Totals(folder, leaves)
    for shard in folder.shards:
        totals.add(shard, folder.rows(shard))
    assert least_bound(leaves, folder.head, totals) == checker.certificate_bound(OF, tree)
    assert totals.use("a") == N - 2 + LONG // 2
    assert (totals.wanted, totals.unserved()) == ({"a", "b"}, False)


def one_machine_less(folders: Folders) -> None:
    for path in (("schedule", "machines", 0, "count"), ("machine_count",), ("cost",), ("gap",)):
        claimed(*path, to=lambda number: number - 1)(folders)


def claimed(*path: Any, to: Any) -> Change:
    """Change what the solution says."""
    return lambda folders: folders.edit(lambda document: put(document, path, to), of_plan=True)


def headed(*path: Any, to: Any) -> Change:
    """Change what the problem says."""
    return lambda folders: folders.edit(lambda document: put(document, path, to))


def put(document: Any, path: tuple[Any, ...], to: Any) -> None:
    *steps, last = path
    for step in steps:
        document = document[step]
    document[last] = to(document[last]) if callable(to) else to


def entry(at: Any, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[at] = value
        return array

    return change


def leaf_too(folders: Folders) -> None:
    """A job wants less, and the leaf knows."""
    folders.exchange("jobs/000001.demand.npy", entry(0, 1))
    rows = [(1, 1, [3, 2]), *[(1, 2, [3, 2])] * 37, (3, LONG, [1, 2]), (1, LONG, [1, 0])]
    leaf = leaf_of(rows, OF["blocks"], LEAF)
    folders.edit(lambda d: put(d, ("jobs", "shards", 1, "leaves"), [leaf.hex()]))


def limited(folders: Folders) -> None:
    """There are fewer machines, and the solution is about that."""
    folders.edit(lambda d: put(d, ("machine_types", 0, "limit"), 7))
    document = json.loads((folders.fleet / "problem.json").read_text("utf-8"))
    leaves = [bytes.fromhex(x) for s in document["jobs"]["shards"] for x in s["leaves"]]
    sha256 = hashed({**OF, "machine_types": document["machine_types"]}, leaves)
    claimed("problem_sha256", to=sha256)(folders)
    claimed("certificate", "problem_sha256", to=sha256)(folders)


def swapped(folders: Folders) -> None:
    for kind in ("demand.npy", "supply.npy"):
        one, other = (folders.path(f"jobs/00000{at}.{kind}") for at in (0, 1))
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)


def array(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda folders: folders.exchange(name, change)


def raw(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda folders: folders.bytes(name, change)


def wide(name: str, rows: dict[int, list[int]]) -> Change:
    return lambda folders: folders.restore(name, lines(folders.path(name), rows))


def unhashed(folders: Folders) -> None:
    np.save(folders.path(COUNTS), np.load(folders.path(COUNTS)) * 2)


def bound_with_gap(folders: Folders) -> None:
    claimed("lower_bound", to=BOUND + 1)(folders)
    claimed("gap", to=COST - BOUND - 1)(folders)


def stray(folders: Folders) -> None:
    folders.path("jobs/000000.wide").write_text("")


DEMAND, SUPPLY, COUNTS = "jobs/000000.demand.npy", "jobs/000000.supply.npy", "counts/000000.npy"
LAST, WIDE = "jobs/000001.demand.npy", "jobs/000001.wide"
ROW, LAST_ROW = [3, LONG, 1, 2], [1, LONG, 1, 0]
FILE = ("jobs", "shards", 0, "sha256", "demand.npy")
MACHINE = ("schedule", "machines", 0)
PRICE = ("certificate", "tree", "prices", "a")
J = N - 2
MUTATIONS: list[tuple[str, Change, str]] = [
    ("a count", array(COUNTS, entry(5, 0)), "job 'j5' has 0 of its demand 2 covered"),
    ("all counts", array(COUNTS, lambda a: 0 * a), "and 65437 jobs more of shard 000000"),
    ("a count, unhashed", unhashed, "counts/000000.npy has the SHA-256"),
    ("a negative count", array(COUNTS, lambda a: -a), "has the negative number -1"),
    ("a wide count", wide("counts/000001.wide", {J + 1: [2 * LONG, 0]}), "on machines that have"),
    ("a row", array(LAST, entry(0, 1)), "the leaf 0 of shard 000001 is another one"),
    ("a row with its leaf", leaf_too, "the problem_sha256 is not this problem's"),
    ("a wide row", wide(WIDE, {J: [3, LONG + 1, 1, 2], J + 1: LAST_ROW}), "the leaf 0 of shard"),
    ("a machine less", one_machine_less, "blocks 'b' on machines that have"),
    ("a machine more", claimed(*MACHINE, "count", to=COST + 1), "recomputed, they are"),
    ("no machine", claimed(*MACHINE, "count", to=-1), "machines[0] of the schedule has -1"),
    ("a configuration", claimed(*MACHINE, "configuration", to={"a": 2}), "configuration {'a': 2}"),
    ("a type", claimed(*MACHINE, "machine", to="n"), "on the machine type 'n', which the problem"),
    ("a limit", headed("machine_types", 0, "limit", to=7), "its limit is 7"),
    ("no limit", headed("machine_types", 0, "limit", to=None), "the problem_sha256 is not this"),
    ("a limit that is hashed", limited, "its limit is 7"),
    ("a price", claimed(*PRICE, to=1), "is worth 3/2 at a leaf's prices"),
    ("a lower price", claimed(*PRICE, to=0), "the certificate proves"),
    ("a bound", claimed("lower_bound", to=BOUND + 1), "recomputed, they are"),
    ("a bound with its gap", bound_with_gap, "rounded up to the costs' step"),
    ("a hash", claimed("problem_sha256", to="0" * 64), "the problem_sha256 is not this problem's"),
    ("a leaf", headed("jobs", "shards", 0, "leaves", to=["0" * 64]), "the problem_sha256 is not"),
    ("a file's hash", headed(*FILE, to="0" * 64), "jobs/000000.demand.npy has the SHA-256"),
    ("no hash", headed(*FILE, to="0"), "is '0', not 64 hexadecimal digits"),
    ("a missing shard", headed("jobs", "shards", to=lambda s: s[:1]), "are 2 shards, not 1"),
    ("missing counts", claimed("schedule", "counts", to=lambda c: c[:1]), "of 1 shards, not of 2"),
    ("swapped entries", headed("jobs", "shards", to=lambda s: s[::-1]), "has the file '000001'"),
    ("swapped files", swapped, "has the SHA-256"),
    ("swapped counts", claimed("schedule", "counts", to=lambda c: c[::-1]), "counts[0] has the f"),
    ("a truncated file", raw(SUPPLY, lambda b: b[:-1]), "131071 bytes of numbers, not 131072"),
    ("a header alone", raw(SUPPLY, lambda b: b[:40]), "not an array in the format .npy"),
    ("no bytes", raw(SUPPLY, lambda _: b""), "not an array in the format .npy"),
    ("big-endian", array(DEMAND, lambda a: a.astype(">i2")), "of the type '>i2', not of"),
    ("unsigned", array(DEMAND, lambda a: a.astype("u1")), "of the type '|u1', not of"),
    ("floats", array(COUNTS, lambda a: a.astype("f8")), "of the type '<f8', not of"),
    ("records", array(COUNTS, lambda a: a.view("i1,i1")), "of the type"),
    ("columns", array(COUNTS, np.asfortranarray), "column by column, not row by row"),
    ("a job more", headed("jobs", "count", to=N + 1), "shards[1] has 40 jobs, not 41"),
    ("a row more", array(COUNTS, lambda a: np.vstack([a, a[:1]])), "(65537, 2), not (65536, 2)"),
    ("a cost", claimed("cost", to=COST - 1), "recomputed, they are"),
    ("a machine count", claimed("machine_count", to=COST - 1), "recomputed, they are"),
    ("a status", claimed("status", to="optimal"), "the status optimal has the proof 'none'"),
    ("no schedule", claimed("status", to="no_schedule"), "counts of 2 shards, not of 0"),
    ("an unknown key", headed("jobs", "names", to=1), "unknown key 'names'"),
    ("a shard's size", headed("jobs", "in_a_shard", to=40), "not a multiple of 65536"),
    ("leaves", headed("jobs", "shards", 0, "leaves", to=[]), "shards[0] has 0 leaves, not 1"),
    ("another format", headed("format", to="cms-problem"), "not 'cms-problem-folder'"),
    ("a path", headed("jobs", "shards", 0, "file", to="../x"), "has the file '../x'"),
    ("a stray file", stray, "jobs/000000.wide is there, and has no SHA-256"),
    ("denominator 0", array("jobs/000001.denominator.npy", entry(0, 0)), "not in lowest terms"),
    ("a number twice", array(LAST, entry(38, 1)), f"job j{J}, which are in its lines"),
    ("a short line", wide(WIDE, {J: [1, 2, 3, 4]}), f"of job j{J} that fit into 64 bits"),
    ("too few numbers", wide(WIDE, {J: [1, LONG]}), f"2 numbers of job j{J}, not 4"),
    ("a line elsewhere", wide(WIDE, {7: ROW}), "a line of job j7 at a wrong place"),
    ("lines mixed up", wide(WIDE, {J + 1: LAST_ROW, J: ROW}), "at a wrong place"),
    ("a divisor", wide(WIDE, {J: ROW, J + 1: [2, 2 * LONG, 2, 0]}), f"job j{J + 1} are not in low"),
    ("no line", raw(WIDE, lambda _: b""), "does not end with a line"),
    ("half a line", raw(WIDE, lambda b: b[:-1]), "does not end with a line"),
    ("a sign", raw(WIDE, lambda b: b.replace(b":1", b":+1", 1)), "not integers with colons"),
    ("a leading zero", raw(WIDE, lambda b: b.replace(b":1", b":01", 1)), "not integers with col"),
]


@pytest.mark.parametrize(
    ("change", "sentence"), [each[1:] for each in MUTATIONS], ids=[each[0] for each in MUTATIONS]
)
def test_a_mutation_is_refused_by_name(folders: Folders, change: Change, sentence: str) -> None:
    change(folders)
    assert any(sentence in fault for fault in check_folders(*folders)[:101])
    with suppress(FileError, InvalidProblem):  # the package refuses it too
        assert [*faults_of(open_problem(folders.fleet), read_solution(folders.plan))]


@pytest.mark.parametrize("name", ["jobs/000001.supply.npy", WIDE, "counts/000001.npy"])
def test_a_missing_file_cannot_be_read(
    folders: Folders, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders.path(name).unlink()
    assert main([*map(str, folders)]) == 2
    assert name in capsys.readouterr().err
    assert main([*map(str, folders), "--shards", "0:1"]) == 0


def test_other_shards_files_are_left_alone(folders: Folders) -> None:
    folders.exchange("jobs/000001.demand.npy", entry(0, 1))
    assert check_folders(*folders, (0, 1)) == []
    assert check_folders(folders.fleet, None, (0, 1)) == []
    assert check_folders(*folders, (1, 2)) == ["the leaf 0 of shard 000001 is another one"]
    assert check_folders(*folders, (1, 3)) == ["there are 2 shards; 1:3 is no part of them"]
    for claim in (claimed("cost", to=1), headed("machine_types", 0, "limit", to=7)):
        claim(folders)
        assert check_folders(*folders, (0, 1))


def test_documents_that_cannot_be_read(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    (folders.plan / "solution.json").write_text("{")
    assert main([*map(str, folders)]) == 2
    assert main([str(folders.fleet / "nowhere")]) == 2
    assert "solution.json" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*map(str, folders), "--shards", "0-1"])
