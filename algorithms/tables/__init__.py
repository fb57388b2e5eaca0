"""A reduced problem written down for programs: in plain integers, its machines one by one.

May import ``solvers``.
"""
