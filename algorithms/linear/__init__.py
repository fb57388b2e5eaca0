"""What several algorithms round: linear programs over machines and blocks, and how to round them.

The aggregated program (theory 1.4) and its vertices, the rounding lemma for pseudoforests (1.5),
its consequences (1.6), and the clean-up of schedules. Floating-point solvers only propose; what is
rounded is worked out once more in rationals, and what comes out are integers.
"""
