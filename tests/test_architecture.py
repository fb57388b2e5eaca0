"""The shape of the house: who imports whom, and what the code may not hold.

The import arrows are those of the design: ``cms`` imports none of the other folders, they import
``cms`` and themselves; inside ``cms`` each layer imports only what stands before it. They are read
from the syntax trees, so a lazy import inside a function and one for the type checker count too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from tests.source_tree import FOLDERS, ROOT, Module, belongs_to, imports, modules, shipped

MAY_IMPORT = {
    "cms": {"cms"},
    "algorithms": {"cms", "algorithms"},
    "instances": {"cms", "instances"},
    "proofs_checks": {"cms", "proofs_checks"},
    "bench": set(FOLDERS) - {"tests"},
    "tests": set(FOLDERS),
}
# The rooms of cms, in their order. Each room's __init__ says in a line or two what it is for.
LAYERS = (
    "cms.errors",
    "cms.running",
    "cms.values",
    "cms.problem",
    "cms.schedule",
    "cms.knapsack",
    "cms.certificate",
    "cms.checker",
    "cms.time_sharing",
    "cms.shards",
    "cms.presolver",
    "cms.plugin",
    "cms.solving",
    "cms.infeasibility",
    "cms.simplification",
    "cms.testing",
    "cms.files",
    "cms.fleet.hardware",
    "cms.fleet.serving",
    "cms.fleet.what_if",
    "cms.fleet.colocation",
    "cms.fleet.deployment",
    "cms.fleet.placement",
    "cms.fleet.deployment.transition",
    "cms.fleet.apply",
    "cms.fleet.replanner",
    "cms.fleet.published",
    "cms.fleet.simulation",
    "cms.fleet.report",
    "cms.fleet.explore",
    "cms.cli",
)
# The rooms of ``algorithms``, each importing only rooms before it: what several methods stand
# on, then the methods, of which ``auto`` knows one, and that one greedy: where a schedule is not
# proved at once no cheap schedule is left out.
ROOMS = ("solvers", "integer_problem", "prices", "branch_and_price", "aggregated", "time_sharing")
METHODS = (
    "conic",
    "cp_sat",
    "gpulet",
    "greedy",
    "lp_rounding",
    "mig_serving",
    "muxflow",
    "branch_and_price",
    "ptas",
)
# The two pages that re-export a public interface stand above the layers they show. Library modules
# never import the page of their own wing, only the modules behind it.
PAGES = {"cms": "cms.files", "cms.fleet": "cms.fleet.report"}
# Nothing here may decide by a float. The knapsack kernel may only estimate sizes with them, to
# choose between its int64 and its big-integer path, and so holds no float literal (a tolerance).
EXACT = (
    "cms.schedule.faults",
    "cms.certificate",
    "cms.checker",
    "cms.time_sharing",
    "cms.shards",
    "cms.fleet.published.muxflow_monitor",
    "cms.fleet.published.muxflow_protection",
    "cms.fleet.colocation.certificate",
    "cms.fleet.colocation.problem",
    "proofs_checks.checker",
)
KERNEL = ("cms.knapsack.pricing", "cms.knapsack.cheapest_cover", "cms.knapsack.kinds")
# cms.files.source writes to standard output where the user names "-" as the file; the process with
# a flow has a pipe there.
MAY_WRITE_TO_THE_TERMINAL = (
    "algorithms.solvers.transport",
    "bench.command",
    "bench.gates",
    "bench.micro",
    "bench.session",
    "cms.cli",
    "cms.files.source",
    "cms.fleet.report",
    "proofs_checks.checker",
    "proofs_checks.formal",
)

# The most lines that a part may have, by the start of its modules' names; a module counts for the
# longest that fits. A change that removes something lowers its part's number. One that adds lowers
# others by at least as much: the sum never grows. The parts before ``cms.cli`` have at most 33,700.
BUDGETS = {
    "cms": 251,
    "cms.running": 247,
    "cms.values": 999,
    "cms.problem": 1_701,
    "cms.schedule": 928,
    "cms.knapsack": 1_240,
    "cms.certificate": 817,
    "cms.checker": 184,
    "cms.time_sharing": 1_827,
    "cms.shards": 918,
    "cms.presolver": 441,
    "cms.plugin": 605,
    "cms.solving": 1_106,
    "cms.infeasibility": 796,
    "cms.simplification": 233,
    "cms.testing": 657,
    "cms.files": 3_426,
    "algorithms": 231,
    "algorithms.solvers": 751,
    "algorithms.integer_problem": 373,
    "algorithms.prices": 2_046,
    "algorithms.branch_and_price": 3_856,
    "algorithms.aggregated": 1_055,
    "algorithms.time_sharing": 1_955,
    "algorithms.conic": 589,
    "algorithms.gpulet": 712,
    "algorithms.greedy": 1_162,
    "algorithms.lp_rounding": 561,
    "algorithms.mig_serving": 821,
    "algorithms.muxflow": 542,
    "algorithms.ptas": 497,
    "instances": 2_169,
    "cms.cli": 4_845,
    "cms.fleet": 36_651,
    "proofs_checks": 15_490,
    "bench": 12_134,
    "tests": 49_728,
}


def layer(name: str) -> str:
    """The room of a module of ``cms``, for the arrows between rooms."""
    if name == "cms.__main__":  # python -m cms
        return "cms.cli"
    if name in PAGES:
        return PAGES[name]
    rooms = [room for room in LAYERS if name == room or name.startswith(room + ".")]
    assert rooms, f"{name} belongs to no room: move it into one, or add its room to LAYERS"
    return max(rooms, key=len)


def floats_in(tree: ast.Module, *, literals_only: bool) -> Iterator[ast.expr]:
    """The float literals, and unless told otherwise what makes a float or compares with one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float | complex):
                yield node
        elif literals_only:
            continue
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) in {"float", "round"}:
                yield node
        elif isinstance(node, ast.Attribute) and node.attr in {"float64", "float32", "isclose"}:
            yield node


# --- arrows ---------------------------------------------------------------------------------------


def test_a_folder_imports_only_the_folders_its_arrows_allow() -> None:
    breaches = [
        f"{m.path.relative_to(ROOT)}:{i.line} imports {i.target}"
        for m in modules().values()
        for i in imports(m)
        if i.target.split(".")[0] in set(FOLDERS) - MAY_IMPORT[m.name.split(".")[0]]
    ]
    assert not breaches, "\n".join(breaches)


def test_a_layer_of_cms_imports_only_what_stands_before_it() -> None:
    breaches = [
        f"{m.path.relative_to(ROOT)}:{i.line} ({layer(m.name)}) imports {i.target}"
        for m in modules().values()
        for i in imports(m)
        if m.name.split(".")[0] == "cms" == i.target.split(".")[0]
        if LAYERS.index(layer(i.target)) > LAYERS.index(layer(m.name))
    ]
    assert not breaches, "\n".join(breaches)


def test_a_module_behind_a_page_does_not_import_the_page() -> None:
    breaches = [
        f"{m.path.relative_to(ROOT)}:{i.line} imports the page {i.target}"
        for m in modules().values()
        for i in imports(m)
        if i.target in PAGES and m.name.startswith(i.target + ".") and layer(m.name) != "cms.cli"
        if LAYERS.index(layer(m.name)) <= LAYERS.index(PAGES[i.target])
    ]
    assert not breaches, "\n".join(breaches)


def test_a_room_of_algorithms_imports_only_rooms_before_it() -> None:
    before: dict[str, set[str]] = {room: set(ROOMS[:at]) for at, room in enumerate(ROOMS)}
    before |= {method: set(ROOMS) for method in METHODS}
    before["branch_and_price"].add("greedy")
    before["auto"] = {"branch_and_price"}
    breaches = [
        f"{m.path.relative_to(ROOT)}:{i.line} imports {i.target}"
        for m in modules().values()
        if m.name.startswith("algorithms.")
        for i in imports(m)
        if i.target.startswith("algorithms.")
        if (room := i.target.split(".")[1]) != (own := m.name.split(".")[1])
        if room not in before[own]
    ]
    assert not breaches, "\n".join(breaches)


def test_the_independent_checker_imports_the_standard_library_alone() -> None:
    parts = [m for m in modules().values() if belongs_to(m, "proofs_checks.checker")]
    assert parts
    strangers = [
        f"{m.path.relative_to(ROOT)}:{i.line} imports {i.target}"
        for m in parts
        for i in imports(m)
        if i.target.split(".")[0] not in sys.stdlib_module_names
        if not i.target.startswith("proofs_checks.checker")
    ]
    assert not strangers, "\n".join(strangers)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even lazily, or for the type checker alone; a page is what it shows, and shows it all."""
    graph = nx.DiGraph(
        (m.name, i.target)
        for m in modules().values()
        for i in imports(m)
        if i.target in modules() and i.target != m.name
    )
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


def test_no_import_escapes_the_reading_of_the_syntax_trees(tmp_path: Path) -> None:
    code = """
from typing import TYPE_CHECKING
from . import errors
from .files import tables as t
from cms.problem import rows
if TYPE_CHECKING:
    from .fleet.hardware import Gpu
def run():
    import algorithms.auto
"""
    (tmp_path / "probe.py").write_text(code)
    probe = Module("cms.probe", tmp_path / "probe.py")
    assert {i.target: i.lazy for i in imports(probe)} == {
        "typing": False,
        "cms.errors": False,
        "cms.files.tables": False,
        "cms.problem.rows": False,
        "cms.fleet.hardware": True,
        "algorithms.auto": True,
    }


# --- what the code may not hold -------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT + KERNEL)
def test_an_exact_module_holds_no_floating_point_number(name: str) -> None:
    parts = [m for m in modules().values() if belongs_to(m, name)]
    assert parts
    floats = [
        f"{m.path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for m in parts
        for node in floats_in(m.tree, literals_only=name in KERNEL)
    ]
    assert not floats, "\n".join(floats)


def test_the_library_writes_nothing_to_the_terminal() -> None:
    written = [
        f"{m.path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for m in shipped()
        if not any(belongs_to(m, allowed) for allowed in MAY_WRITE_TO_THE_TERMINAL)
        for node in ast.walk(m.tree)
        if (isinstance(node, ast.Call) and ast.unparse(node.func) == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stderr"})
    ]
    assert not written, "\n".join(written)


def test_compiled_code_is_kept_by_one_module_alone() -> None:
    """Left to numba, it would fail where no folder can be written."""
    asked = ("cache=True", "enable_caching")
    assert not [m.name for m in shipped() if any(word in m.path.read_text() for word in asked)]


def test_no_file_has_outgrown_one_idea() -> None:
    long = {
        str(m.path.relative_to(ROOT)): lines
        for m in modules().values()
        if (lines := len(m.path.read_text("utf-8").splitlines())) > 450
    }
    assert not long, f"files of more than 450 lines want to be two: {long}"


@pytest.mark.parametrize("part", BUDGETS)
def test_a_part_keeps_within_its_budget_of_lines(part: str) -> None:
    most = BUDGETS[part]
    lines = sum(
        len(m.path.read_text("utf-8").splitlines())
        for m in modules().values()
        if part == max((b for b in BUDGETS if belongs_to(m, b)), key=len)
    )
    assert lines <= most, f"{part} has {lines} lines, {most} allowed: what did the change replace?"
    assert lines >= most - max(most // 50, 50), f"{part}: lower the budget from {most} to {lines}"
