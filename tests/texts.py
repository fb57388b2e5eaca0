"""Letters for texts of any kind."""

from __future__ import annotations

from hypothesis import strategies as st

#: All that UTF-8 can write: what ``st.text()`` draws from, which it finds out letter by letter, for
#: more than a second in every process of a fresh clone.
LETTERS = st.characters(exclude_categories=["Cs"])
