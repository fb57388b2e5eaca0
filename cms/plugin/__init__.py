"""What an algorithm is, its options and guarantees, and how it is found.

Imports ``reduction`` and what stands before it; no algorithm by name.
"""
