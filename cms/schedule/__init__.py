"""A schedule: groups of machines, made from counts, held in columns, checked exactly.

Imports ``problem`` and what stands before it.
"""
