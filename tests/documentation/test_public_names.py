"""Every public name has words to it, and one place on the site."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules, resolve_name

import pytest
from sphinx.pycode import ModuleAnalyzer

import cms.fleet
from tests.documentation.pages import DOCS
from tests.test_package import registered

PUBLIC = [
    "cms",
    "cms.fleet",
    "cms.testing",
    "cms.fleet.deployment.transition",
    "cms.fleet.deployment.export",
    *(
        each.name
        for each in iter_modules(cms.fleet.__path__, "cms.fleet.")
        if hasattr(import_module(each.name), "__all__")
    ),
    "instances.families",
    "instances.published",
]
"""The packages whose names are for users."""


def shown() -> Iterator[tuple[str, bool]]:
    """The names and packages that pages of the API ask for, and whether it is a package."""
    for page in sorted((DOCS / "api").glob("*.md")):
        package = ""
        for kind, name in re.findall(r"^\.\. (\w+):: ([\w.]+)$", page.read_text("utf-8"), re.M):
            if kind == "currentmodule":
                package = f"{name}."
            elif kind == "automodule":
                yield name, True
            else:
                yield (name if "." in name else f"{package}{name}"), False


def test_the_site_has_each_public_name_once() -> None:
    by_name = [name for name, whole in shown() if not whole]
    assert not [name for name, times in Counter(by_name).items() if times > 1]
    ours = {id(resolve_name(":".join(name.rsplit(".", 1)))) for name in by_name}
    packages = {name for name, whole in shown() if whole}
    missing = [
        f"{package}.{name}"
        for package in PUBLIC
        for name in import_module(package).__all__
        if id(thing := getattr(import_module(package), name)) not in ours
        if package not in packages or not (inspect.isclass(thing) or inspect.isroutine(thing))
    ]
    assert not missing, "put them into a page of docs/api"


def test_the_extension_of_the_site_knows_the_public_packages() -> None:
    tree = ast.parse((DOCS / "_ext" / "public_names.py").read_text("utf-8"))
    (known,) = (
        ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "PACKAGES"
    )
    assert sorted(known) == sorted(PUBLIC)


def test_the_site_has_each_method_with_its_options() -> None:
    there = {name for name, _ in shown()}
    for method in registered("cms.algorithms").values():
        for part in (method, method.options_type):
            assert part.__doc__
        assert method.__qualname__ in {name.rpartition(".")[2] for name in there}
        assert method.options_type.__qualname__ in {name.rpartition(".")[2] for name in there}


def said(package: str, name: str) -> str:
    """What is said of a name: its docstring, or the words under a constant where it is defined."""
    thing = getattr(import_module(package), name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return inspect.getdoc(thing) or ""
    for home, module in list(sys.modules.items()):
        if home.startswith(("cms.", "instances.")) and vars(module).get(name) is thing:
            words = ModuleAnalyzer.for_module(home).find_attr_docs().get(("", name))
            if words:
                return "\n".join(words)
    return ""


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_has_words_to_it(package: str) -> None:
    assert not [name for name in import_module(package).__all__ if not said(package, name)]
