"""Imports the package before doctests do: one by one, its files would hide its functions."""

import cms  # noqa: F401

# Marimo, which it needs, takes seconds to come; there is no example in it.
collect_ignore = ["cms/fleet/explore/app.py"]
