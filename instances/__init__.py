"""Problems to try things on: published scenarios, the theory's worst cases, random families.

Named instances are entry points of the group ``cms.instances``; ``cms plan --published S5`` and
:func:`cms.load_instance` find them there without importing this package by name.
"""

# Checked when our entry points load: see the same marker in `list_algorithms`.
__cms_distribution__ = "configurable-machines"
