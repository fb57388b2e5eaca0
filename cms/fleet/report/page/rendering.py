"""A page as one HTML document; every text that came from a file is escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ....values.words import printable
from ..canvas import HATCHES, escaped, style
from ..palette import COLOURS
from ..transition_bars import DEFINITIONS

if TYPE_CHECKING:
    from .parts import Page

__all__ = ["html"]


def html(page: Page) -> str:
    """Write a page as one document that refers to nothing outside itself.

    Its policy (``Content-Security-Policy``) forbids all that is not in it: only the script and the
    style sheet of these hashes run.

    Parameters
    ----------
    page : Page

    Examples
    --------
    >>> from cms.fleet.report.page.parts import Fact, Page, Section
    >>> made = html(Page("<b>", "a plan", [Fact("GPUs", "12")], [Section("why", "Why", ["x < y"])]))
    >>> "<b>" in made, "&lt;b&gt;" in made, "x &lt; y" in made
    (False, True, True)
    """
    keys = "".join(f".c{at} {{ background: {fill} }}\n" for at, fill in enumerate(COLOURS))
    sheet = "\n".join(("", _text("page.css"), keys, style(".picture "), _text("pictures.css")))
    script = "\n" + _text("page.js")
    return _template().render(
        page=page,
        style=Markup(sheet),
        script=Markup(script),
        policy="; ".join(
            (
                "default-src 'none'", f"style-src {_hash(sheet)}", f"script-src {_hash(script)}",
                "base-uri 'none'", "form-action 'none'",
            )
        ),
        definitions=Markup(f"<defs>{HATCHES}</defs>{DEFINITIONS}"),
        version=version("configurable-machines"),
    )  # fmt: skip


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["said"] = _said
    environment.filters["drawn"] = Markup
    return environment.from_string(_text("page.html"))


def _said(text: str) -> Markup:
    """Escape a text; characters that would steer a reader's screen are written out."""
    return Markup(escaped(printable(text)))


def _hash(text: str) -> str:
    """Name an inline script or style sheet by its contents, as the policy does."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
