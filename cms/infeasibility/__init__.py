"""What can be served where the machines do not suffice, and what is missing for the rest.

Imports ``solving`` and what stands before it.
"""
