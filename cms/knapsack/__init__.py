"""The covering knapsack: what serving a job costs at given block prices, exactly; and packing.

Imports ``schedule`` and what stands before it; compiled code is loaded where there is much to do.
"""
