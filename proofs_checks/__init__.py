"""What is checked by machine, independently of the rest of the package.

:mod:`proofs_checks.checker` rechecks schedules and certificates from files and imports nothing of
this package. The other files check one theorem each and say what stays on paper; they write their
own linear programs, roundings and enumeration, and hold the package's algorithms, which they reach
by :func:`cms.solve` alone, against them. ``cms-check --theorems`` runs them all.
"""
