"""Who judges what is claimed about a problem: a referee for each kind of problem, and ``check``.

Imports ``certificate`` and what stands before it.
"""
