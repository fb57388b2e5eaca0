"""Tools as far as the exported scripts use them: shell scripts over a folder of small tables."""

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


_SLURM = r"""#!/bin/sh
cd "$FAKE" || exit 9
tool=${0##*/}
[ "$tool" != ssh ] || { shift; tool=$1; shift; }
case $tool,$1 in
nvidia-smi,*) awk -v g="$2" '$1 == g { print $2; f = 1 } END { exit !f }' gpu ;;
sinfo,*) cat state ;;
scontrol,reconfigure)
    said=$(sed -n 's/.*Gres=//p' conf/cms/*.conf); echo "offer ${said:-none}" >>log ;;
scontrol,update)
    case $3 in
    state=drain) echo drain >>log; echo "idle+drain    ${4#*=}" >state ;;
    *) echo resume >>log; echo "idle none" >state ;;
    esac ;;
*,assert) cat >/dev/null; [ "$(cat config)" = "$5" ] ;;
*,apply)
    cat >/dev/null
    echo apply >>log; [ "$(cat fault)" = noop ] || echo "$5" >config ;;
esac
"""


class Fake:
    """A folder of tools and of what they know."""

    folder: Path

    def put(self, **tables: str) -> None:
        for name, text in tables.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def done(self) -> list[str]:
        """What has been changed since this was last asked."""
        log = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        self.put(log="")
        return log


class FakeCluster(Fake):
    """A cluster of one node, whose mig-manager answers at once."""

    def __init__(self, folder: Path, answer: str = "success") -> None:
        self.folder = folder
        _tool(folder, "kubectl", _KUBECTL)
        self.put(log="", state="success\n", config="all-disabled\n", closed="", cordoned="")
        self.put(answer=f"{answer}\n", drain="0", drain_says="")

    def says(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8").strip()


class FakeSlurm(Fake):
    """A controller that speaks for its only node, and that node's mig-parted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sinfo", "scontrol", "ssh", "nvidia-mig-parted", "nvidia-smi"):
            _tool(folder, name, _SLURM)
        self.put(log="", state="idle    none\n", config="", fault="none", gpu="0 GPU-0\n1 GPU-1\n")


def _tool(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)


def run(node: Fake, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the fake's tools first on the path, and without waiting."""
    path = f"{node.folder}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "FAKE": str(node.folder), "CMS_PAUSE": "0", "CMS_TRIES": "3"}
    env["CMS_SLURM_DIR"] = str(node.folder / "conf")
    return subprocess.run(
        ["sh", str(script), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
        check=False,
    )
