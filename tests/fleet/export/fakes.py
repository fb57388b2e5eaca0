"""A kubectl as far as the exported scripts use it, over a folder of small tables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_KUBECTL = r"""#!/bin/sh
cd "$FAKE" || exit 9
case $1 in
get)
    case $5 in
    *state*) cat state ;;
    *config*) cat config ;;
    *cordoned*) cat cordoned ;;
    *) cat closed ;;
    esac
    exit ;;
esac
echo "$*" >>log
case $1 in
cordon) echo true >closed ;;
uncordon) : >closed ;;
drain) cat drain_says >&2; exit "$(cat drain)" ;;
label)
    for word; do
        case $word in
        cms.cordoned=*) echo "${word#*=}" >cordoned ;;
        cms.cordoned-) : >cordoned ;;
        nvidia.com/mig.config=*) echo "${word#*=}" >config; cp answer state ;;
        esac
    done ;;
esac
"""


class FakeCluster:
    """A cluster of one node, whose mig-manager answers at once."""

    def __init__(self, folder: Path, answer: str = "success") -> None:
        self.folder = folder
        tool = folder / "kubectl"
        tool.write_text(_KUBECTL, encoding="utf-8")
        tool.chmod(0o755)
        self.put(log="", state="success\n", config="all-disabled\n", closed="", cordoned="")
        self.put(answer=f"{answer}\n", drain="0", drain_says="")

    def put(self, **tables: str) -> None:
        for name, text in tables.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def done(self) -> list[str]:
        """What has been changed since this was last asked."""
        log = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        self.put(log="")
        return log

    def says(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8").strip()


def run(node: FakeCluster, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the fake's tools first on the path, and without waiting."""
    path = f"{node.folder}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "FAKE": str(node.folder), "CMS_PAUSE": "0", "CMS_TRIES": "3"}
    return subprocess.run(
        ["sh", str(script), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
        check=False,
    )
