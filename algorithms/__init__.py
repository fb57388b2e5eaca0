"""The algorithms of the package, one module or folder an idea.

Nothing here is imported by name: every algorithm is an entry point of the group ``cms.algorithms``
and is reached through :func:`cms.solve` or :func:`cms.plugin.registry.load_algorithm`, just as an
algorithm of another distribution is.
"""

# `algorithms` is a name other distributions use too, and pip lets the last one installed win.
# When our entry points load, the registry looks for this marker and names both distributions if
# it finds a stranger's package in our place.
__cms_distribution__ = "configurable-machines"
