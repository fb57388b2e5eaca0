"""What speaks to GLOP, CP-SAT and SCIP, and exact linear algebra: programs and numbers, no jobs.

May import nothing of ``algorithms``.
"""
