"""What is there now, read from what tools print: each reader returns facts, `merge` joins them.

Nothing here asks a GPU or a cluster itself.
"""
