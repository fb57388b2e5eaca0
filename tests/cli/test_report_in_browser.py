"""Pages in a real browser: they are drawn, sorted by click and key, and fetch nothing."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cms.fleet.deployment.transition.model import Transition
from cms.fleet.report.page.parts import Cell, Column, Grid, Page, Section
from cms.fleet.report.page.plans import plan_page
from cms.fleet.report.page.rendering import html
from cms.fleet.report.page.shared_day import shared_day_page
from cms.fleet.report.page.sharing import sharing_page
from cms.fleet.report.page.simulations import simulation_page
from cms.fleet.report.page.transitions import transition_page
from cms.fleet.serving.rate_curve import RatePoint
from cms.fleet.sharing import share
from cms.fleet.sharing.edge_problems import posed
from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
from cms.solving.solution import Status
from tests.browser import MISSING, Browser, browser
from tests.fleet.plans import NASTY, many_services
from tests.fleet.simulation.shared import made_up_day
from tests.fleet.transitions import every_kind

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

# Of each element with words of its own, and the ground that it stands on, how far apart they are:
# WCAG 2's contrast. Words in pictures stand on the page or, with the class "on", on a colour that
# the palette's own test looks after.
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
  if (each.matches(".on, .sign, .pale")) continue;
  const look = getComputedStyle(each);
  const [a, b] = [light(each instanceof SVGElement ? look.fill : look.color), light(ground(each))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.push(`${each.outerHTML.slice(0, 90)} has ${contrast.toFixed(2)}`);
}
return found;
"""
_FIRST = 'return [...document.querySelector("tbody").rows].map((row) => row.cells[0].innerText);'
_STATES = 'return [...document.querySelectorAll("th")].map((head) => head.ariaSort);'


def transition() -> Transition:
    return every_kind(NASTY, "code", "gpu-node-eu-west-1a-production-cluster-0017")


def pages() -> dict[str, Page]:
    """A page of each kind, made by hand."""
    plan = many_services(30)
    points = [
        RatePoint(Fraction(1), Fraction(3), Fraction(3), Status.OPTIMAL),
        RatePoint(Fraction(2), Fraction(7), Fraction(6), Status.FEASIBLE),
    ]
    one = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    chat = ModelledService(NASTY, Fraction(100), 60_000_000, Fraction(1, 100), (one,))
    problem = posed([2, 7], [5, 1], [[640_000, 550_000], [300_000, 800_000]])
    return {
        "plan": plan_page(plan, NASTY, "plan.json", points),
        "transition": transition_page(transition(), NASTY),
        "simulation": simulation_page(simulate([chat], requests=5000), NASTY),
        "sharing": sharing_page(problem, share(problem), NASTY),
        "shared day": shared_day_page(made_up_day(), NASTY),
    }


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_every_kind_of_page_is_drawn_without_a_word_on_the_console_and_fetches_nothing(
    window: Browser, tmp_path: Path
) -> None:
    for name, page in pages().items():
        file = tmp_path / f"{name}.html"
        file.write_text(html(page), "utf-8")
        window.requested()
        window.look()
        window.open(file)
        assert window.run("return document.querySelector('h1').innerText;") == NASTY
        drawn = "return [...document.querySelectorAll('.picture')].map((e) => e.clientHeight);"
        assert min(window.run(drawn), default=0) > 40, name
        assert window.requested() == [file.as_uri()], name
        for dark in (False, True):
            window.look(dark=dark)
            assert window.run(_CONTRAST) == [], f"{name}, {'dark' if dark else 'light'}"
        window.look(wide=400)
        beyond = "return document.documentElement.scrollWidth - innerWidth;"
        assert window.run(beyond) <= 0, f"{name} is wider than a telephone"
        window.look(paper=True)
        hidden = "return getComputedStyle(document.querySelector('.sheet')).overflowX;"
        assert window.run(hidden) == "visible", "paper cannot be scrolled"
        assert window.run(_CONTRAST) == [], f"{name}, on paper"
        assert window.logged("browser") == [], name


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
