"""Pages in a real browser: they are drawn, sorted by click and key, and fetch nothing."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cms.fleet.report.page import Fact, Page, Section
from cms.fleet.report.tables import Cell, Column, Grid
from cms.fleet.report.web import html
from tests.browser import MISSING, Browser, browser
from tests.fleet.test_page import page_of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

# Of each element with words of its own, and the ground that it stands on, how far apart they are:
# WCAG 2's contrast. Words in drawings stand on the page or, almost black, on a colour of a service.
_CONTRAST = """
const light = (colour) => {
  const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const ground = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (colour && !/, 0\\)$/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
for (const each of document.querySelectorAll("body *:not(script):not(style)")) {
  const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || each.closest("title, desc, defs, caption")) continue;
  const look = getComputedStyle(each);
  if (each instanceof SVGElement && look.fill === "rgb(27, 31, 37)") continue;
  const [a, b] = [light(each instanceof SVGElement ? look.fill : look.color), light(ground(each))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.push(`${each.outerHTML.slice(0, 90)} has ${contrast.toFixed(2)}`);
}
return found;
"""
_FIRST = 'return [...document.querySelector("tbody").rows].map((row) => row.cells[0].innerText);'
_STATES = 'return [...document.querySelectorAll("th")].map((head) => head.ariaSort);'


# What is wider than its place, or than the window, or cut off in its box.
_CUT = """
const found = [];
for (const each of document.querySelectorAll("body *")) {
  const box = each.getBoundingClientRect();
  if (box.right > innerWidth + 1 && box.width && !each.closest(".wide, .broad, details"))
    found.push(`beyond: ${each.outerHTML.slice(0, 90)}`);
  const words = each.matches(".few .box") && each.innerText.trim();
  if (words && each.clientWidth > 24 && each.scrollHeight > each.clientHeight + 1)
    found.push(`cut: ${each.title}`);
  if (each.matches(".cards") && each.scrollWidth > each.parentElement.clientWidth + 1)
    found.push(`wide: ${each.innerText.slice(0, 40)}`);
}
return found;
"""
PAGES = ("plan", "large plan", "deployment", "difference", "transition", "growth", "simulation",
         "matching", "large matching", "shared day", "solved", "gpu")  # fmt: skip


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_without_a_word_on_the_console_and_fetches_nothing(
    window: Browser, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html(page_of(name)), "utf-8")
    window.requested()
    window.look()
    window.open(file)
    assert window.run("return document.querySelector('h1').innerText;") == page_of(name).title
    drawn = "return [...document.querySelectorAll('.sheet svg')].map((e) => e.clientHeight);"
    assert min(window.run(drawn), default=50) > 40
    assert window.requested() == [file.as_uri()]
    for dark in (False, True):
        window.look(dark=dark)
        assert window.run(_CONTRAST) == [], "dark" if dark else "light"
    for wide in (380, 1200):
        window.look(wide=wide)
        assert window.run("return document.documentElement.scrollWidth - innerWidth;") <= 0
        assert window.run(_CUT) == [], f"{wide} pixels"
    window.look(paper=True)
    hidden = "return [...document.querySelectorAll('.sheet, .wide')]"
    assert set(window.run(f"{hidden}.map((e) => getComputedStyle(e).overflowX);")) <= {"visible"}
    assert window.run(_CONTRAST) == [], "on paper"
    assert window.logged("browser") == []


def test_a_click_or_a_key_on_a_head_sorts_and_says_so(window: Browser, tmp_path: Path) -> None:
    rows = [
        [Cell("b", place=0), Cell("1,000", 1000)],
        [Cell("a10"), Cell("-", float("nan"))],
        [Cell("A9"), Cell("7", Fraction(7))],
    ]
    grid = Grid("all", [Column("name"), Column("number", number=True)], rows)
    file = tmp_path / "sorted.html"
    file.write_text(html(Page("t", "", [], [Section("s", "s", [grid])])), "utf-8")
    window.look()
    window.open(file)
    click = "document.querySelectorAll('th button')[%d].click();"
    window.run(click % 0)
    assert window.run(_FIRST) == ["A9", "a10", "1 b"], "as people count, capital or not"
    assert window.run(_STATES) == ["ascending", "none"]
    window.run(click % 1)
    assert window.run(_FIRST) == ["A9", "1 b", "a10"]
    window.run(click % 1)
    assert window.run(_FIRST) == ["1 b", "A9", "a10"], "what has no number stays below"
    assert window.run(_STATES) == ["none", "descending"]
    window.run("document.querySelectorAll('th button')[0].focus();")
    window.press("\ue007")
    assert window.run(_FIRST) == ["A9", "a10", "1 b"]
    window.press("\ue004")
    assert window.run("return document.activeElement.innerText;").startswith("number")


def test_the_policy_of_a_page_is_heeded(window: Browser, tmp_path: Path) -> None:
    """Whatever came into it could neither run nor call home."""
    file = tmp_path / "heeded.html"
    page = html(Page("t", "", [], []))
    planted = '<img src="http://127.0.0.1:9/x"><script>document.title = "ran"</script></body>'
    file.write_text(page.replace("</body>", planted), "utf-8")
    window.requested()
    window.look()
    window.open(file)
    assert window.run("return document.title;") == "t"
    assert len(window.logged("browser")) == 2
    assert window.requested() in ([file.as_uri()], [file.as_uri(), "http://127.0.0.1:9/x"])


def test_long_names_stay_on_the_paper(window: Browser, tmp_path: Path) -> None:
    name, file = "averylongnamewithoutanyspace" * 8, tmp_path / "long.html"
    grid = Grid(name, [Column(name)], [[Cell(name)]], folded=True)
    page = Page(name, name, [Fact(name, name, name)] * 4, [Section("s", name, [grid])], name)
    file.write_text(html(page), "utf-8")
    window.look(paper=True, wide=700)
    window.open(file)
    assert window.run("return document.documentElement.scrollWidth - innerWidth;") <= 0
