"""Pages in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cms.fleet.report.page import Page


def write_page(page: Page, output: Path) -> None:
    """Write a page as HTML; ``-`` is standard output."""
    from cms.files.source import write_bytes
    from cms.fleet.report.web import html

    write_bytes(html(page).encode("utf-8"), output)
