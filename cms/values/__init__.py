"""Numbers and names, in and out: exact, frozen, and refused where they are not what they must be.

Imports ``errors`` and ``running``.
"""
