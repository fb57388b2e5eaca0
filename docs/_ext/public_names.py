"""Docstrings speak of names as their own module knows them; the site has each at its public place.

A name that exists without a place on the site stays a word; one that does not exist is a warning.
"""

from __future__ import annotations

import sys
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from sphinx.addnodes import pending_xref
from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PACKAGES = (
    "cms",
    "cms.fleet",
    "cms.testing",
    "cms.fleet.hardware",
    "cms.fleet.serving",
    "cms.fleet.what_if",
    "cms.fleet.colocation",
    "cms.fleet.deployment",
    "cms.fleet.deployment.transition",
    "cms.fleet.placement",
    "cms.fleet.deployment.export",
    "cms.fleet.apply",
    "cms.fleet.replanner",
    "cms.fleet.published",
    "cms.fleet.simulation",
    "cms.fleet.explore",
    "instances.families",
    "instances.published",
)
"""Whose ``__all__`` the site documents; a name in several, in the first."""


@cache
def places() -> dict[int, str]:
    """Where each public object is documented, by its identity."""
    found: dict[int, str] = {}
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), f"{package}.{name}")
    return found


@cache
def meant(target: str, module: str) -> object:
    """What a dotted name means to the readers of a module; None if nothing.

    The text may have been written in a module further down, so that the packages and then all
    modules of ours are asked, too.
    """
    last = target.rpartition(".")[2]
    ours = sorted(name for name in sys.modules if name.startswith(("cms.", "instances.")))
    for home in (module, *PACKAGES, *ours):
        found = getattr(import_module(home), last, None)
        if found is not None:
            return found
    try:
        return resolve_name(target)
    except (ImportError, AttributeError, ValueError):
        return None


def settle_types(app: Sphinx, document: nodes.document) -> None:
    """Link what docstrings write for a type if it is one of our names, and only then.

    They are prose: "sequence of Job, optional". Sphinx takes every word for a name and the first
    that ends alike for its meaning.
    """
    for node in list(document.findall(pending_xref)):
        if node.get("refdomain") == "py" and node.hasattr("refspecific"):
            target, module = node["reftarget"], node.get("py:module") or "cms"
            place = places().get(id(meant(target, module)))
            if place is None:
                node.replace_self(node.children)
            else:
                node["reftarget"] = place
                del node["refspecific"]


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """Find the public place of a name that is told by another one."""
    if node.get("refdomain") != "py" or app.builder is None:
        return None
    found = meant(node["reftarget"], node.get("py:module") or "cms")
    if found is None:
        return None
    if place := places().get(id(found)):
        domain = env.domains.python_domain
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", place, node, content)
    return content


def choose_members(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Of a package, document what has its place there, constants among it, and nothing else.

    Of a class all words of an enumeration; and of a named tuple not what Python says of its fields,
    since its docstring says more.
    """
    if what != "module":
        if isinstance(member, Enum):
            return False
        return True if (member.__doc__ or "").startswith("Alias for field number") else None
    return places().get(id(member)) != f"{app.env.temp_data['autodoc:module']}.{name}"


def describe_constants(
    app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]
) -> None:
    """Put what is said where a constant is defined in the place of what its type says of itself."""
    if what != "data":
        return
    last = name.rpartition(".")[2]
    for home, module in list(sys.modules.items()):
        if home.startswith(("cms.", "instances.")) and vars(module).get(last) is member:
            said = ModuleAnalyzer.for_module(home).find_attr_docs().get(("", last))
            if said:
                lines[:] = said
                return


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by sphinx."""
    app.connect("autodoc-skip-member", choose_members)
    app.connect("autodoc-process-docstring", describe_constants)
    app.connect("doctree-read", settle_types)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
