# Usage: slurm.sh NODE. On the controller, as root; CMS_ON is how a command is run on a node (ssh).
# It stops at the first thing that fails, says so, and can be run again.
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
on=${CMS_ON:-ssh}
tries=${CMS_TRIES:-720}
pause=${CMS_PAUSE:-5}
node=${1:?usage: slurm.sh NODE}
{{ uuids }}{% include "slurm-functions.sh" %}

[ -f "$here/nodes/$node.conf" ] || fail "there is no nodes/$node.conf"
ask() { "$on" "$node" nvidia-smi "$@"; }
{% include "node-config.sh" %}

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
