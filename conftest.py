"""Imports the package before doctests do: one by one, its files would hide its functions."""

import cms  # noqa: F401
