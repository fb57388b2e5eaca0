"""How sphinx makes the site: ``make docs``."""

import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from nbclient import NotebookClient
from pygments.lexers.shell import BashSessionLexer

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "configurable-machines"
author = "The configurable-machines developers"
version = release = version_of(project)

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "public_names",
]

highlight_language = "none"  # what names no language is what a command prints

# --- Markdown, and pages that are notebooks -------------------------------------------------------

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as the repository's viewers make them, so that one link is right in both
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_code_prompt_show = "the code"
nb_code_prompt_hide = "the code"
# Every kernel warns that nobody encrypts what it says to us, on this machine.
NotebookClient.extra_arguments.default_args = (["--log-level=ERROR"],)
# The kernel does not look at the terminal; without this, reports have its width where there is one.
os.environ["COLUMNS"] = "100"

# --- docstrings -----------------------------------------------------------------------------------

nitpicky = True
# Types in signatures may be others', or of no consequence to readers; all other names must exist.
nitpick_ignore_regex = [("py:class", ".*")]
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# --- looks ----------------------------------------------------------------------------------------

html_theme = "furo"
html_theme_options = {"footer_icons": []}
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Of a transcript what was typed is copied, a text up to its END included.
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"

# `make docs-links` asks the network; journals turn programs away.
linkcheck_anchors = False
linkcheck_timeout = 30
linkcheck_ignore = [r"https://doi\.org/.*"]


class Transcript(BashSessionLexer):
    """Commands after ``$``; a line that begins in another way was printed."""

    _ps1rgx = re.compile(r"^((?:\$ ))(.*\n?)")
    _venv = re.compile(r"(?!)()()")  # a line that begins with a bracket is not one, either


def setup(app):
    """Called by sphinx."""
    app.add_lexer("console", Transcript)
