"""The pages that are notebooks run, cell after cell, as in a kernel."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.documentation.pages import PAGES, blocks, shown

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
