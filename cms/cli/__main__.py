"""``python -m cms.cli``: the command line where the ``cms`` script is not on the path."""

import sys

from . import main

sys.exit(main())
