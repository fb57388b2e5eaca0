"""Letters for texts of any kind, and what notebooks show."""

from __future__ import annotations

from hypothesis import strategies as st

from cms.values.views import Viewed

#: All that UTF-8 can write: what ``st.text()`` draws from, which it finds out letter by letter, for
#: more than a second in every process of a fresh clone.
LETTERS = st.characters(exclude_categories=["Cs"])


def html_of(shown: Viewed) -> str:
    """Return what a notebook shows of an object that is shown."""
    html = shown._repr_html_()
    assert html is not None
    return html
