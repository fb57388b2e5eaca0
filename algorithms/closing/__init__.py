"""From a fractional schedule to a whole one: rounding, dives, and small integer programs near it.

May import ``solvers``, ``tables`` and ``prices``.
"""
