"""A first schedule at once, before any prices, programs or solvers.

May import nothing of ``algorithms``.
"""
