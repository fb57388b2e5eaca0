"""The script that `slurm` writes, and the functions that it has in common.

How GPUs are cut and where lines come from is said in its head (`HEAD`); in which order Slurm is
spoken to (`FUNCTIONS`) is one text, which the scripts of a transition use as well.
"""

from __future__ import annotations

__all__ = ["FUNCTIONS", "HEAD", "MAIN"]

HEAD = r"""
# Usage: slurm.sh NODE. On the controller, as root; CMS_ON is how a command is run on a node (ssh).
# It stops at the first thing that fails, says so, and can be run again.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
on=${CMS_ON:-ssh}
tries=${CMS_TRIES:-720}
pause=${CMS_PAUSE:-5}
node=${1:?usage: slurm.sh NODE}
"""

#: Functions of ``node``, ``tries`` and ``pause``. They call ``line_of shrunk|nodes``, which prints
#: the node's line of slurm.conf for the change, or after it; ``is_cut``, which says whether its
#: GPUs are cut as they should be, and ``cut``, which makes them so or fails.
FUNCTIONS = r"""
conf=${CMS_SLURM_DIR:-/etc/slurm}
reason="cms: cut anew"

say() { echo "$node: $*"; }
fail() {
    echo "$node: $*" >&2
    exit 1
}

# State and reason of the node, as Slurm has them.
said() { sinfo -h -N -n "$node" -o '%T %E' </dev/null; }
is_ours() { said | grep -q "^drain.* $reason"; }
is_offered() { line_of "$1" | cmp -s - "$conf/cms/$node.conf"; }
offer() {
    mkdir -p "$conf/cms"
    line_of "$1" >"$conf/cms/$node.conf" ||
        fail "$conf/cms/$node.conf could not be written"
    scontrol reconfigure </dev/null || fail "scontrol could not reconfigure; it stays drained"
}

# Lets nothing new begin on the node, unless somebody else has seen to that.
close_it() {
    if said | grep -q '^drain'; then
        is_ours || say "somebody else drains it, so it stays drained at the end"
    else
        say "drain it"
        scontrol update nodename="$node" state=drain reason="$reason" </dev/null ||
            fail "it could not be drained; nothing has changed"
    fi
}

# Takes the node through all that it needs to be cut and offered as it should be.
change() {
    if is_cut && is_offered nodes; then
        say "it is cut and offered as it should be"
    else
        close_it
        tried=0
        until said | grep -q '^drained'; do
            tried=$((tried + 1))
            [ "$tried" -lt "$tries" ] ||
                fail "its jobs have not ended; it goes on draining. Run this again to go on" \
                    "waiting, or: scontrol update nodename=$node state=resume"
            sleep "$pause"
        done
        if ! is_cut; then
            say "offer only what stays as it is cut"
            offer shrunk
            cut
        fi
        say "offer what it has now"
        offer nodes
    fi
    is_ours || return 0
    scontrol update nodename="$node" state=resume </dev/null ||
        fail "it is ready but could not be resumed: scontrol update nodename=$node state=resume"
}
"""

MAIN = r"""
[ -f "$here/nodes/$node.conf" ] || fail "there is no nodes/$node.conf"
config=$(awk -F, -v node="$node" '$1 "" == node "" { print $2 }' "$here/nodes.csv")
[ -n "$config" ] || fail "it is not in nodes.csv"

line_of() { cat "$here/$1/$node.conf"; }
parted() { "$on" "$node" nvidia-mig-parted "$1" -f - -c "$config" <"$here/mig-parted.yaml"; }
# That they are not cut so is no failure yet, though mig-parted calls it a fatal one.
is_cut() { parted assert >/dev/null 2>&1; }
cut() {
    say "cut its GPUs as $config has them"
    parted apply
    parted assert ||
        fail "its GPUs are not as $config has them; it stays drained. What mig-parted printed" \
            "says why; a GPU in use by another client may be held by the telemetry agent (DCGM)"
}

change
say "done"
"""
