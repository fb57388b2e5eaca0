"""Problems and solutions as folders, whose jobs need not fit into memory.

Imports the other modules of ``files``, and ``shards``.
"""
