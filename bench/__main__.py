"""``python -m bench``."""

import sys

from cms.plugin.registry import PluginError, refuse_shadow

if __name__ == "__main__":
    try:
        for top in ("algorithms", "instances"):
            refuse_shadow(top)
    except PluginError as fault:
        sys.exit(f"bench: {fault}")
    from .command import main

    sys.exit(main())
