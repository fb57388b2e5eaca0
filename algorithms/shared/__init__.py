"""What several algorithms stand on: machines and jobs in rows, prices, programs for solvers.

* ``jobs``, ``choices``: equal jobs taken together, and blocks given to each of them;
* ``machines``, ``costs``, ``region``: configurations that can matter, and the exact rules that
  prices must obey for each of them;
* ``recognise``: the rational near a float;
* ``program``: integer programs for CP-SAT and SCIP;
* ``simplex``: small linear programs in exact rationals.
"""
