"""LP_agg, the linear program over machines and blocks (theory 1.4), and how its vertices round.

Rounding is that of pseudoforests (1.5, 1.6), with the clean-up of schedules as counts. May import
``solvers``, ``tables`` and ``prices``.
"""
