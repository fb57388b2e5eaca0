"""Tools as far as the exported scripts use them: shell scripts over a folder of small tables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cms.fleet.deployment import Deployment, Mode

# Rows of gi: GPU, profile, start, size, id, whether it has a compute instance.
_SMI = r"""#!/bin/sh
cd "$FAKE" || exit 9
fault=$(cat fault)
alter() { echo "$@" >>log; }
box() { echo "| Name Start:Size |"; cat; echo "+---+"; }
case "$1 $3" in
"-i --query-gpu=uuid") awk -v g="$2" '$1 == g { print $2; f = 1 } END { exit !f }' gpu; exit ;;
"-i --query-gpu=mig.mode.current")
    awk -v g="$2" '$1 == g { print $3 == "on" ? "Enabled" : "Disabled" }' gpu; exit ;;
"-i -mig")
    alter "mig $2 $4"
    if [ "$fault" = reset ]; then echo "Warning: MIG mode is pending"; echo "$4" >pending; exit; fi
    awk -v g="$2" -v to="$4" '$1 == g { $3 = to ? "on" : "off" } 1' gpu >new; mv new gpu; exit ;;
"-i --gpu-reset")
    alter "reset $2"
    awk -v g="$2" -v to="$(cat pending)" '$1 == g { $3 = to ? "on" : "off" } 1' gpu >new
    mv new gpu; exit ;;
esac
shift
gpu=$2
shift 2
case $1 in
-lgi)
    if [ "$(awk -v g="$gpu" '$1 == g { print $3 }' gpu)" = off ]; then
        echo "No MIG-enabled devices found."; exit 6
    fi
    now=gi
    [ ! -f late ] || now=late
    rows=$(awk -v g="$gpu" '$1 == g { printf "|   %d  MIG %s    %d    %s     %d:%d     |\n",
        $1, $2, 9, $5, $3, $4 }' $now)
    rm -f late
    [ -n "$rows" ] || { echo "No GPU instances found: Not Found"; exit 6; }
    echo "$rows" | box; exit ;;
-lci)
    rows=$(awk -v g="$gpu" '$1 == g && $6 { printf "| %d   %d   MIG %s  0  0  0:1 |\n",
        $1, $5, $2 }' gi)
    [ -n "$rows" ] || { echo "No compute instances found: Not Found"; exit 6; }
    echo "$rows" | box; exit ;;
-cgi)
    alter "create $gpu $2"
    [ "$fault" != noop ] || exit 0
    whole=1
    if [ "$fault" = hollow ]; then whole=0; echo none >fault; fi
    profile=${2%:*} start=${2#*:}
    id=$(($(cat next) * 7 % 101)); echo $(($(cat next) + 1)) >next
    size=$(awk -v p="$profile" '$1 == p { print $2 }' sizes)
    if awk -v g="$gpu" -v s="$start" -v n="$size" \
        '$1 == g && $3 < s + n && s < $3 + $4 { f = 1 } END { exit !f }' gi; then
        echo "Insufficient Resources"; exit 19
    fi
    [ "$fault" != late ] || cp gi late
    echo "$gpu $profile $start $size $id $whole" >>gi
    [ $whole = 1 ] || { echo "Failed to create compute instance"; exit 3; }
    exit ;;
-gi)
    alter "${3#-} $gpu $(awk -v i="$2" -v g="$gpu" '$1 == g && $5 == i { print $2 "@" $3 }' gi)"
    if [ "$fault" = busy ]; then
        echo "Unable to destroy Compute Instance ID 0: In use by another client"; exit 19
    fi
    awk -v g="$gpu" -v i="$2" -v how="$3" '
        $1 == g && $5 == i { if (how == "-dgi" && !$6) next; $6 = (how == "-cci") } 1' gi >new
    mv new gi; exit ;;
esac
echo "the fake does not know this"; exit 2
"""

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


class FakeNode:
    """A node whose ``nvidia-smi`` knows what a deployment says of it today."""

    def __init__(self, folder: Path, now: Deployment, node: str, fault: str = "none") -> None:
        self.folder = folder
        cards = now.node(node).gpus
        _tool(folder, "nvidia-smi", _SMI)
        sizes = {profile.name: profile.memory for card in cards for profile in card.gpu.profiles}
        held = [
            (c.index, each.profile, each.start, sizes[each.profile], 60 + 10 * c.index + number, 1)
            for c in cards
            if c.mode is Mode.MIG
            for number, each in enumerate(c.instances)
        ]
        modes = [(c.index, c.uuid or "GPU-x", "on" if c.mode is Mode.MIG else "off") for c in cards]
        for name, rows in (("gi", held), ("gpu", modes), ("sizes", sizes.items())):
            text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
            (folder / name).write_text(text, encoding="utf-8")
        self.put(fault=fault, next="1", log="", pending="")

    def put(self, **tables: str) -> None:
        for name, text in tables.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    @property
    def held(self) -> set[tuple[str, ...]]:
        """GPU, profile, start and whether it is whole, of every instance."""
        rows = map(str.split, (self.folder / "gi").read_text(encoding="utf-8").splitlines())
        return {(row[0], row[1], row[2], row[5]) for row in rows}

    @property
    def ids(self) -> dict[tuple[str, ...], str]:
        rows = map(str.split, (self.folder / "gi").read_text(encoding="utf-8").splitlines())
        return {(row[0], row[1], row[2]): row[4] for row in rows}

    def done(self) -> list[str]:
        """What has been changed since this was last asked."""
        log = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        self.put(log="")
        return log


class FakeCluster(FakeNode):
    """A cluster of one node, whose mig-manager answers at once."""

    def __init__(self, folder: Path, answer: str = "success") -> None:
        self.folder = folder
        _tool(folder, "kubectl", _KUBECTL)
        self.put(log="", state="success\n", config="all-disabled\n", closed="", cordoned="")
        self.put(answer=f"{answer}\n", drain="0", drain_says="")

    def says(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8").strip()


class FakeSlurm(FakeNode):
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


def run(node: FakeNode, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
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
