"""Pages as HTML: whole documents, and what a notebook shows; all text in them is escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from ...values.words import printable
from .colours import COLOURS
from .page import Bars, Page, Picture, legend

#: Rows of a table that a page holds, which a browser sorts in a moment; and that a notebook shows.
MOST_ROWS, MOST_SHOWN = 10_000, 40
_FORBIDDEN_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def html(page: Page) -> str:
    """Write a page as one document that refers to nothing outside itself.

    Its policy (``Content-Security-Policy``) forbids all that is not in it: only the script of this
    hash runs, and nothing is fetched.
    """
    script = "\n" + _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        page=page, whole=True, style=Markup(f"\n{_sheet()}"), script=Markup(script), most=MOST_ROWS,
        policy=policy, version=version("configurable-machines"),
    )  # fmt: skip


def fragment(page: Page) -> str:
    """Write the facts and drawn sections of a page, for a notebook."""
    shown, rules = _sheet().split("/* rules */")
    style = Markup(f"{shown}.cms-page {{{rules}}}")
    return _template().render(page=page, whole=False, style=style, most=MOST_SHOWN)


def _sheet() -> str:
    keys = "".join(f".c{at} {{ background: {fill} }}\n" for at, fill in enumerate(COLOURS))
    return _file("page.css") + keys


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "said": lambda text: escape(_FORBIDDEN_IN_XML.sub("?", printable(text))),
        "key": lambda section: legend(
            (part for part in section.parts if isinstance(part, Bars)),
            "finely hatched: free", "hatched: idle", "crossed: foreign",
        ),
        "svg": _svg, "kind": lambda part: type(part).__name__,
    }  # fmt: skip
    return environment.from_string(_file("page.html"))


def _svg(picture: Picture) -> Markup:
    from .figure import inline

    return Markup(inline(picture))
