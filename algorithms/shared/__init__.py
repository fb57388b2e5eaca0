"""What several algorithms stand on: machines and jobs in rows, prices, programs for solvers.

* ``jobs``, ``choices``, ``demands``: equal jobs taken together, blocks given to each of them, and
  rows in small integers;
* ``machines``, ``costs``, ``region``: configurations that can matter, and the exact rules that
  prices must obey for each of them;
* ``floats``, ``recognise``, ``guesses``: floats near exact numbers and the way back, first prices,
  groups of jobs;
* ``program``: integer programs for CP-SAT and SCIP;
* ``simplex``: small linear programs in exact rationals.
"""
