"""The twelve figures of offline work beside online services, each with what it should be.

``python -m bench.colocation_figures`` makes them, a file a group: ``matching`` (1 to 5),
``predictor`` (6 to 8), ``running`` (9 and 10), ``errors`` (11, in a process of its own), ``day``
(12).
"""
