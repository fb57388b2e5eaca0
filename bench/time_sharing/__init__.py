"""The twelve figures of time sharing, with what each should be: ``python -m bench.time_sharing``.

A file a kind of figure, each of which yields lines: what is wanted, what was found, whether it
holds. The published figures are of a measured table that nobody may ship: they are made again where
``CMS_GPULET_TABLE`` names it (and ``CMS_GPULET_OVERHEADS`` a table of overheads, columns ``batch,
overhead_ms``, and ``CMS_GPULET_PAIRS`` one of pairs), else those of the made-up table of
:mod:`instances.families.time_sharing` stand in their place, as they were found first.
"""
