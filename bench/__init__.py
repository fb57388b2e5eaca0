"""``python -m bench``: who is how close to optimal, how fast, on what.

A *suite* is a list of tasks; a task is one run of one method on one instance and gives one
:class:`~bench.row.RunRow`, whatever happens to it.
``docs/measured/benchmarks.md`` has the protocol.
"""

# Checked where names of distributions could clash: see the same marker in `algorithms`.
__cms_distribution__ = "configurable-machines"
