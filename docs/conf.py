"""How sphinx makes the site: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
project = "configurable-machines"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "public_names",
]
html_theme = "furo"
autodoc_default_options = {"members": True}
nitpick_ignore_regex = [("py:class", ".*")]
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
maximum_signature_line_length = 90
myst_heading_anchors = 4
nb_execution_mode = "off"
viewcode_follow_imported_members = True
exclude_patterns = ["_build", "reference/schemas"]
