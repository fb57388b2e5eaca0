"""How long work goes on: where a step may be left, threads that are given up, Ctrl-C.

Imports nothing of ours.
"""
