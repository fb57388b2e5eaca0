# Usage: apply.sh NODE. On that node, as root, after its work has been drained.
# It does nothing where the GPUs are as they should be, and looks again after it has changed them.
set -uf
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
tool=${MIG_PARTED:-nvidia-mig-parted}
node=${1:?usage: apply.sh NODE}
ask() { "${NVIDIA_SMI:-nvidia-smi}" "$@"; }
fail() {
    printf '%s\n' "$node: $*" >&2
    exit 1
}
{{ uuids }}{% include "node-config.sh" %}

# That they are not is no failure yet, though the tool calls it a fatal one.
if "$tool" assert -f "$here/mig-parted.yaml" -c "$config" >/dev/null 2>&1; then
    echo "$node: the GPUs are as $config has them"
    exit 0
fi
"$tool" apply -f "$here/mig-parted.yaml" -c "$config"
"$tool" assert -f "$here/mig-parted.yaml" -c "$config" ||
    fail "after 'apply' the GPUs are not as $config has them; what it printed says why. If all" \
        "orderings failed, run this again: the driver's starts left no room this time. If a GPU" \
        "is in use by another client and no process shows, restart the telemetry agent (DCGM)" \
        "and run this again."
echo "$node: the GPUs are as $config has them"
