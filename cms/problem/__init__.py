"""A problem: jobs, blocks, configurations, machine types, and what the whole of them must satisfy.

Imports ``values`` and what stands before it.
"""
