"""What pages show as typed prints what they say, and the cells of notebooks run."""

from __future__ import annotations

import doctest
import tomllib
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from IPython.core.interactiveshell import InteractiveShell

from cms.testing import CHECKS
from tests.conftest import Install
from tests.documentation.pages import DOCS, DOCUMENTS, PAGES, blocks, shown
from tests.documentation.transcripts import Shell, difference, nodes_behind_ssh, typed

#: Typed where what it shows is installed, by the test of its own.
PLUGIN = DOCS / "methods" / "write-an-algorithm.md"
TYPED = [
    page
    for page in DOCUMENTS
    if (blocks(page, "console") or blocks(page, "pycon")) and page != PLUGIN
]


def type_again(page: Path) -> None:
    """Commands first, then Python, which may read what they wrote."""
    shell = Shell()
    with nodes_behind_ssh():
        for command, said, *_ in typed(page.read_text("utf-8")):
            differs = difference(said, shell.run(command))
            assert not differs, f"$ {command}\n{differs}"
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    text = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)


@pytest.mark.parametrize("page", TYPED, ids=shown)
def test_what_a_page_types_in_an_empty_folder_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    type_again(page)


@pytest.fixture
def plugin(install: Install) -> None:
    """Install the distribution that the page about algorithms shows."""
    module, *_ = blocks(PLUGIN, "python")
    (project,) = map(tomllib.loads, blocks(PLUGIN, "toml"))
    install(project["project"]["name"], project["project"]["entry-points"], one_by_one=module)


@pytest.mark.usefixtures("plugin")
def test_the_algorithm_of_the_page_is_installed_and_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    type_again(PLUGIN)


@pytest.mark.long
@pytest.mark.usefixtures("plugin")
def test_the_algorithm_of_the_page_passes_the_test_of_the_page() -> None:
    *_, test = blocks(PLUGIN, "python")
    module: dict[str, Any] = {}
    exec(compile(test, "test_one_by_one.py", "exec"), module)
    for check in CHECKS:
        module["test_conformance"](check)


HEAD = "---\nfile_format: mystnb"
RUN = [page for page in PAGES if page.read_text("utf-8").startswith(HEAD)]
LONG = "docs/gallery.md"


@pytest.mark.parametrize(
    "page",
    [pytest.param(each, marks=[pytest.mark.long] * (shown(each) == LONG)) for each in RUN],
    ids=shown,
)
def test_the_cells_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    cells = blocks(page, "{code-cell} ipython3")
    assert cells
    shell = InteractiveShell()
    with mpl.rc_context():
        for cell in cells:
            shell.run_cell(cell).raise_error()


def test_the_notebooks_are_there_and_no_output_is_kept_in_them() -> None:
    assert sum(page.parent.name == "notebooks" for page in RUN) == 3
    assert not [page for page in RUN if "base64" in page.read_text("utf-8")]
