"""Lower bounds and proofs that there is no schedule: trees of block prices, evaluated exactly.

Imports ``knapsack`` and what stands before it.
"""
