"""The package as others meet it: what an import costs, what is registered and shipped, errors."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import json
import pickle
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, version
from typing import Any

import pytest

import cms
from cms import AlgorithmError, ClusterError, CmsError, GuaranteeBreached, errors
from instances import hard, small
from tests.source_tree import FOLDERS, ROOT, SHIPPED, modules, shipped

HEAVY = (
    "scipy", "ortools", "numba", "rich", "typer", "networkx", "sympy", "jinja2", "matplotlib",
    "ruamel",
)  # fmt: skip
OWN_DISTRIBUTION = "configurable-machines"


def pyproject() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def registered(group: str) -> dict[str, Any]:
    """The objects of an entry-point table in pyproject.toml, by their names there."""
    table: dict[str, str] = pyproject()["project"]["entry-points"][group]
    places = {name: value.split(":") for name, value in table.items()}
    return {n: getattr(importlib.import_module(m), a) for n, (m, a) in places.items()}


def test_importing_cms_is_silent_and_loads_nothing_heavy() -> None:
    code = """
import sys
touched = []
def watch(event, arguments):
    if event.startswith("socket.") or event == "subprocess.Popen":
        touched.append(event)
    elif event == "open" and set(str(arguments[1])) & set("wax+"):
        touched.append(f"write {arguments[0]}")
sys.addaudithook(watch)
import cms
assert "numpy" not in sys.modules
assert cms.fleet.__name__ == "cms.fleet"
from cms import *
import json
print(json.dumps([touched, sorted({name.split(".")[0] for name in sys.modules})]))
"""
    # -B: Python's own caches of compiled modules are no doing of ours
    run = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.count("\n") == 1, "something was written on import"
    touched, loaded = json.loads(run.stdout)
    assert not touched
    assert not set(loaded) & set(HEAVY), "all of cms must cost little more than import numpy"
    assert not set(loaded) & (set(FOLDERS) - {"cms"})


def test_the_package_tells_its_version_and_runs_as_a_module() -> None:
    assert cms.__version__ == version(OWN_DISTRIBUTION) == pyproject()["project"]["version"]
    assert "__version__" in dir(cms)
    run = subprocess.run(
        [sys.executable, "-m", "cms", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"{OWN_DISTRIBUTION} {cms.__version__}\n"


def test_every_name_of_cms_is_listed_once() -> None:
    assert len(set(cms.__all__)) == len(cms.__all__)
    assert {name for name in dir(cms) if not name.startswith("__")} == set(cms.__all__)


@pytest.mark.parametrize("page", ["cms", "cms.fleet"])
def test_a_page_loads_what_it_shows_to_type_checkers(page: str) -> None:
    module = importlib.import_module(page)
    (shown,) = (node for node in modules()[page].tree.body if isinstance(node, ast.If))
    imported = [node for node in shown.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imported for alias in node.names}
    assert homes == module._HOME
    assert sorted(homes) == sorted(module.__all__)
    # else the room would be found where the name is meant, once somebody has imported it
    assert not [name for name in homes if f"{page}.{name}" in modules()]


@pytest.mark.parametrize("page", ["cms", "cms.fleet"])
def test_every_public_function_has_an_example_that_runs(page: str) -> None:
    module = importlib.import_module(page)
    functions = {name: getattr(module, name) for name in module.__all__}
    functions = {name: f for name, f in functions.items() if inspect.isfunction(f)}
    assert functions
    assert not [name for name, f in functions.items() if ">>>" not in (inspect.getdoc(f) or "")]


@pytest.mark.parametrize("group", ["cms.algorithms", "cms.instances"])
def test_what_is_installed_agrees_with_the_table_in_pyproject(group: str) -> None:
    installed = {
        entry.name: entry.value
        for entry in entry_points(group=group)
        if entry.dist is not None and entry.dist.name == OWN_DISTRIBUTION
    }
    table = pyproject()["project"]["entry-points"][group]
    assert installed == table, "the installed tables are stale: run `make install`"


def test_every_algorithm_is_registered_under_its_own_name() -> None:
    algorithms = registered("cms.algorithms")
    assert {name: algorithm.name for name, algorithm in algorithms.items()} == {
        name: name for name in algorithms
    }
    homes = [importlib.import_module(name) for name in modules() if name.startswith("algorithms.")]
    written = {
        thing
        for home in homes
        for thing in vars(home).values()
        if isinstance(thing, type) and thing.__module__ == home.__name__
        # The rest of it may come from a base class, which has no name of its own.
        if "name" in vars(thing) and hasattr(thing, "options_type")
    }
    assert set(algorithms.values()) == written


def test_every_named_instance_is_registered_under_its_own_name() -> None:
    instances = registered("cms.instances")
    assert {name: thing.name for name, thing in instances.items()} == {n: n for n in instances}
    written = {*hard.PROBLEMS, *small.PROBLEMS, *(f"S{n}" for n in range(1, 7))}
    assert written == set(instances)


@pytest.mark.parametrize("folder", SHIPPED)
def test_a_folder_is_shipped_whole(folder: str) -> None:
    tool = pyproject()["tool"]["setuptools"]
    assert {folder, f"{folder}.*"} <= set(tool["packages"]["find"]["include"])
    code = {m.path.parent for m in shipped() if m.name.split(".")[0] == folder}
    bare = [str(p.relative_to(ROOT)) for p in code if not (p / "__init__.py").exists()]
    assert not bare, f"without an __init__.py setuptools leaves these out: {bare}"
    code_or_cache = {".py", ".pyc", ".nbi", ".nbc"}
    files = {p for p in (ROOT / folder).rglob("*") if p.is_file()}
    data = {p for p in files if p.suffix not in code_or_cache}
    matched = {p for glob in tool["package-data"][folder] for p in (ROOT / folder).glob(glob)}
    missed = sorted(str(p.relative_to(ROOT)) for p in data - matched)
    assert not missed, f"no package-data pattern ships these: {missed}"


ERRORS = [
    thing
    for thing in vars(errors).values()
    if isinstance(thing, type) and issubclass(thing, Exception)
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_bad_data_is_a_value_error_and_a_bad_algorithm_is_not(error: type[Exception]) -> None:
    assert issubclass(error, CmsError)
    if error is ClusterError:  # neither: the data may be whole
        assert issubclass(error, RuntimeError)
    elif error is not CmsError:
        assert issubclass(error, ValueError) != issubclass(error, AlgorithmError)
        assert issubclass(error, RuntimeError) == issubclass(error, AlgorithmError)


@pytest.mark.parametrize("kind", [AlgorithmError, GuaranteeBreached])
def test_an_algorithms_error_names_it_and_can_be_sent_between_processes(
    kind: type[AlgorithmError],
) -> None:
    error = kind("liar", "claims too much")
    for twin in (error, pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (twin.algorithm, twin.message) == ("liar", "claims too much")
        assert str(twin) == "algorithm 'liar': claims too much"
