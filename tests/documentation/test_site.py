"""The site is built without a warning, and a browser shows it wide and narrow, light and dark."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.browser import MISSING, browser
from tests.documentation.pages import DOCS, PAGES
from tests.source_tree import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make docs`` makes it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    run = subprocess.run(
        [*command, "--builder", "html", DOCS, folder],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


class Seen(HTMLParser):
    """The names in a page that links may lead to, and its links."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {value for key in ("id", "name") if (value := given.get(key))}
        self.links |= {value for key in ("href", "src") if (value := given.get(key))}


def test_every_link_within_the_site_leads_to_a_file_and_a_name_in_it(site: Path) -> None:
    seen = {page: Seen(page) for page in site.rglob("*.html")}
    assert len(seen) > len(PAGES)
    broken = []
    for page, those in seen.items():
        for link in those.links:
            path, _, name = unquote(link).partition("#")
            if "://" in link or path.startswith(("data:", "mailto:")):
                continue
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            known = seen[target].names if target in seen else set()
            if not target.exists() or (name and target in seen and name not in known):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_the_pictures_of_the_gallery_are_made_by_the_build(site: Path) -> None:
    drawn = [link for link in Seen(site / "gallery.html").links if link.endswith(".svg")]
    assert len(drawn) == 9
    assert "srcdoc=" in (site / "gallery.html").read_text("utf-8"), "the page of a report"


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_browser_shows_the_pages_without_a_complaint(site: Path, tmp_path: Path) -> None:
    shown = ("index", "start/tour", "start/pictures", "gallery", "reference/files", "api/serving")
    with browser(tmp_path) as window:
        for name in shown:
            for wide in (1400, 420):
                window.look(dark=wide == 420, wide=wide)
                window.open(site / f"{name}.html")
                beyond = window.run("return document.body.scrollWidth - window.innerWidth")
                assert beyond <= 0, f"{name} is wider than {wide}"
                assert not window.logged("browser")
                assert window.run("return [...document.images].every(i => i.naturalWidth > 0)")
