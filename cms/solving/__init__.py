"""One run from the question to the solution: the driver, and the ledger that believes no claim.

Imports ``plugin`` and what stands before it.
"""
