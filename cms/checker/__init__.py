"""Who judges what is claimed about a problem: a checker for each kind of problem, and ``check``.

Imports ``certificate`` and what stands before it.
"""
