"""What is there now, read from what tools print: each reader returns facts, `merge` joins them.

Imports the deployment's model and the catalogue; nothing here asks a GPU or a cluster itself.
"""
