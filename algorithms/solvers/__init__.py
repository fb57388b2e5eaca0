"""Thin layers over the solvers: CP-SAT, GLOP, SCIP, flows, and a simplex method in rationals."""
